package real_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed"
)

// runStatus is the final status of a run, as its user sees it.
type runStatus struct {
	ID           string `json:"id"`
	Phase        string `json:"phase"`
	Outcome      string `json:"outcome"`
	FailureClass string `json:"failureClass"`
	Reason       string `json:"reason"`
	Message      string `json:"message"`
}

// failureCase is one way in which a run does not go well.
type failureCase struct {
	descriptorText              string // the descriptor; replaces the fields below
	image                       string // empty for one that every node has
	hardware, env, code, limits string // further lines of the descriptor's tables
	parsers                     string // the descriptor's parsers
	pending                     string // how long it may wait for a resource that never comes; empty for longer than any test

	act            func(ctx context.Context, w fixture, run string) error // called once it runs; nil for a run that fails by itself
	want           runStatus
	messagePattern string // pattern of the message
	notice         string // in a status before the end; empty for none
}

// fixture is where runs are hurt.
type fixture struct {
	platform

	cluster *testbed.Cluster
	scope   string
}

// sleepScript is a benchmark that runs until it is killed.
const sleepScript = `'''
#!/bin/sh
echo $$ > /tmp/pid
exec sleep 600
'''`

// gatedCommand is a benchmark that measures n six times, and waits between the third and the
// fourth until it is released.
const gatedCommand = `"sh -c 'for n in 1 2 3; do echo n=$n; done; until [ -e /tmp/go ]; do sleep 0.2; done; for n in 4 5 6; do echo n=$n; done'"`

// killIt is the shell command that kills the benchmark of a pod, whose process ID is in a
// file; ranksRun waits for it.
const (
	ranksRun = "until [ -s /tmp/pid ]; do sleep 0.2; done"
	killIt   = ranksRun + "; kill -9 $(cat /tmp/pid)"
)

// descriptor is that of a run of one small pod.
func (h failureCase) descriptor() string {
	if h.descriptorText != "" {
		return h.descriptorText
	}
	if h.code == "" {
		h.code = sleepScript
	}
	if h.hardware == "" {
		h.hardware = `memory = "64Mi"`
	}
	return fmt.Sprintf(`spec_version = "0.1.0"
[info]
description = "comes to grief"
[hardware]
cpus = "20m"
strategy = "single_node"
%s
[env]
docker_image = %q
%s
[ml]
benchmark_code = %s
[output]
[[output.metrics]]
name = "n"
units = "count"
pattern = 'n=(\d+)'
%s
[limits]
pending_deadline = %q
%s
`, h.hardware, cmp.Or(h.image, "debian:12-slim"), h.env, h.code, h.parsers, cmp.Or(h.pending, "10m"), h.limits)
}

