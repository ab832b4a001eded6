//go:build unix

package git_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/git"
)

func TestAPipeAmongTheTemporaryFilesStopsNoFetch(t *testing.T) {
	url, _ := serve(t, "")
	t.Setenv("TMPDIR", t.TempDir())
	pipe, link := filepath.Join(os.TempDir(), "bai-git-pipe"), filepath.Join(os.TempDir(), "bai-git-link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(t.TempDir(), link)); err != nil {
		t.Fatal(err)
	}
	r, err := git.Opener{}.Open(t.Context(), url, "", "", http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Fetch(t.Context(), func(int) error { return nil }), r.Close()); err != nil {
		t.Error(err)
	}
	for _, file := range []string{pipe, link} {
		if _, err := os.Lstat(file); err != nil {
			t.Errorf("another's file is gone: %v", err)
		}
	}
}
