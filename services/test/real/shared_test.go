package real_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// oneCopy is a run whose workers read one copy of their data, and write their findings to
// a volume of the run.
const oneCopy = `spec_version = "1.0"
[info]
description = "four workers and one copy of their data"
[hardware]
cpus = "20m"
strategy = "mpi"
[hardware.distributed]
num_instances = 4
[env]
docker_image = "local/bench:1"
[ml]
benchmark_code = """python3 -uc "import os, time
from mpi4py import MPI
c = MPI.COMM_WORLD
def refused(path):
    try:
        open(path, 'w')
    except OSError:
        return 1
    return 0
size, kept = os.path.getsize('/data/set'), c.allreduce(refused('/data/set'))
copies = len(set(c.allgather('%%d:%%d' %% (os.stat('/data/set').st_dev, os.stat('/data/set').st_ino))))
open('/exchange/%%d' %% c.Get_rank(), 'w').close()
open('/scratch/mine', 'w').close()
c.Barrier()
if c.Get_rank() == 0: print('size=%%d refused=%%d copies=%%d found=%%d' %% (size, kept, copies, len(os.listdir('/exchange'))))
time.sleep(2)"
"""
[[data.sources]]
src = "%[1]s/set"
path = "/data/set"
mount = "shared"
[[volumes]]
path = "/exchange"
role = "worker"
template = { size = "64MiB", storage_class = "%[2]s" }
[[volumes]]
path = "/scratch"
role = "worker"
ephemeral = { size = "64MiB" }
[[output.metrics]]
name = "size"
units = "bytes"
pattern = 'size=(\d+)'
[[output.metrics]]
name = "refused"
units = "count"
pattern = 'refused=(\d+)'
[[output.metrics]]
name = "copies"
units = "count"
pattern = 'copies=(\d+)'
[[output.metrics]]
name = "found"
units = "count"
pattern = 'found=(\d+)'
`

// onNode1 is a volume on a folder of node1, for a claim of a class.
const onNode1 = `apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  storageClassName: %[2]s
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: %[3]s, type: DirectoryOrCreate}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions:
        - {key: kubernetes.io/hostname, operator: In, values: [node1]}
`

// TestWorkersShareOneCopyOfTheirDataAndAVolumeOfTheRuns on volumes that one node
// has: whoever mounts them runs there.
func TestWorkersShareOneCopyOfTheirDataAndAVolumeOfTheRuns(t *testing.T) {
	t.Parallel()
	const class = "bai-shared"
	w := newFixture(t, "[executor.pods]\ngrace = \"4s\"\n[executor.pods.shared]\naccess = \"ReadWriteOnce\"\nstorage_class = \""+class+"\"\n", "--slots", "2")
	importBenchImage(t, w)
	for _, name := range []string{"data", "exchange"} {
		volume := w.scope + "-" + name
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitTimeout)
			defer cancel()
			if out, err := w.cluster.Try(ctx, "delete", "pv", volume, "--ignore-not-found", "--wait=false"); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
		w.cluster.Apply(t, fmt.Sprintf(onNode1, volume, class, filepath.Join(t.TempDir(), name)))
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("benchmark"), 100_000)) // or the client is gone
	}))
	t.Cleanup(web.Close)
	w.wantSuccess(t, successCase{
		descriptor: fmt.Sprintf(oneCopy, web.URL, class),
		want:       map[string]string{"size": "900000", "refused": "4", "copies": "1", "found": "4"},
	})
	awaitCleared(t, w.cluster, w.scope)
	if left := strings.TrimSpace(w.cluster.Run(t, "-n", w.scope, "get", "pvc", "-o", "name")); left != "" {
		t.Errorf("claims are left: %s", left)
	}
	wantNothingForbidden(t, calls(t, w.cluster, w.scope, "platform"))
}
