package real_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

// successCase is a run that is to end well.
type successCase struct {
	descriptor string
	want       map[string]string      // metric → its values, in order
	nodes      func(pods []pod) error // returns the fault in the placement of its pods, which are held; nil for a run without placement
}

const single = `spec_version = "0.1.0"
[info]
description = "one pod with data and metrics of both kinds"
[hardware]
cpus = "50m"
memory = "64Mi"
strategy = "single_node"
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = '''
#!/bin/sh -e
echo "size=$(wc -c </data/set) bytes"
echo '{"loss": 0.5}' >>"$BENCHMARK_AI_FILE"
BENCHMARK_AI_STRICT=1 bai-emit loss=0.25
sleep 2
'''
[[data.sources]]
src = "%s/set"
path = "/data/set"
[[output.metrics]]
name = "size"
units = "bytes"
pattern = 'size=(\d+)'
`

const twoGPUs = `spec_version = "0.1.0"
[info]
description = "two GPUs of a node"
[hardware]
strategy = "single_node"
gpus = 2
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = "sh -c 'echo n=2; until [ -e /tmp/go ]; do sleep 0.2; done'"
[[output.metrics]]
name = "n"
units = "count"
pattern = 'n=(\d+)'
`

const inference = `spec_version = "0.1.0"
[info]
description = "a client that asks a server that is slow to begin"
[hardware]
cpus = "50m"
strategy = "inference"
[env]
docker_image = "local/bench:1"
[ml]
benchmark_code = '''
#!/usr/bin/python3
import os, urllib.request
for n in range(3):
    url = "http://%%s:%%s/%%d" %% (os.environ["INFERENCE_SERVER_HOST"], os.environ["INFERENCE_SERVER_PORT"], n)
    print("answer=" + urllib.request.urlopen(url).read().decode(), flush=True)
'''
[[data.sources]]
src = "%s/set"
path = "/data/set"
[[output.metrics]]
name = "answer"
units = "count"
pattern = 'answer=(\d+)'
[server.hardware]
cpus = "50m"
[server.env]
docker_image = "local/bench:1"
ports = [8080]
start_command = """python3 -uc "import http.server as h, time
class Handler(h.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        if self.path != '/ping': self.wfile.write(b'4%%s' %% self.path[1:].encode()); print('asked=%%s' %% self.path[1:])
time.sleep(2)
h.HTTPServer(('', 8080), Handler).serve_forever()"
"""
[server.env.readiness_probe]
path = "/ping"
port = 8080
initial_delay_seconds = 1
period_seconds = 1
[[server.output.metrics]]
name = "asked"
units = "count"
pattern = 'asked=(\d+)'
`

const mpi = `spec_version = "0.1.0"
[info]
description = "four ranks on two nodes"
[hardware]
cpus = "50m"
strategy = "mpi"
[hardware.distributed]
num_instances = 2
processes_per_instance = 2
[env]
docker_image = "local/bench:1"
[ml]
benchmark_code = """python3 -uc "import time
from mpi4py import MPI
c = MPI.COMM_WORLD
n, hosts = c.allreduce(1), len(set(c.allgather(MPI.Get_processor_name())))
total = c.allreduce(c.Get_rank())
if c.Get_rank() == 0: print('ranks=%d hosts=%d total=%d' % (n, hosts, total))
time.sleep(2)"
"""
[[output.metrics]]
name = "ranks"
units = "count"
pattern = 'ranks=(\d+)'
[[output.metrics]]
name = "hosts"
units = "count"
pattern = 'hosts=(\d+)'
[[output.metrics]]
name = "total"
units = "count"
pattern = 'total=(\d+)'
`

