package puller_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/puller"
)

// smallDisk returns a file system of its own for the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no file system of the test's own: %v", err)
		}
		t.Skipf("this kernel lets us have no file system of our own: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func TestAnArchiveThatFillsItsVolumeIsToBlameWhereNothingElseHasTakenTheSpace(t *testing.T) {
	const mib = 1 << 20
	raw := archive(t, zstdOf, archiveEntry{name: "a", content: strings.Repeat("\x00", 40*mib)}, archiveEntry{name: "b", content: strings.Repeat("\x00", 40*mib)})
	for name, tt := range map[string]struct {
		disk    string
		others  int // bytes that lie there before
		reserve int64
		class   event.Class
		want    []string
	}{
		"it is larger than the volume":          {"64m", 0, 0, event.ClassUser, []string{"it has 67108864 bytes", "they do not fit"}},
		"it would fit if others had taken less": {"96m", 64 * mib, 0, event.ClassInfra, []string{"it has 100663296 bytes", "others have taken the rest"}},
		"it would fit but for what stays free":  {"96m", 0, 40 * mib, event.ClassUser, []string{"41943040 stay free for others (executor.pods.unpack.reserve", "they do not fit"}},
		"more is to stay free than there is":    {"128m", 0, 1 << 40, event.ClassInfra, []string{"1099511627776 stay free"}},
		"it fits":                               {disk: "96m"},
	} {
		t.Run(name, func(t *testing.T) {
			d, dir := newFakeStore(t), smallDisk(t, tt.disk)
			if err := os.WriteFile(filepath.Join(dir, "others"), make([]byte, tt.others), 0o600); err != nil {
				t.Fatal(err)
			}
			err := puller.Run(t.Context(), dir, pod.Pull{Store: d.fileURL(), Data: []event.Data{d.unpack("/data", raw)}, Reserve: tt.reserve}, nil)
			if tt.class == "" && err == nil {
				return
			}
			assertErrorClass(t, err, tt.class, tt.want...)
			if left, err := filepath.Glob(filepath.Join(dir, "data", "*")); err != nil || len(left) > 0 {
				t.Errorf("left: %q, %v", left, err)
			}
		})
	}
}

func TestDataThatWouldFitHadOthersTakenLessAreNotToBlame(t *testing.T) {
	d, dir := newFakeStore(t), smallDisk(t, "16m")
	if err := os.WriteFile(filepath.Join(dir, "others"), make([]byte, 12<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	server, _ := d.serve(t)
	err := puller.Run(t.Context(), dir, pod.Pull{Store: server.URL, Data: []event.Data{d.data("/a", make([]byte, 8<<20))}}, nil)
	assertErrorClass(t, err, event.ClassInfra, "need at least 8388608 bytes", "of 16777216 free")
}

// assertErrorClass checks the class of an error, and that it contains these words.
func assertErrorClass(t *testing.T, err error, class event.Class, words ...string) {
	t.Helper()
	own := new(puller.Error)
	if !errors.As(err, &own) || own.Class != class {
		t.Fatalf("Run: %v, want class %s", err, class)
	}
	for _, want := range words {
		if !strings.Contains(own.Message, want) {
			t.Errorf("Run: %v, want %q", err, want)
		}
	}
}
