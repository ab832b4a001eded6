package source

import (
	"context"
	"net"
	"net/http"
	"net/url"
)

// Rules that are pure but nobody else's business.
var (
	Backoff         = backoff
	Continues       = continues
	Resumable       = resumable
	ParseRetryAfter = parseRetryAfter
	HostOf          = hostOf
)

// ResolveWith has names resolved by res.
func (r *Reader) ResolveWith(res *net.Resolver) { r.dialer.Resolver = res }

// ConnectTo connects to another address than the one that is asked for, which
// is taken to be allowed.
func (r *Reader) ConnectTo(target, to string) {
	t, ok := r.client.Transport.(*http.Transport)
	if !ok {
		return
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == target {
			var plain net.Dialer
			return plain.DialContext(ctx, network, to)
		}
		return r.dialer.DialContext(ctx, network, address)
	}
}

// Redirect says why a redirect is refused where everything is allowed.
func Redirect(from, to string) *Error {
	a, _ := url.Parse(from)
	b, _ := url.Parse(to)
	g, _ := newGuard(Settings{})
	return g.redirect(b, []*url.URL{a})
}
