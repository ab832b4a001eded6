package puller_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/puller"
)

func TestDataComeToTheirPlaces(t *testing.T) {
	cats, dogs := bytesOf(40<<20+7), []byte("dogs")
	d := newFakeStore(t)
	data := []event.Data{d.data("/data/cats", cats), d.data("/data/dogs", dogs), d.data("/data/none", nil)}
	data[1].Writable = true
	for name, url := range d.urls(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run(t, dir, pod.Pull{Store: url, Data: data})
			for n, want := range [][]byte{cats, dogs, nil} {
				if got := read(t, dataPath(dir, n)); !bytes.Equal(got, want) {
					t.Errorf("data set %d: %d bytes, want %d, or others", n, len(got), len(want))
				}
			}
			assertLines(t, modes(t, dir), "0 -r--r--r--", "1 -rw-rw-rw-", "2 -r--r--r--")
		})
	}
}

func TestWhatIsThereIsNotBroughtAgain(t *testing.T) {
	d := newFakeStore(t)
	data := []event.Data{d.data("/a", []byte("cats")), d.unpack("/b", archive(t, tarOf, archiveEntry{name: "x", content: "dogs"}))}
	for name, url := range d.urls(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run(t, dir, pod.Pull{Store: url, Data: data})
			before := stat(t, dataPath(dir, 0), dataPath(dir, 1))
			run(t, dir, pod.Pull{Store: "file:///nowhere", Data: data})
			if diff := cmp.Diff(before, stat(t, dataPath(dir, 0), dataPath(dir, 1))); diff != "" {
				t.Errorf("it was replaced:\n%s", diff)
			}
		})
	}
}

