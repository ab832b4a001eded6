package fetcher_test

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// quick returns settings with short waits.
func quick() dataset.Settings {
	return dataset.Settings{
		Lease: time.Second, PollInterval: 50 * time.Millisecond,
		Sources: source.Settings{Networks: []string{"loopback"}, Retry: time.Millisecond},
	}
}

// fixture has the things that fetchers share.
type fixture struct {
	dir           string
	docs          *sqlite.Store
	objects       *blob.Store
	buckets       source.OpenBucket
	clone         source.OpenRepository
	objectStore   dataset.Objects // used in place of objects, if set
	jobs          *fakeJobs       // cluster that downloads in place of the fetchers; nil for none
	logCore       zapcore.Core    // log of the fetchers
	failPublishes int32           // number of publications of a fetcher that fail at first
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	return openFixture(tb, tb.TempDir())
}

func openFixture(tb testing.TB, dir string) *fixture {
	tb.Helper()
	docs, err := sqlite.Open(tb.Context(), filepath.Join(dir, "store.db"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = docs.Close() }) // it is not used any more
	objects, err := blob.Open(tb.Context(), blob.Settings{URL: "file://" + dir + "/objects"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = objects.Close() }) // it is not used any more
	return &fixture{dir: dir, docs: docs, objects: objects, logCore: zapcore.NewNopCore()}
}

// process is a fetcher with its own bus.
type process struct {
	*eventtest.Bus

	stop func()
}

// start starts a fetcher that works on the orders of w.
func (w *fixture) start(tb testing.TB, s dataset.Settings) *process {
	tb.Helper()
	return w.startOn(tb, s, w.docs)
}

// startOn starts a fetcher that uses the store through docs.
func (w *fixture) startOn(tb testing.TB, s dataset.Settings, docs dataset.Store) *process {
	tb.Helper()
	bus := eventtest.NewBus(tb)
	if w.objectStore == nil {
		w.objectStore = w.objects
	}
	flaky := &flakyBus{Bus: bus}
	flaky.failuresLeft.Store(w.failPublishes)
	deps := fetcher.Deps{Bus: flaky, Dataset: dataset.Deps{Store: docs, Objects: w.objectStore, Buckets: w.buckets, Repositories: w.clone, Log: zap.New(w.logCore)}}
	if w.jobs != nil {
		deps.Jobs, deps.JobTemplate = w.jobs, template()
	}
	parts, err := fetcher.New(s, deps)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() {
			if err := part(ctx); err != nil {
				tb.Error(err)
			}
		})
	}
	p := &process{Bus: bus, stop: sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})}
	tb.Cleanup(p.stop)
	return p
}

// flakyBus is a bus whose first publications fail.
type flakyBus struct {
	*eventtest.Bus

	failuresLeft atomic.Int32
}

func (l *flakyBus) Publish(ctx context.Context, events ...event.Event) error {
	if l.failuresLeft.Add(-1) >= 0 {
		return errors.New("away")
	}
	return l.Bus.Publish(ctx, events...)
}

// blockingStore is a store that can be made to block or to fail with err, like that of
// a process that is stopped or disconnected.
type blockingStore struct {
	*sqlite.Store

	err error

	mu        sync.Mutex
	unblocked chan struct{} // closed while the store does not block
	failures  int           // number of failures
}

func (s *blockingStore) block() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unblocked = make(chan struct{})
}

func (s *blockingStore) unblock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.unblocked)
}

func (s *blockingStore) waitUnblocked() error {
	s.mu.Lock()
	asleep := s.unblocked
	s.mu.Unlock()
	if s.err == nil {
		<-asleep
		return nil
	}
	select {
	case <-asleep:
		return nil
	default:
		s.mu.Lock()
		s.failures++
		s.mu.Unlock()
		return s.err
	}
}

// failureCount returns the number of failures.
func (s *blockingStore) failureCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures
}

// CreateDoc implements store.Docs.
func (s *blockingStore) CreateDoc(ctx context.Context, d store.Doc) error {
	if err := s.waitUnblocked(); err != nil {
		return err
	}
	return s.Store.CreateDoc(ctx, d)
}

// Doc implements store.Docs.
func (s *blockingStore) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if err := s.waitUnblocked(); err != nil {
		return store.Doc{}, err
	}
	return s.Store.Doc(ctx, kind, key)
}

