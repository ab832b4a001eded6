package main

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAListenerThatOthersReachIsRefusedUnlessThatIsMeant(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		at   string
		open bool
	}{
		"loopback":                            {"127.0.0.1:7070", false},
		"another address of loopback":         {"127.0.1.1:7070", false},
		"loopback of IPv6":                    {"[::1]:7070", false},
		"loopback of IPv4 as one of IPv6":     {"[::ffff:127.0.0.1]:7070", false},
		"every address":                       {"0.0.0.0:7070", true},
		"every address of IPv6, and of both":  {"[::]:7070", true},
		"every address of IPv4 as one of 6":   {"[::ffff:0.0.0.0]:7070", true},
		"an address of the machine":           {"192.0.2.7:7070", true},
		"a private one":                       {"10.1.2.3:7070", true},
		"a private one of IPv6":               {"[fd00::7]:7070", true},
		"one of a link, with its interface":   {"[fe80::1%eth0]:7070", true},
		"an address that nobody has a use of": {"[::ffff:192.0.2.7]:7070", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := netip.MustParseAddrPort(tt.at)
			err := refuseExposed("ADDRESS", at, false)
			if err != nil != tt.open {
				t.Errorf("refused: %v, want %t", err, tt.open)
			}
			if err != nil && (!strings.Contains(err.Error(), "--listen 127.0.0.1:7070") || !strings.Contains(err.Error(), "--allow-anyone")) {
				t.Errorf("no remedy: %v", err)
			}
			if err := refuseExposed("ADDRESS", at, true); err != nil {
				t.Errorf("though it is meant: %v", err)
			}
			if warned := warnExposed(at) != ""; warned != tt.open {
				t.Errorf("warned: %t, want %t", warned, tt.open)
			}
		})
	}
}
