// Package tooltest is for tests that need programs of the machine they run on.
package tooltest

import (
	"os"
	"os/exec"
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
