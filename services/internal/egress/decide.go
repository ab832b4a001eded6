// Package egress says where a process may connect whose user named the address: a
// data source, a descriptor's URL, an image's registry. Public addresses are open;
// loopback, link-local and private ones only where settings say so.
package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Policy says which hosts may be named and which addresses connected to. The zero
// value allows every host, and every public address.
type Policy struct {
	hosts    []string // lower case
	networks []netip.Prefix
}

// New returns the Policy of a table of settings, whose keys hosts and networks its
// errors name.
//
// Hosts are example.com, or *.example.com for all below it; none means every one.
// Networks that are not public and may be asked all the same are 10.0.0.0/8, or the
// word loopback.
func New(table string, hosts, networks []string) (Policy, error) {
	var (
		p    Policy
		errs []error
	)
	for _, h := range hosts {
		if h == "" || strings.Contains(strings.TrimPrefix(h, "*."), "*") {
			errs = append(errs, fmt.Errorf("%s.hosts: %q is neither a host, as example.com, nor all below one, as *.example.com", table, h))
		}
		p.hosts = append(p.hosts, strings.ToLower(h))
	}
	for _, n := range networks {
		if n == "loopback" {
			p.networks = append(p.networks, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
			continue
		}
		prefix, err := netip.ParsePrefix(n)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s.networks: %q is neither a network, as 10.0.0.0/8, nor loopback", table, n))
			continue
		}
		p.networks = append(p.networks, prefix.Masked())
	}
	return p, errors.Join(errs...)
}

// AllowsHost reports whether a URL may name a host, given in lower case and without
// a port.
func (p Policy) AllowsHost(host string) bool {
	if len(p.hosts) == 0 {
		return true
	}
	for _, h := range p.hosts {
		if below, all := strings.CutPrefix(h, "*."); h == host || all && strings.HasSuffix(host, "."+below) {
			return true
		}
	}
	return false
}

// AllowsAddr reports whether a may be connected to: it is public, or settings
// say so.
func (p Policy) AllowsAddr(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, n := range p.networks {
		if n.Contains(a) {
			return true
		}
	}
	return isPublic(a)
}

// isPublic reports whether an address belongs to the Internet. Addresses that embed another
// one do not: their destination is unknown.
func isPublic(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, special := range [...]string{
		"::/96", "168.63.129.16/32", // Azure's address for its machines
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16",
		"3fff::/20", "5f00::/16", "fec0::/10",
	} {
		if netip.MustParsePrefix(special).Contains(a) {
			return false
		}
	}
	return true
}
