package datadir

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestADataFolderThatEverybodyCanWriteToIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[uint32]struct{ refused, warned bool }{
		0o700: {}, 0o755: {}, 0o750: {}, 0o775: {warned: true}, 0o770: {warned: true}, 0o777: {true, true}, 0o757: {true, false}, 0o703: {true, false}, 0o702: {true, false},
	}
	for mode, want := range tests {
		t.Run(fmt.Sprintf("%04o", mode), func(t *testing.T) {
			t.Parallel()
			err, warning := refuseShared("/data", mode), warnShared("/data", mode)
			if (err != nil) != want.refused || (warning != "") != want.warned {
				t.Errorf("refused: %v, warned: %q; want %+v", err, warning, want)
			}
			for _, message := range []string{fmt.Sprint(err), warning} {
				if message != "" && message != "<nil>" && (!strings.Contains(message, "chmod") || !strings.Contains(message, "/data")) {
					t.Errorf("no remedy: %s", message)
				}
			}
		})
	}
}

func TestWhatTheSystemRefusesBelowTheDataFolderHasARemedy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path string
		err  error
		want string // empty means no remedy
	}{
		"a file of somebody else":         {"/data/token.key", syscall.EACCES, "chown -R"},
		"a folder of somebody else":       {"/data/broker/data", syscall.EPERM, "/data (chown -R)"},
		"a disk that is read-only":        {"/data/objects", syscall.EROFS, "remount"},
		"a disk that is full":             {"/data/pods", syscall.ENOSPC, "free some space"},
		"a quota":                         {"/data/pods", syscall.EDQUOT, "free some space"},
		"a file in the place of a folder": {"/data/broker", syscall.ENOTDIR, "move /data/broker away"},
		"a folder in the place of a file": {"/data/token.key", syscall.EISDIR, "move /data/token.key away"},
		"a disk that fails":               {"/data/store.db", syscall.EIO, "fails"},
		"a path beside the folder":        {"/database", syscall.EACCES, ""},
		"a path elsewhere":                {"/etc/bai.toml", syscall.EACCES, ""},
		"an error that nobody knows":      {"/data/x", errors.New("odd"), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Remedy("/data", tt.path, fmt.Errorf("open: %w", tt.err)); got == "" != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
