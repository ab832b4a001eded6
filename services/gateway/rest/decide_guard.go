package rest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// requestOrigin is what a request says of where it comes from and where it thinks that
// it goes to.
type requestOrigin struct {
	Host   string     // as the client named the server
	Origin string     // of the page that a browser asks for; empty for none
	Site   string     // how a browser says that page and server relate; empty for none
	Local  netip.Addr // where the connection arrived
}

// denyReason says why a request is not answered: a page of somebody else's must not
// use a browser to reach what only the browser's user can reach. Empty means
// that it is. Hosts are the names by which the server may be called beside its
// addresses and localhost; without any, a server that is reached over loopback
// has no other, since no other leads there but by deceit, and every other server
// has all.
func (a requestOrigin) denyReason(hosts []string) string {
	host := hostname(a.Host)
	switch {
	case (len(hosts) > 0 || a.Local.Unmap().IsLoopback()) && !isLocalHost(host) && !slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) }):
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
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") && strings.Count(host, ":") == 1 || strings.Contains(host, "]:") {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// isLocalHost reports whether a host is a server's however it is called: its address, or
// this machine.
func isLocalHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}
