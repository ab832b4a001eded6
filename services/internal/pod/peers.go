package pod

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Files of the container that writes the hosts file of a pod. The first gets the addresses
// of the run's pods (see FormatPeers), by the downward API. The second is the hosts file.
const (
	PeersDir  = "/bai-peers"
	PeersFile = "peers"
	HostsDir  = "/bai-hosts"
	HostsFile = "hosts"
)

// Peer is a pod as the other pods of its run reach it.
type Peer struct {
	Host      string       // its name without a domain
	Addresses []netip.Addr // of each family
}

// FormatPeers returns peers as text: a line for each, in the order of their names, with the
// name, a blank, and the addresses with commas between them. The same peers give the same text.
func FormatPeers(peers []Peer) string {
	var text strings.Builder
	for _, p := range slices.SortedFunc(slices.Values(peers), func(a, b Peer) int { return cmp.Compare(a.Host, b.Host) }) {
		text.WriteString(p.Host)
		separator := " "
		for _, a := range p.Addresses {
			text.WriteString(separator + a.String())
			separator = ","
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// ParsePeers reads the text of FormatPeers. An error names the line at fault.
func ParsePeers(text string) ([]Peer, error) {
	var peers []Peer
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		host, list, _ := strings.Cut(line, " ")
		if !isHost(host) {
			return nil, fmt.Errorf("line %d: %q is not the name of a host", i+1, host)
		}
		p := Peer{Host: host}
		for address := range strings.SplitSeq(list, ",") {
			a, err := netip.ParseAddr(address)
			if err != nil || a.Zone() != "" {
				return nil, fmt.Errorf("line %d: %q is not the address of a host", i+1, address)
			}
			p.Addresses = append(p.Addresses, a)
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// maxHost is the longest name of a host without a domain.
const maxHost = 63

// isHost reports whether s is the name of a host without a domain.
func isHost(s string) bool {
	inner := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' }
	return s != "" && len(s) <= maxHost && strings.Trim(s, "-") == s && !strings.ContainsFunc(s, func(r rune) bool { return !inner(r) })
}

// HostsLines returns the lines of a hosts file for peers: each address of a peer with the
// peer's name in each domain, and the name alone. The first domain gives the full name.
func HostsLines(peers []Peer, domains []string) string {
	var text strings.Builder
	for _, p := range peers {
		for _, a := range p.Addresses {
			text.WriteString(a.String())
			for _, domain := range domains {
				text.WriteString(" " + p.Host + "." + domain)
			}
			text.WriteString(" " + p.Host + "\n")
		}
	}
	return text.String()
}
