package real_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kwok"
)

// Bounds of the cost of many runs.
const (
	flat       = 1.5 // factor by which a run among many may cost more than one among few
	mostWrites = 6   // a run
	together   = 100 // runs that may be launched at a time, however many there are
	nodePods   = 256 // pods that a simulated node takes
	scaleTime  = 14 * time.Minute
)

// simulated returns a cluster with so many simulated nodes.
func simulated(t *testing.T, nodes int) *testbed.Cluster {
	t.Helper()
	testCluster := testbed.Simulated(t)
	kwok.Start(t, testCluster)
	var all []json.RawMessage
	for n := range nodes {
		all = append(all, json.RawMessage(kwok.Node(fmt.Sprintf("fake%d", n), nodePods, nil)))
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": all})
	if err != nil {
		t.Fatal(err)
	}
	testCluster.Apply(t, string(text))
	testCluster.Run(t, "wait", "node", "--all", "--for=condition=Ready", "--timeout=5m")
	return testCluster
}

// cost is the average cost of a run.
type cost struct {
	runs          int
	took          time.Duration
	writes, reads float64
	cpu           map[string]float64 // ms, by service
	peak          map[string]float64 // MiB, by service
}

// ours is the processor time of executor and watcher, in ms a run.
func (c cost) ours() float64 { return c.cpu["executor"] + c.cpu["watcher"] }

// TestManyRunsCostEachWhatFewDo runs a few, more and many runs through services of
// their own, on nodes that run nothing.
func TestManyRunsCostEachWhatFewDo(t *testing.T) {
	t.Parallel()
	testCluster := simulated(t, 8)
	var all []cost
	for _, n := range []int{10, 100, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { all = append(all, measureRuns(t, testCluster, n)) })
	}
	if t.Failed() {
		return
	}
	var table strings.Builder
	lines := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(lines, "runs\truns/s\twrites/run\treads/run\texecutor ms/run\twatcher ms/run\tplatform ms/run\texecutor MiB\twatcher MiB\tplatform MiB\t")
	for _, c := range all {
		fmt.Fprintf(lines, "%d\t%.1f\t%.2f\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t%.0f\t%.0f\t\n", c.runs, float64(c.runs)/c.took.Seconds(), c.writes, c.reads,
			c.cpu["executor"], c.cpu["watcher"], c.cpu["platform"], c.peak["executor"], c.peak["watcher"], c.peak["platform"])
	}
	_ = lines.Flush()
	t.Logf("runs that last a second, %d at a time; memory is the most that was resident:\n%s", together, &table)
	many := all[len(all)-1]
	for _, few := range all[:len(all)-1] {
		if many.reads+many.writes > flat*(few.reads+few.writes) {
			t.Errorf("%d runs take %.1f API calls each, more than %g times the %.1f of %d", many.runs, many.reads+many.writes, flat, few.reads+few.writes, few.runs)
		}
		if many.ours() > flat*few.ours() {
			t.Errorf("%d runs take executor and watcher %.1f ms each, more than %g times the %.1f ms of %d", many.runs, many.ours(), flat, few.ours(), few.runs)
		}
	}
}

