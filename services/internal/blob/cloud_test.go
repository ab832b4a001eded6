package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/store"
	s3bed "github.com/benchmark-ai/bai/services/test/testbed/s3"
)

// newBucketStore opens a store in a bucket of a real server of S3's protocol.
func newBucketStore(t *testing.T) (*blob.Store, *s3bed.Server) {
	t.Helper()
	server := s3bed.Start(t)
	return openBucket(t, server, server.Endpoint), server
}

// openBucket opens a store in a bucket of a server that is reached at endpoint.
func openBucket(t *testing.T, server *s3bed.Server, endpoint string) *blob.Store {
	t.Helper()
	server.Bucket(t, "team")
	dir := t.TempDir()
	id, key := filepath.Join(dir, "id"), filepath.Join(dir, "key")
	if err := errors.Join(os.WriteFile(id, []byte(server.AccessKey), 0o600), os.WriteFile(key, []byte(server.SecretKey), 0o600)); err != nil {
		t.Fatal(err)
	}
	clouds, err := bucket.New(bucket.Settings{S3: bucket.S3{Endpoint: endpoint, Region: server.Region, PathStyle: true, AccessKeyFile: id, SecretKeyFile: key}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := blob.OpenIn(t.Context(), blob.Settings{URL: "s3://team/bai"}, clouds, zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestAnObjectHasNoMorePiecesThanABucketTakesAndTheyLittleMemory(t *testing.T) {
	for name, c := range map[string]struct{ size, most, memory int64 }{
		"a small one":                            {1, 1, 20 << 20},
		"a large one":                            {40 << 30, 8192, 20 << 20},
		"one that is too large for the smallest": {100 << 30, 9000, 40 << 20},
		"the largest of S3":                      {5 << 40, 9000, 2 << 30},
		"one of unknown size":                    {-1, 10000, 24 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			bytes, once := blob.UploadParts(c.size)
			size := c.size
			if size < 0 {
				size = 78 << 30
			}
			if n := (size + int64(bytes) - 1) / int64(bytes); n > c.most {
				t.Errorf("it has %d pieces, want %d at most", n, c.most)
			}
			if memory := int64(bytes) * int64(once+2); memory > c.memory { // the first is read apart from the others
				t.Errorf("they take %d bytes of memory, want %d at most", memory, c.memory)
			}
			if bytes < 5<<20 {
				t.Errorf("a piece has %d bytes: S3 refuses it", bytes)
			}
		})
	}
}

func TestABucketKeepsObjectsWholeAndOnce(t *testing.T) {
	s, server := newBucketStore(t)
	for key, size := range map[string]int64{"objects/small": 5, "objects/none": 0, "objects/big": 40<<20 + 7, "objects/untold": 20 << 20} {
		checkPutOnce(t, s, key, size)
	}
	want(t, keys(t, s), "objects/big", "objects/none", "objects/small", "objects/untold")
	if _, err := os.Stat(filepath.Join(server.Dir, "team", "bai", "objects", "big")); err != nil {
		t.Errorf("it does not lie below the prefix: %v", err)
	}
	if err := errors.Join(s.Delete(t.Context(), "objects/big"), s.Delete(t.Context(), "objects/big")); err != nil {
		t.Error(err)
	}
	if _, err := s.Size(t.Context(), "objects/big"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Size of what was deleted: %v", err)
	}
}

// checkPutOnce puts an object, and then another under its key.
func checkPutOnce(t *testing.T, s *blob.Store, key string, size int64) {
	t.Helper()
	content, declared := bytesOf(int(size)), size
	if key == "objects/untold" {
		declared = -1
	}
	o, err := s.Put(t.Context(), key, declared, true, write(content))
	if err != nil {
		t.Fatal(err)
	}
	if o.Size != size || !bytes.Equal(content, read(t, s, key)) {
		t.Errorf("%s: %d bytes, want %d, or others", key, o.Size, size)
	}
	if got, err := s.Size(t.Context(), key); got != size || err != nil {
		t.Errorf("%s has %d bytes, %v", key, got, err)
	}
	if _, err := s.Put(t.Context(), key, 1, false, write([]byte("x"))); err == nil {
		t.Errorf("%s was written twice", key)
	}
}

func TestNobodySeesHalfAnObjectInABucketAndNothingOfItStays(t *testing.T) {
	s, server := newBucketStore(t)
	cut := errors.New("cut")
	for name, n := range map[string]int{"objects/early": 1, "objects/late": 24 << 20} {
		_, err := s.Put(t.Context(), name, 32<<20, false, func(w io.Writer) error {
			if _, err := w.Write(bytesOf(n)); err != nil {
				return err
			}
			if len(keys(t, s)) > 0 {
				t.Error("it is seen before it is whole")
			}
			return cut
		})
		if !errors.Is(err, cut) {
			t.Errorf("Put: %v", err)
		}
	}
	if leftovers := keys(t, s); len(leftovers) > 0 {
		t.Errorf("left: %q", leftovers)
	}
	if leftovers := uploadParts(t, server); len(leftovers) > 0 {
		t.Errorf("the bucket keeps the pieces %q", leftovers)
	}
}

// TestAnUploadThatIsCanceledLeavesNothing cancels while one piece is stored and the next
// is being filled.
func TestAnUploadThatIsCanceledLeavesNothing(t *testing.T) {
	s, server := newBucketStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Put(ctx, "objects/canceled", 32<<20, false, func(w io.Writer) error {
		if _, err := w.Write(bytesOf(12 << 20)); err != nil {
			return err
		}
		for late := time.Now().Add(time.Minute); len(uploadParts(t, server)) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(late) {
				t.Fatal("no piece comes to the bucket")
			}
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v", err)
	}
	if leftovers := append(keys(t, s), uploadParts(t, server)...); len(leftovers) > 0 {
		t.Errorf("left: %q", leftovers)
	}
}

// latePart is a proxy to a server of S3's protocol. It forwards the first half of
// the second part of an upload, and the other half once the upload was aborted,
// also where the client is gone meanwhile.
type latePart struct {
	http.Handler

	aborted   chan struct{} // closed by the first abort that was answered
	abortOnce sync.Once
	underWay  sync.WaitGroup
}

func newLatePart(t *testing.T, server *s3bed.Server) *latePart {
	t.Helper()
	to, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &latePart{aborted: make(chan struct{})}
	p.Handler = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Method == http.MethodDelete {
				p.abortOnce.Do(func() { close(p.aborted) })
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return p
}

// ServeHTTP implements http.Handler.
func (p *latePart) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("partNumber") != "2" {
		p.Handler.ServeHTTP(w, r)
		return
	}
	p.underWay.Add(1)
	defer p.underWay.Done()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	half := len(body) / 2
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:half]), &gate{open: p.aborted}, bytes.NewReader(body[half:])))
	p.Handler.ServeHTTP(w, r)
}

