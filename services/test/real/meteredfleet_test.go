package real_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed"
)

// meteredFleet is a fleet with one executor and one watcher whose use of resources and
// requests are measured.
type meteredFleet struct {
	*fleet

	t *testing.T
}

// newMeteredFleet starts a fleet in a namespace of its own.
func newMeteredFleet(t *testing.T, testCluster *testbed.Cluster, args ...string) *meteredFleet {
	t.Helper()
	return &meteredFleet{newFleet(t, fleetOptions{cluster: testCluster, replicas: 1, args: args}), t}
}

// plain is a run of one small pod.
func plain(labels, further string) string {
	return fmt.Sprintf(`spec_version = "0.1.0"
[info]
description = "one of many"
labels = { %s }
[hardware]
cpus = "1"
strategy = "single_node"
%s
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = "true"
`, labels, further)
}

// submitText submits a run, and returns its ID.
func (f *meteredFleet) submitText(ctx context.Context, text string) (string, error) {
	r, err := f.api.SubmitRun(ctx, &baiv1.SubmitRunRequest{DescriptorToml: []byte(text)})
	return r.GetRunId(), err
}

// submitMany submits the same n times.
func (f *meteredFleet) submitMany(ctx context.Context, n int, text string) ([]string, error) {
	runs := make([]string, n)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i := range n {
		g.Go(func() (err error) {
			runs[i], err = f.submitText(gctx, text)
			return err
		})
	}
	return runs, g.Wait()
}

// await waits for a change of a run, and returns it.
func (f *meteredFleet) await(ctx context.Context, run string, ok func(*baiv1.Change) bool) (*baiv1.Change, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := f.api.WatchRun(ctx, &baiv1.WatchRunRequest{Run: run})
	if err != nil {
		return nil, err
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", run, err)
		}
		c := r.GetChange()
		if ok(c) {
			return c, nil
		}
		if c.GetOutcome() != baiv1.Outcome_OUTCOME_UNSPECIFIED {
			return c, fmt.Errorf("run %s has ended: %s %s: %s", run, c.GetOutcome(), c.GetReason(), c.GetMessage())
		}
	}
}

func succeeded(c *baiv1.Change) bool { return c.GetOutcome() == baiv1.Outcome_OUTCOME_SUCCEEDED }

func isRunning(c *baiv1.Change) bool { return c.GetPhase() == baiv1.Phase_PHASE_RUNNING }

// awaitAll waits for the same of many.
func (f *meteredFleet) awaitAll(ctx context.Context, runs []string, ok func(*baiv1.Change) bool) error {
	for _, run := range runs {
		if _, err := f.await(ctx, run, ok); err != nil {
			return err
		}
	}
	return nil
}

// usage is the use of resources by a process so far.
type usage struct {
	cpu       time.Duration
	now, peak float64 // MiB of memory
}

// usageByService reads the use of resources by each service, and by the process of the
// others, which is named platform.
func (f *meteredFleet) usageByService() map[string]usage {
	f.t.Helper()
	all := map[string]usage{"platform": f.processUsage(f.process.PID())}
	for _, r := range f.members {
		all[r.service] = f.processUsage(r.PID())
	}
	return all
}

// processUsage reads the use of resources by a process; see proc(5).
func (f *meteredFleet) processUsage(pid int) usage {
	f.t.Helper()
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat") //nolint:gosec // the kernel's
	if err != nil {
		f.t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const hz = 100 // of the clock of stat on every Linux that Go runs on
	ticks := number(fields[11]) + number(fields[12])
	status, err := os.ReadFile(dir + "status") //nolint:gosec // the kernel's
	if err != nil {
		f.t.Fatal(err)
	}
	return usage{time.Duration(ticks) * time.Second / hz, kib(status, "VmRSS") / 1024, kib(status, "VmHWM") / 1024}
}

func kib(status []byte, name string) float64 {
	if m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status); m != nil {
		return float64(number(string(m[1])))
	}
	return 0
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // the kernel's
	return n
}

// callCounts counts requests to the API server.
type callCounts map[string]int // by "account verb resource"

// apiCalls counts the requests of the fleet's services to the API server.
func (f *meteredFleet) apiCalls() callCounts {
	f.t.Helper()
	all := callCounts{}
	for _, member := range f.members {
		for _, r := range calls(f.t, f.cluster, f.scope, member.service) {
			all[member.service+" "+r.Verb+" "+r.ObjectRef.Resource]++
		}
	}
	return all
}

// since returns the requests since before.
func (a callCounts) since(before callCounts) callCounts {
	some := callCounts{}
	for what, n := range a {
		if n -= before[what]; n > 0 {
			some[what] = n
		}
	}
	return some
}

func (a callCounts) sum(of func(verb string) bool) (n int) {
	for what, some := range a {
		if of(strings.Fields(what)[1]) {
			n += some
		}
	}
	return n
}

func writes(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) }

func reads(verb string) bool { return !writes(verb) }

// per formats the counts divided by n, the most frequent first.
func (a callCounts) per(n int) string {
	names := slices.Collect(maps.Keys(a))
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(a[y], a[x]), strings.Compare(x, y)) })
	var lines []string
	for _, name := range names {
		lines = append(lines, fmt.Sprintf("  %8.2f %s", float64(a[name])/float64(n), name))
	}
	return strings.Join(lines, "\n")
}
