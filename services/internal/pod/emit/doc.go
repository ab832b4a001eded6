// Package emit is bai-emit as a program of the pod: what client-lib/shell/bai-emit
// does for any shell, it does without one. Both pass the table of the client
// libraries and the suite of the script. It works on Linux only.
package emit
