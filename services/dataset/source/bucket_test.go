package source_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// fakeBucket is a bucket in memory. It keeps the contract of source.Bucket.
type fakeBucket struct {
	mu        sync.Mutex
	objects   map[string]string
	tags      map[string]int
	unsafeKey string                              // key that cannot be requested
	fail      func(verb, key string, n int) error // error of the n-th request of its kind, from 1
	cut       int                                 // bytes after which a read fails; 0 means never
	n         int
	requests  []string
}

func newFakeBucket(objects map[string]string) *fakeBucket {
	return &fakeBucket{objects: objects, tags: make(map[string]int)}
}

func (b *fakeBucket) record(verb, key string) error {
	b.n++
	b.requests = append(b.requests, verb+" "+key)
	if b.fail == nil {
		return nil
	}
	return b.fail(verb, key, b.n)
}

func (b *fakeBucket) item(key string) store.BucketObject {
	return store.BucketObject{Key: key, Size: int64(len(b.objects[key])), Modified: time.Unix(1, 0), ContentTag: fmt.Sprint(b.tags[key]), InvalidKey: b.unsafeKey == key}
}

// Stat implements source.Bucket.
func (b *fakeBucket) Stat(_ context.Context, key string) (store.BucketObject, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.record("stat", key); err != nil {
		return store.BucketObject{}, err
	}
	if _, ok := b.objects[key]; !ok {
		return store.BucketObject{}, store.ErrNotFound
	}
	return b.item(key), nil
}

// List implements source.Bucket.
func (b *fakeBucket) List(_ context.Context, prefix string) iter.Seq2[store.BucketObject, error] {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.record("list", prefix)
	var all []store.BucketObject
	for key := range b.objects {
		if strings.HasPrefix(key, prefix) {
			all = append(all, b.item(key))
		}
	}
	slices.SortFunc(all, func(a, b store.BucketObject) int { return strings.Compare(a.Key, b.Key) })
	return func(yield func(store.BucketObject, error) bool) {
		for _, it := range all {
			if !yield(it, nil) {
				return
			}
		}
		if err != nil {
			yield(store.BucketObject{}, err)
		}
	}
}

// Read implements source.Bucket.
func (b *fakeBucket) Read(_ context.Context, it store.BucketObject, from, to int64) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.record("read", it.Key); err != nil {
		return nil, err
	}
	content, ok := b.objects[it.Key]
	switch {
	case !ok:
		return nil, store.ErrNotFound
	case b.item(it.Key) != it:
		return nil, store.ErrConflict
	}
	r := io.Reader(strings.NewReader(content[from:to]))
	if b.cut > 0 {
		r = io.LimitReader(r, int64(b.cut))
	}
	return io.NopCloser(r), nil
}

// Close implements source.Bucket.
func (*fakeBucket) Close() error { return nil }

// put changes an object.
func (b *fakeBucket) put(key, content string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[key] = content
	b.tags[key]++
}

func bucketReader(t *testing.T, s source.Settings, b *fakeBucket) *source.Reader {
	t.Helper()
	r := reader(t, s)
	r.ReadBuckets(func(context.Context, string, string, *http.Client) (source.Bucket, error) { return b, nil })
	return r
}

// failFirstOf fails the first of each group of that many requests.
func failFirstOf(of int) func(string, string, int) error {
	return func(_, _ string, n int) error {
		if n%of == 1 {
			return errors.New("503 Slow Down")
		}
		return nil
	}
}

