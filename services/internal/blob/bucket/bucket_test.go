package bucket_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// fakeCloud answers as much of the protocols of Google and Azure as is asked for
// here. It stands in for servers that cannot be had.
type fakeCloud struct {
	objects map[string]string
	denied  bool
	strange bool // leaves out fields that Azure always sends
	busy    bool
}

const etag, modified = "v1", "Fri, 02 Jan 2026 03:04:05 GMT"

// answerBusy answers that it cannot answer now.
func (c *fakeCloud) answerBusy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "7")
	w.WriteHeader(http.StatusTooManyRequests)
}

func (c *fakeCloud) keys(prefix string) (keys []string) {
	for key := range c.objects {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (c *fakeCloud) google(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, "/storage/v1/b/cats/o")
	key := strings.TrimPrefix(path, "/")
	content, there := c.objects[key]
	attrs := func(key string) map[string]any {
		return map[string]any{"name": key, "bucket": "cats", "size": fmt.Sprint(len(c.objects[key])), "etag": etag, "updated": "2026-01-02T03:04:05Z", "generation": "1"}
	}
	switch {
	case c.busy:
		c.answerBusy(w)
	case c.denied:
		w.WriteHeader(http.StatusForbidden)
	case !ok || path != "" && !there:
		w.WriteHeader(http.StatusNotFound)
	case path == "":
		items := []any{}
		for _, key := range c.keys(r.URL.Query().Get("prefix")) {
			items = append(items, attrs(key))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items}) // or the client is gone
	case r.URL.Query().Get("alt") == "media":
		w.Header().Set("ETag", etag)
		w.Header().Set("X-Goog-Generation", "1")
		http.ServeContent(w, r, "", modTime(), strings.NewReader(content))
	default:
		_ = json.NewEncoder(w).Encode(attrs(key)) // likewise
	}
}

func (c *fakeCloud) azure(w http.ResponseWriter, r *http.Request) {
	key, ok := strings.CutPrefix(r.URL.Path, "/cats/")
	content, there := c.objects[key]
	switch {
	case c.busy:
		c.answerBusy(w)
	case c.denied:
		w.Header().Set("x-ms-error-code", "AuthorizationFailure")
		w.WriteHeader(http.StatusForbidden)
	case r.URL.Query().Get("comp") == "list" && r.URL.Path == "/cats":
		_, _ = io.WriteString(w, `<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="cats"><Blobs>`)
		for _, key := range c.keys(r.URL.Query().Get("prefix")) {
			_, _ = fmt.Fprintf(w, `<Blob><Name>%s</Name><Properties><Last-Modified>%s</Last-Modified><Etag>"%s"</Etag><Content-Length>%d</Content-Length></Properties></Blob>`, key, modified, etag, len(c.objects[key]))
		}
		_, _ = io.WriteString(w, `</Blobs><NextMarker/></EnumerationResults>`)
	case !ok || !there:
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("ETag", `"`+etag+`"`)
		if !c.strange {
			w.Header().Set("x-ms-creation-time", modified)
		}
		if rng := r.Header.Get("x-ms-range"); rng != "" {
			r.Header.Set("Range", rng)
		}
		http.ServeContent(w, r, "", modTime(), strings.NewReader(content))
	}
}

func modTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func TestBucketsOfGoogleAndAzureAreRead(t *testing.T) {
	for scheme, serve := range map[string]func(*fakeCloud) http.HandlerFunc{
		"gs":     func(c *fakeCloud) http.HandlerFunc { return c.google },
		"azblob": func(c *fakeCloud) http.HandlerFunc { return c.azure },
	} {
		t.Run(scheme, func(t *testing.T) {
			c := &fakeCloud{objects: map[string]string{"a": "cats and dogs", "set/x": "1", "set/y": "22", "empty": ""}}
			b := open(t, scheme, serve(c))
			checkRead(t, b)
			checkList(t, b)
			checkError(t, b, store.ErrNotFound)
			c.denied = true
			checkError(t, b, store.ErrRefused)
			c.busy = true
			checkBusy(t, b)
		})
	}
}

func TestAServerOfS3IsAskedAgainWhenItSays(t *testing.T) {
	c := &fakeCloud{busy: true}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answerBusy(w) }))
	t.Cleanup(server.Close)
	o, err := bucket.New(bucket.Settings{S3: bucket.S3{Endpoint: server.URL, PathStyle: true, Anonymous: true}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.Open(t.Context(), "s3", "cats", server.Client())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }() // it was only read
	checkBusy(t, b)
}

