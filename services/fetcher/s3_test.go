package fetcher_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/event"
	s3bed "github.com/benchmark-ai/bai/services/test/testbed/s3"
)

// cloud is a real S3 server behind a connection that counts bytes and can be cut.
type cloud struct {
	*s3bed.Server

	proxy *httptest.Server
	api   *s3.Client
	reads atomic.Int64 // number of reads of objects
	moved atomic.Int64 // bytes of these reads
	cuts  atomic.Int64 // number of reads still to be cut
}

func newCloud(tb testing.TB) *cloud {
	tb.Helper()
	c := &cloud{Server: s3bed.Start(tb)}
	to, err := url.Parse(c.Endpoint)
	if err != nil {
		tb.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ModifyResponse: c.count,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	c.proxy = httptest.NewServer(proxy)
	tb.Cleanup(c.proxy.Close)
	c.api = s3.New(s3.Options{
		BaseEndpoint: aws.String(c.Endpoint), Region: c.Region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKey, c.SecretKey, ""),
	})
	return c
}

func (c *cloud) count(r *http.Response) error {
	if r.Request.Method == http.MethodGet && r.Request.URL.Query().Get("list-type") == "" {
		c.reads.Add(1)
		cut := c.cuts.Add(-1) >= 0
		r.Body = &counted{ReadCloser: r.Body, cloud: c, cut: cut}
	}
	return nil
}

type counted struct {
	io.ReadCloser

	cloud *cloud
	cut   bool
	n     int
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	if c.cut && c.n > 100_000 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.ReadCloser.Read(p)
	c.n += n
	c.cloud.moved.Add(int64(n))
	return n, err
}

// fixture returns a fixture whose fetchers read from the cloud.
func (c *cloud) fixture(tb testing.TB, change func(*bucket.Settings)) *fixture {
	tb.Helper()
	dir := tb.TempDir()
	id, key := filepath.Join(dir, "id"), filepath.Join(dir, "key")
	if err := errors.Join(os.WriteFile(id, []byte(c.AccessKey+"\n"), 0o600), os.WriteFile(key, []byte(c.SecretKey+"\n"), 0o600)); err != nil {
		tb.Fatal(err)
	}
	s := bucket.Settings{S3: bucket.S3{Endpoint: c.proxy.URL, Region: c.Region, PathStyle: true, AccessKeyFile: id, SecretKeyFile: key}}
	if change != nil {
		change(&s)
	}
	o, err := bucket.New(s)
	if err != nil {
		tb.Fatal(err)
	}
	w := newFixture(tb)
	w.buckets = source.OpenBuckets(o)
	return w
}

func (c *cloud) put(tb testing.TB, key string, content []byte) {
	tb.Helper()
	if _, err := c.api.PutObject(tb.Context(), &s3.PutObjectInput{Bucket: aws.String("cats"), Key: &key, Body: bytes.NewReader(content)}); err != nil {
		tb.Fatal(err)
	}
}