func TestAnObjectOfABucketIsBrought(t *testing.T) {
	big := string(bytesOf(7<<20 + 1))
	for name, tt := range map[string]struct {
		content string
		fail    func(verb, key string, n int) error
		cut     int
	}{
		"a small one":                   {content: "cats"},
		"an empty one":                  {},
		"a large one, in parts":         {content: big},
		"one whose reads are cut":       {content: big, cut: 300_000},
		"one that must be asked again":  {content: big, fail: failFirstOf(3)},
		"one that is cut and asks much": {content: big, fail: failFirstOf(3), cut: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFakeBucket(map[string]string{"a/b": tt.content})
			b.fail, b.cut = tt.fail, tt.cut
			r := bucketReader(t, quick, b)
			var k sink
			a, err := r.Get(t.Context(), source.Request{URL: "s3://x/a/b", OnProgress: k.progress}, k.put)
			if err != nil || a.Tree != nil || k.String() != tt.content || k.done != int64(len(tt.content)) {
				t.Fatalf("Get: %+v, %v, %d of %d bytes, told %d", a, err, k.Len(), len(tt.content), k.done)
			}
			b.fail = nil
			second, err := r.Get(t.Context(), source.Request{URL: "s3://x/a/b", Previous: a.Validators}, k.put)
			if err != nil || !second.Unchanged || k.calls != 1 {
				t.Errorf("Get again: %+v, %v, %d calls", second, err, k.calls)
			}
			b.put("a/b", tt.content)
			second, err = r.Get(t.Context(), source.Request{URL: "s3://x/a/b", Previous: a.Validators}, k.put)
			if err != nil || second.Unchanged || k.calls != 2 {
				t.Errorf("Get what has changed: %+v, %v, %d calls", second, err, k.calls)
			}
		})
	}
}

func TestAPrefixIsBroughtAsAFolder(t *testing.T) {
	objects := map[string]string{
		"set/b": "2", "set/a/x": "1", "set/a.txt": "3", "set/empty": "", "set/big": string(bytesOf(5 << 20)), "set/": "", "set/a/": "",
		"settings": "other", "other": "x", "set/ü n": "4",
	}
	want := map[string]string{"b": "2", "a/x": "1", "a.txt": "3", "empty": "", "big": objects["set/big"], "ü n": "4"}
	for _, url := range []string{"s3://x/set/", "s3://x/set", "gs://x/set/", "azblob://x/set/"} {
		t.Run(url, func(t *testing.T) {
			var k, again sink
			a, err := bucketReader(t, quick, newFakeBucket(objects)).Get(t.Context(), source.Request{URL: url}, k.put)
			if err != nil {
				t.Fatal(err)
			}
			names, files := unpack(t, k.Bytes())
			if diff := cmp.Diff(want, files); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !slices.IsSorted(names) || a.Tree.Files != len(want) {
				t.Errorf("%d files: %q", a.Tree.Files, names)
			}
			flaky := newFakeBucket(objects)
			flaky.cut, flaky.fail = 1<<20, failFirstOf(4)
			b, err := bucketReader(t, quick, flaky).Get(t.Context(), source.Request{URL: url}, again.put)
			if err != nil || !bytes.Equal(k.Bytes(), again.Bytes()) || *b.Tree != *a.Tree {
				t.Errorf("Get again: %+v, %v: equal folders are not equal archives", b, err)
			}
		})
	}
}

func TestWhatChangesWhileItIsReadIsBroughtAsItIsAtTheEnd(t *testing.T) {
	b := newFakeBucket(map[string]string{"set/a": "old", "set/b": "b", "one": "old"})
	var changed, gone bool
	b.fail = func(verb, key string, _ int) error {
		if verb == "read" && !changed {
			changed = true
			b.objects[key], b.tags[key] = "young", 7
		}
		if verb == "read" && key == "set/b" && !gone {
			gone = true
			delete(b.objects, key)
		}
		return nil
	}
	r := bucketReader(t, quick, b)
	var k sink
	if _, err := r.Get(t.Context(), source.Request{URL: "s3://x/one"}, k.put); err != nil || k.String() != "young" {
		t.Errorf("Get: %q, %v", k.String(), err)
	}
	if _, err := r.Get(t.Context(), source.Request{URL: "s3://x/set"}, k.put); err != nil {
		t.Fatal(err)
	}
	if _, files := unpack(t, k.Bytes()); len(files) != 1 || files["a"] != "old" {
		t.Errorf("files %q", files)
	}
}

func TestAnObjectThatChangesForEverIsNobodysFaultButItsPlaces(t *testing.T) {
	b := newFakeBucket(map[string]string{"a": "cats"})
	b.fail = func(verb, key string, n int) error {
		if verb == "read" {
			b.tags[key] = n
		}
		return nil
	}
	_, err := bucketReader(t, quick, b).Get(t.Context(), source.Request{URL: "s3://x/a"}, new(sink).put)
	wantError(t, err, event.FetchFailed, event.ClassInfra, "it changes while it is read; tried 7 times")
}

