package rest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// requestOrigin has the values of a request that tell where it comes from, and which
// server it is for.
type requestOrigin struct {
	Host   string     // host that the client called
	Origin string     // origin of the page that sent the request; empty without a browser
	Site   string     // relation of page and server, by the browser; empty without one
	Local  netip.Addr // address at which the connection arrived
}

// denyReason returns the reason why a request is refused, or "". It protects against
// pages of other origins that use a browser to reach a server that only the browser's
// user can reach; hosts are names of the server, besides its addresses and localhost.
// Without hosts, a server accepts every name, but over loopback only localhost and
// addresses, since any other name that leads there is DNS rebinding.
func (a requestOrigin) denyReason(hosts []string) string {
	host := hostname(a.Host)
	switch {
	case (len(hosts) > 0 || a.Local.Unmap().IsLoopback()) && !isLocalHost(host) &&
		!slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) }):
		return fmt.Sprintf("host %.100q is not one that this server is called by: call it by its address, or name the host in its settings (gateway.rest.hosts)", host)
	case a.Origin != "" && a.Origin != "http://"+a.Host && a.Origin != "https://"+a.Host:
		return fmt.Sprintf("a page of %.100q may not call this server", a.Origin)
	case a.Site != "" && a.Site != "same-origin" && a.Site != "none":
		return fmt.Sprintf("a page of another origin (%.40q) may not call this server", a.Site)
	}
	return ""
}

// hostname returns a host without its port, in lower case.
func hostname(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") && strings.Count(host, ":") == 1 ||
		strings.Contains(host, "]:") {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// isLocalHost reports whether host is an address, or a name of this machine.
func isLocalHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}
