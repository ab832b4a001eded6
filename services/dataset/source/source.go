// Package source reads the content of a URL that a user gave. It does not trust the
// source: where the URL leads, how the source responds, or that the content ever ends.
//
// The rules are in the files decide*.go; http.go and file.go carry them out.
package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are the operator's settings. The zero value lets users read public
// sources.
type Settings struct {
	Schemes  []string          `toml:"schemes"`   // schemes of URLs that may be read; none means all
	Tokens   map[string]string `toml:"tokens"`    // file with the token of each host, for git+https
	Folders  []string          `toml:"folders"`   // folders below which files may be read; none by default
	Hosts    []string          `toml:"hosts"`     // hosts that URLs may name: example.com, *.example.com; none means all
	Buckets  []string          `toml:"buckets"`   // buckets that may be read, if the platform has access: s3://name; none means all
	Networks []string          `toml:"networks"`  // networks that may be read although not public: 10.0.0.0/8, or the word loopback
	MaxSize  int64             `toml:"max_size"`  // maximum bytes of a data set; zero means 100 GiB
	MaxFiles int               `toml:"max_files"` // maximum number of files in a folder or repository; zero means 1,000,000
	Attempts int               `toml:"attempts"`  // consecutive tries without data before a source is given up; zero means 7
	Retry    time.Duration     `toml:"retry"`     // wait after the first of these tries, doubled up to 64 times that; zero means 500 ms
	Stall    time.Duration     `toml:"stall"`     // time within which at least 1 KiB must arrive; zero means 1 min
	Deadline time.Duration     `toml:"deadline"`  // maximum time for one source; zero means 12 h
	Parts    int               `toml:"parts"`     // number of parallel requests for one source; zero means 4
	Slow     int64             `toml:"slow"`      // bytes per second above which a connection gets no parallel requests; zero means 64 MiB
	PerHost  int               `toml:"per_host"`  // concurrent requests to one host; zero means 16
	Rate     int64             `toml:"rate"`      // bytes per second from one host; zero means no limit

	ObjectStoreURL string `toml:"-"` // URL of the platform's object store, of which nothing is read, for it holds what all teams keep
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	_, err := newGuard(s)
	return errors.Join(err, positive("max_size", s.MaxSize), positive("max_files", s.MaxFiles), positive("attempts", s.Attempts),
		positive("retry", s.Retry), positive("stall", s.Stall), positive("deadline", s.Deadline),
		positive("parts", s.Parts), positive("slow", s.Slow), positive("per_host", s.PerHost), positive("rate", s.Rate))
}

func positive[N ~int | ~int64](name string, n N) error {
	if n < 0 {
		return fmt.Errorf("sources.%s: must not be negative", name)
	}
	return nil
}

