package git

import (
	"errors"
	"io"
	"net/http"
	"strings"
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
