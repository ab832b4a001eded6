package git

import (
	"errors"
	"io"
	"net/http"
	"strings"
)

// What is read at most of an answer that is kept in memory.
const (
	mostTold   = 64 << 20 // of the list of references; some repositories have a million
	mostExcuse = 4 << 10  // of what a server says instead
)

// bounded returns a client that is as the given one, but reads no list of
// references, and no excuse, that is larger than memory is to hold.
func bounded(client *http.Client) *http.Client {
	c := *client
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	c.Transport = bound{c.Transport}
	return &c
}

type bound struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bound) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch {
	case a.StatusCode != http.StatusOK:
		a.Body = &excuse{io.LimitReader(a.Body, mostExcuse), a.Body}
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		a.Body = &list{a.Body, mostTold}
	}
	return a, nil
}

// excuse is the beginning of a body.
type excuse struct {
	io.Reader
	io.Closer
}

// list is a body that may not be larger than so.
type list struct {
	io.ReadCloser

	left int
}

// Read implements io.Reader.
func (l *list) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.left -= n; l.left < 0 {
		return n, listError{}
	}
	return n, err
}

// listError says that a list of references is too large.
type listError struct{}

// Error implements error.
func (listError) Error() string { return "its list of references is larger than 64 MiB" }

// Is reports that it is one of errors.ErrUnsupported.
func (listError) Is(err error) bool { return err == errors.ErrUnsupported }
