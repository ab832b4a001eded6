// Package entrypoint runs the benchmark's command and keeps what it writes: the
// program between a container and what the user asked to run in it. It works on
// Linux only.
//
// What the command writes to standard output and standard error is appended to
// pod.Output as records, in the order in which it was read, and passed on
// unchanged. How the command ended is in pod.Ended, which is written last.
package entrypoint
