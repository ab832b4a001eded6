package proc_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/pod/proc"
)

func TestWhatIsTooLongForTheKernelIsNamed(t *testing.T) {
	t.Parallel()
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
	table := proc.NewTable()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			null, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			defer null.Close() //nolint:errcheck // only read
			_, err = table.Start(proc.Command{Path: "/bin/true", Args: tt.args, Env: tt.env, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}})
			if err = proc.TooLong(err, tt.args, tt.env); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("said %v, want %q", err, tt.want)
			}
		})
	}
	if err := proc.TooLong(syscall.EACCES, nil, nil); err != syscall.EACCES { //nolint:errorlint // this very error
		t.Errorf("another error became %v", err)
	}
}
