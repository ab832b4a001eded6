package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/benchmark-ai/bai/services/internal/egress"
)

// newTransport returns a transport that connects only to addresses that p allows. It uses
// no proxy, whose target could not be checked.
func newTransport(p egress.Policy) *http.Transport {
	return &http.Transport{
		DialContext:            p.Dialer().DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		IdleConnTimeout:        30 * time.Second,
	}
}

// A blockedError says why a place is not asked, or an answer not read on.
type blockedError struct{ message string }

// Error implements error.
func (e *blockedError) Error() string { return e.message }

// limitedTransport asks for one image: where it may, and for so much.
type limitedTransport struct {
	inner     http.RoundTripper
	policy    egress.Policy
	allowHTTP bool // the registry may be asked without TLS

	mu           sync.Mutex
	left         int64 // bytes of answers
	requestsLeft int   // requests
}

// RoundTrip implements http.RoundTripper. It is called for each redirect, too.
func (b *limitedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := b.checkRequest(req.URL); err != nil {
		return nil, err
	}
	answer, err := b.inner.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	answer.Body = &body{ReadCloser: answer.Body, limits: b}
	return answer, nil
}

func (b *limitedTransport) checkRequest(u *url.URL) error {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !b.allowHTTP):
		return &blockedError{fmt.Sprintf("%s is not asked: anybody on the way could change the answer without https", u.Host)}
	case !b.policy.AllowsHost(host):
		return &blockedError{fmt.Sprintf("host %q is not one that the platform's settings allow (registry.hosts)", host)}
	}
	if a, err := netip.ParseAddr(host); err == nil && !b.policy.AllowsAddr(a) {
		return &egress.AddrError{Addr: a}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.requestsLeft--; b.requestsLeft < 0 {
		return &blockedError{fmt.Sprintf("it takes more than %d requests", maxRequests)}
	}
	return nil
}

// body limits and counts the bytes of an answer.
type body struct {
	io.ReadCloser

	limits *limitedTransport
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.limits.mu.Lock()
	bytesLeft := b.limits.left
	b.limits.mu.Unlock()
	if bytesLeft <= 0 {
		return 0, &blockedError{fmt.Sprintf("its answers have more than %d MiB", maxBytes>>20)}
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), bytesLeft)])
	b.limits.mu.Lock()
	b.limits.left -= int64(n)
	b.limits.mu.Unlock()
	return n, err
}

// isLoginRefused reports whether an error says that another login may be let in.
func isLoginRefused(err error) bool {
	transportErr, ok := errors.AsType[*transport.Error](err)
	return ok && (transportErr.StatusCode == http.StatusUnauthorized || transportErr.StatusCode == http.StatusForbidden ||
		transportErr.StatusCode == http.StatusNotFound)
}

// explain says, for the user, why a registry gave no answer.
func explain(ctx context.Context, host string, err error, within time.Duration) string {
	if bad, ok := errors.AsType[*egress.AddrError](err); ok {
		return fmt.Sprintf("%s: address %s is not public, and the platform's settings do not allow it (registry.networks)", host, bad.Addr)
	}
	if bad, ok := errors.AsType[*blockedError](err); ok {
		return host + ": " + bad.message
	}
	if errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Sprintf("%s did not answer within %s", host, within)
	}
	if transportErr, ok := errors.AsType[*transport.Error](err); ok {
		return describeStatus(host, transportErr)
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Sprintf("%s: its certificate is not trusted: %v", host, bad.Err)
	}
	if bad, ok := errors.AsType[*net.DNSError](err); ok && bad.IsNotFound {
		return fmt.Sprintf("there is no host %q", bad.Name)
	}
	if bad, ok := errors.AsType[*url.Error](err); ok {
		err = bad.Err
	}
	return oneLine(host + ": " + err.Error())
}

// describeStatus describes a registry's answer.
func describeStatus(host string, e *transport.Error) string {
	text := fmt.Sprintf("%s answers %d %s", host, e.StatusCode, http.StatusText(e.StatusCode))
	if len(e.Errors) > 0 {
		text += ": " + e.Errors[0].Message
	}
	return oneLine(text)
}

// oneLine shortens a foreign text to one line.
func oneLine(s string) string {
	const most = 300
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || unicode.IsSpace(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, ""))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
