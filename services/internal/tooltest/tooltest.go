// Package tooltest is for tests that need programs of the machine they run on.
package tooltest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Program returns the path of a program. Where the machine lacks it the test is
// skipped, or fails where CI is set, since everything is to be tested there. From
// names the Debian package that has it.
func Program(tb testing.TB, name, from string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(tb, "%s is missing: apt-get install %s", name, from)
	}
	return path
}

// Missing skips a test for want of something, or fails it where CI is set.
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatalf(format, args...)
	}
	tb.Skipf(format, args...)
}

// WriteProgram writes a program that can be executed at once. A fork of this process meanwhile would hold the file open for writing, and
// until its exec the kernel would execute the file for nobody: ETXTBSY.
func WriteProgram(tb testing.TB, path, text string) {
	tb.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // any user may execute it
		tb.Fatal(err)
	}
}