// ReplaceDoc implements store.Docs.
func (s *blockingStore) ReplaceDoc(ctx context.Context, d store.Doc) (int64, error) {
	if err := s.waitUnblocked(); err != nil {
		return 0, err
	}
	return s.Store.ReplaceDoc(ctx, d)
}

// DeleteDoc implements store.Docs.
func (s *blockingStore) DeleteDoc(ctx context.Context, d store.Doc) error {
	if err := s.waitUnblocked(); err != nil {
		return err
	}
	return s.Store.DeleteDoc(ctx, d)
}

// deleteFetched deletes fetched data.
func (w *fixture) deleteFetched(tb testing.TB, d event.Data) error {
	tb.Helper()
	return errors.Join(w.objects.Delete(tb.Context(), d.Object), w.docs.DeleteDoc(tb.Context(), store.Doc{Kind: store.KindObject, Key: d.SHA256}))
}

// cancel cancels a run, as the gateway does.
func (w *fixture) cancel(t *testing.T, p *process, run string) {
	t.Helper()
	if err := store.Create(t.Context(), w.docs, store.KindCancel, run, true); err != nil {
		t.Fatal(err)
	}
	if p != nil {
		p.PublishAndWait(event.Command{Header: event.NewHeader("cancel-"+run, run, "team", "me", noon()), Kind: event.CommandCancel})
	}
}

// waitClean waits until there is no open order, no held lease, and no file in the
// object store other than objects in use.
func (w *fixture) waitClean(t *testing.T) {
	t.Helper()
	leftovers := func() []string {
		all := w.heldLeases(t)
		for _, d := range w.docsOf(t, store.KindOrder) {
			if !strings.HasPrefix(d.Key, "done/") {
				all = append(all, "order "+d.Key)
			}
		}
		return append(all, w.inconsistencies(t)...)
	}
	var last []string
	defer func() {
		if len(last) > 0 {
			t.Logf("left: %q", last)
		}
	}()
	eventually(t, "something is left", func() bool {
		last = leftovers()
		return len(last) == 0
	})
}

// inconsistencies returns the files in the object store that are not objects in use,
// and the objects in use without a file.
func (w *fixture) inconsistencies(t *testing.T) []string {
	t.Helper()
	used := []string{}
	for _, d := range w.docsOf(t, store.KindObject) {
		var o store.Object
		if err := json.Unmarshal(d.Value, &o); err != nil {
			t.Fatal(err)
		}
		used = append(used, strings.TrimPrefix(o.Key, "objects/"))
	}
	slices.Sort(used)
	if diff := cmp.Diff(used, w.files(t)); diff != "" {
		return []string{diff}
	}
	return nil
}

// heldLeases returns the names of the held leases.
func (w *fixture) heldLeases(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, d := range w.docsOf(t, store.KindLease) {
		var l store.Lease
		if err := json.Unmarshal(d.Value, &l); err != nil {
			t.Fatal(err)
		}
		if time.Now().Before(l.ExpiresAt) {
			all = append(all, "lease "+l.Name)
		}
	}
	return all
}

