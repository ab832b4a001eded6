// Package emit is bai-emit as a program of the pod: it does without a shell the work of
// client-lib/shell/bai-emit. Both pass the table of the client libraries and the suite of
// the script. It works on Linux only.
package emit