// measureRuns takes n runs from submission to their end, and until nothing is left.
func measureRuns(t *testing.T, testCluster *testbed.Cluster, n int) cost {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scaleTime)
	defer cancel()
	f := newMeteredFleet(t, testCluster, "--slots", fmt.Sprint(together))
	text := plain(kwok.EndsAfter+` = "1s"`, "")
	if first, err := f.submitText(ctx, text); err != nil || f.awaitAll(ctx, []string{first}, succeeded) != nil { // warm
		t.Fatalf("the first run: %v", err)
	}
	awaitCleared(t, testCluster, f.scope)
	before, asked := f.usageByService(), f.apiCalls()
	begun := time.Now()
	runs, err := f.submitMany(ctx, n, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.awaitAll(ctx, runs, succeeded); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	awaitCleared(t, testCluster, f.scope)
	what := f.apiCalls().since(asked)
	c := cost{
		runs: n, took: took, cpu: map[string]float64{}, peak: map[string]float64{},
		writes: float64(what.sum(writes)) / float64(n), reads: float64(what.sum(reads)) / float64(n),
	}
	for name, u := range f.usageByService() {
		c.cpu[name], c.peak[name] = float64((u.cpu-before[name].cpu).Milliseconds())/float64(n), u.peak
	}
	t.Logf("%d runs in %s; for each was asked of the API server:\n%s", n, took.Round(time.Millisecond), what.per(n))
	if c.writes > mostWrites {
		t.Errorf("%.2f API writes a run, want %d at most", c.writes, mostWrites)
	}
	return c
}