func TestWhatAPullerThatWasKilledLeftIsReplaced(t *testing.T) {
	d := newFakeStore(t)
	data := []event.Data{d.data("/a", []byte("cats")), d.data("/b", []byte("dogs")), d.unpack("/c", archive(t, tarOf, archiveEntry{name: "x", content: "fish"}))}
	dir := t.TempDir()
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "data", ".2.tmp", "sub"), 0o755),
		os.MkdirAll(filepath.Join(dir, "data", "2"), 0o755), // not marked
		os.WriteFile(filepath.Join(dir, "data", ".0.tmp"), []byte("ca"), 0o600),
		os.WriteFile(dataPath(dir, 1), []byte("dags"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	run(t, dir, pod.Pull{Store: d.fileURL(), Data: data})
	for path, want := range map[string]string{dataPath(dir, 0): "cats", dataPath(dir, 1): "dogs", dataPath(dir, 2) + "/x": "fish"} {
		if got := string(read(t, path)); got != want {
			t.Errorf("%s says %q, want %q", path, got, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "data", ".*.tmp")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestOneObjectAtTwoPlacesIsPulledOnce(t *testing.T) {
	d := newFakeStore(t)
	cats := archive(t, tarOf, archiveEntry{name: "cat", content: "meow"})
	data := []event.Data{d.data("/a", cats), d.data("/b", cats), d.data("/c", cats), d.unpack("/d", cats), d.unpack("/e", cats)}
	data[1].Writable = true
	server, requests := d.serve(t)
	dir := t.TempDir()
	run(t, dir, pod.Pull{Store: server.URL, Data: data})
	assertLines(t, requests(), "GET /"+data[0].Object)
	for n := range 3 {
		if !bytes.Equal(cats, read(t, dataPath(dir, n))) {
			t.Errorf("data set %d is something else", n)
		}
	}
	for n := 3; n < 5; n++ {
		if got := string(read(t, dataPath(dir, n)+"/cat")); got != "meow" {
			t.Errorf("data set %d says %q", n, got)
		}
	}
	if !same(t, dataPath(dir, 0), dataPath(dir, 2)) {
		t.Error("two that nobody may change are two files")
	}
	if same(t, dataPath(dir, 0), dataPath(dir, 1)) {
		t.Error("one that may be changed is a file that must not")
	}
}

func TestNothingInThePodIsAFileOfTheStore(t *testing.T) {
	d := newFakeStore(t)
	data := []event.Data{d.data("/a", []byte("cats"))}
	dir := t.TempDir()
	run(t, dir, pod.Pull{Store: d.fileURL(), Data: data})
	if same(t, dataPath(dir, 0), filepath.Join(d.dir, data[0].Object)) {
		t.Error("who changes the one changes the other")
	}
}

func TestADownloadThatIsCutGoesOn(t *testing.T) {
	d := newFakeStore(t)
	content := bytesOf(3 << 20)
	data := []event.Data{d.data("/a", content)}
	for name, ranges := range map[string]bool{"with ranges": true, "without ranges": false} {
		t.Run(name, func(t *testing.T) {
			cuts := 3
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !ranges {
					r.Header.Del("Range")
				}
				if cuts--; cuts >= 0 {
					w = &truncatingWriter{ResponseWriter: w, remaining: 1 << 20}
				}
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
			}))
			defer server.Close()
			dir := t.TempDir()
			run(t, dir, pod.Pull{Store: server.URL, Data: data})
			if !bytes.Equal(content, read(t, dataPath(dir, 0))) {
				t.Error("other bytes came")
			}
		})
	}
}

func TestAStoreThatNamesTheRunIsToldItsTokenAndWhereItLeadsIsNot(t *testing.T) {
	d := newFakeStore(t)
	content := bytesOf(3 << 20)
	data := []event.Data{d.data("/a", content)}
	cuts := 2
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.URL.RawQuery != "signature=x" {
			t.Errorf("the bucket is told %q and %q", r.Header.Get("Authorization"), r.URL.RawQuery)
		}
		if cuts--; cuts >= 0 {
			w = &truncatingWriter{ResponseWriter: w, remaining: 1 << 20}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}))
	defer bucket.Close()
	requests := 0
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if r.URL.Path != "/v1/runs/r1/"+data[0].Object || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("the gateway is asked for %s by %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		http.Redirect(w, r, bucket.URL+"/x?signature=x", http.StatusTemporaryRedirect)
	}))
	defer gateway.Close()
	cfg := pod.Pull{Header: event.Header{Run: "r1"}, Token: "secret", Store: gateway.URL + "/v1/runs/{run}", Data: data}
	dir := t.TempDir()
	run(t, dir, cfg)
	if !bytes.Equal(content, read(t, dataPath(dir, 0))) || requests != 3 {
		t.Errorf("other bytes came, or after %d requests instead of 3", requests)
	}
	bucket.Close()
	err := puller.Run(t.Context(), t.TempDir(), cfg, nil)
	if err == nil || strings.Contains(err.Error(), "signature") {
		t.Errorf("Run: %v, want an error without the link", err)
	}
	cfg.Store = serveAll(t, content)
	run(t, t.TempDir(), cfg)
}

