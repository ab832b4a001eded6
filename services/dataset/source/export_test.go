package source

import (
	"context"
	"net"
	"net/http"
	"net/url"
)

// Internal rules that are exported for tests.
var (
	Backoff         = backoff
	Continues       = continues
	Resumable       = resumable
	ParseRetryAfter = parseRetryAfter
	HostOf          = hostOf
)

// ResolveWith makes the reader resolve names with res.
func (r *Reader) ResolveWith(res *net.Resolver) { r.dialer.Resolver = res }

// ConnectTo makes connections to target go to another address. The target counts as
// allowed.
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

// Redirect returns the reason why a redirect is refused even if all sources are
// allowed.
func Redirect(from, to string) *Error {
	a, _ := url.Parse(from)
	b, _ := url.Parse(to)
	g, _ := newGuard(Settings{})
	return g.redirect(b, []*url.URL{a})
}
