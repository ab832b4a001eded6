package real_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const withScript = `spec_version = "0.1.0"
[info]
description = "one pod with a data set, code that is sent along, and metrics of both kinds"
[hardware]
cpus = "50m"
memory = "64Mi"
strategy = "single_node"
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = "${BAI_SCRIPTS_PATH}/train.sh /data/set"
[ml.script]
script = "code.tar"
[[data.sources]]
src = "%s/set"
path = "/data/set"
[[output.metrics]]
name = "size"
units = "bytes"
pattern = 'size=(\d+)'
`

const mpiWithScript = `spec_version = "0.1.0"
[info]
description = "four ranks on two nodes, whose program is sent along"
[hardware]
cpus = "50m"
strategy = "mpi"
[hardware.distributed]
num_instances = 2
processes_per_instance = 2
[env]
docker_image = "local/bench:1"
[ml]
benchmark_code = "python3 -u $(BAI_SCRIPTS_PATH)/lib/ranks.py"
[[output.metrics]]
name = "ranks"
units = "count"
pattern = 'ranks=(\d+)'
[[output.metrics]]
name = "hosts"
units = "count"
pattern = 'hosts=(\d+)'
`

// shipped makes the folder with the code of both.
func shipped(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := os.Mkdir(filepath.Join(dir, "lib"), 0o755)
	for name, text := range map[string]string{
		"train.sh": `#!/bin/sh -e
. "$BAI_SCRIPTS_PATH/lib/step.sh"
echo "size=$(wc -c <"$1") bytes"
for loss in 0.5 0.25; do step $loss; done
touch "$BAI_SCRIPTS_PATH/lib/checkpoint"
sleep 1
`,
		"lib/step.sh":  `step() { echo "{\"loss\": $1}" >>"$BENCHMARK_AI_FILE"; }` + "\n",
		"lib/ranks.py": "from mpi4py import MPI\nc = MPI.COMM_WORLD\nn, hosts = c.allreduce(1), len(set(c.allgather(MPI.Get_processor_name())))\nif c.Get_rank() == 0: print('ranks=%d hosts=%d' % (n, hosts))\n",
	} {
		path := filepath.Join(dir, name)
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// hostile makes an archive whose only file leads out of it.
func hostile(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	path := filepath.Join(t.TempDir(), "code.tar")
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "../../escaped", Mode: 0o644}), w.Close(), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCodeThatIsSentAlongIsRunInPods(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[executor.pods]\ngrace = \"4s\"\n", "--slots", "2")
	importBenchImage(t, w)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("benchmark"), 100_000))
	}))
	t.Cleanup(web.Close)
	code := shipped(t)
	for name, tt := range map[string]struct {
		descriptor, code string
		want             map[string]string // metric → its values; nil for a run that fails
		says             string
	}{
		"single node with data set, script and metrics": {fmt.Sprintf(withScript, web.URL), code, map[string]string{"size": "900000", "loss": "0.5 0.25"}, ""},
		"mpi, whose descriptor does not ask for it":     {mpiWithScript, code, map[string]string{"ranks": "4", "hosts": "2"}, ""},
		"a hostile archive":                             {fmt.Sprintf(withScript, web.URL), hostile(t), nil, "leads out of the archive"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "run.toml")
			if err := os.WriteFile(file, []byte(tt.descriptor), 0o600); err != nil {
				t.Fatal(err)
			}
			out, exit := w.baictl(t, "run", file, "--script", tt.code)
			run := runID.FindString(out)
			if (exit == 0) != (tt.want != nil) || run == "" || !strings.Contains(out, tt.says) {
				log, _ := w.baictl(t, "logs", run)
				t.Fatalf("exit code %d\n%s\n%s", exit, out, log)
			}
			values := w.values(t, run)
			maps.DeleteFunc(values, func(metric, _ string) bool { return strings.HasPrefix(metric, "system.") })
			if diff := cmp.Diff(tt.want, values); tt.want != nil && diff != "" {
				t.Errorf("its metrics (-want +got):\n%s", diff)
			}
			if known, _ := w.baictl(t, "get", run); !strings.Contains(known, "Code ") {
				t.Errorf("nothing is known of its code:\n%s", known)
			}
		})
	}
	awaitCleared(t, w.cluster, w.scope)
	wantNothingForbidden(t, calls(t, w.cluster, w.scope, "platform"))
}