func failureCases() map[string]failureCase {
	return map[string]failureCase{
		"wrong image": {
			image: "example.org/none:1", pending: "1m",
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "ImagePullBackOff"}, messagePattern: `example\.org/none:1`,
		},
		"missing secret": {
			env: `secrets = { TOKEN = "no-such-secret/token" }`, pending: "1m",
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "ConfigError"}, messagePattern: `secret "no-such-secret" not found`,
		},
		"impossible GPU count": {
			hardware: "gpus = 99", pending: "1m",
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "Unschedulable"}, messagePattern: `Insufficient nvidia\.com/gpu`,
		},
		"more pods apart than nodes": {
			descriptorText: threeApart, want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "Unschedulable"},
			messagePattern: `no node can take 1 of its 3 pods: the run lacks 1 node, since each of its 3 pods has a node of its own \(hardware\.apart\), and (the cluster has 2 nodes|only 2 of the cluster's \d nodes may have its pods)`, // tests beside it make nodes that nobody else may use
		},
		"quota exceeded": {
			hardware: "gpus = 1\ngpu_resource = \"example.org/rationed\"", pending: "1m",
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "LaunchRefused"}, messagePattern: `exceeded quota: rationed`,
		},
		"quota of workers exceeded": { // the launcher, which requests less, exists
			descriptorText: strings.Replace(mpiSleep, "[hardware.distributed]", "gpus = 1\ngpu_resource = \"example.org/rationed\"\n[hardware.distributed]", 1) + "[limits]\npending_deadline = \"1m\"\n",

			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "LaunchRefused"}, messagePattern: `refuses 2 of its 3 pods: .*exceeded quota: rationed`,
		},
		"pod deleted by hand": {
			act:  deletePod,
			want: runStatus{Outcome: "failed", FailureClass: "infra", Reason: "JobDeleted"}, messagePattern: `somebody deleted the benchmark`,
		},
		"out of memory": {
			code: `"tail /dev/zero"`,
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "OOMKilled"}, messagePattern: `64Mi`,
		},
		"exit code 3": {
			code: `"sh -c 'echo the file is not there >&2; exit 3'"`,
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "NonZeroExit"}, messagePattern: `exit code 3: the file is not there`,
		},
		"no result": {
			code: `"echo hello"`, parsers: "[[output.parsers]]\nkind = \"iperf3\"",
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "NoResults"}, messagePattern: `has no result that parser iperf3 reads: .*; it begins with "hello"`,
		},
		"a part of the results": {
			code: `"sh -c 'for n in 1 2 3 4 5 6; do echo n=$n; done; printf \"BenchmarkA 100 25 ns/op\\n\"'"`, parsers: "[[output.parsers]]\nkind = \"gobench\"",
			want: runStatus{Outcome: "succeeded"}, messagePattern: `finished \(exit code 0\)`,
			notice: "a part of the results of gobench in the output is missing: neither PASS nor FAIL",
		},
		"a parser of its own that hangs": {
			code: `"echo hello"`, parsers: "[[output.parsers]]\nkind = \"command\"\ncommand = \"sleep 600\"\ndeadline = \"1s\"",
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "NoResults"}, messagePattern: `parser "sleep 600" of the output: has not ended after 1s \(deadline\), and was killed`,
		},
		"a parser of its own that dies": {
			code: `"echo hello"`, parsers: "[[output.parsers]]\nkind = \"command\"\ncommand = '''\n#!/bin/sh\nread -r word\necho no $word >&2\nexit 3\n'''",
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "NoResults"}, messagePattern: `ended with exit code 3; its standard error ends with "no hello"`,
		},
		"SIGKILL of its process": {
			act:  killBenchmark(""),
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "Signaled"}, messagePattern: `signal 9 SIGKILL`,
		},
		"pod evicted": {
			act:  evictPod,
			want: runStatus{Outcome: "failed", FailureClass: "infra", Reason: "Evicted"}, messagePattern: `had to leave node node\d`,
		},
		"pod preempted": {
			hardware: "gpus = 1\ngpu_resource = \"example.org/seat\"", act: takeSeat,
			want: runStatus{Outcome: "failed", FailureClass: "infra", Reason: "Preempted"}, messagePattern: `had to leave node node1: PreemptionByScheduler: .*preempting to accommodate a higher priority pod`,
		},
		"volume whose folder is missing": {
			env: volumeOfClaim, pending: "1m",
			want: runStatus{Outcome: "failed", FailureClass: "infra", Reason: "VolumeError"}, messagePattern: `a volume cannot be mounted: MountVolume\.SetUp failed .*/no/such/folder is not a directory`,
		},
		"secret of a file missing": {
			env: `secret_files = { "/etc/token" = "no-such-secret/token" }`, pending: "1m",
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "VolumeError"}, messagePattern: `a file of env\.secret_files cannot be mounted: .*secret "no-such-secret" not found`,
		},
		"job deleted by hand": {
			act:  deleteJob,
			want: runStatus{Outcome: "failed", FailureClass: "infra", Reason: "JobDeleted"}, messagePattern: `its job was deleted from outside the platform`,
		},
		"SIGKILL of a rank": {
			descriptorText: mpiSleep,
			act:            killBenchmark("worker-0"),
			want:           runStatus{Outcome: "failed", FailureClass: "user", Reason: "Signaled"}, messagePattern: `rank [01] on \S+worker-0\S* failed first`,
		},
		"worker deleted by hand": {
			descriptorText: mpiSleep, act: deleteWorker,
			want: runStatus{Outcome: "failed", FailureClass: "infra", Reason: "JobDeleted"}, messagePattern: `somebody deleted .*the worker 1 on node`,
		},
		"server killed": {
			descriptorText: serverSleep, act: killBenchmark("server"),
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "Signaled"}, messagePattern: `the server on node\d was ended by signal 9 SIGKILL`,
		},
		"deadline passed": {
			limits: `deadline = "20s"`,
			want:   runStatus{Outcome: "failed", FailureClass: "timeout", Reason: "DeadlineExceeded"}, messagePattern: `timed out after 20s \(limits\.deadline\)`,
		},
		"collector killed": { // it comes back, and nothing is lost
			code: gatedCommand,
			act:  killCollector,
			want: runStatus{Outcome: "succeeded"}, messagePattern: `finished \(exit code 0\)`,
		},
	}
}

