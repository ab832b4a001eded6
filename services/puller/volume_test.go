package puller_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/puller"
)

func TestWhatNobodyCanWriteToMayBeTheStoresOwnFile(t *testing.T) {
	d := newFakeStore(t)
	cats := archive(t, tarOf, archiveEntry{name: "cat", content: "meow"})
	data := []event.Data{d.data("/a", cats), d.data("/b", cats), d.data("/c", cats), d.unpack("/d", cats)}
	data[1].Writable = true
	object := filepath.Join(d.dir, data[0].Object)
	for name, tt := range map[string]struct {
		mode   os.FileMode
		linked bool
		want   bool
	}{
		"where it is seen through a mount":        {0o644, true, true},
		"not where it is not":                     {0o644, false, false},
		"not where only its owner could read it":  {0o600, true, false},
		"not where nobody but its group could so": {0o640, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.Chmod(object, tt.mode); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			got := linkedTo(t, d, dir, pod.Pull{Store: d.fileURL(), Data: data, Linked: tt.linked})
			if diff := cmp.Diff([]bool{tt.want, false, tt.want}, got); diff != "" {
				t.Errorf("they are the store's file (-want +got):\n%s", diff)
			}
			if info, err := os.Stat(object); err != nil || info.Mode().Perm() != tt.mode {
				t.Errorf("the store's file is %v now, %v", info.Mode(), err)
			}
			if string(read(t, dataPath(dir, 3)+"/cat")) != "meow" || !bytes.Equal(cats, read(t, dataPath(dir, 1))) {
				t.Error("other bytes came")
			}
		})
	}
}

// linkedTo pulls twice, and returns which of the first three data sets are the store's file; the second time they exist already.
func linkedTo(t *testing.T, d *fakeStore, dir string, cfg pod.Pull) (is []bool) {
	t.Helper()
	run(t, dir, cfg)
	run(t, dir, cfg)
	for n := range 3 {
		is = append(is, same(t, dataPath(dir, n), filepath.Join(d.dir, cfg.Data[n].Object)))
	}
	return is
}

func TestADamagedFileOfTheStoreIsNotLinkedTo(t *testing.T) {
	d := newFakeStore(t)
	data := []event.Data{d.data("/a", []byte("cats"))}
	object := filepath.Join(d.dir, data[0].Object)
	if err := errors.Join(os.WriteFile(object, []byte("dogs"), 0o600), os.Chmod(object, 0o644)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	err := puller.Run(t.Context(), dir, pod.Pull{Store: d.fileURL(), Data: data, Linked: true}, nil)
	if own := new(puller.Error); !errors.As(err, &own) || own.Class != event.ClassInfra || !strings.Contains(own.Message, "has something else than was fetched") {
		t.Errorf("Run: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "data", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

func TestDataThatDoNotFitAreRefusedBeforeTheyAreBrought(t *testing.T) {
	d := newFakeStore(t)
	server, requests := d.serve(t)
	data := []event.Data{d.data("/a", []byte("cats")), d.unpack("/b", []byte("dogs"))}
	for n := range data {
		whole := data[n].Size
		data[n].Size = 1 << 60
		err := puller.Run(t.Context(), t.TempDir(), pod.Pull{Store: server.URL, Data: data}, nil)
		if own := new(puller.Error); !errors.As(err, &own) || own.Class != event.ClassUser || !strings.Contains(own.Message, "need at least 11529215046068469") {
			t.Errorf("Run: %v", err)
		}
		data[n].Size = whole
	}
	if got := requests(); len(got) > 0 {
		t.Errorf("asked for %q", got)
	}
	run(t, t.TempDir(), pod.Pull{Store: server.URL, Data: data[:1]})
}

// TestSixteenPodsWithSharedDataNeedOneTransfer: one pod brings the shared data, the others wait until they are whole; each pod brings its
// other data itself.
func TestSixteenPodsWithSharedDataNeedOneTransfer(t *testing.T) {
	d := newFakeStore(t)
	cats, dogs := bytesOf(3<<20), archive(t, tarOf, archiveEntry{name: "dog", content: "woof"})
	server, requests := d.serve(t)
	cfg := pod.Pull{Store: server.URL, Data: []event.Data{d.data("/cats", cats), d.unpack("/dogs", dogs), d.data("/own", []byte("own"))}, Shared: []int{0, 1}}
	common := t.TempDir()
	const pods = 16
	dirs := make([]string, pods)
	var all sync.WaitGroup
	for i := pods - 1; i >= 0; i-- { // the pod that brings them comes last
		dirs[i] = t.TempDir()
		if err := os.Symlink(common, filepath.Join(dirs[i], pod.Shared)); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			cfg := cfg
			cfg.Index = i
			if err := puller.Run(t.Context(), dirs[i], cfg, nil); err != nil {
				t.Errorf("pod %d: %v", i, err)
				return
			}
			shared := func(name string) string { return filepath.Join(dirs[i], pod.Shared, name) }
			if !bytes.Equal(cats, read(t, shared("0"))) || string(read(t, shared("1/dog"))) != "woof" || string(read(t, dataPath(dirs[i], 2))) != "own" {
				t.Errorf("pod %d has other data", i)
			}
		})
	}
	all.Wait()
	times := make(map[string]int)
	for _, line := range requests() {
		times[strings.TrimPrefix(line, "GET /")]++
	}
	want := map[string]int{cfg.Data[0].Object: 1, cfg.Data[1].Object: 1, cfg.Data[2].Object: pods}
	if diff := cmp.Diff(want, times); diff != "" {
		t.Errorf("transfers (-want +got):\n%s", diff)
	}
}

func TestAPodThatWaitsForSharedDataEndsWhenItIsCanceled(t *testing.T) {
	d := newFakeStore(t)
	cfg := pod.Pull{Store: d.fileURL(), Data: []event.Data{d.data("/cats", []byte("cats"))}, Shared: []int{0}, Index: 3}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- puller.Run(ctx, t.TempDir(), cfg, nil) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}

// errCanceled ends waiting pods.
var errCanceled = errors.New("enough")

// TestHalfOfWhatIsSharedIsNotTakenForTheWhole: a pod that was killed in the middle has left only a file with another name.
func TestHalfOfWhatIsSharedIsNotTakenForTheWhole(t *testing.T) {
	d := newFakeStore(t)
	cfg := pod.Pull{Store: d.fileURL(), Data: []event.Data{d.data("/cats", []byte("cats")), d.unpack("/dogs", archive(t, tarOf, archiveEntry{name: "dog"}))}, Shared: []int{0, 1}}
	dir := t.TempDir()
	shared := filepath.Join(dir, pod.Shared)
	if err := errors.Join(os.MkdirAll(filepath.Join(shared, "1"), 0o755), os.WriteFile(filepath.Join(shared, ".0.tmp"), []byte("ca"), 0o600)); err != nil {
		t.Fatal(err)
	}
	waiting := cfg
	waiting.Index = 1
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- puller.Run(ctx, dir, waiting, nil) }()
	cancel(errCanceled)
	if err := <-ended; !errors.Is(err, errCanceled) {
		t.Errorf("it did not wait: %v", err)
	}
	go func() { ended <- puller.Run(t.Context(), dir, waiting, nil) }()
	run(t, dir, cfg)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if string(read(t, filepath.Join(shared, "0"))) != "cats" {
		t.Error("other data are shared")
	}
}