func TestEveryKindOfRunEndsWell(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[executor.pods]\ngrace = \"4s\"\n", "--slots", "2")
	importBenchImage(t, w)
	w.cluster.Run(t, "patch", "node", "node1", "--subresource=status", "--type=json",
		"-p", `[{"op":"add","path":"/status/capacity/nvidia.com~1gpu","value":"8"}]`)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("benchmark"), 100_000))
	}))
	t.Cleanup(web.Close)
	for name, k := range map[string]successCase{
		"single node": {descriptor: fmt.Sprintf(single, web.URL), want: map[string]string{"size": "900000", "loss": "0.5 0.25"}},
		"two GPUs":    {descriptor: twoGPUs, want: map[string]string{"n": "2"}, nodes: onlyNode1},
		"inference":   {descriptor: fmt.Sprintf(inference, web.URL), want: map[string]string{"answer": "40 41 42", "asked": "0 1 2"}},
		"mpi":         {descriptor: moreThanHalf(t, w, strings.Replace(mpi, "time.sleep(2)", "import os\nwhile not os.path.exists('/tmp/go'): time.sleep(0.2)", 1)), want: map[string]string{"ranks": "4", "hosts": "2", "total": "6"}, nodes: workersApart},
	} {
		t.Run(name, func(t *testing.T) { w.wantSuccess(t, k) })
	}
	awaitCleared(t, w.cluster, w.scope)
	wantNothingForbidden(t, calls(t, w.cluster, w.scope, "platform"))
}

func (w fixture) wantSuccess(t *testing.T, k successCase) {
	t.Helper()
	begun := time.Now()
	run, err := w.submit(t.Context(), filepath.Join(t.TempDir(), "run.toml"), k.descriptor)
	if err != nil {
		t.Fatal(err)
	}
	if k.nodes != nil {
		if err := w.awaitRunning(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		pods, err := w.podsOf(t.Context(), run)
		if err == nil {
			err = k.nodes(pods)
		}
		if len(pods) > 1 {
			w.wantIsolated(t, run)
		}
		if err := errors.Join(err, w.release(t.Context(), run)); err != nil {
			t.Error(err)
		}
	}
	out, code := w.baictl(t, "watch", run)
	if code != 0 {
		log, _ := w.baictl(t, "logs", run)
		t.Fatalf("exit code %d\n%s\n%s", code, out, log)
	}
	t.Logf("ended well in %s", time.Since(begun).Round(100*time.Millisecond))
	if diff := cmp.Diff(k.want, w.values(t, run)); diff != "" {
		t.Errorf("its metrics (-want +got):\n%s", diff)
	}
}

// wantIsolated compares a run of several pods with a network policy that has the owner of
// all of its objects. The test cluster's network, a plain bridge, enforces none.
func (w fixture) wantIsolated(t *testing.T, run string) {
	t.Helper()
	owners := w.cluster.Run(t, "-n", w.scope, "get", "networkpolicies", "-l", "benchmark-ai.dev/run="+run, "-o", "jsonpath={.items[*].metadata.ownerReferences[*].kind}")
	if owners != "ConfigMap" {
		t.Errorf("the network policies of run %s are owned by %q, want one ConfigMap", run, owners)
	}
}

// values returns the metrics of a run, without the system metrics.
func (w fixture) values(t *testing.T, run string) map[string]string {
	t.Helper()
	text, _ := w.baictl(t, "metrics", run, "-o", "json")
	all := map[string]string{}
	for line := range strings.Lines(text) {
		var s struct {
			Metric string
			Value  json.Number
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all[s.Metric] = strings.TrimSpace(all[s.Metric] + " " + s.Value.String())
	}
	maps.DeleteFunc(all, func(metric, _ string) bool { return strings.HasPrefix(metric, "system.") })
	return all
}

func onlyNode1(pods []pod) error {
	if len(pods) != 1 || pods[0].Spec.NodeName != "node1" {
		return fmt.Errorf("its pods are %+v, want one on node1, which alone has GPUs", pods)
	}
	return nil
}

// moreThanHalf has each worker of a descriptor ask for more than half of a node's
// processors: the scheduler spreads a role's pods only where nodes are otherwise
// alike, and others fill them meanwhile.
func moreThanHalf(t *testing.T, w fixture, descriptor string) string {
	t.Helper()
	all, err := resource.ParseQuantity(w.cluster.Run(t, "get", "node", "node1", "-o", "jsonpath={.status.allocatable.cpu}"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(descriptor, `cpus = "50m"`, fmt.Sprintf("cpus = \"%dm\"", all.MilliValue()*55/100), 1)
}

func workersApart(pods []pod) error {
	var nodes []string
	for _, p := range pods {
		if strings.Contains(p.Metadata.Name, "worker") {
			nodes = append(nodes, p.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	if diff := cmp.Diff([]string{"node1", "node2"}, nodes); diff != "" {
		return fmt.Errorf("nodes of its workers (-want +got):\n%s", diff)
	}
	return nil
}