const mpiSleep = `spec_version = "0.1.0"
[info]
description = "four ranks that wait for each other"
[hardware]
cpus = "20m"
strategy = "mpi"
[hardware.distributed]
num_instances = 2
processes_per_instance = 2
[env]
docker_image = "local/bench:1"
[ml]
benchmark_code = """python3 -uc "import os, time
from mpi4py import MPI
if MPI.COMM_WORLD.Get_rank() % 2 == 1: open('/tmp/pid', 'w').write(str(os.getpid()))
MPI.COMM_WORLD.Barrier()
print('all are here')
time.sleep(600)"
"""
`

const serverSleep = `spec_version = "0.1.0"
[info]
description = "a client whose server dies"
[hardware]
cpus = "20m"
strategy = "inference"
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = "sleep 600"
[server.hardware]
cpus = "20m"
[server.env]
docker_image = "local/bench:1"
ports = [8080]
start_command = """sh -c 'echo $$ >/tmp/pid; exec python3 -m http.server 8080'"""
`

// TestWhatGoesWrongIsExplained hurts runs in all ways at a time.
func TestWhatGoesWrongIsExplained(t *testing.T) {
	t.Parallel()
	w := newFixture(t, `[executor.pods]
grace = "4s"
[executor.pods.allow.default]
secrets = ["no-such-secret"]
claims = ["of-a-folder"]
`, "--slots", "27")
	importBenchImage(t, w)
	w.makeSeat(t)
	w.makeClaim(t)
	w.cluster.Apply(t, `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"rationed","namespace":"`+w.scope+`"},"spec":{"hard":{"requests.example.org/rationed":"0"}}}`)
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		table strings.Builder
	)
	lines := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	dir := t.TempDir()
	for name, h := range failureCases() {
		all.Go(func() {
			end, took, err := w.provoke(t.Context(), filepath.Join(dir, name+".toml"), h)
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(lines, "%s\t%s\t%s\t%s\t%s\t%.1f s\t%s\n", name, end.ID, end.Outcome, end.FailureClass, end.Reason, took.Seconds(), end.Message)
			if err := errors.Join(err, h.check(end)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if n, err := w.count(t.Context(), end.ID); h.want.Outcome == "succeeded" && (err != nil || n != 6) {
				t.Errorf("%s: %d samples, want 6; %v", name, n, err)
			}
			if out, _, err := w.try(t.Context(), "why", end.ID); h.notice != "" && (err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), h.notice)) {
				t.Errorf("%s: no status %q in\n%s (%v)", name, h.notice, out, err)
			}
		})
	}
	all.Wait()
	_ = lines.Flush()
	t.Logf("what went wrong, and what the user is told:\n%s", &table)
	awaitCleared(t, w.cluster, w.scope)
}

