package real_test

import (
	"fmt"
	"strings"
	"testing"
)

// twoRanks is a run of MPI on two nodes. Its ranks say on how many hosts they are, how many of
// them have an address of the pod network, and the least MTU of their links.
const twoRanks = `spec_version = "1.0"
[info]
description = "two ranks in a network"
[hardware]
cpus = "20m"
strategy = "mpi"
[hardware.distributed]
num_instances = 2
[network]
transport = "tcp"
%s
[env]
docker_image = "local/bench:1"
[ml]
benchmark_code = """python3 -uc "import os, socket
from mpi4py import MPI
c = MPI.COMM_WORLD
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('10.201.0.254', 9))
mtu = int(open('/sys/class/net/eth0/mtu').read())
hosts, pods = len(set(c.allgather(socket.gethostname()))), c.allreduce(int(s.getsockname()[0].startswith('10.245.')))
least, pml = c.allreduce(mtu, op=MPI.MIN), os.environ.get('OMPI_MCA_pml')
if c.Get_rank() == 0: print('hosts=%%d pods=%%d mtu=%%d ob1=%%d' %% (hosts, pods, least, pml == 'ob1'))"
"""
[[output.metrics]]
name = "hosts"
units = "count"
pattern = 'hosts=(\d+)'
[[output.metrics]]
name = "pods"
units = "count"
pattern = 'pods=(\d+)'
[[output.metrics]]
name = "mtu"
units = "bytes"
pattern = 'mtu=(\d+)'
[[output.metrics]]
name = "ob1"
units = "count"
pattern = 'ob1=(\d+)'
`

// pair is a server and its client in the network of their nodes.
const pair = `spec_version = "1.0"
[info]
description = "a server and its client in the network of their nodes"
[hardware]
cpus = "20m"
apart = "node"
[network]
host_network = true
[env]
docker_image = "local/bench:1"
[[roles]]
name = "server"
benchmark_code = "python3 -um http.server 18098"
ready = { port = 18098 }
[[roles]]
name = "client"
starts_after = ["server"]
benchmark_code = """python3 -uc "import os, socket, urllib.request
host = os.environ['BAI_HOSTS_SERVER']
print('status=%d node=%d' % (urllib.request.urlopen('http://' + host + ':18098/').status, socket.gethostbyname(host).startswith('10.201.')))"
"""
[[output.metrics]]
name = "status"
units = "count"
pattern = 'status=(\d+)'
[[output.metrics]]
name = "node"
units = "count"
pattern = 'node=(\d+)'
`

// TestRunsAreInTheNetworksOfTheirDescriptors runs two runs with host network at once, which
// have the same ports and as many workers as there are nodes.
func TestRunsAreInTheNetworksOfTheirDescriptors(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[executor.pods]\ngrace = \"4s\"\nsecurity = \"privileged\"\n[executor.pods.allow.default]\nrights = [\"host_network\", \"mtu\"]\n", "--slots", "4")
	w.cluster.Run(t, "label", "namespace", w.scope, "pod-security.kubernetes.io/enforce=privileged", "--overwrite")
	importBenchImage(t, w)
	before := w.linksOfNodes(t)
	t.Run("runs", func(t *testing.T) {
		host := fmt.Sprintf(twoRanks, "host_network = true\nssh_port = 22022")
		nodes := strings.Fields(before)[0]
		for name, k := range map[string]successCase{
			"host network":       {descriptor: host, want: map[string]string{"hosts": "2", "pods": "0", "mtu": nodes, "ob1": "1"}},
			"host network again": {descriptor: host, want: map[string]string{"hosts": "2", "pods": "0", "mtu": nodes, "ob1": "1"}},
			"MTU":                {descriptor: fmt.Sprintf(twoRanks, "mtu = 1300"), want: map[string]string{"hosts": "2", "pods": "2", "mtu": "1300", "ob1": "1"}},
			"roles":              {descriptor: pair, want: map[string]string{"status": "200", "node": "1"}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w.wantSuccess(t, k)
			})
		}
	})
	if after := w.linksOfNodes(t); after != before {
		t.Errorf("the MTUs of the nodes are %s, and were %s", after, before)
	}
	awaitCleared(t, w.cluster, w.scope)
	wantNothingForbidden(t, calls(t, w.cluster, w.scope, "platform"))
}

// linksOfNodes returns the MTUs of the links of both nodes.
func (w fixture) linksOfNodes(t *testing.T) string {
	t.Helper()
	var all []string
	for _, node := range []string{"node1", "node2"} {
		out, err := w.cluster.Inside(t.Context(), node, "ip", "-o", "link", "show", "eth0")
		if err != nil {
			t.Fatalf("%s: %v\n%s", node, err, out)
		}
		_, rest, _ := strings.Cut(string(out), " mtu ")
		size, _, _ := strings.Cut(rest, " ")
		all = append(all, size)
	}
	return strings.Join(all, " ")
}