// Error is the reason why a source cannot be read, now or ever.
type Error struct {
	Reason  event.Reason
	Class   event.Class
	Message string // for the user; names the source without its secrets
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Validators tell whether the content of a source has changed. Only that source can
// interpret them.
type Validators struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

// Request asks for the content of a source.
type Request struct {
	URL        string
	Previous   Validators              // validators of the stored content; zero to get the content in any case
	OnProgress func(done, total int64) // receives the progress, often; total is -1 if unknown; may be nil
	OnWait     func(why string)        // receives the reason why no data arrive at present, from several goroutines; may be nil
}

// Result describes the content of a source.
type Result struct {
	Validators

	Unchanged bool   // the content still matches Request.Previous, and nothing was read
	Tree      *Tree  // set for a folder, which is read as a tar archive; nil for a file
	Revision  string // commit of the repository that the content is of
}

// Tree describes a folder.
//
// The folder is read as a tar archive of its regular files and links, sorted by name in
// byte order, without times and owners. So equal folders give equal archives. The
// digest is that of the list which this command prints in the folder:
//
//	find * -type f | LC_ALL=C sort | xargs sha256sum
//
// The list also has the links, each with the digest of its target.
type Tree struct {
	SHA256 string `json:"sha256"` // digest of the list
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"` // bytes in all files
}

// Bucket is an open bucket. The errors are store.ErrNotFound if the bucket or object is
// missing, store.ErrRefused if access is denied, store.ErrConflict if an object is not
// the requested version any more, and *store.UnavailableError if the service cannot
// answer now. After any other error, another try may succeed.
type Bucket interface {
	// Stat returns an object without its content.
	Stat(ctx context.Context, key string) (store.BucketObject, error)
	// List iterates over the objects whose keys have a prefix.
	List(ctx context.Context, prefix string) iter.Seq2[store.BucketObject, error]
	// Read opens the bytes of an object from from on and before to.
	Read(ctx context.Context, item store.BucketObject, from, to int64) (io.ReadCloser, error)
	// Close releases the resources of the bucket.
	Close() error
}

// OpenBucket opens the bucket with a scheme and a name. All its data must be requested
// through client, which connects only to addresses that the settings allow.
type OpenBucket func(ctx context.Context, scheme, name string, client *http.Client) (Bucket, error)

// Sink takes the content. It calls fill once, with the destination, and keeps the
// content if fill returns nil; size is the number of bytes, or -1 if unknown. A sink
// that is called again discards the content of the call before.
type Sink func(ctx context.Context, size int64, fill func(w io.Writer) error) error

// Reader reads sources. Several goroutines may use it.
type Reader struct {
	settings Settings
	guard    guard
	dialer   *net.Dialer
	client   *http.Client
	hosts    hosts
	open     OpenBucket
	clone    OpenRepository
}

// New returns a Reader. It opens no connections.
func New(s Settings) (*Reader, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	g, err := newGuard(s)
	if err != nil {
		return nil, err
	}
	s.MaxSize = cmp.Or(s.MaxSize, 100<<30)
	s.MaxFiles = cmp.Or(s.MaxFiles, 1_000_000)
	s.Attempts = cmp.Or(s.Attempts, 7)
	s.Retry = cmp.Or(s.Retry, 500*time.Millisecond)
	s.Stall = cmp.Or(s.Stall, time.Minute)
	s.Deadline = cmp.Or(s.Deadline, 12*time.Hour)
	s.Parts = cmp.Or(s.Parts, 4)
	s.Slow = cmp.Or(s.Slow, 64<<20)
	s.PerHost = cmp.Or(s.PerHost, 16)
	s.Tokens = byHost(s.Tokens)
	d := g.egress.Dialer()
	return &Reader{
		settings: s, guard: g, dialer: d, client: newClient(g, d, s.PerHost),
		hosts: hosts{maxRequests: s.PerHost, rate: s.Rate},
	}, nil
}

// byHost returns all with the hosts in the form of hostOf.
func byHost[T any](all map[string]T) map[string]T {
	byName := make(map[string]T, len(all))
	for host, v := range all {
		byName[hostOf(&url.URL{Scheme: "https", Host: host})] = v
	}
	return byName
}

// ReadBuckets enables buckets, which open opens. It must be called before the first
// read. Without it, URLs of buckets are refused.
func (r *Reader) ReadBuckets(open OpenBucket) { r.open = open }

// Close closes idle connections.
func (r *Reader) Close() { r.client.CloseIdleConnections() }

// Check returns the reason why a source may not be read, as an *Error, or nil. It does
// not contact the source.
func (r *Reader) Check(source string) error {
	if refusal := r.check(source); refusal != nil {
		return refusal
	}
	return nil
}

func (r *Reader) check(source string) *Error {
	if bucket, ok := parseBucketURL(source); ok {
		return r.guard.refuseBucket(bucket, Redact(source), r.open != nil)
	}
	u, refusal := parse(source)
	if refusal != nil {
		return refusal
	}
	if u.Scheme == gitScheme && r.clone == nil {
		return refused("source %s: no repositories are read here", Redact(source))
	}
	return r.guard.refuse(u)
}

// Get reads the whole content of a source into put. A fault of the source is an *Error,
// unless ctx is done. Every other error is put's.
func (r *Reader) Get(ctx context.Context, req Request, put Sink) (Result, error) {
	if err := r.Check(req.URL); err != nil {
		return Result{}, err
	}
	if req.OnProgress == nil {
		req.OnProgress = func(int64, int64) {}
	}
	if req.OnWait == nil {
		req.OnWait = func(string) {}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.settings.Deadline, errDeadline)
	defer cancel()
	if location, ok := parseBucketURL(req.URL); ok {
		return r.bucket(ctx, location, req, put)
	}
	if revision, ok := parseRepositoryURL(req.URL); ok {
		return r.git(ctx, revision, req, put)
	}
	u, err := url.Parse(req.URL)
	if err != nil {
		return Result{}, err
	}
	if u.Scheme == "file" {
		return r.file(ctx, u, req, put)
	}
	host := hostOf(u)
	d := r.download(host, req)
	defer r.hosts.release(host)
	defer d.close()
	return d.run(ctx, put)
}

// download returns a download from a host. The caller must release the host.
func (r *Reader) download(host string, req Request) *download {
	return &download{reader: r, host: r.hosts.acquire(host), req: req, name: Redact(req.URL), size: -1}
}

// Errors that end a download in a particular way.
var (
	errDeadline = errors.New("the deadline has passed")
	errRestart  = errors.New("the source begins anew") // the written bytes are to be discarded
)