// newFixture starts a platform with the settings.
func newFixture(t *testing.T, settings string, args ...string) fixture {
	t.Helper()
	testCluster := testbed.Kubernetes(t)
	if !testCluster.Own {
		t.Skip("pods of a cluster elsewhere do not reach this machine: the platform would have to run in there")
	}
	scope := testCluster.Namespace(t)
	file := filepath.Join(t.TempDir(), "bai.toml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append(args, "--config", file, "--kubeconfig", account(t, testCluster, scope, "platform", "executor", "watcher"), "--kube-namespace", scope, "--pod-image", podImage)
	return fixture{start(t, build(t, testCluster), args...), testCluster, scope}
}

// check returns the fault of an end.
func (h failureCase) check(end runStatus) error {
	var errs []error
	if end.Phase != "finished" || end.Outcome != h.want.Outcome || end.FailureClass != h.want.FailureClass || end.Reason != h.want.Reason {
		errs = append(errs, fmt.Errorf("%s %s %s %s, want %s %s %s", end.Phase, end.Outcome, end.FailureClass, end.Reason, h.want.Outcome, h.want.FailureClass, h.want.Reason))
	}
	if !regexp.MustCompile(h.messagePattern).MatchString(end.Message) {
		errs = append(errs, fmt.Errorf("it says %q, want %s", end.Message, h.messagePattern))
	}
	return errors.Join(errs...)
}

// provoke has a run come to grief, and returns its end and how long that took.
func (w fixture) provoke(ctx context.Context, file string, h failureCase) (runStatus, time.Duration, error) {
	begun := time.Now()
	run, err := w.submit(ctx, file, h.descriptor())
	if err != nil {
		return runStatus{}, 0, err
	}
	if h.act != nil {
		if err := w.awaitRunning(ctx, run); err != nil {
			return runStatus{ID: run}, 0, err
		}
		if err := h.act(ctx, w, run); err != nil {
			return runStatus{ID: run}, 0, fmt.Errorf("hurt it: %w", err)
		}
		begun = time.Now()
	}
	if out, code, err := w.try(ctx, "watch", run, "--timeout", "10m"); err != nil || code == 3 {
		return runStatus{ID: run}, 0, fmt.Errorf("watch it: exit code %d: %w\n%s", code, err, out)
	}
	took := time.Since(begun)
	end, err := w.get(ctx, run)
	return end, took, err
}

var runID = regexp.MustCompile(`\b\w{26}\b`)

// submit submits a descriptor, and returns the run's ID.
func (w fixture) submit(ctx context.Context, file, text string) (string, error) {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	out, code, err := w.try(ctx, "submit", file, "-o", "name")
	id := runID.FindString(out)
	if err != nil || code != 0 || id == "" {
		return "", fmt.Errorf("submit: exit code %d: %w\n%s", code, err, out)
	}
	return id, nil
}

// get returns the status of a run.
func (w fixture) get(ctx context.Context, run string) (runStatus, error) {
	var r runStatus
	out, _, err := w.try(ctx, "get", run, "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &r)
	}
	if err != nil {
		return runStatus{ID: run}, fmt.Errorf("get %s: %w\n%s", run, err, out)
	}
	return r, nil
}

// awaitRunning waits until a run's benchmark runs.
func (w fixture) awaitRunning(ctx context.Context, run string) error {
	for late := time.Now().Add(waitTimeout); ; time.Sleep(300 * time.Millisecond) {
		r, err := w.get(ctx, run)
		if err != nil || r.Phase == "running" {
			return err
		}
		if r.Phase == "finished" || time.Now().After(late) {
			return fmt.Errorf("it does not run, it is %+v", r)
		}
	}
}

// count returns how many samples of n a run has.
func (w fixture) count(ctx context.Context, run string) (int, error) {
	out, code, err := w.try(ctx, "metrics", run, "-o", "json")
	if err != nil || code != 0 {
		return 0, fmt.Errorf("exit code %d: %w\n%s", code, err, out)
	}
	return strings.Count(out, `"metric":"n"`) + strings.Count(out, `"metric": "n"`), nil
}

// pod is one pod of a run.
type pod struct {
	Metadata struct{ Name string }
	Spec     struct{ NodeName string }
	Status   struct {
		InitContainerStatuses, ContainerStatuses []struct{ Name, ContainerID string }
	}
}

// container returns the ID of a container as its node knows it.
func (p pod) container(name string) string {
	for _, c := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		if c.Name == name {
			return strings.TrimPrefix(c.ContainerID, "containerd://")
		}
	}
	return ""
}