// putParts stores an object by a multipart upload.
func (c *cloud) putParts(tb testing.TB, key string, parts ...[]byte) (etag string) {
	tb.Helper()
	name := "cats"
	upload, err := c.api.CreateMultipartUpload(tb.Context(), &s3.CreateMultipartUploadInput{Bucket: &name, Key: &key})
	if err != nil {
		tb.Fatal(err)
	}
	var done []types.CompletedPart
	for i, p := range parts {
		n := aws.Int32(int32(i + 1))
		up, err := c.api.UploadPart(tb.Context(), &s3.UploadPartInput{Bucket: &name, Key: &key, UploadId: upload.UploadId, PartNumber: n, Body: bytes.NewReader(p)})
		if err != nil {
			tb.Fatal(err)
		}
		done = append(done, types.CompletedPart{ETag: up.ETag, PartNumber: n, ChecksumCRC32: up.ChecksumCRC32})
	}
	end, err := c.api.CompleteMultipartUpload(tb.Context(), &s3.CompleteMultipartUploadInput{
		Bucket: &name, Key: &key, UploadId: upload.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: done},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return aws.ToString(end.ETag)
}

func TestObjectsOfS3AreFetchedAndRevalidated(t *testing.T) {
	c := newCloud(t)
	c.Bucket(t, "cats")
	small, big := []byte("dogs"), bytesOf(1, 9<<20+3)
	c.put(t, "a/small file+%", small)
	etag := c.putParts(t, "a/big", big[:5<<20], big[5<<20:])
	if !strings.Contains(etag, "-2") {
		t.Fatalf("the server made %s of two parts", etag)
	}
	c.put(t, "empty", nil)
	w := c.fixture(t, nil)
	p := w.start(t, quick())
	sources := []data{{src: "s3://cats/a/small file+%"}, {src: "s3://cats/a/big"}, {src: "s3://cats/empty"}}
	p.PublishAndWait(runWith("r1", sources...))
	got := p.waitFetched(t, "r1")
	for i, want := range [][]byte{small, big, nil} {
		if !bytes.Equal(want, w.content(t, got[i])) || got[i].Unpack {
			t.Errorf("%s: other bytes came", sources[i].src)
		}
	}
	before := c.reads.Load()
	p.PublishAndWait(runWith("r2", sources...))
	p.waitFetched(t, "r2")
	if after := c.reads.Load(); after != before {
		t.Errorf("what has not changed was read again, %d times", after-before)
	}
	c.putParts(t, "a/big", big[1<<20:6<<20], small)
	p.PublishAndWait(runWith("r3", sources[1]))
	if got := w.content(t, p.waitFetched(t, "r3")[0]); string(got[len(got)-4:]) != "dogs" {
		t.Error("what has changed was not read again")
	}
	w.waitClean(t)
}

func TestAnObjectOfS3IsResumedWhereItIsCut(t *testing.T) {
	c := newCloud(t)
	c.Bucket(t, "cats")
	big := bytesOf(1, 24<<20)
	c.put(t, "big", big)
	w := c.fixture(t, nil)
	c.cuts.Store(5)
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: "s3://cats/big", sha256: sha256Of(big)}))
	if !bytes.Equal(big, w.content(t, p.waitFetched(t, "r1")[0])) {
		t.Error("other bytes came")
	}
	if moved := c.moved.Load(); moved > 24<<20*12/10 {
		t.Errorf("%d bytes were moved", moved)
	}
}

func TestAPrefixOfS3IsFetchedAsAFolder(t *testing.T) {
	c := newCloud(t)
	c.Bucket(t, "cats")
	want := make(map[string]string)
	for i := range 120 {
		name := fmt.Sprintf("%d/file %d.txt", i%7, i)
		want[name] = strings.Repeat(fmt.Sprint(i), i*37)
		c.put(t, "set/"+name, []byte(want[name]))
	}
	want["big"] = string(bytesOf(3, 5<<20))
	c.put(t, "set/big", []byte(want["big"]))
	c.put(t, "settings", []byte("not in it"))
	w := c.fixture(t, nil)
	p := w.start(t, quick())
	list := folderDigest(want)
	p.PublishAndWait(runWith("r1", data{src: "s3://cats/set/", sha256: list}, data{src: "s3://cats/set"}))
	got := p.waitFetched(t, "r1")
	if !got[0].Unpack || got[0].Object != got[1].Object {
		t.Errorf("fetched %+v", got)
	}
	if files := untar(t, w.content(t, got[0])); len(files) != len(want) || folderDigest(files) != list {
		t.Errorf("%d files came, want %d", len(files), len(want))
	}
	before := c.reads.Load()
	p.PublishAndWait(runWith("r2", data{src: "s3://cats/set/", sha256: list}, data{src: "s3://cats/set"}))
	p.waitFetched(t, "r2")
	if after := c.reads.Load(); after != before {
		t.Errorf("what has not changed was read again, %d times", after-before)
	}
	c.put(t, "set/new", []byte("new"))
	p.PublishAndWait(runWith("r3", data{src: "s3://cats/set"}))
	if files := untar(t, w.content(t, p.waitFetched(t, "r3")[0])); files["new"] != "new" {
		t.Error("what has changed was not read again")
	}
	w.waitClean(t)
}