// TestManyRunsAtATimeTakeLittleMemory has all of them run at a time, and then
// cancels them.
func TestManyRunsAtATimeTakeLittleMemory(t *testing.T) {
	t.Parallel()
	const mostKiB, garbage = 100, 8 << 10 // KiB: of a run, and of uncollected garbage for any number of runs
	const n, each = 1000, 1000.0
	testCluster := simulated(t, 8)
	ctx, cancel := context.WithTimeout(t.Context(), scaleTime)
	defer cancel()
	f := newMeteredFleet(t, testCluster, "--slots", fmt.Sprint(n+1))
	text := plain(`many = "yes"`, "")
	warm, err := f.submitMany(ctx, 1, text)
	if err != nil || f.awaitAll(ctx, warm, isRunning) != nil {
		t.Fatalf("the first run: %v", err)
	}
	before, asked, begun := f.usageByService(), f.apiCalls(), time.Now()
	runs, err := f.submitMany(ctx, n, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.awaitAll(ctx, runs, isRunning); err != nil {
		t.Fatal(err)
	}
	took, running := time.Since(begun), f.usageByService()
	t.Logf("%d runs run after %s; for each was asked of the API server:\n%s", n, took.Round(time.Millisecond), f.apiCalls().since(asked).per(n))
	asked = f.apiCalls()
	<-time.After(time.Minute)
	idle := f.apiCalls().since(asked)
	t.Logf("in a minute in which they run on, was asked for each:\n%s", idle.per(n))
	for name, u := range running {
		rest := f.usageByService()[name]
		t.Logf("%s: %.0f MiB at most, from %.0f MiB, %.1f KiB a run; %.0f ms of a processor a run, and %.1f %% of one in that minute",
			name, u.peak, before[name].now, (u.peak-before[name].now)*1024/each, float64((u.cpu-before[name].cpu).Milliseconds())/each,
			100*(rest.cpu-u.cpu).Seconds()/time.Minute.Seconds())
	}
	if kib := ((running["watcher"].peak-before["watcher"].now)*1024 - garbage) / each; kib > mostKiB {
		t.Errorf("the watcher takes %.1f KiB a run beside %d KiB of garbage, want %d at most", kib, garbage, mostKiB)
	}
	if per := float64(idle.sum(reads)) / each; per > 1 {
		t.Errorf("%.1f reads a minute of each run that only runs, want 1 at most", per)
	}
	f.cancelAll(ctx, append(runs, warm...))
}

// cancelAll cancels runs, and waits until nothing of them is left.
func (f *meteredFleet) cancelAll(ctx context.Context, runs []string) {
	f.t.Helper()
	begun := time.Now()
	for _, run := range runs {
		if _, err := f.api.CancelRun(ctx, &baiv1.CancelRunRequest{Run: run}); err != nil {
			f.t.Fatal(err)
		}
	}
	canceled := func(c *baiv1.Change) bool { return c.GetOutcome() == baiv1.Outcome_OUTCOME_CANCELED }
	if err := f.awaitAll(ctx, runs, canceled); err != nil {
		f.t.Error(err)
	}
	awaitCleared(f.t, f.cluster, f.scope) //nolint:contextcheck // it is the test's
	f.t.Logf("canceled, and nothing is left, after %s", time.Since(begun).Round(time.Millisecond))
}

const manyWorkers = `spec_version = "0.1.0"
[info]
description = "a large gang"
[hardware]
cpus = "1"
strategy = "mpi"
[hardware.distributed]
num_instances = %d
[env]
docker_image = "local/bench:1"
[ml]
benchmark_code = "hostname"
`

// TestManyWorkersOfARun measures the cost of a large gang. Its simulated workers do not
// answer, so that its launcher waits until it is canceled.
func TestManyWorkersOfARun(t *testing.T) {
	t.Parallel()
	const workers = 1000
	testCluster := simulated(t, 8)
	ctx, cancel := context.WithTimeout(t.Context(), scaleTime)
	defer cancel()
	f := newMeteredFleet(t, testCluster, "--slots", "2")
	before, asked, begun := f.usageByService(), f.apiCalls(), time.Now()
	run, err := f.submitText(ctx, fmt.Sprintf(manyWorkers, workers))
	if err != nil {
		t.Fatal(err)
	}
	for ready := ""; ready != fmt.Sprint(workers); <-time.After(200 * time.Millisecond) {
		ready, _ = testCluster.Try(ctx, "-n", f.scope, "get", "job", "bai-"+run+"-1-worker", "-o", "jsonpath={.status.ready}")
		if ctx.Err() != nil {
			t.Fatalf("%s of %d workers are ready", ready, workers)
		}
	}
	t.Logf("all %d workers are ready %s after submission", workers, time.Since(begun).Round(time.Millisecond))
	waits := func(c *baiv1.Change) bool { return strings.Contains(c.GetMessage(), "waiting until worker ") }
	if _, err := f.await(ctx, run, waits); err != nil {
		t.Fatal(err)
	}
	t.Logf("the user is told that the launcher waits for them %s after submission", time.Since(begun).Round(time.Millisecond))
	f.cancelAll(ctx, []string{run})
	what := f.apiCalls().since(asked)
	t.Logf("from submission to the end was asked of the API server:\n%s", what.per(1))
	for name, u := range f.usageByService() {
		t.Logf("%s: %.0f MiB at most, from %.0f MiB; %s of a processor", name, u.peak, before[name].now, (u.cpu - before[name].cpu).Round(10*time.Millisecond))
	}
}

// scalable is a run whose node is not there.
func scalable() string {
	return plain(kwok.EndsAfter+` = "1s"`, `node_selector = { pool = "scaled" }
[limits]
pending_deadline = "40s"`)
}

// scaleUp is an event as cluster-autoscaler writes it.
const scaleUp = `{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "%[2]s.scaled", "namespace": %[1]q},
"type": "Normal", "reason": "TriggeredScaleUp", "message": "pod triggered scale-up: [{scaled 0->1 (max: 3)}]",
"involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": %[1]q, "name": %[2]q, "uid": %[3]q},
"source": {"component": "cluster-autoscaler"}, "firstTimestamp": %[4]q, "lastTimestamp": %[4]q, "count": 1}`

func unschedulable(c *baiv1.Change) bool { return c.GetReason() == "Unschedulable" }

// TestANodeThatIsAddedAfterTheWaitEndsItWell has an autoscaler say that it adds a
// node for one of two runs.
func TestANodeThatIsAddedAfterTheWaitEndsItWell(t *testing.T) {
	t.Parallel()
	testCluster := simulated(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), scaleTime)
	defer cancel()
	f := newMeteredFleet(t, testCluster, "--slots", "4")
	t.Run("nobody adds a node", func(t *testing.T) {
		run, err := f.submitText(ctx, scalable())
		if err != nil {
			t.Fatal(err)
		}
		c, err := f.await(ctx, run, func(c *baiv1.Change) bool { return c.GetOutcome() == baiv1.Outcome_OUTCOME_FAILED })
		if err != nil || c.GetReason() != "Unschedulable" {
			t.Errorf("it ended as %v, %v, want Unschedulable", c, err)
		}
		t.Log(c.GetMessage())
	})
	t.Run("an autoscaler adds a node", func(t *testing.T) { f.scaled(ctx, t) })
	t.Run("nobody collects what a run on it writes", func(t *testing.T) { f.wantUncollectedRunReported(t) })
}

