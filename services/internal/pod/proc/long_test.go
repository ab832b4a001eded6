//go:build linux

package proc_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/pod/proc"
)

// tooLong checks that an argument or a variable that the kernel does not take is
// named. It takes the ends of the processes that it starts.
func tooLong(t *testing.T, table *proc.Table) {
	t.Helper()
	long := strings.Repeat("x", 200_000)
	tests := map[string]struct {
		args, env []string
		want      string // empty where it starts
	}{
		"what is short":             {[]string{"true"}, []string{"A=b"}, ""},
		"a variable of 200 KB":      {[]string{"true"}, []string{"A=b", "LONG=" + long}, `the variable "LONG" has 200005 bytes with its name, and the kernel takes 131071`},
		"an argument of 200 KB":     {[]string{"true", "b", long}, nil, "argument 2 has 200000 bytes, and the kernel takes 131071"},
		"many that are long enough": {[]string{"true"}, slices.Repeat([]string{"A=" + long[:100_000]}, 100), "arguments and variables have 10000305 bytes in all"},
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close() //nolint:errcheck // only read
	for name, tt := range tests {
		pid, err := table.Start(proc.Command{Path: "/bin/true", Args: tt.args, Env: tt.env, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}})
		if err == nil {
			if e := <-table.Ends(); e.PID != pid {
				t.Errorf("%s: process %d ended, want %d", name, e.PID, pid)
			}
		}
		if err = proc.TooLong(err, tt.args, tt.env); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: said %v, want %q", name, err, tt.want)
		}
	}
}

func TestAnErrorThatIsNotAboutLengthStays(t *testing.T) {
	t.Parallel()
	if err := proc.TooLong(syscall.EACCES, nil, nil); err != syscall.EACCES { //nolint:errorlint // this very error
		t.Errorf("another error became %v", err)
	}
}