func TestWhatS3Refuses(t *testing.T) {
	c := newCloud(t)
	c.Bucket(t, "cats")
	c.put(t, "a", []byte("x"))
	c.put(t, "dir/a", []byte("x"))
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("not-the-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(*bucket.Settings)
		src    data
		reason event.Reason
		want   string
	}{
		"an object that is not there":            {src: data{src: "s3://cats/b"}, reason: event.FetchFailed, want: `bucket "cats" has no object "b", and none below it`},
		"a prefix that is not there":             {src: data{src: "s3://cats/b/"}, reason: event.FetchFailed, want: `has no object "b/", and none below it`},
		"a bucket that is not there":             {src: data{src: "s3://dogs/a"}, reason: event.FetchFailed, want: `there is no bucket "dogs"`},
		"all of a bucket that is not there":      {src: data{src: "s3://dogs"}, reason: event.FetchFailed, want: `there is no bucket "dogs"`},
		"another sha256 of a folder":             {src: data{src: "s3://cats/dir/", sha256: sha256Of(nil)}, reason: event.ChecksumMismatch, want: "has sha256 " + folderDigest(map[string]string{"a": "x"})},
		"an md5 of a folder":                     {src: data{src: "s3://cats/dir/", md5: md5Of(nil)}, reason: event.ChecksumMismatch, want: "has md5 none, for it is a folder"},
		"credentials that nobody knows":          {change: func(s *bucket.Settings) { s.S3.AccessKeyFile = other }, src: data{src: "s3://cats/a"}, reason: event.FetchFailed, want: "the platform is not let in"},
		"a secret that is not the one":           {change: func(s *bucket.Settings) { s.S3.SecretKeyFile = other }, src: data{src: "s3://cats/a"}, reason: event.FetchFailed, want: "the platform is not let in"},
		"no credentials":                         {change: func(s *bucket.Settings) { s.S3 = bucket.S3{Endpoint: s.S3.Endpoint, PathStyle: true, Anonymous: true} }, src: data{src: "s3://cats/a"}, reason: event.FetchFailed, want: "the platform is not let in"},
		"credentials that cannot be read":        {change: func(s *bucket.Settings) { s.S3.SecretKeyFile = "/nowhere" }, src: data{src: "s3://cats/a"}, reason: event.FetchFailed, want: "credentials cannot be read"},
		"a bucket that settings do not allow":    {src: data{src: "s3://forbidden/a"}, reason: event.SourceRefused, want: "is not one that the platform's settings allow"},
		"a private endpoint that is not allowed": {change: func(s *bucket.Settings) { s.S3.Endpoint = "http://10.0.0.1" }, src: data{src: "s3://cats/a"}, reason: event.SourceRefused, want: "is not public"},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := c.fixture(t, tt.change), quick()
			s.Sources.Buckets = []string{"s3://cats", "s3://dogs"}
			p := w.start(t, s)
			p.PublishAndWait(runWith("r1", tt.src))
			got := p.waitFinished(t, "r1")
			if got.Reason != tt.reason || !strings.Contains(got.Message, tt.want) {
				t.Errorf("finished %s: %s\nwant %s: %s", got.Reason, got.Message, tt.reason, tt.want)
			}
			if strings.Contains(got.Message, c.SecretKey) || strings.Contains(strings.Join(p.statusMessages(), " "), c.SecretKey) {
				t.Errorf("a secret is told: %s", got.Message)
			}
			w.waitClean(t)
		})
	}
}

// BenchmarkS3Folder compares the time of a run from submitted to fetched, for a prefix
// of small objects, with a plain copy that reads as many at once. S3_FILES is the
// number of files; minRate is the minimum rate of files relative to the plain copy.
const minRate = 0.8

