package fetcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestTheStockIsListedWithWhereItCameFromAndWhoNeedsIt(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	dogs, cats := s.put("/dogs", page{content: []byte("dogs")}), s.put("/cats", page{content: []byte("cats")})
	p.PublishAndWait(runWith("r1", data{src: dogs + "?token=hunter2"}, data{src: s.put("/more", page{content: []byte("dogs")})}))
	p.PublishAndWait(runWith("r2", data{src: cats}, data{src: s.put("/held", page{content: bytesOf(1, 2<<20), gated: true})}))
	p.waitFetched(t, "r1")
	w.putRun(t, "r1", event.PhaseRunning)
	eventually(t, "cats do not come", func() bool { return len(w.docsOf(t, store.KindObject)) == 2 })
	got := fmt.Sprint(cacheLines(t, w.cache(t, quick())))
	want := fmt.Sprint([]string{
		"cats from [" + cats + "] for [r2]",
		"dogs from [" + dogs + "?token=REDACTED " + s.URL + "/more] for [r1]",
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.putRun(t, "r1", event.PhaseFinished)
	if got := fmt.Sprint(cacheLines(t, w.cache(t, quick()))); !strings.Contains(got, "/more] for []") {
		t.Errorf("a run that is over needs its data: %s", got)
	}
	s.release()
	p.waitFetched(t, "r2")
}

func TestWhatARunNeedsIsNeverEvictedAndTheRestIs(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	dogs := data{src: s.put("/dogs", page{content: []byte("dogs")})}
	p.PublishAndWait(runWith("r1", dogs))
	digest := p.waitFetched(t, "r1")[0].SHA256
	stock := w.cache(t, quick())
	if err := stock.Evict(t.Context(), digest); !isInUse(err) || !strings.Contains(err.Error(), "r1") {
		t.Errorf("Evict for a run that is fetched: %v", err)
	}
	w.putRun(t, "r1", event.PhaseFinished)
	if err := stock.Evict(t.Context(), digest); !isInUse(err) || !strings.Contains(err.Error(), "ago") {
		t.Errorf("Evict of what was just used: %v", err)
	}
	w.setUnusedFor(t, digest, 10*time.Minute)
	if err := stock.Evict(t.Context(), digest); err != nil {
		t.Error(err)
	}
	if err := stock.Evict(t.Context(), digest); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Evict again: %v", err)
	}
	if files := w.files(t); len(files) > 0 {
		t.Errorf("left: %q", files)
	}
	p.PublishAndWait(runWith("r2", dogs))
	w.content(t, p.waitFetched(t, "r2")[0])
	w.waitClean(t)
}

func TestAnObjectIsNotEvictedBetweenItIsGivenToARunAndRemembered(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	dogs := data{src: s.put("/dogs", page{content: []byte("dogs")}), sha256: sha256Of([]byte("dogs"))}
	p.PublishAndWait(runWith("r1", dogs))
	digest := p.waitFetched(t, "r1")[0].SHA256
	w.putRun(t, "r1", event.PhaseFinished)
	w.setUnusedFor(t, digest, time.Hour)
	p.PublishAndWait(runWith("r2", dogs))
	p.waitFetched(t, "r2")
	w.putRun(t, "r2", event.PhaseFinished) // so no run needs it any more
	if err := w.cache(t, quick()).Evict(t.Context(), digest); !isInUse(err) {
		t.Errorf("Evict: %v", err)
	}
}

func TestADamagedObjectIsFoundAndFetchedAgain(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	dogs := data{src: s.put("/dogs", page{content: []byte("dogs")}), sha256: sha256Of([]byte("dogs"))}
	p.PublishAndWait(runWith("r1", dogs))
	d := p.waitFetched(t, "r1")[0]
	stock := w.cache(t, quick())
	if whole, err := stock.Verify(t.Context(), d.SHA256, nil); !whole || err != nil {
		t.Errorf("Verify: %t, %v", whole, err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "objects", d.Object), []byte("dags"), 0o600); err != nil {
		t.Fatal(err)
	}
	if whole, err := stock.Verify(t.Context(), d.SHA256, nil); whole || err != nil {
		t.Errorf("Verify: %t, %v", whole, err)
	}
	if _, err := stock.Verify(t.Context(), d.SHA256, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Verify again: %v", err)
	}
	p.PublishAndWait(runWith("r2", dogs))
	w.content(t, p.waitFetched(t, "r2")[0])
	w.waitClean(t)
}

func TestAPrefetchBringsASourceAndSaysNothing(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	stock := w.cache(t, quick())
	dogs := dataset.Source{URL: s.put("/dogs", page{content: []byte("dogs"), etag: `"a"`})}
	ended := func(name string) (e *dataset.Ending) {
		eventually(t, "it is not prefetched", func() (ok bool) {
			var err error
			if e, _, err = stock.PrefetchResult(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			return e != nil
		})
		return e
	}
	name, err := stock.Prefetch(t.Context(), dogs)
	if err != nil {
		t.Fatal(err)
	}
	if e := ended(name); e.Finished != nil || string(w.content(t, e.Data[0])) != "dogs" {
		t.Errorf("ended %+v", e)
	}
	bad, err := stock.Prefetch(t.Context(), dataset.Source{URL: s.URL + "/gone"})
	if err != nil {
		t.Fatal(err)
	}
	if e := ended(bad); e.Finished == nil || e.Finished.Reason != event.FetchFailed {
		t.Errorf("ended %+v", e)
	}
	w.waitClean(t)
	if lines := p.TakeLines(); len(lines) > 0 {
		t.Errorf("said %q", lines)
	}
	p.PublishAndWait(runWith("r1", data{src: dogs.URL}))
	p.waitFetched(t, "r1")
	if got := s.requestCount("/dogs"); got != 1 {
		t.Errorf("fetched %d times", got)
	}
	w.putRun(t, "r1", event.PhaseFinished)
	if err := stock.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, _, err := stock.PrefetchResult(t.Context(), name); e != nil || !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is still remembered: %+v, %v", e, err)
	}
}

func TestASweepRemovesWhatNeedNotBeKeptAndNothingElse(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	for i, name := range []string{"a", "b", "c", "d"} {
		p.PublishAndWait(runWith(fmt.Sprint("r", i), data{src: s.put("/"+name, page{content: []byte(name)})}))
		d := p.waitFetched(t, fmt.Sprint("r", i))[0]
		w.setUnusedFor(t, d.SHA256, time.Duration(10+i)*time.Hour)
	}
	w.waitClean(t)
	w.putRun(t, "r0", event.PhaseFinished)
	w.putRun(t, "r1", event.PhaseRunning)
	w.putRun(t, "r3", event.PhaseFinished)
	w.writeOrphan(t, "orphan", 2*time.Hour)
	w.writeOrphan(t, "newborn", time.Minute)
	if err := os.Remove(filepath.Join(w.dir, "objects", w.key(t, sha256Of([]byte("d"))))); err != nil {
		t.Fatal(err)
	}
	settings := quick()
	settings.EndingRetention, settings.MaxStored = time.Minute, 1
	stock := w.cache(t, settings)
	want := []string{"b from [" + s.URL + "/b] for [r1]", "c from [" + s.URL + "/c] for [r2]", "done/r1", "done/r2"}
	for i := range 3 { // the second call removes the orphan, the third one changes nothing
		if err := stock.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := cacheLines(t, stock)
		for _, d := range w.docsOf(t, store.KindOrder) {
			got = append(got, d.Key)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if files := w.files(t); len(files) != max(3, 4-i) || !strings.Contains(fmt.Sprint(files), "newborn") {
			t.Errorf("files %q", files)
		}
	}
	if held := w.heldLeases(t); len(held) > 0 {
		t.Errorf("held: %q", held)
	}
	p.TakeLines()
	p.Replay() // also of runs whose orders are deleted
	if lines := strings.Join(p.TakeLines(), "\n"); strings.Contains(lines, "r0") || strings.Contains(lines, "r3") {
		t.Errorf("a replay says %s", lines)
	}
}

// singleObjectStore is an object store that has room for one object.
type singleObjectStore struct {
	*blob.Store

	files func() int
}

// Space implements dataset.Objects.
func (c *singleObjectStore) Space(context.Context) (store.Space, error) {
	if c.files() > 0 {
		return store.Space{Free: 0, Total: 4}, nil
	}
	return store.Space{Free: 4, Total: 4}, nil
}

// Put implements dataset.Objects.
func (c *singleObjectStore) Put(ctx context.Context, key string, size int64, withMD5 bool, fill func(w io.Writer) error) (store.Object, error) {
	if c.files() > 0 {
		return store.Object{}, fmt.Errorf("write object: %w", syscall.ENOSPC)
	}
	return c.Store.Put(ctx, key, size, withMD5, fill)
}

func TestOnAFullDiskWhatNobodyNeedsMakesRoom(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	w.objectStore = &singleObjectStore{w.objects, func() int { return len(w.files(t)) }}
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}))
	digest := p.waitFetched(t, "r1")[0].SHA256
	w.setUnusedFor(t, digest, time.Hour)
	p.PublishAndWait(runWith("r2", data{src: s.put("/cats", page{content: []byte("cats")})}))
	eventually(t, "nobody says that it waits", func() bool { return strings.Contains(strings.Join(p.statusMessages(), " "), "is full") })
	if len(p.finishedEvents("r2")) > 0 || len(w.docsOf(t, store.KindObject)) != 1 {
		t.Error("what a run needs made room")
	}
	w.putRun(t, "r1", event.PhaseFinished)
	p.waitFetched(t, "r2")
	w.waitClean(t)
}