// podsOf returns the pods of a run.
func (w fixture) podsOf(ctx context.Context, run string) ([]pod, error) {
	out, err := w.cluster.Try(ctx, "-n", w.scope, "get", "pods", "-l", "benchmark-ai.dev/run="+run, "-o", "json")
	var list struct{ Items []pod }
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	if err == nil && len(list.Items) == 0 {
		err = errors.New("it has no pod")
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return list.Items, nil
}

// podNamed returns the pod of a run whose name has part in it.
func (w fixture) podNamed(ctx context.Context, run, part string) (pod, error) {
	pods, err := w.podsOf(ctx, run)
	if err != nil {
		return pod{}, err
	}
	for _, p := range pods {
		if strings.Contains(p.Metadata.Name, part) {
			return p, nil
		}
	}
	return pod{}, fmt.Errorf("it has no pod %s", part)
}

// killBenchmark kills the benchmark of a pod, from beside it.
func killBenchmark(part string) func(context.Context, fixture, string) error {
	return func(ctx context.Context, w fixture, run string) error {
		p, err := w.podNamed(ctx, run, part)
		if err != nil {
			return err
		}
		// The connection may end with the container.
		if out, err := w.cluster.Try(ctx, "-n", w.scope, "exec", p.Metadata.Name, "-c", "benchmark", "--", "sh", "-c", killIt); err != nil && !strings.Contains(out, "137") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
}

// deleteWorker deletes a worker once its ranks run: the launcher cannot connect to one that is
// deleted before.
func deleteWorker(ctx context.Context, w fixture, run string) error {
	const name = "worker-1"
	p, err := w.podNamed(ctx, run, name)
	if err != nil {
		return err
	}
	if out, err := w.cluster.Try(ctx, "-n", w.scope, "exec", p.Metadata.Name, "-c", "benchmark", "--", "sh", "-c", ranksRun); err != nil {
		return fmt.Errorf("wait for its ranks: %w: %s", err, out)
	}
	return deletePodNamed(ctx, w, run, name)
}

func deletePod(ctx context.Context, w fixture, run string) error {
	return deletePodNamed(ctx, w, run, "")
}

// deletePodNamed deletes the pod of a run whose name holds part.
func deletePodNamed(ctx context.Context, w fixture, run, part string) error {
	p, err := w.podNamed(ctx, run, part)
	if err != nil {
		return err
	}
	out, err := w.cluster.Try(ctx, "-n", w.scope, "delete", "pod", p.Metadata.Name, "--wait=false")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func evictPod(ctx context.Context, w fixture, run string) error {
	pods, err := w.podsOf(ctx, run)
	if err != nil {
		return err
	}
	name := pods[0].Metadata.Name
	f, err := os.CreateTemp(sharedBuild.dir, "eviction")
	if err != nil {
		return err
	}
	fmt.Fprintf(f, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, name, w.scope)
	if err := f.Close(); err != nil {
		return err
	}
	out, err := w.cluster.Try(ctx, "create", "--raw", "/api/v1/namespaces/"+w.scope+"/pods/"+name+"/eviction", "-f", f.Name())
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func deleteJob(ctx context.Context, w fixture, run string) error {
	out, err := w.cluster.Try(ctx, "-n", w.scope, "delete", "job", "-l", "benchmark-ai.dev/run="+run, "--wait=false")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func killCollector(ctx context.Context, w fixture, run string) error {
	pods, err := w.podsOf(ctx, run)
	if err != nil {
		return err
	}
	out, err := w.cluster.Inside(ctx, pods[0].Spec.NodeName, "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "SIGKILL", pods[0].container("bai-collect"))
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return w.release(ctx, run)
}

// release lets a run go on that is held. Its first pods may end it before the others are let
// go: one whose container has ended is not held.
func (w fixture) release(ctx context.Context, run string) error {
	pods, err := w.podsOf(ctx, run)
	if err != nil {
		return err
	}
	for _, p := range pods {
		out, err := w.cluster.Try(ctx, "-n", w.scope, "exec", p.Metadata.Name, "-c", "benchmark", "--", "touch", "/tmp/go")
		if err != nil && !w.ends(ctx, run) {
			return fmt.Errorf("release %s: %w: %s", p.Metadata.Name, err, out)
		}
	}
	return nil
}

// ends reports whether a run comes to its end.
func (w fixture) ends(ctx context.Context, run string) bool {
	for late := time.Now().Add(waitTimeout); time.Now().Before(late); time.Sleep(300 * time.Millisecond) {
		if r, err := w.get(ctx, run); err == nil && r.Phase == "finished" {
			return true
		}
	}
	return false
}
