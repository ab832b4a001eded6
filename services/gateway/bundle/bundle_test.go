package bundle_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/gateway/bundle"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

const run = "01k8h4fzqh3v7x9y2m5n8p0r4t"

func sumOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// fixture is a document store and an object store with a clock.
type fixture struct {
	t     *testing.T
	docs  *storetest.Memory
	blobs *blob.Store
	dir   string
	clock time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, docs: storetest.NewMemory(), dir: t.TempDir(), clock: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)}
	var err error
	if w.blobs, err = blob.Open(t.Context(), blob.Settings{URL: "file://" + w.dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.blobs.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *fixture) newStore(s bundle.Settings) *bundle.Store {
	return bundle.New(s, w.blobs, w.docs, func() time.Time { return w.clock })
}

// put stores content for an owner.
func (w *fixture) put(k *bundle.Store, owner, content string) (bool, error) {
	w.t.Helper()
	code, repeated, err := k.Put(w.t.Context(), owner, sumOf(content), int64(len(content)), strings.NewReader(content))
	if err == nil && (code.SHA256 != sumOf(content) || code.Size != int64(len(content))) {
		w.t.Errorf("kept as %+v", code)
	}
	return repeated, err
}

// files returns the number of files in the object store.
func (w *fixture) files() int {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "*", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return len(files)
}

// keys returns the keys of all documents of a kind.
func (w *fixture) keys(kind store.Kind) (keys []string) {
	w.t.Helper()
	docs, err := w.docs.Docs(w.t.Context(), kind, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range docs {
		keys = append(keys, d.Key)
	}
	return keys
}

func TestCodeIsKeptOnceWhoeverSendsIt(t *testing.T) {
	w := newFixture(t)
	k := w.newStore(bundle.Settings{})
	for i, owner := range []string{"ann", "ann", "bob"} {
		if repeated, err := w.put(k, owner, "hello"); repeated != (i > 0) || err != nil {
			t.Errorf("sent by %s: repeated %t, %v", owner, repeated, err)
		}
	}
	if n := w.files(); n != 1 {
		t.Errorf("%d objects, want 1", n)
	}
	if diff := cmp.Diff([]string{"ann!" + sumOf("hello"), "bob!" + sumOf("hello")}, w.keys(store.KindCodeBundle)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o, _, err := store.Get[store.Object](t.Context(), w.docs, store.KindObject, sumOf("hello"))
	if err != nil || !o.Uploaded || o.Size != 5 || !o.LastUsed.Equal(w.clock) {
		t.Errorf("remembered as %+v, %v", o, err)
	}
}

func TestNobodySeesWhatDidNotComeWholeOrIsSomethingElse(t *testing.T) {
	cut := errors.New("cut")
	for name, tt := range map[string]struct {
		digest string
		size   int64
		body   io.Reader
		want   any
	}{
		"an upload that is cut":    {sumOf("hello"), 5, io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(cut)), new(*bundle.BodyError)},
		"less than was announced":  {sumOf("hello"), 5, strings.NewReader("hel"), new(*bundle.DigestError)},
		"more than was announced":  {sumOf("hello"), 5, strings.NewReader("hello, world"), new(*bundle.DigestError)},
		"other bytes":              {sumOf("hello"), 5, strings.NewReader("jello"), new(*bundle.DigestError)},
		"no digest":                {"", 5, strings.NewReader("hello"), new(*bundle.DigestError)},
		"a digest that is a path":  {strings.Repeat("../", 21) + "x", 5, strings.NewReader("hello"), new(*bundle.DigestError)},
		"a digest in capitals":     {strings.ToUpper(sumOf("hello")), 5, strings.NewReader("hello"), new(*bundle.DigestError)},
		"more than is taken":       {sumOf("hello"), 101, strings.NewReader(strings.Repeat("x", 101)), new(*bundle.LimitError)},
		"no word of how much":      {sumOf("hello"), -1, strings.NewReader("hello"), new(*bundle.LimitError)},
		"too much behind a lie":    {sumOf("hello"), 5, iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 1<<10))), new(*bundle.DigestError)},
		"nothing, which is said":   {sumOf("hello"), 0, strings.NewReader(""), new(*bundle.DigestError)},
		"a reader that times out":  {sumOf("hello"), 5, iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("hello"))), new(*bundle.BodyError)},
		"something of other bytes": {sumOf("hello"), 5, strings.NewReader("h\x00llo"), new(*bundle.DigestError)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			k := w.newStore(bundle.Settings{MaxSize: 100})
			if _, _, err := k.Put(t.Context(), "ann", tt.digest, tt.size, tt.body); !errors.As(err, tt.want) {
				t.Errorf("kept: %v, want %T", err, tt.want)
			}
			if _, err := k.Find(t.Context(), sumOf("hello")); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("found: %v", err)
			}
			if n := w.files(); n != 0 || len(w.keys(store.KindObject)) != 0 || len(w.keys(store.KindCodeBundle)) != 0 {
				t.Errorf("%d files are left, and %v", n, w.keys(store.KindObject))
			}
			if repeated, err := w.put(k, "ann", "hello"); repeated || err != nil {
				t.Errorf("sent again: %t, %v", repeated, err)
			}
		})
	}
}

