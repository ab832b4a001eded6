package pod_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

func peer(host string, addresses ...string) pod.Peer {
	p := pod.Peer{Host: host}
	for _, a := range addresses {
		p.Addresses = append(p.Addresses, netip.MustParseAddr(a))
	}
	return p
}

func TestPeersAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	peers := []pod.Peer{peer("bai-r-1-server-1", "10.1.0.2", "fd00::2"), peer("bai-r-1-0", "10.1.0.1")}
	text := pod.FormatPeers(peers)
	if diff := cmp.Diff("bai-r-1-0 10.1.0.1\nbai-r-1-server-1 10.1.0.2,fd00::2\n", text); diff != "" {
		t.Errorf("the text (-want +got):\n%s", diff)
	}
	got, err := pod.ParsePeers(text)
	if diff := cmp.Diff([]pod.Peer{peers[1], peers[0]}, got, cmpopts.EquateComparable(netip.Addr{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestTextThatNamesNoPeersIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":              {"", `line 1: "" is not the name of a host`},
		"a host alone":         {"a 10.0.0.1\nb\n", `line 2: "" is not the address of a host`},
		"a name for addresses": {"a b\n", `line 1: "b" is not the address of a host`},
		"a zone":               {"a fe80::1%eth0\n", `line 1: "fe80::1%eth0" is not the address of a host`},
		"a domain":             {"a.b 10.0.0.1\n", `line 1: "a.b" is not the name of a host`},
		"a comment":            {"# 10.0.0.1\n", `line 1: "#" is not the name of a host`},
		"a blank line":         {"a 10.0.0.1\n\n", `line 2: "" is not the name of a host`},
		"a long name":          {strings.Repeat("a", 64) + " 10.0.0.1\n", `is not the name of a host`},
	} {
		if _, err := pod.ParsePeers(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

func TestAHostsFileHasEachAddressWithAllNamesOfItsPod(t *testing.T) {
	t.Parallel()
	peers := []pod.Peer{peer("a-0", "10.1.0.1", "fd00::1"), peer("b-0", "10.1.0.2")}
	got := pod.HostsLines(peers, []string{"pods.ns.svc.cluster.local", "pods.ns.svc", "pods.ns", "pods"})
	want := "10.1.0.1 a-0.pods.ns.svc.cluster.local a-0.pods.ns.svc a-0.pods.ns a-0.pods a-0\n" +
		"fd00::1 a-0.pods.ns.svc.cluster.local a-0.pods.ns.svc a-0.pods.ns a-0.pods a-0\n" +
		"10.1.0.2 b-0.pods.ns.svc.cluster.local b-0.pods.ns.svc b-0.pods.ns b-0.pods b-0\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParsePeers(f *testing.F) {
	for _, seed := range []string{"", "a 10.0.0.1\n", "a 10.0.0.1,fd00::1\nb 10.0.0.2", "a \n", "a fe80::1%x", "-a 1.2.3.4", "a ::ffff:1.2.3.4\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		peers, err := pod.ParsePeers(text)
		if err != nil {
			return
		}
		for line := range strings.Lines(pod.HostsLines(peers, []string{"d"})) {
			fields := strings.Fields(line)
			if _, err := netip.ParseAddr(fields[0]); err != nil || len(fields) != 3 {
				t.Errorf("the line %q comes of %q", line, text)
			}
		}
		again, err := pod.ParsePeers(pod.FormatPeers(peers))
		if err != nil || len(again) != len(peers) {
			t.Errorf("%d peers, read again %d: %v", len(peers), len(again), err)
		}
	})
}
