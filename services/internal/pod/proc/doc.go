// Package proc starts processes and learns how they end, as the first process
// of a container or a pod has to: it also reaps those that nobody of ours
// started. It works on Linux only.
package proc
