package link

import (
	"testing"
)

func TestTheMTUIsThatOfTheLinkToTheNetwork(t *testing.T) {
	t.Parallel()
	const head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
	for name, tt := range map[string]struct {
		routes string
		links  []string
		want   string
		err    string
	}{
		"of the default route": {
			head + "net1\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\neth0\t0000000A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n",
			[]string{"lo", "eth0", "net1"},
			"net1", "",
		},
		"of the lowest metric": {
			head + "net1\t00000000\t01\t0003\t0\t0\t100\t00000000\t0\t0\t0\nnet2\t00000000\t01\t0003\t0\t0\t50\t00000000\t0\t0\t0\n",
			[]string{"net1", "net2"},
			"net2", "",
		},
		"eth0 without a default route":     {head + "net1\t0000000A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n", []string{"lo", "eth0", "net1"}, "eth0", ""},
		"the only one":                     {head, []string{"lo", "ens3"}, "ens3", ""},
		"a route of a link that is gone":   {head + "gone\t00000000\t01\t0003\t0\t0\t0\t00000000\t0\t0\t0\n", []string{"lo", "eth0"}, "eth0", ""},
		"a route without a metric":         {"a\t00000000\t01\t0003\t0\t0\tx\t00000000\t0\nshort\t00000000\n", []string{"eth0"}, "eth0", ""},
		"never the loopback":               {head, []string{"lo"}, "", "the pod has no link to a network"},
		"none of several that are not one": {head, []string{"lo", "a", "b"}, "", "the pod has the links a, b, none of them called eth0 or with the default route"},
	} {
		got, err := decideLink(tt.routes, tt.links)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, tt.want, tt.err)
		}
	}
}