func TestAKeyThatCannotBeAskedForIsRefusedBeforeItIs(t *testing.T) {
	b := newFakeBucket(map[string]string{"set/a": "1", "set/b?c": "2"})
	b.unsafeKey = "set/b?c"
	r := bucketReader(t, quick, b)
	for url, want := range map[string]string{
		"s3://x/set/":           `object "set/b?c" cannot be read: its key holds characters that cannot be asked for`,
		"s3://x/a__0x2f__b":     "as __0x2f__: give it another name",
		"gs://x/a__0x__0x1F__/": "as __0x2f__: give it another name",
	} {
		_, err := r.Get(t.Context(), source.Request{URL: url}, rejectingSink(t))
		wantError(t, err, event.SourceRefused, event.ClassUser, want)
	}
	for _, url := range []string{"s3://x/set/a", "s3://x/__0x", "s3://x/__0x2f_", "s3://x/__0xg__"} {
		_, err := r.Get(t.Context(), source.Request{URL: url}, new(sink).put)
		if err != nil && !strings.Contains(err.Error(), "has no object") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestABucketThatIsBusyIsAskedWhenItSays(t *testing.T) {
	busy := func(retryAfter string) func(string, string, int) error {
		return func(_, _ string, n int) error {
			if n > 1 {
				return nil
			}
			return fmt.Errorf("get: %w", &store.UnavailableError{Status: 503, RetryAfter: retryAfter, Err: errors.New("SlowDown")})
		}
	}
	b := newFakeBucket(map[string]string{"a": "cats"})
	b.fail = busy("2")
	var waits []string
	start := time.Now()
	_, err := bucketReader(t, quick, b).Get(t.Context(), source.Request{URL: "s3://x/a", OnWait: func(why string) { waits = append(waits, why) }}, new(sink).put)
	if err != nil || time.Since(start) < 2*time.Second {
		t.Errorf("Get: %v, after %s", err, time.Since(start))
	}
	if diff := cmp.Diff([]string{"answers 503 Service Unavailable, retrying in 2s (try 2 of 7)"}, waits); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	b = newFakeBucket(map[string]string{"a": "cats"})
	b.fail = busy("301")
	_, err = bucketReader(t, quick, b).Get(t.Context(), source.Request{URL: "s3://x/a"}, rejectingSink(t))
	wantError(t, err, event.FetchFailed, event.ClassInfra, "answers 503 Service Unavailable and asks to come back in 5m1s")
}

func TestWhatIsRefusedOfABucket(t *testing.T) {
	denied := func(string, string, int) error { return fmt.Errorf("AccessDenied: %w", store.ErrRefused) }
	away := func(string, string, int) error { return errors.New("connection reset") }
	longName := strings.Repeat("x", 256)
	for name, tt := range map[string]struct {
		settings source.Settings
		objects  map[string]string
		fail     func(verb, key string, n int) error
		url      string
		reason   event.Reason
		class    event.Class
		want     string
	}{
		"no bucket":                          {url: "s3:///a", reason: event.SourceRefused, want: "names no bucket"},
		"a host for a bucket":                {url: "s3://me:pw@host:80/a", reason: event.SourceRefused, want: "that is not the name of a bucket"},
		"a way up for a bucket":              {url: "s3://../a", reason: event.SourceRefused, want: "that is not the name of a bucket"},
		"a scheme that settings do not name": {settings: source.Settings{Schemes: []string{"https"}}, url: "s3://x/a", reason: event.SourceRefused, want: `scheme "s3" is not one of https`},
		"a bucket that settings do not name": {settings: source.Settings{Buckets: []string{"s3://y", "gs://x"}}, url: "s3://x/a", reason: event.SourceRefused, want: "sources.buckets"},
		"the platform's own objects":         {settings: source.Settings{ObjectStoreURL: "s3://x/bai"}, objects: map[string]string{"bai/a": "x"}, url: "s3://x/bai/a", reason: event.SourceRefused, want: "lies in the object store of the platform"},
		"what holds them":                    {settings: source.Settings{ObjectStoreURL: "s3://x/bai"}, objects: map[string]string{"bai/a": "x"}, url: "S3://x/", reason: event.SourceRefused, want: "lies in the object store of the platform"},
		"a bucket that is all theirs":        {settings: source.Settings{ObjectStoreURL: "s3://x"}, objects: map[string]string{"a": "x"}, url: "s3://x/a", reason: event.SourceRefused, want: "lies in the object store of the platform"},
		"what is not there":                  {url: "s3://x/gone", reason: event.FetchFailed, want: "has no object"},
		"an empty folder":                    {objects: map[string]string{"e/": ""}, url: "s3://x/e/", reason: event.FetchFailed, want: "none below it"},
		"a way out":                          {objects: map[string]string{"f/../../etc/passwd": "x"}, url: "s3://x/f/", reason: event.SourceRefused, want: `its name leads through ".."`},
		"an absolute name":                   {objects: map[string]string{"f//etc/passwd": "x"}, url: "s3://x/f/", reason: event.SourceRefused, want: "a part of its name is empty"},
		"a dot":                              {objects: map[string]string{"f/./a": "x"}, url: "s3://x/f/", reason: event.SourceRefused, want: `its name leads through "."`},
		"a zero":                             {objects: map[string]string{"f/a\x00b": "x"}, url: "s3://x/f/", reason: event.SourceRefused, want: "a control character"},
		"a new line":                         {objects: map[string]string{"f/a\nb": "x"}, url: "s3://x/f/", reason: event.SourceRefused, want: "a control character"},
		"a long part":                        {objects: map[string]string{"f/" + longName: "x"}, url: "s3://x/f/", reason: event.SourceRefused, want: "too long"},
		"a long name":                        {objects: map[string]string{"f/" + strings.Repeat("x/", 2100) + "y": "x"}, url: "s3://x/f/", reason: event.SourceRefused, want: "too long"},
		"a file that is a folder, too":       {objects: map[string]string{"f/a": "x", "f/a/b/c": "x"}, url: "s3://x/f/", reason: event.SourceRefused, want: `object "f/a" is to be a file, and the folder of "f/a/b/c"`},
		"a folder that has content":          {objects: map[string]string{"f/a/": "x"}, url: "s3://x/f/", reason: event.SourceRefused, want: "a part of its name is empty"},
		"too large an object":                {settings: source.Settings{MaxSize: 3}, objects: map[string]string{"a": "1234"}, url: "s3://x/a", reason: event.DataTooLarge, want: "more than the 3 bytes"},
		"too large a folder":                 {settings: source.Settings{MaxSize: 3}, objects: map[string]string{"f/a": "12", "f/b": "34"}, url: "s3://x/f", reason: event.DataTooLarge, want: "more than the 3 bytes"},
		"too many files":                     {settings: source.Settings{MaxFiles: 1}, objects: map[string]string{"f/a": "1", "f/b": "2"}, url: "s3://x/f", reason: event.DataTooLarge, want: "more than the 1 files"},
		"who does not let us in":             {fail: denied, url: "s3://x/a", reason: event.FetchFailed, want: "the platform is not let in: AccessDenied"},
		"who is away for ever":               {fail: away, url: "s3://x/a", reason: event.FetchFailed, class: event.ClassInfra, want: "connection reset; tried 7 times"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFakeBucket(tt.objects)
			b.fail = tt.fail
			tt.settings.Retry = 1
			if tt.class == "" {
				tt.class = event.ClassUser
			}
			_, err := bucketReader(t, tt.settings, b).Get(t.Context(), source.Request{URL: tt.url}, rejectingSink(t))
			wantError(t, err, tt.reason, tt.class, tt.want)
			if strings.Contains(err.Error(), "pw") {
				t.Errorf("a password is shown: %v", err)
			}
		})
	}
}

func TestWithoutABucketsOpenerTheirURLsAreRefused(t *testing.T) {
	if err := reader(t, quick).Check("s3://x/a"); err == nil {
		t.Error("it is not")
	}
	if err := reader(t, quick).Check("git+https://example.com/x"); err == nil {
		t.Error("it is not")
	}
}

func unpack(t *testing.T, archive []byte) (names []string, files map[string]string) {
	t.Helper()
	files = make(map[string]string)
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, files
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names, files[h.Name] = append(names, h.Name), string(b)
		if !h.ModTime.IsZero() && h.ModTime.Unix() != 0 || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s has a time or an owner", h.Name)
		}
	}
}
