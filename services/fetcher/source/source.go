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
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Settings are what an operator may choose. The zero value lets users read what
// is public.
type Settings struct {
	Folders  []string      `toml:"folders"`  // below which files may be read; none is the default
	Hosts    []string      `toml:"hosts"`    // that may be asked: example.com, *.example.com; none means every
	Networks []string      `toml:"networks"` // that are not public and may be asked all the same: 10.0.0.0/8, or the word loopback
	MaxSize  int64         `toml:"max_size"` // bytes of a data set; zero means 100 GiB
	Attempts int           `toml:"attempts"` // in a row that bring nothing before a source is given up; zero means 7
	Retry    time.Duration `toml:"retry"`    // wait after the first of them, doubled up to 64 times that; zero means 500 ms
	Stall    time.Duration `toml:"stall"`    // in which at least 1 KiB must come; zero means 1 min
	Deadline time.Duration `toml:"deadline"` // of one source; zero means 12 h
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	_, err := newGuard(s)
	return errors.Join(err, positive("max_size", s.MaxSize), positive("attempts", s.Attempts),
		positive("retry", s.Retry), positive("stall", s.Stall), positive("deadline", s.Deadline))
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
	URL      string
	Known    Validators              // of what is there already; zero to have the content in any case
	Progress func(done, total int64) // is told how far it has come, often; total is -1 where that is not known; may be nil
}

// Answer is what the source said about itself.
type Answer struct {
	Validators

	Unchanged bool // it still is what Request.Known told; nothing was brought
}

// Sink takes the content: it calls fill once, with where it is to be written,
// and keeps it if fill says nil. Size is how much there will be, -1 if that is
// not known. A sink that is called again forgets what it was given before.
type Sink func(ctx context.Context, size int64, fill func(w io.Writer) error) error

// Reader reads sources. It may be used by several goroutines.
type Reader struct {
	settings Settings
	guard    guard
	client   *http.Client
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
	s.Attempts = cmp.Or(s.Attempts, 7)
	s.Retry = cmp.Or(s.Retry, 500*time.Millisecond)
	s.Stall = cmp.Or(s.Stall, time.Minute)
	s.Deadline = cmp.Or(s.Deadline, 12*time.Hour)
	return &Reader{settings: s, guard: g, client: newClient(g)}, nil
}

// Close ends the connections that are kept for reuse.
func (r *Reader) Close() { r.client.CloseIdleConnections() }

// Check says what can be said against a source without asking it, as *Error,
// or nil.
func (r *Reader) Check(source string) error {
	u, refusal := parse(source)
	if refusal == nil {
		refusal = r.guard.refuse(u)
	}
	if refusal != nil {
		return refusal
	}
	return nil
}

// Get brings what lies at a source into put, whole. What went wrong with the
// source is an *Error, unless ctx was done; every other error is put's.
func (r *Reader) Get(ctx context.Context, req Request, put Sink) (Answer, error) {
	if err := r.Check(req.URL); err != nil {
		return Answer{}, err
	}
	u, err := url.Parse(req.URL)
	if err != nil {
		return Answer{}, err
	}
	if req.Progress == nil {
		req.Progress = func(int64, int64) {}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.settings.Deadline, errDeadline)
	defer cancel()
	if u.Scheme == "file" {
		return r.file(ctx, u, req, put)
	}
	d := &download{reader: r, req: req, name: Redact(req.URL), size: -1}
	defer d.close()
	return d.run(ctx, put)
}

// Errors by which the ends of a transfer are told apart.
var (
	errDeadline = errors.New("the deadline has passed")
	errRestart  = errors.New("the source begins anew") // what was written is of no use
)

// network reads one of Settings.Networks.
func network(s string) ([]netip.Prefix, error) {
	if s == "loopback" {
		return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return nil, fmt.Errorf("sources.networks: %q is neither a network, as 10.0.0.0/8, nor loopback", s)
	}
	return []netip.Prefix{p.Masked()}, nil
}
