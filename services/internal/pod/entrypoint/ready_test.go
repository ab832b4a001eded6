//go:build linux

package entrypoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/pod/entrypoint"
)

// A command begins, waits until a file called go exists, and only then does what tells that it is ready.
func TestOthersAreToldOnceACommandIsReady(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tells string // a command
		of    entrypoint.Settings
	}{
		"by a file": {"touch $0/file", entrypoint.Settings{ReadyFile: "file"}},
		"by a line": {"echo port 80 >&2", entrypoint.Settings{ReadyLog: `^port \d+$`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tt.of
			s.Dir = t.TempDir()
			if s.ReadyFile != "" {
				s.ReadyFile = filepath.Join(s.Dir, s.ReadyFile)
			}
			s.Args = []string{"sh", "-c", "echo begins; until [ -e $0/go ]; do sleep 0.01; done; " + tt.tells + "; exec sleep 100", s.Dir}
			r := start(t, s)
			isReady := func() bool {
				_, err := os.Stat(filepath.Join(s.Dir, readyFile))
				return err == nil
			}
			if isReady() {
				t.Error("ready before it is")
			}
			if err := os.WriteFile(filepath.Join(s.Dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			r.waitUntil(t, "others are told", isReady)
			_ = r.Process.Signal(os.Interrupt)
			_ = r.Wait()
		})
	}
}

// A file that was there before may be that of another run, whenever a clock says that it was written.
func TestAFileThatWasThereBeforeDoesNotTellThatACommandIsReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := command(t, entrypoint.Settings{Dir: dir, ReadyFile: file, Args: []string{"sh", "-c", "sleep 0.3"}})
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, readyFile)); err == nil {
		t.Error("it is ready")
	}
}

// TestAFileThatIsReplacedTellsThatACommandIsReady has another file from before the command in its place, whose times of change may be from
// before it too: some file systems do not count a rename as one.
func TestAFileThatIsReplacedTellsThatACommandIsReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	for _, path := range []string{file, file + ".new"} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, entrypoint.Settings{Dir: dir, ReadyFile: file, Args: []string{"sh", "-c", "echo begins; mv $0.new $0; exec sleep 100", file}})
	r.waitUntil(t, "others are told", func() bool {
		_, err := os.Stat(filepath.Join(dir, readyFile))
		return err == nil
	})
	_ = r.Process.Signal(os.Interrupt)
	_ = r.Wait()
}