func TestASourceThatWouldNotFitAnEmptyDiskEndsItsRunAndEvictsNothing(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	w.objectStore = &singleObjectStore{w.objects, func() int { return len(w.files(t)) }}
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}))
	digest := p.waitFetched(t, "r1")[0].SHA256
	w.putRun(t, "r1", event.PhaseFinished)
	w.setUnusedFor(t, digest, time.Hour)
	p.PublishAndWait(runWith("r2", data{src: s.put("/whales", page{content: []byte("whales")})}))
	got := p.waitFinished(t, "r2")
	if got.Reason != event.DataTooLarge || !strings.Contains(got.Message, "has 6 B, and the object store has room for 4 B even when it is empty") {
		t.Errorf("finished %s: %s", got.Reason, got.Message)
	}
	if len(w.docsOf(t, store.KindObject)) != 1 {
		t.Error("something was evicted for it")
	}
	w.waitClean(t)
}

// arrivingObjects is an object store in which an object arrives before each listing, and its document after it.
type arrivingObjects struct {
	dataset.Objects

	arrive, note func()
}

func (a arrivingObjects) Items(ctx context.Context) iter.Seq2[store.BucketObject, error] {
	return func(yield func(store.BucketObject, error) bool) {
		a.arrive()
		defer a.note()
		for it, err := range a.Objects.Items(ctx) {
			if !yield(it, err) {
				return
			}
		}
	}
}

