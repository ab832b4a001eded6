package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

func TestStoreCheckNamesTheDamageAndTheRemedyThatWorks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "it's data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "store.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := storeCheck(t, dir); err != nil || out != path+" is whole\n" {
		t.Errorf("said %q, %v", out, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 4*4096), 3*4096); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = storeCheck(t, dir)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "damaged") {
		t.Fatalf("said %v, want the file and that it is damaged", err)
	}
	_, remedy, ok := strings.Cut(err.Error(), "start again: ")
	if !ok {
		t.Fatalf("said %v, want the remedy", err)
	}
	remedy, _, _ = strings.Cut(remedy, "\n")
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", remedy).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", remedy, err, out)
	}
	if s, err = sqlite.Open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Errorf("the damaged file is not kept: %v", err)
	}
}

func storeCheck(t *testing.T, dir string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := command(&out, &out)
	c.SetArgs([]string{"admin", "store", "check", "--data", dir})
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}
