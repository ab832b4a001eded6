package git

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Limits of answers that are held in memory.
const (
	maxRefsBytes  = 64 << 20 // of the list of references; some repositories have a million
	maxErrorBytes = 4 << 10  // of an error message
)

// limitClient returns a client that is as the given one, but reads no list of
// references, and no excuse, that is larger than memory is to hold.
func limitClient(client *http.Client) *http.Client {
	c := *client
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	c.Transport = limitedTransport{c.Transport}
	return &c
}

type limitedTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch {
	case a.StatusCode != http.StatusOK:
		a.Body = &errorBody{io.LimitReader(a.Body, maxErrorBytes), a.Body}
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		a.Body = &refsBody{a.Body, maxRefsBytes}
	}
	return a, nil
}

// errorBody is the beginning of a body.
type errorBody struct {
	io.Reader
	io.Closer
}

// refsBody is a body that may not be larger than so.
type refsBody struct {
	io.ReadCloser

	left int
}

// Read implements io.Reader.
func (l *refsBody) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.left -= n; l.left < 0 {
		return n, refsTooLargeError{}
	}
	return n, err
}

// refsTooLargeError says that a list of references is too large.
type refsTooLargeError struct{}

// Error implements error.
func (refsTooLargeError) Error() string { return "its list of references is larger than 64 MiB" }

// Is reports that it is one of errors.ErrUnsupported.
func (refsTooLargeError) Is(err error) bool { return err == errors.ErrUnsupported }

// Limits of a pack, which is read with memory for its largest objects and for the index
// of all of them.
const (
	maxObjectBytes = 100 << 20 // of one object; a file is one
	maxChainBytes  = 256 << 20 // of an object and all that it is a difference to
	maxTreeBytes   = 32 << 20  // of the folders on the path to a file, together
	maxObjects     = 1 << 20   // objects of a pack
	maxDepth       = 1000      // folders on the path to a file
)

// packLimits adds up the memory that the objects of a pack take.
type packLimits struct {
	chains map[int64]int64 // bytes of the object at an offset, with all that it is a difference to
	deltas int64           // bytes of all differences
	refs   bool            // some differences name their base, which may be anywhere, by its hash
}

// add returns the reason why an object cannot be read in bounded memory, or nil. Size is
// that of the object itself, where the header has that of a difference.
func (l *packLimits) add(h *packfile.ObjectHeader, size uint64) error {
	if size > maxObjectBytes || h.Length > maxObjectBytes {
		return objectTooLarge(max(size, uint64(h.Length)))
	}
	chain := int64(size)
	if h.Type.IsDelta() {
		chain += h.Length
		l.deltas += chain
		l.refs = l.refs || h.Type == plumbing.REFDeltaObject
		chain += l.chains[h.OffsetReference] // none is at 0
	}
	l.chains[h.Offset] = chain
	if l.refs {
		chain = max(chain, l.deltas)
	}
	if chain > maxChainBytes {
		return fmt.Errorf("%w: some files are sent as differences to one another, of more than %d MiB together: "+
			"repack the repository (git repack -a -d -F --depth=10), or put the files into a bucket", store.ErrTooLarge, maxChainBytes>>20)
	}
	return nil
}

func objectTooLarge(size uint64) error {
	return fmt.Errorf("%w: it sends a file of %d bytes, and files of repositories are read up to %d MiB "+
		"(git ls-tree -r -l lists the sizes): put that one into a bucket", store.ErrTooLarge, size, maxObjectBytes>>20)
}

// unreadableError is a reason why a repository cannot be read, now or later.
type unreadableError struct{ error }

// Unwrap returns the reason.
func (e unreadableError) Unwrap() error { return e.error }

// Is reports that it is one of errors.ErrUnsupported.
func (unreadableError) Is(err error) bool { return err == errors.ErrUnsupported }