// TestAnExclusiveRunWaitsForAnotherLongerThanItsPendingDeadline has two runs that keep
// others off their node want the only one.
func TestAnExclusiveRunWaitsForAnotherLongerThanItsPendingDeadline(t *testing.T) {
	t.Parallel()
	testCluster := simulated(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), scaleTime)
	defer cancel()
	f := newMeteredFleet(t, testCluster, "--slots", "4")
	text := plain(kwok.EndsAfter+` = "60s"`, `placement = "exclusive"
[limits]
pending_deadline = "20s"`)
	first, err := f.submitText(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.await(ctx, first, isRunning); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	second, err := f.submitText(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.await(ctx, second, func(c *baiv1.Change) bool { return c.GetReason() == "NodesInUse" })
	if err != nil || c.GetPhase() != baiv1.Phase_PHASE_QUEUED {
		t.Fatalf("it waits as %v, %v", c, err)
	}
	t.Log(c.GetMessage())
	for _, run := range []string{first, second} {
		if _, err := f.await(ctx, run, succeeded); err != nil {
			t.Error(err)
		}
	}
	t.Logf("the second ended well %s after its submission", time.Since(begun).Round(time.Millisecond))
}

// wantUncollectedRunReported checks that a run without data, whose collector has started,
// is over, and that its user is notified and waits no longer than requested.
func (f *meteredFleet) wantUncollectedRunReported(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.toml")
	if err := os.WriteFile(file, []byte(scalable()), 0o600); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	out, code := f.baictl(t, "run", file, "--data-timeout", "2s")
	if code != 3 || !strings.Contains(out, "succeeded") || !strings.Contains(out, "not complete after 2s") {
		t.Errorf("exit code %d, want 3, and that its data are not complete:\n%s", code, out)
	}
	t.Logf("after %s:\n%s", time.Since(begun).Round(time.Millisecond), out)
}

func (f *meteredFleet) scaled(ctx context.Context, t *testing.T) {
	t.Helper()
	begun := time.Now()
	run, err := f.submitText(ctx, scalable())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.await(ctx, run, unschedulable); err != nil {
		t.Fatal(err)
	}

	of := "jsonpath={.items[0].metadata.name} {.items[0].metadata.uid}"
	pod := strings.Fields(f.cluster.Run(t, "-n", f.scope, "get", "pods", "-l", "benchmark-ai.dev/run="+run, "-o", of)) //nolint:contextcheck // it is the test's
	f.cluster.Apply(t, fmt.Sprintf(scaleUp, f.scope, pod[0], pod[1], time.Now().UTC().Format(time.RFC3339)))           //nolint:contextcheck // it is the test's
	c, err := f.await(ctx, run, func(c *baiv1.Change) bool { return c.GetReason() == "NodeScaling" })
	if err != nil {
		t.Fatal(err)
	}
	t.Log(c.GetMessage())
	<-time.After(42*time.Second - time.Since(begun)) // longer than its deadline
	added := time.Now()
	f.cluster.Apply(t, kwok.Node("scaled1", nodePods, map[string]string{"pool": "scaled"})) //nolint:contextcheck // it is the test's
	if _, err := f.await(ctx, run, succeeded); err != nil {
		t.Fatal(err)
	}
	t.Logf("it ended well %s after its submission, %s after the node was there", time.Since(begun).Round(time.Millisecond), time.Since(added).Round(time.Millisecond))
}
