// Package trainers runs the callbacks of the Python library inside Lightning, Hugging Face's
// Trainer and Keras themselves, with PyTorch of Debian and the others of PyPI.
package trainers
