// Package source reads what lies at a URL that a user gave, and trusts nothing
// about it: where it leads, how it answers, or that it ever ends.
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

// Settings are what an operator may choose. The zero value lets users read what
// is public.
type Settings struct {
	Schemes  []string          `toml:"schemes"`   // of URLs that may be read; none means all that there are
	Tokens   map[string]string `toml:"tokens"`    // for git+https, by host: the file that the token is in
	Folders  []string          `toml:"folders"`   // below which files may be read; none is the default
	Hosts    []string          `toml:"hosts"`     // that URLs may name: example.com, *.example.com; none means every
	Buckets  []string          `toml:"buckets"`   // that may be read, of those that the platform has the right to: s3://name; none means every
	Networks []string          `toml:"networks"`  // that are not public and may be asked all the same: 10.0.0.0/8, or the word loopback
	MaxSize  int64             `toml:"max_size"`  // bytes of a data set; zero means 100 GiB
	MaxFiles int               `toml:"max_files"` // of a folder, also one of a repository; zero means 1,000,000
	Attempts int               `toml:"attempts"`  // in a row that bring nothing before a source is given up; zero means 7
	Retry    time.Duration     `toml:"retry"`     // wait after the first of them, doubled up to 64 times that; zero means 500 ms
	Stall    time.Duration     `toml:"stall"`     // in which at least 1 KiB must come; zero means 1 min
	Deadline time.Duration     `toml:"deadline"`  // of one source; zero means 12 h
	Parts    int               `toml:"parts"`     // of one source that are asked for at once; zero means 4
	Slow     int64             `toml:"slow"`      // bytes a second of one connection; faster ones are not helped by others; zero means 64 MiB
	PerHost  int               `toml:"per_host"`  // requests at once to one host; zero means 16
	Rate     int64             `toml:"rate"`      // bytes a second from one host; zero means no limit

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

// Error says why a source cannot be had, now or later.
type Error struct {
	Reason  event.Reason
	Class   event.Class
	Message string // for the user; names the source, without its secrets
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Validators tell whether what lies at a source has changed. They mean
// something to that source only.
type Validators struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

// Request is what is wanted.
type Request struct {
	URL        string
	Previous   Validators              // of what is there already; zero to have the content in any case
	OnProgress func(done, total int64) // is told how far it has come, often; total is -1 where that is not known; may be nil
	OnWait     func(why string)        // is told why nothing comes for a while, by several goroutines at once; may be nil
}

// Result is what the source said about itself.
type Result struct {
	Validators

	Unchanged bool   // it still is what Request.Known told; nothing was brought
	Tree      *Tree  // of a folder, which is brought as a tar archive of it; nil of a file
	Revision  string // of a repository, that what was brought is of: a commit
}

// Tree is what a folder holds.
//
// It is brought as a tar archive with its regular files and links in the byte
// order of their names, without times and owners: equal folders are equal
// archives. Its digest is that of the list which this prints in the folder:
//
//	find * -type f | LC_ALL=C sort | xargs sha256sum
//
// A link is in it with the digest of the text that it holds.
type Tree struct {
	SHA256 string `json:"sha256"` // of the list
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"` // in them
}

// Bucket is an open bucket. Its errors are store.ErrNotFound, where it or the
// object is not there; store.ErrRefused, where it does not let us in;
// store.ErrConflict, where an object is not the one any more that is asked for;
// *store.BusyError, where it says that it cannot answer now. What else there is
// may work the next time.
type Bucket interface {
	// Stat tells of one object.
	Stat(ctx context.Context, key string) (store.BucketObject, error)
	// List tells of all objects whose keys begin so.
	List(ctx context.Context, prefix string) iter.Seq2[store.BucketObject, error]
	// Read opens an object from one byte to before another.
	Read(ctx context.Context, item store.BucketObject, from, to int64) (io.ReadCloser, error)
	// Close gives back what the bucket holds.
	Close() error
}

// OpenBucket opens the bucket of a scheme and a name, whose data must be asked
// for by client: it goes nowhere that settings do not allow.
type OpenBucket func(ctx context.Context, scheme, name string, client *http.Client) (Bucket, error)

// Sink takes the content: it calls fill once, with where it is to be written,
// and keeps it if fill says nil. Size is how much there will be, -1 if that is
// not known. A sink that is called again forgets what it was given before.
type Sink func(ctx context.Context, size int64, fill func(w io.Writer) error) error

// Reader reads sources. It may be used by several goroutines.
type Reader struct {
	settings Settings
	guard    guard
	dialer   *net.Dialer
	client   *http.Client
	hosts    hosts
	open     OpenBucket
	clone    OpenRepository
}

// New returns a Reader. It opens nothing.
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
	return &Reader{settings: s, guard: g, dialer: d, client: newClient(g, d, s.PerHost), hosts: hosts{maxRequests: s.PerHost, rate: s.Rate}}, nil
}

// byHost names the hosts of git+https as hostOf does.
func byHost[T any](all map[string]T) map[string]T {
	byName := make(map[string]T, len(all))
	for host, v := range all {
		byName[hostOf(&url.URL{Scheme: "https", Host: host})] = v
	}
	return byName
}

// ReadBuckets has buckets read, too, which open opens. It is called before
// anything is read, or not at all: then URLs of buckets are refused.
func (r *Reader) ReadBuckets(open OpenBucket) { r.open = open }

// Close ends the connections that are kept for reuse.
func (r *Reader) Close() { r.client.CloseIdleConnections() }

// Check says what can be said against a source without asking it, as *Error,
// or nil.
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

// Get brings what lies at a source into put, whole. What went wrong with the
// source is an *Error, unless ctx was done; every other error is put's.
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

// download returns one of what a host has. Who is given it leaves the host.
func (r *Reader) download(host string, req Request) *download {
	return &download{reader: r, host: r.hosts.acquire(host), req: req, name: Redact(req.URL), size: -1}
}

// Errors by which the ends of a transfer are told apart.
var (
	errDeadline = errors.New("the deadline has passed")
	errRestart  = errors.New("the source begins anew") // what was written is of no use
)