func (w *fixture) docsOf(t *testing.T, kind store.Kind) []store.Doc {
	t.Helper()
	docs, err := w.docs.Docs(t.Context(), kind, "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// files returns the names of all files in the object store, in order.
func (w *fixture) files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, "objects", "objects"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// content returns the content of a fetched data set, and checks its size and digest.
func (w *fixture) content(t *testing.T, d event.Data) []byte {
	t.Helper()
	r, err := w.objects.Open(t.Context(), d.Object)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // the object was only read
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if d.SHA256 != sha256Of(b) || d.Size != int64(len(b)) {
		t.Errorf("%+v is not what is there: %d bytes", d, len(b))
	}
	return b
}

// waitFetched waits until a run is fetched, and returns its data.
func (p *process) waitFetched(tb testing.TB, run string) []event.Data {
	tb.Helper()
	var data []event.Data
	eventually(tb, "run "+run+" is not fetched", func() bool {
		for _, f := range p.finishedEvents(run) {
			tb.Fatalf("run %s: %s %s: %s", run, f.Outcome, f.Reason, f.Message)
		}
		for _, ev := range eventtest.Published[event.Fetched](p.Bus) {
			if ev.Run == run {
				data = ev.Data
				return true
			}
		}
		return false
	})
	return data
}

// waitFinished waits until a run is finished.
func (p *process) waitFinished(t *testing.T, run string) event.Finished {
	t.Helper()
	var all []event.Finished
	eventually(t, "run "+run+" is not finished", func() bool {
		all = p.finishedEvents(run)
		return len(all) > 0
	})
	return all[0]
}

func (p *process) finishedEvents(run string) []event.Finished {
	var all []event.Finished
	for _, ev := range eventtest.Published[event.Finished](p.Bus) {
		if ev.Run == run {
			all = append(all, ev)
		}
	}
	return all
}

// statusMessages returns the messages of the statuses, in order.
func (p *process) statusMessages() []string {
	var all []string
	for _, ev := range eventtest.Published[event.Status](p.Bus) {
		all = append(all, ev.Message)
	}
	return all
}

// site serves content over HTTP, and counts requests.
type site struct {
	*httptest.Server

	mu       sync.Mutex
	pages    map[string]page
	requests map[string]int // number of responses with content, by page
	gate     chan struct{}  // bodies of held pages stop in the middle until it is closed
}

type page struct {
	content []byte
	etag    string
	gated   bool
	status  int
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{pages: make(map[string]page), requests: make(map[string]int), gate: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.release()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *site) put(path string, p page) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = p
	return s.URL + path
}

func (s *site) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gate:
	default:
		close(s.gate)
	}
}

func (s *site) requestCount(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[path]
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	p, ok := s.pages[r.URL.Path]
	if !ok {
		p.status = http.StatusNotFound
	}
	if p.etag != "" {
		w.Header().Set("ETag", p.etag)
		if r.Header.Get("If-None-Match") == p.etag {
			p.status = http.StatusNotModified
		}
	}
	if p.status == 0 {
		s.requests[r.URL.Path]++
	}
	s.mu.Unlock()
	if p.status != 0 {
		w.WriteHeader(p.status)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(p.content)))
	half := 0
	if p.gated {
		half = len(p.content) / 2
		_, _ = w.Write(p.content[:half])          // the client may be gone
		_ = http.NewResponseController(w).Flush() // the client may be gone
		select {
		case <-s.gate:
		case <-r.Context().Done():
			return
		}
	}
	_, _ = w.Write(p.content[half:]) // the client may be gone
}

// data is one source of a descriptor.
type data struct{ src, path, sha256, md5 string }

// runWith returns a run with these sources.
func runWith(run string, sources ...data) event.Submitted {
	var d strings.Builder
	d.WriteString("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"x:1\"\n")
	for i, s := range sources {
		if s.path == "" {
			s.path = fmt.Sprintf("/data/%d", i)
		}
		fmt.Fprintf(&d, "[[data.sources]]\nsrc = %q\npath = %q\n", s.src, s.path)
		if s.sha256 != "" {
			fmt.Fprintf(&d, "sha256 = %q\n", s.sha256)
		}
		if s.md5 != "" {
			fmt.Fprintf(&d, "md5 = %q\n", s.md5)
		}
	}
	s := submitted(run)
	s.Descriptor = d.String()
	return s
}

func sha256Of(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func md5Of(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

func bytesOf(seed byte, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b) // it never fails
	return b
}

// eventually waits until a condition holds. It waits longer for benchmarks.
func eventually(tb testing.TB, message string, cond func() bool) {
	tb.Helper()
	timeout := time.Minute
	if _, measured := tb.(*testing.B); measured || os.Getenv("BAI_BARS") != "" {
		timeout = 10 * time.Minute
	}
	for end := time.Now().Add(timeout); !cond(); {
		if time.Now().After(end) {
			tb.Fatal(message)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// noon returns the time at which runs are submitted.
func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func submitted(run string) event.Submitted {
	return event.Submitted{Header: event.NewHeader("submit-"+run, run, "team", "me", noon()), Name: "n", File: "f.toml", Descriptor: "x", Labels: map[string]string{"a": "b"}}
}

// isInUse reports whether data could not be evicted because they are in use.
func isInUse(err error) bool {
	_, inUse := errors.AsType[*dataset.InUseError](err)
	return inUse
}