func TestAnObjectThatArrivesDuringASweepStaysHoweverLongItsUploadTook(t *testing.T) {
	w := newFixture(t)
	n := 0
	objects := arrivingObjects{
		Objects: w.objects,
		arrive:  func() { n++; w.writeOrphan(t, fmt.Sprint("arrived", n), 2*time.Hour) },
		note: func() {
			o := store.Object{Key: fmt.Sprint("objects/arrived", n), SHA256: sha256Of([]byte(fmt.Sprint(n))), Size: 1, LastUsed: time.Now()}
			if err := store.Create(t.Context(), w.docs, store.KindObject, o.SHA256, o); err != nil {
				t.Error(err)
			}
		},
	}
	c, err := dataset.New(quick(), dataset.Deps{Store: w.docs, Objects: objects, Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := c.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if files := w.files(t); len(files) != 3 {
		t.Errorf("of 3 objects with documents, there are %q", files)
	}
}

func TestOneProcessSweepsAtATime(t *testing.T) {
	w := newFixture(t)
	if _, err := store.Acquire(t.Context(), w.docs, "fetch/sweep", "another", time.Now(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := w.cache(t, quick()).Sweep(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Errorf("Sweep: %v", err)
	}
}

func TestAFetcherSweepsByItself(t *testing.T) {
	w := newFixture(t)
	w.writeOrphan(t, "orphan", 2*time.Hour)
	s := quick()
	s.SweepInterval = 10 * time.Millisecond
	w.start(t, s)
	eventually(t, "it does not", func() bool { return len(w.files(t)) == 0 })
}

func (w *fixture) cache(t *testing.T, s dataset.Settings) *dataset.Cache {
	t.Helper()
	stock, err := dataset.New(s, dataset.Deps{Store: w.docs, Objects: w.objects, Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	return stock
}

// cacheLines returns the content of a cache, one line for each object.
func cacheLines(t *testing.T, s *dataset.Cache) []string {
	t.Helper()
	all, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]string)
	for _, name := range []string{"a", "b", "c", "d", "dogs", "cats"} {
		names[sha256Of([]byte(name))] = name
	}
	var lines []string
	for _, o := range all {
		lines = append(lines, fmt.Sprintf("%s from %s for %s", names[o.SHA256], o.Sources, o.Runs))
	}
	slices.Sort(lines)
	return lines
}

// putRun stores the phase of a run, some time ago.
func (w *fixture) putRun(t *testing.T, id string, phase event.Phase) {
	t.Helper()
	if phase == event.PhaseFinished { // its data were published before its order was closed
		eventually(t, "the order of "+id+" stays open", func() bool {
			_, err := w.docs.Doc(t.Context(), store.KindOrder, "open/"+id)
			return errors.Is(err, store.ErrNotFound)
		})
	}
	r, err := w.docs.Run(t.Context(), id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	r.ID, r.Phase, r.Updated = id, phase, time.Now().Add(-10*time.Minute).UTC()
	r.Revision++
	if err := w.docs.PutRun(t.Context(), r, store.Change{Run: id, Revision: r.Revision, Event: fmt.Sprint(r.Revision)}); err != nil {
		t.Fatal(err)
	}
}

// setUnusedFor sets the time since an object was last used.
func (w *fixture) setUnusedFor(t *testing.T, digest string, unused time.Duration) {
	t.Helper()
	o, version, err := store.Get[store.Object](t.Context(), w.docs, store.KindObject, digest)
	if err != nil {
		t.Fatal(err)
	}
	o.LastUsed = time.Now().Add(-unused).UTC()
	if _, err := store.Replace(t.Context(), w.docs, store.KindObject, digest, version, o); err != nil {
		t.Fatal(err)
	}
}

func (w *fixture) key(t *testing.T, digest string) string {
	t.Helper()
	d, err := w.docs.Doc(t.Context(), store.KindObject, digest)
	var o store.Object
	if err := errors.Join(err, json.Unmarshal(d.Value, &o)); err != nil {
		t.Fatal(err)
	}
	return o.Key
}

// writeOrphan creates a file in the object store that has no document.
func (w *fixture) writeOrphan(t *testing.T, name string, old time.Duration) {
	t.Helper()
	dir := filepath.Join(w.dir, "objects", "objects")
	at := time.Now().Add(-old)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600), os.Chtimes(filepath.Join(dir, name), at, at)); err != nil {
		t.Fatal(err)
	}
}