func TestOtherBytesAreRefusedAlsoWhereTheRightOnesAreKept(t *testing.T) {
	w := newFixture(t)
	k := w.newStore(bundle.Settings{})
	if _, err := w.put(k, "ann", "hello"); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"jello", "hell", "hello!"} {
		if _, _, err := k.Put(t.Context(), "bob", sumOf("hello"), 5, strings.NewReader(body)); !errors.As(err, new(*bundle.DigestError)) {
			t.Errorf("%q is taken: %v", body, err)
		}
	}
	if got := w.keys(store.KindCodeBundle); len(got) != 1 {
		t.Errorf("kept for %v", got)
	}
}

func TestWhoSendsTheSameAtOnceMakesOneObject(t *testing.T) {
	w := newFixture(t)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			content := strings.Repeat("hello", 10_000)
			_, _, err := w.newStore(bundle.Settings{}).Put(context.Background(), fmt.Sprint("o", i%3), sumOf(content), int64(len(content)), strings.NewReader(content))
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := w.files(); n != 1 || len(w.keys(store.KindCodeBundle)) != 3 {
		t.Errorf("%d objects for %v", n, w.keys(store.KindCodeBundle))
	}
}

func TestWhatWasLostIsTakenAgain(t *testing.T) {
	w := newFixture(t)
	k := w.newStore(bundle.Settings{})
	if _, err := w.put(k, "ann", "hello"); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(w.dir, "*", "*"))
	if err != nil || len(files) != 1 || os.Remove(files[0]) != nil {
		t.Fatal(files, err)
	}
	if _, err := k.Find(t.Context(), sumOf("hello")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("found what is lost: %v", err)
	}
	if repeated, err := w.put(k, "ann", "hello"); repeated || err != nil {
		t.Errorf("sent again: %t, %v", repeated, err)
	}
	if _, err := k.Find(t.Context(), sumOf("hello")); err != nil {
		t.Error(err)
	}
}

func TestWhatWasNotUsedForTheLongestTimeMakesRoomUnlessARunNeedsIt(t *testing.T) {
	w := newFixture(t)
	k := w.newStore(bundle.Settings{MaxSize: 5, MaxTotal: 10})
	for _, content := range []string{"aaaaa", "bbbbb"} {
		w.clock = w.clock.Add(time.Hour)
		if _, err := w.put(k, "ann", content); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.Pin(t.Context(), "ann", sumOf("aaaaa"), run); err != nil {
		t.Fatal(err)
	}
	if _, err := w.put(k, "ann", "ccccc"); err != nil {
		t.Fatal(err)
	}
	want := []string{"ann!" + sumOf("ccccc"), "ann!" + sumOf("aaaaa")}
	got := w.keys(store.KindCodeBundle)
	if len(got) != 2 || !strings.Contains(fmt.Sprint(got), want[0]) || !strings.Contains(fmt.Sprint(got), want[1]) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if _, err := k.Pin(t.Context(), "ann", sumOf("ccccc"), "01k8h4fzqh3v7x9y2m5n8p0r4v"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.put(k, "ann", "ddddd"); !errors.As(err, new(*bundle.LimitError)) {
		t.Errorf("what runs need was made room of: %v", err)
	}
	if _, err := w.put(k, "bob", "ddddd"); err != nil {
		t.Errorf("another owner has no room: %v", err)
	}
}

func TestAPinStaysForARunAndCanBeRepeated(t *testing.T) {
	w := newFixture(t)
	k := w.newStore(bundle.Settings{})
	if _, err := k.Pin(t.Context(), "ann", sumOf("hello"), run); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("pinned what is not there: %v", err)
	}
	if got := w.keys(store.KindPin); len(got) != 0 {
		t.Errorf("pinned %v", got)
	}
	if _, err := w.put(k, "ann", "hello"); err != nil {
		t.Fatal(err)
	}
	w.clock = w.clock.Add(time.Hour)
	for range 2 {
		code, err := k.Pin(t.Context(), "bob", sumOf("hello"), run)
		if err != nil || code.Size != 5 {
			t.Fatal(code, err)
		}
	}
	if diff := cmp.Diff([]string{store.PinKey(sumOf("hello"), run)}, w.keys(store.KindPin)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o, _, err := store.Get[store.Object](t.Context(), w.docs, store.KindObject, sumOf("hello"))
	if err != nil || !o.LastUsed.Equal(w.clock) {
		t.Errorf("used at %s, %v, want %s", o.LastUsed, err, w.clock)
	}
}

func TestWithoutAnObjectStoreNothingIsKept(t *testing.T) {
	k := bundle.New(bundle.Settings{}, nil, storetest.NewMemory(), time.Now)
	if _, _, err := k.Put(t.Context(), "ann", sumOf("hello"), 5, strings.NewReader("hello")); err == nil {
		t.Error("kept")
	}
	if _, err := k.Find(t.Context(), sumOf("hello")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("found: %v", err)
	}
}

func TestSettingsAtFaultAreNamed(t *testing.T) {
	err := bundle.Settings{MaxSize: -1, MaxTotal: -1}.Validate()
	want := "gateway.scripts.max_size: must not be negative\ngateway.scripts.max_total: must not be negative"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