// TestAFolderOfManyFilesKeepsItsBar compares, if BAI_BARS is set, how fast a folder of
// 10,000 files (S3_FILES) arrives from an S3 server with a plain copy. The plain copy
// does what is necessary, 16 files at a time: it lists the folder, reads each file with
// the same library, sums it, and writes it to a file. Neither waits for the disk, so
// neither survives a power cut.
func TestAFolderOfManyFilesKeepsItsBar(t *testing.T) {
	_, turns := bars(t)
	n, err := strconv.Atoi(cmp.Or(os.Getenv("S3_FILES"), "10000"))
	if err != nil {
		t.Fatal(err)
	}
	c := newCloud(t)
	c.Bucket(t, "cats")
	each(16, n, func(i int) { c.put(t, fmt.Sprintf("set/%03d/%d", i%100, i), bytesOf(byte(i), 4096)) })
	w := c.fixture(t, func(s *bucket.Settings) { s.S3.Endpoint = c.Endpoint })
	p := w.start(t, quick())
	var plain, fetched []time.Duration
	for i := range turns {
		began := time.Now()
		c.copyAll(t, "set/", t.TempDir(), n)
		plain = append(plain, time.Since(began))
		began = time.Now()
		run := fmt.Sprint("r", i)
		p.PublishAndWait(runWith(run, data{src: "s3://cats/set/"}))
		got := p.waitFetched(t, run)
		fetched = append(fetched, time.Since(began))
		if err := w.deleteFetched(t, got[0]); err != nil {
			t.Fatal(err)
		}
	}
	best := slices.Min(plain).Seconds() / slices.Min(fetched).Seconds()
	t.Logf("%d files: plain %.0f/s, fetcher %.0f/s: %.2f of the rate (of the best of %d turns each; plain %v, fetcher %v)",
		n, float64(n)/slices.Min(plain).Seconds(), float64(n)/slices.Min(fetched).Seconds(), best, turns, plain, fetched)
	if best < minRate {
		t.Errorf("%.2f of the rate of a plain copy, want %.1f at least", best, minRate)
	}
}

// copyAll does the plain copy.
func (c *cloud) copyAll(tb testing.TB, prefix, to string, n int) {
	tb.Helper()
	var keys []string
	for pages := s3.NewListObjectsV2Paginator(c.api, &s3.ListObjectsV2Input{Bucket: aws.String("cats"), Prefix: &prefix}); pages.HasMorePages(); {
		page, err := pages.NextPage(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		for _, o := range page.Contents {
			if !strings.HasSuffix(*o.Key, "/") {
				keys = append(keys, *o.Key)
			}
		}
	}
	if len(keys) != n {
		tb.Fatalf("%d files are listed, want %d", len(keys), n)
	}
	each(16, n, func(i int) { c.copy(tb, keys[i], filepath.Join(to, strconv.Itoa(i))) })
}

func (c *cloud) copy(tb testing.TB, key, to string) {
	tb.Helper()
	o, err := c.api.GetObject(tb.Context(), &s3.GetObjectInput{Bucket: aws.String("cats"), Key: &key})
	if err != nil {
		tb.Error(err)
		return
	}
	defer func() { _ = o.Body.Close() }() // the body was only read
	f, err := os.Create(to)
	if err != nil {
		tb.Error(err)
		return
	}
	_, err = io.Copy(io.MultiWriter(f, sha256.New()), o.Body)
	if err := errors.Join(err, f.Close()); err != nil {
		tb.Error(err)
	}
}

// each calls do n times, with at calls in parallel.
func each(at, n int, do func(i int)) {
	var all sync.WaitGroup
	var next atomic.Int64
	for range at {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	all.Wait()
}

// folderDigest returns the digest of a folder with these files.
func folderDigest(files map[string]string) string {
	var list strings.Builder
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256([]byte(files[name])), name)
	}
	return sha256Of([]byte(list.String()))
}

// untar returns the files of an archive. A link has the content "->" and its target.
func untar(tb testing.TB, archive []byte) map[string]string {
	tb.Helper()
	files := make(map[string]string)
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			tb.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			tb.Fatal(err)
		}
		if h.Typeflag == tar.TypeSymlink {
			b = []byte("-> " + h.Linkname)
		}
		if h.Mode&0o111 != 0 && h.Typeflag == tar.TypeReg {
			h.Name += "*"
		}
		files[h.Name] = string(b)
	}
}