// serveAll serves some content to every client, and checks that clients send no token.
func serveAll(t *testing.T, content []byte) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a store that names no run is told a token")
		}
		_, _ = w.Write(content) // or the client is gone
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestFailures(t *testing.T) {
	d := newFakeStore(t)
	good := d.data("/data/good", []byte("good"))
	other := good
	other.SHA256 = strings.Repeat("0", 64)
	gone := d.data("/data/gone", []byte("gone"))
	if err := os.Remove(filepath.Join(d.dir, gone.Object)); err != nil {
		t.Fatal(err)
	}
	outside, nameless := good, good
	outside.Object, nameless.SHA256 = "objects/../../etc/passwd", ""
	text := d.unpack("/data/text", []byte(strings.Repeat("not an archive\n", 100)))
	tests := map[string]struct {
		store string
		data  event.Data
		code  int
		want  string
	}{
		"an object that is another one":          {d.fileURL(), other, pod.PullInfra, "data set /data/good (https://example.com): the object store has something else than was fetched: sha256 770e607624d689265ca6c44884d0807d9b054d23c473c106c72be9de08b7376c, want 0000"},
		"an archive that is another one":         {d.fileURL(), unpacked(other), pod.PullInfra, "the object store has something else than was fetched"},
		"an object that is not there":            {d.fileURL(), gone, pod.PullInfra, "data set /data/gone (https://example.com): object store: open "},
		"an object that is not there, by HTTP":   {serveDir(t, d.dir), gone, pod.PullInfra, "data set /data/gone (https://example.com): object store: it answers 404 Not Found"},
		"an object that is no object":            {d.fileURL(), outside, pod.PullInfra, `"objects/../../etc/passwd" is no key of the object store`},
		"an object without a digest":             {d.fileURL(), nameless, pod.PullInfra, `"" is no sha256 to check it by`},
		"a store that a pod does not read":       {"s3://bucket", good, pod.PullInfra, `object store "s3://bucket": a pod reads file, http and https`},
		"an archive that is none":                {d.fileURL(), text, pod.PullUser, "data set /data/text (https://example.com): unpack: it is neither a tar archive, compressed with gzip, bzip2, zstd or nothing, nor a zip archive"},
		"an archive that is none, by HTTP":       {serveDir(t, d.dir), text, pod.PullUser, "unpack: it is neither a tar archive"},
		"an archive that is another one by HTTP": {serveDir(t, d.dir), unpacked(other), pod.PullInfra, "the object store has something else than was fetched"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			err := puller.Run(t.Context(), dir, pod.Pull{Store: tt.store, Data: []event.Data{tt.data}}, nil)
			words := filepath.Join(dir, "words")
			if code := puller.WriteTermination(words, err); code != tt.code {
				t.Errorf("End: %d, want %d (%v)", code, tt.code, err)
			}
			got := string(read(t, words))
			if !strings.Contains(got, tt.want) || strings.Contains(got, "\n") {
				t.Errorf("last words: %s\nwant %s", got, tt.want)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "data", "*")); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func TestNoErrorHasNoLastWords(t *testing.T) {
	words := filepath.Join(t.TempDir(), "words")
	if code := puller.WriteTermination(words, nil); code != 0 {
		t.Errorf("End: %d", code)
	}
	if _, err := os.Stat(words); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there are last words: %v", err)
	}
}

func TestRunEndsWhenItIsCanceled(t *testing.T) {
	d := newFakeStore(t)
	data := []event.Data{d.data("/a", []byte("cats"))}
	began := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "4")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // or the client is gone
		close(began)
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if err := puller.Run(ctx, t.TempDir(), pod.Pull{Store: server.URL, Data: data}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}

func TestProgressIsToldAndItsLastWordIsAll(t *testing.T) {
	d := newFakeStore(t)
	cats := bytesOf(1000)
	data := []event.Data{d.data("/a", cats), d.data("/b", cats), d.unpack("/c", archive(t, tarOf, archiveEntry{name: "x", content: "fish"}))}
	header := event.NewHeader("launch", "r1", "team", "me", time.Unix(0, 0).UTC())
	var published []event.Status
	cfg := pod.Pull{Store: d.fileURL(), Data: data, Header: header}
	dir := t.TempDir()
	for range 2 { // the second time there is no work
		if err := puller.Run(t.Context(), dir, cfg, func(s event.Status) { published = append(published, s) }); err != nil {
			t.Fatal(err)
		}
	}
	total := data[0].Size + data[2].Size
	last := event.Status{
		Header: header.Cause("status/pulling", fmt.Sprintf("3/3 %d/%d", total, total)), Phase: event.PhasePending,
		Message: "copied 3 of 3 data sets to the machine", Progress: &event.Progress{Done: total, Total: total, Unit: "bytes"},
	}
	if diff := cmp.Diff(last, published[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := published[len(published)-1].Validate(); err != nil {
		t.Error(err)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	want := pod.Pull{Store: "file:///x", Data: []event.Data{{Source: "s", Path: "/p", Object: "objects/o", SHA256: "ab", Size: 3}}}
	b, err := json.Marshal(want)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, pod.PullFile), b, 0o600)); err != nil {
		t.Fatal(err)
	}
	got, err := puller.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Read (-want +got):\n%s", diff)
	}
	if _, err := puller.Read(t.TempDir()); puller.WriteTermination(filepath.Join(dir, "words"), err) != pod.PullInfra {
		t.Errorf("Read of nothing: %v", err)
	}
}

