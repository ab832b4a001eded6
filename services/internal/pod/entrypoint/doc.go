// Package entrypoint runs the benchmark's command and records its output: the program
// between a container and the user's command. It works on Linux only.
//
// The command's standard output and standard error are appended to pod.Output as records,
// in the order in which they were read, and passed on unchanged. The exit is in
// pod.Ended, which is written last.
package entrypoint
