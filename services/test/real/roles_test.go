package real_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/test/testbed"
)

// apart is a server and its client, each on a node of its own. The client is held.
const apart = `spec_version = "1.0"
[info]
description = "a server and its client on two nodes"
[hardware]
cpus = "20m"
placement = "anywhere"
apart = "node"
[env]
docker_image = "local/bench:1"
[[roles]]
name = "server"
benchmark_code = "python3 -um http.server 8080"
ready = { port = 8080 }
[[roles]]
name = "client"
starts_after = ["server"]
benchmark_code = """python3 -uc "import os, time, urllib.request
print('status=%d' % urllib.request.urlopen('http://' + os.environ['BAI_HOSTS_SERVER'] + ':8080/').status)
while not os.path.exists('/tmp/go'): time.sleep(0.2)"
"""
[[output.metrics]]
name = "status"
units = "count"
pattern = 'status=(\d+)'
`

// threeApart is one pod more than there are nodes. They wait for each other.
const threeApart = `spec_version = "1.0"
[info]
description = "three roles on two nodes"
[hardware]
cpus = "20m"
placement = "anywhere"
apart = "node"
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = "sleep 600"
[[roles]]
name = "a"
[[roles]]
name = "b"
[[roles]]
name = "c"
[limits]
pending_deadline = "1m"
`

// fourRoles is a run of five pods. Two servers are ready by a port, and the cache over HTTP; the load asks all of them, and the observer
// starts once it has written a line, and ends last: the load waits for the observer's port. Their commands have a nameserver that does not exist.
const fourRoles = `spec_version = "1.0"
[info]
description = "two servers, a cache, a load generator and an observer that ends last"
[hardware]
cpus = "20m"
placement = "anywhere"
gpu_resource = "example.org/server"
[env]
docker_image = "local/bench:1"
[[roles]]
name = "server"
replicas = 2
gpus = 1
ready = { port = 8080 }
benchmark_code = """python3 -uc "import http.server as h
open('/etc/resolv.conf', 'w').write('nameserver 192.0.2.1')
class Handler(h.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'4%s' % self.path[1:].encode()); print('asked=%s' % self.path[1:])
h.HTTPServer(('', 8080), Handler).serve_forever()"
"""
[[roles]]
name = "web-cache"
ready = { http = ":8081/ping" }
benchmark_code = "sh -c 'cd /tmp && touch ping && exec python3 -um http.server 8081'"
[[roles]]
name = "load"
starts_after = ["server", "web-cache"]
ends_run = true
ready = { log = '^load done$' }
benchmark_code = """python3 -uc "import os, socket, time, urllib.request
open('/etc/resolv.conf', 'w').write('nameserver 192.0.2.1')
for i, host in enumerate(os.environ['BAI_HOSTS_SERVER'].split()):
    print('answer=' + urllib.request.urlopen('http://%s:8080/%d' % (host, i)).read().decode())
urllib.request.urlopen('http://%s:8081/ping' % os.environ['BAI_HOSTS_WEB_CACHE'])
print('load done')
while True:
    try: socket.create_connection((os.environ['BAI_HOSTS_OBSERVER'], 8082), 5); break
    except OSError: time.sleep(0.2)"
"""
[[roles]]
name = "observer"
starts_after = ["load"]
ends_run = true
benchmark_code = """python3 -uc "import os, socket
open('/etc/resolv.conf', 'w').write('nameserver 192.0.2.1')
s = socket.create_server(('', 8082)); s.accept()
print('observed=%d' % len(os.environ['BAI_HOSTS_SERVER'].split()))"
"""
[[output.metrics]]
name = "answer"
units = "count"
pattern = 'answer=(\d+)'
[[output.metrics]]
name = "asked"
units = "count"
pattern = 'asked=(\d+)'
[[output.metrics]]
name = "observed"
units = "count"
pattern = 'observed=(\d+)'
`

func TestPodsThatAreApartHaveANodeEach(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[executor.pods]\ngrace = \"4s\"\n", "--slots", "2")
	importBenchImage(t, w)
	k := successCase{descriptor: apart, want: map[string]string{"status": "200"}, nodes: aNodeEach}
	for n := range testbed.Size(20, 2) {
		t.Run(fmt.Sprint("run ", n+1), func(t *testing.T) { w.wantSuccess(t, k) })
	}
	awaitCleared(t, w.cluster, w.scope)
}

func aNodeEach(pods []pod) error {
	nodes := nodesOf(pods)
	if diff := cmp.Diff([]string{"node1", "node2"}, nodes); diff != "" {
		return fmt.Errorf("nodes of its pods (-want +got):\n%s", diff)
	}
	return nil
}

// nodesOf returns the nodes of pods.
func nodesOf(pods []pod) (nodes []string) {
	for _, p := range pods {
		nodes = append(nodes, p.Spec.NodeName)
	}
	slices.Sort(nodes)
	return nodes
}

func TestARunOfFourRolesIsOnTwoNodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[executor.pods]\ngrace = \"4s\"\n", "--slots", "2")
	importBenchImage(t, w)
	for _, node := range []string{"node1", "node2"} { // so that each has one of the servers
		w.cluster.Run(t, "patch", "node", node, "--subresource=status", "--type=json",
			"-p", `[{"op":"add","path":"/status/capacity/example.org~1server","value":"1"}]`)
	}
	run, err := w.submit(t.Context(), filepath.Join(t.TempDir(), "roles.toml"), fourRoles)
	if err != nil {
		t.Fatal(err)
	}
	w.withoutDNS(t, "bai-"+run+"-1-pods")
	if err := w.awaitRunning(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	pods, err := w.podsOf(t.Context(), run)
	if nodes := slices.Compact(nodesOf(pods)); err != nil || len(pods) != 5 || len(nodes) != 2 {
		t.Errorf("%d pods on %v, want 5 on two nodes; %v", len(pods), nodes, err)
	}
	out, code := w.baictl(t, "watch", run)
	log, _ := w.baictl(t, "logs", run)
	if code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, log)
	}
	got := w.values(t, run)
	if diff := cmp.Diff(map[string]string{"answer": "40 41", "asked": "0 1", "observed": "2"}, sortedValues(got)); diff != "" {
		t.Errorf("its metrics (-want +got):\n%s\n%s", diff, log)
	}
	awaitCleared(t, w.cluster, w.scope)
	wantNothingForbidden(t, calls(t, w.cluster, w.scope, "platform"))
}

// withoutDNS deletes the Service by which the cluster's DNS knows the pods of a run, as soon as the executor has created it.
func (w fixture) withoutDNS(t *testing.T, service string) {
	t.Helper()
	w.cluster.Run(t, "-n", w.scope, "wait", "--for=create", "service/"+service, "--timeout=5m")
	w.cluster.Run(t, "-n", w.scope, "delete", "service", service)
}

// sortedValues returns the values of metrics in order: two pods are in none.
func sortedValues(all map[string]string) map[string]string {
	sorted := map[string]string{}
	for metric, text := range all {
		values := strings.Fields(text)
		slices.Sort(values)
		sorted[metric] = strings.Join(values, " ")
	}
	return sorted
}