// fakeStore is an object store.
type fakeStore struct {
	tb  testing.TB
	dir string
}

func newFakeStore(t *testing.T) *fakeStore {
	t.Helper()
	d := &fakeStore{t, t.TempDir()}
	if err := os.Mkdir(filepath.Join(d.dir, "objects"), 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *fakeStore) fileURL() string { return "file://" + d.dir }

// data stores content, and returns it as a data set that was fetched to path.
func (d *fakeStore) data(path string, content []byte) event.Data {
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	object := "objects/" + digest[:20]
	if err := os.WriteFile(filepath.Join(d.dir, object), content, 0o600); err != nil {
		d.tb.Fatal(err)
	}
	return event.Data{Source: "https://example.com", Path: path, Object: object, SHA256: digest, Size: int64(len(content))}
}

func (d *fakeStore) unpack(path string, content []byte) event.Data {
	return unpacked(d.data(path, content))
}

func unpacked(data event.Data) event.Data {
	data.Unpack = true
	return data
}

// urls are all ways by which a pod may reach the depot.
func (d *fakeStore) urls(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{"from files": d.fileURL(), "by HTTP": serveDir(t, d.dir) + "/"}
}

// serve returns a server of the store, and a function that returns the requests.
func (d *fakeStore) serve(t *testing.T) (s *httptest.Server, requests func() []string) {
	t.Helper()
	var (
		mu    sync.Mutex
		all   []string
		files = http.FileServer(http.Dir(d.dir))
	)
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all = append(all, r.Method+" "+r.URL.Path)
		mu.Unlock()
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func serveDir(t *testing.T, dir string) string {
	t.Helper()
	s := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(s.Close)
	return s.URL
}

// truncatingWriter ends an answer early.
type truncatingWriter struct {
	http.ResponseWriter

	remaining int
}

// Write implements io.Writer.
func (c *truncatingWriter) Write(p []byte) (int, error) {
	if len(p) >= c.remaining {
		_, _ = c.ResponseWriter.Write(p[:c.remaining])           // or the client is gone
		_ = http.NewResponseController(c.ResponseWriter).Flush() // likewise
		if c, _, err := http.NewResponseController(c.ResponseWriter).Hijack(); err == nil {
			_ = c.Close() // the client may have done so
		}
		return 0, http.ErrAbortHandler
	}
	c.remaining -= len(p)
	return c.ResponseWriter.Write(p)
}

func run(t *testing.T, dir string, cfg pod.Pull) {
	t.Helper()
	if err := puller.Run(t.Context(), dir, cfg, nil); err != nil {
		t.Fatal(err)
	}
}

func dataPath(dir string, n int) string { return filepath.Join(dir, "data", strconv.Itoa(n)) }

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func stat(t *testing.T, paths ...string) []string {
	t.Helper()
	var all []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(p, info.ModTime(), info.Mode()))
	}
	return all
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	ia, erra := os.Stat(a)
	ib, errb := os.Stat(b)
	if err := errors.Join(erra, errb); err != nil {
		t.Fatal(err)
	}
	return os.SameFile(ia, ib)
}

// modes lists all files in place, with their permissions.
func modes(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	root := filepath.Join(dir, "data")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root || strings.HasPrefix(e.Name(), ".") && filepath.Dir(path) == root {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		line := strings.TrimPrefix(path, root+"/") + " " + info.Mode().String()
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line = strings.TrimPrefix(path, root+"/") + " -> " + to
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func assertLines(t *testing.T, got []string, lines ...string) {
	t.Helper()
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func bytesOf(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it never fails
	return b
}