// checkBusy checks that a bucket says when it may be asked again.
func checkBusy(t *testing.T, b *bucket.Bucket) {
	t.Helper()
	_, read := b.Read(t.Context(), store.BucketObject{Key: "a", Size: 1}, 0, 1)
	_, stat := b.Stat(t.Context(), "a")
	var list error
	for _, list = range b.List(t.Context(), "") {
		break
	}
	for verb, err := range map[string]error{"Read": read, "Stat": stat, "List": list} {
		busy := new(store.UnavailableError)
		if !errors.As(err, &busy) || busy.Status != http.StatusTooManyRequests || busy.RetryAfter != "7" {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func TestAnObjectThatCannotBeAskedForByItsNameIsListedAsOdd(t *testing.T) {
	fine := []string{"__0x", "a b/ü", "fine"}
	for scheme, tt := range map[string]struct {
		serve func(*fakeCloud) http.HandlerFunc
		odd   []string
	}{
		"gs":     {func(c *fakeCloud) http.HandlerFunc { return c.google }, []string{"a\nb", "a/../b", "a__0x2f__b"}},
		"azblob": {func(c *fakeCloud) http.HandlerFunc { return c.azure }, []string{"a?b", "a#b", `a\b`, "a/../b", "a__0x2f__b"}},
	} {
		t.Run(scheme, func(t *testing.T) {
			c := &fakeCloud{objects: make(map[string]string)}
			for _, key := range append(tt.odd, fine...) {
				c.objects[key] = "x"
			}
			var got []string
			odd := 0
			for it, err := range open(t, scheme, tt.serve(c)).List(t.Context(), "") {
				switch {
				case err != nil:
					t.Fatal(err)
				case it.InvalidKey:
					odd++
				default:
					got = append(got, it.Key)
				}
			}
			if diff := cmp.Diff(fine, got); diff != "" || odd != len(tt.odd) {
				t.Errorf("%d are odd, want %d; the others (-want +got):\n%s", odd, len(tt.odd), diff)
			}
		})
	}
}

func TestAnAnswerThatLeavesOutWhatACloudAlwaysSaysIsAnError(t *testing.T) {
	c := &fakeCloud{objects: map[string]string{"a": "cats"}, strange: true}
	if _, err := open(t, "azblob", c.azure).Stat(t.Context(), "a"); err == nil {
		t.Error("it is not")
	}
}

func checkError(t *testing.T, b *bucket.Bucket, want error) {
	t.Helper()
	if _, err := b.Stat(t.Context(), "gone"); !errors.Is(err, want) {
		t.Errorf("Stat: %v, want %v", err, want)
	}
	if _, err := b.Read(t.Context(), store.BucketObject{Key: "gone", Size: 1}, 0, 1); !errors.Is(err, want) {
		t.Errorf("Read: %v, want %v", err, want)
	}
}

func open(t *testing.T, scheme string, serve http.HandlerFunc) *bucket.Bucket {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	o, err := bucket.New(bucket.Settings{
		GS:     bucket.GS{Endpoint: server.URL + "/storage/v1/", Anonymous: true},
		Azblob: bucket.Azblob{Endpoint: server.URL, Anonymous: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.Open(t.Context(), scheme, "cats", server.Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() }) // it was only read
	return b
}

func TestSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		settings bucket.Settings
		want     string
	}{
		"a key without its secret": {bucket.Settings{S3: bucket.S3{AccessKeyFile: "x"}}, "buckets.s3: access_key_file and secret_key_file belong together"},
		"a host for an endpoint":   {bucket.Settings{S3: bucket.S3{Endpoint: "minio:9000"}}, `buckets.s3.endpoint: "minio:9000" is not a URL`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := bucket.New(tt.settings); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New: %v, want %s", err, tt.want)
			}
		})
	}
	o, err := bucket.New(bucket.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Open(t.Context(), "azblob", "x", http.DefaultClient); err == nil || !strings.Contains(err.Error(), "buckets.azblob.account") {
		t.Errorf("Open: %v", err)
	}
	if _, err := o.Open(t.Context(), "ftp", "x", http.DefaultClient); !errors.Is(err, store.ErrRefused) {
		t.Errorf("Open: %v", err)
	}
}

func checkRead(t *testing.T, b *bucket.Bucket) {
	t.Helper()
	item, err := b.Stat(t.Context(), "a")
	if err != nil || item.Size != 13 || !item.Modified.Equal(modTime()) || item.ContentTag != etag {
		t.Fatalf("Stat: %+v, %v", item, err)
	}
	r, err := b.Read(t.Context(), item, 5, 8)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || string(got) != "and" {
		t.Errorf("Read: %q, %v", got, err)
	}
	item.Size = 12
	if _, err := b.Read(t.Context(), item, 0, 12); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Read what has changed: %v", err)
	}
}

func checkList(t *testing.T, b *bucket.Bucket) {
	t.Helper()
	var keys []string
	for it, err := range b.List(t.Context(), "set/") {
		if err != nil || it.ContentTag != etag {
			t.Fatalf("List: %+v, %v", it, err)
		}
		keys = append(keys, fmt.Sprint(it.Key, it.Size))
	}
	if diff := cmp.Diff([]string{"set/x1", "set/y2"}, keys); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
}
