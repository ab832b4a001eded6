package egress_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/egress"
)

func TestOnlyPublicAddressesAreOpenUnlessSettingsSaySo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		networks []string
		address  string
		want     bool
	}{
		"a public one":                         {nil, "93.184.216.34", true},
		"a public one of version 6":            {nil, "2606:2800:220:1:248:1893:25c8:1946", true},
		"loopback":                             {nil, "127.0.0.1", false},
		"loopback of version 6":                {nil, "::1", false},
		"loopback, where it is allowed":        {[]string{"loopback"}, "127.0.0.2", true},
		"a private one":                        {nil, "10.1.2.3", false},
		"a private one, where it is allowed":   {[]string{"10.0.0.0/8"}, "10.1.2.3", true},
		"another than the one that is allowed": {[]string{"10.0.0.0/8"}, "192.168.1.1", false},
		"the metadata of a machine":            {nil, "169.254.169.254", false},
		"one inside another":                   {nil, "::ffff:127.0.0.1", false},
		"one inside another, translated":       {nil, "64:ff9b::7f00:1", false},
		"a link-local one with a zone":         {nil, "fe80::1%eth0", false},
	} {
		p, err := egress.New("table", nil, tt.networks)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.AllowsAddr(netip.MustParseAddr(tt.address)); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestHostsAreThoseOfSettings(t *testing.T) {
	t.Parallel()
	p, err := egress.New("table", []string{"Example.org", "*.example.com"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{"example.org": true, "x.example.org": false, "x.example.com": true, "example.com": false, "badexample.com": false} {
		if p.AllowsHost(host) != want {
			t.Errorf("%s: %v", host, !want)
		}
	}
	if _, err := egress.New("table", []string{"", "a*"}, []string{"10.0.0.1"}); err == nil || strings.Count(err.Error(), "table.hosts") != 2 || !strings.Contains(err.Error(), "table.networks") {
		t.Errorf("%v", err)
	}
}

func TestADialerConnectsNowhereElse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's
	for name, networks := range map[string][]string{"refused": nil, "allowed": {"loopback"}} {
		p, err := egress.New("table", nil, networks)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := p.Dialer().DialContext(t.Context(), "tcp", l.Addr().String())
		if (err == nil) != (name == "allowed") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}