// gate is empty, and ends once it is open.
type gate struct{ open <-chan struct{} }

// Read implements io.Reader.
func (g *gate) Read([]byte) (int, error) {
	<-g.open
	return 0, io.EOF
}

func TestAPartThatArrivesAfterTheAbortDoesNotStay(t *testing.T) {
	server := s3bed.Start(t)
	proxy := newLatePart(t, server)
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	s := openBucket(t, server, front.URL)
	cut := errors.New("cut")
	_, err := s.Put(t.Context(), "objects/late", 32<<20, false, func(w io.Writer) error {
		if _, err := w.Write(bytesOf(12 << 20)); err != nil {
			return err
		}
		for late := time.Now().Add(5 * time.Minute); !writesSecondPart(t, server); time.Sleep(time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("the server does not write the second part; its parts are %q", uploadParts(t, server))
			}
		}
		return cut
	})
	if !errors.Is(err, cut) {
		t.Errorf("Put: %v", err)
	}
	proxy.underWay.Wait()
	if leftovers := append(keys(t, s), uploadParts(t, server)...); len(leftovers) > 0 {
		t.Errorf("left: %q", leftovers)
	}
}

// writesSecondPart reports whether a server has the first part of an upload and
// writes another, to a file without a name.
func writesSecondPart(t *testing.T, server *s3bed.Server) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	there := uploadParts(t, server)
	return len(there) == 1 && filepath.Base(there[0]) == "1" && slices.ContainsFunc(files, func(f string) bool {
		name, err := os.Readlink(f)
		return err == nil && strings.HasPrefix(name, server.Dir) && strings.HasSuffix(name, " (deleted)")
	})
}

// uploadParts are the parts of incomplete uploads on a server.
func uploadParts(t *testing.T, server *s3bed.Server) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(filepath.Join(server.Dir, "team", ".sgwtmp", "multipart"), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !e.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestALinkLetsInWhoeverHasItToOneObject(t *testing.T) {
	s, _ := newBucketStore(t)
	if _, err := s.Put(t.Context(), "objects/a", 13, false, write([]byte("cats and dogs"))); err != nil {
		t.Fatal(err)
	}
	link, err := s.Link(t.Context(), "objects/a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got := getFromByteSix(t, link); got != "206 and dogs" {
		t.Errorf("the link answers %q", got)
	}
	bare, _, _ := strings.Cut(link, "?")
	if got := getFromByteSix(t, bare); !strings.HasPrefix(got, "403 ") {
		t.Errorf("without its signature it answers %.80q", got)
	}
}

// getFromByteSix is the answer of a URL to a request for all from the sixth byte on.
func getFromByteSix(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Range", "bytes=5-")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer.Status[:4] + string(b)
}

func TestAFolderHasNoLinks(t *testing.T) {
	s, _ := open(t, blob.Settings{})
	if link, err := s.Link(t.Context(), "objects/a", time.Minute); link != "" || err != nil {
		t.Errorf("Link: %q, %v", link, err)
	}
}
