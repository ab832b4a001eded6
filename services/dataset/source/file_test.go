package source_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/event"
)

func TestAFileIsBrought(t *testing.T) {
	allowed, content := t.TempDir(), bytesOf(3<<20+1)
	put(t, filepath.Join(allowed, "a b.bin"), content)
	link(t, "a b.bin", filepath.Join(allowed, "link"))
	link(t, filepath.Join(allowed, "a b.bin"), filepath.Join(allowed, "absolute"))
	symlink := filepath.Join(t.TempDir(), "allowed")
	link(t, allowed, symlink)
	r := reader(t, source.Settings{Folders: []string{allowed, symlink}})
	for name, url := range map[string]string{
		"by its name":                       "file://" + allowed + "/a%20b.bin",
		"by a link in the folder":           "file://" + allowed + "/link",
		"by an absolute link in the folder": "file://" + allowed + "/absolute",
		"in a folder that is a link itself": "file://" + symlink + "/link",
	} {
		t.Run(name, func(t *testing.T) {
			var k sink
			a, err := r.Get(t.Context(), source.Request{URL: url, OnProgress: k.progress}, k.put)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(content, k.Bytes()) {
				t.Error("other bytes came")
			}
			if k.done != int64(len(content)) || k.total != int64(len(content)) {
				t.Errorf("progress ended at %d of %d", k.done, k.total)
			}
			second, err := r.Get(t.Context(), source.Request{URL: url, Previous: a.Validators}, k.put)
			if err != nil || !second.Unchanged || k.calls != 1 {
				t.Errorf("Get again: %+v, %v, %d calls", second, err, k.calls)
			}
		})
	}
}

func TestAFileThatHasChangedIsBroughtAgain(t *testing.T) {
	allowed := t.TempDir()
	file := filepath.Join(allowed, "x")
	put(t, file, []byte("cats"))
	r := reader(t, source.Settings{Folders: []string{allowed}})
	var k sink
	a, err := r.Get(t.Context(), source.Request{URL: "file://" + file}, k.put)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, []byte("horses"))
	if a, err = r.Get(t.Context(), source.Request{URL: "file://" + file, Previous: a.Validators}, k.put); err != nil || a.Unchanged || k.String() != "horses" {
		t.Errorf("Get: %+v, %v, %q", a, err, k.String())
	}
}

func TestAFileIsRefused(t *testing.T) {
	allowed, secret := t.TempDir(), t.TempDir()
	put(t, filepath.Join(secret, "key"), []byte("secret"))
	put(t, filepath.Join(allowed, "large"), bytesOf(2000))
	link(t, secret, filepath.Join(allowed, "folder"))
	link(t, filepath.Join(secret, "key"), filepath.Join(allowed, "key"))
	link(t, "../"+filepath.Base(secret)+"/key", filepath.Join(allowed, "relative"))
	link(t, "loop", filepath.Join(allowed, "loop"))
	if err := syscall.Mkfifo(filepath.Join(allowed, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := reader(t, source.Settings{Folders: []string{allowed, "/proc/self/fd"}, MaxSize: 1000})
	for name, tt := range map[string]struct {
		file   string
		reason event.Reason
		want   string
	}{
		"a link that leads out":                 {allowed + "/key", event.SourceRefused, "lies in no folder"},
		"a relative link that leads out":        {allowed + "/relative", event.SourceRefused, "lies in no folder"},
		"a folder that is a link":               {allowed + "/folder/key", event.SourceRefused, "lies in no folder"},
		"a link to itself":                      {allowed + "/loop", event.FetchFailed, "too many links"},
		"a file that is not there":              {allowed + "/nothing", event.FetchFailed, "no such file"},
		"a file where a folder is wanted":       {allowed + "/large/x", event.FetchFailed, "not a directory"},
		"a folder":                              {filepath.Dir(allowed) + "/" + filepath.Base(allowed) + "/.", event.SourceRefused, "lies in no folder"},
		"a pipe":                                {allowed + "/pipe", event.FetchFailed, "not a regular file"},
		"a file that is too large":              {allowed + "/large", event.DataTooLarge, "more than the 1000 bytes"},
		"what a system shows as a file":         {"/proc/self/fd/0", event.SourceRefused, "lies in no folder"},
		"a name that is longer than any may be": {allowed + "/" + string(bytes.Repeat([]byte("x"), 300)), event.FetchFailed, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Get(t.Context(), source.Request{URL: "file://" + tt.file}, func(context.Context, int64, func(io.Writer) error) error {
				t.Error("it was brought")
				return nil
			})
			wantError(t, err, tt.reason, event.ClassUser, tt.want)
		})
	}
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}
