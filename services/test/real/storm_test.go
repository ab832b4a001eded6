package real_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/watcher"
)

const (
	stormPause = 3 * time.Second // the least time between two kills
	stormIn    = 15 * time.Minute
)

// stormSize is the scale of a storm.
type stormSize struct {
	runs    int
	slots   int           // runs at a time
	ends    int           // runs that must end during it
	evicted int           // runs at least that lose their pod, and are tried again
	cancels time.Duration // the longest time from submission to cancellation
}

func sizeOfStorm() stormSize {
	return stormSize{
		runs: testbed.Size(200, 50), slots: testbed.Size(20, 10), ends: testbed.Size(50, 12), evicted: testbed.Size(5, 2),
		cancels: time.Duration(testbed.Size(120, 40)) * time.Second,
	}
}

// stormRun is one run of the storm, and how it may end.
type stormRun struct {
	text   string
	cancel time.Duration // after its submission; zero for never
	evict  bool          // once, while it runs
	ends   []string      // outcome, class and reason
}

// newStormRun is run i, canceled after that time if it is one of the canceled.
func newStormRun(i int, cancelAfter time.Duration) stormRun {
	const well = "OUTCOME_SUCCEEDED FAILURE_CLASS_UNSPECIFIED "
	switch {
	case i%50 == 25:
		return stormRun{text: mpi, ends: []string{well}}
	case i%10 == 5:
		return stormRun{text: tiny("sh -c '[ $BENCHMARK_AI_ATTEMPT != 1 ] || sleep 300'") + "[limits]\nretries = 3\n", evict: true, ends: []string{well}}
	case i%10 == 3:
		return stormRun{text: tiny("sh -c 'sleep 1; exit 3'"), ends: []string{"OUTCOME_FAILED FAILURE_CLASS_USER NonZeroExit"}}
	case i%10 == 7:
		return stormRun{
			text: tiny("sleep 2"), cancel: cancelAfter,
			ends: []string{well, "OUTCOME_CANCELED FAILURE_CLASS_UNSPECIFIED CanceledByUser"},
		}
	}
	return stormRun{text: tiny("sleep 1"), ends: []string{well}}
}

// tiny is the descriptor of a run that needs little, and may wait for it.
func tiny(command string) string {
	return fmt.Sprintf(`spec_version = "0.1.0"
[info]
description = "a tiny run"
[hardware]
cpus = "10m"
memory = "32Mi"
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = %q
`, command)
}

// TestEveryRunEndsOnceWhileExecutorsAndWatchersAreKilled kills executors and
// watchers in turn while runs begin and end, and has all be heard again after.
func TestEveryRunEndsOnceWhileExecutorsAndWatchersAreKilled(t *testing.T) {
	t.Parallel()
	size := sizeOfStorm()
	f := newFleet(t, fleetOptions{settings: "[executor.pods]\ngrace = \"2s\"\n", args: []string{"--slots", fmt.Sprint(size.slots)}})
	importBenchImage(t, f.fixture)
	recorder, begun, rnd := f.recordEvents(t), time.Now(), seededRand(t)
	runs, awaitDisruptions := f.submitAll(t, size, rnd)
	storm := f.storm(t, recorder, size.runs-2*size.slots) // there is something to launch until then
	evicted := awaitDisruptions()
	f.await(t, recorder, slices.Collect(maps.Keys(runs)))
	all := time.Since(begun)
	found := f.wantEnds(t, runs, recorder)
	awaitCleared(t, f.cluster, f.scope)
	during := recorder.endedBetween(storm.from, storm.to)
	t.Logf("%d runs in %s, %d at a time; %s; ended during the storm: %d\n%s", size.runs, all.Round(time.Second), size.slots, storm, during, table(found))
	t.Logf("%d runs lost their pod, and were tried again", evicted)
	if evicted < size.evicted {
		t.Errorf("%d runs lost their pod, want %d", evicted, size.evicted)
	}
	if during < size.ends {
		t.Errorf("%d runs ended during the storm, want %d", during, size.ends)
	}
	f.wantCreatedOnce(t, len(runs))
	f.wantNoWritesInReplay(t, recorder)
}

// submitAll submits the runs of a storm. The returned function waits until the cancels
// and evictions are done, and returns the number of evicted runs.
func (f *fleet) submitAll(t *testing.T, size stormSize, rnd *rand.Rand) (runs map[string]stormRun, awaitDisruptions func() (evicted int)) {
	t.Helper()
	runs = make(map[string]stormRun, size.runs)
	var all sync.WaitGroup
	var evictions atomic.Int32
	for i := range size.runs {
		s := newStormRun(i, time.Second+time.Duration(rnd.Int64N(int64(size.cancels))))
		run := f.mustSubmit(t, s.text)
		runs[run] = s
		if s.cancel > 0 {
			all.Go(func() { f.cancelAfter(t, run, s.cancel) })
		}
		if s.evict {
			all.Go(func() {
				if f.evictOnce(t, run) {
					evictions.Add(1)
				}
			})
		}
	}
	return runs, func() int { all.Wait(); return int(evictions.Load()) }
}

// wantEnds holds each run's end to how it may end, and returns how many ended in
// each way.
func (f *fleet) wantEnds(t *testing.T, runs map[string]stormRun, recorder *eventRecorder) map[string]int {
	t.Helper()
	found := map[string]int{}
	for run, s := range runs {
		how, err := f.howItEnded(t.Context(), run)
		found[how]++
		if err == nil && !slices.Contains(s.ends, how) {
			err = fmt.Errorf("it ended %q, want one of %q", how, s.ends)
		}
		if n := recorder.countEnds(run); err == nil && n != 1 {
			err = fmt.Errorf("%d different facts in the topic end it", n)
		}
		if err != nil {
			t.Errorf("run %s: %v", run, err)
		}
	}
	return found
}

func table(found map[string]int) string {
	var b strings.Builder
	for _, how := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&b, "%5d %s\n", found[how], how)
	}
	return b.String()
}

// mustSubmit submits a descriptor, and returns the run's ID.
func (f *fleet) mustSubmit(t *testing.T, text string) string {
	t.Helper()
	r, err := f.api.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: []byte(text), Owner: "tester"}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return r.GetRunId()
}

func (f *fleet) cancelAfter(t *testing.T, run string, d time.Duration) {
	t.Helper()
	time.Sleep(d) // the time is random
	if _, err := f.api.CancelRun(t.Context(), &baiv1.CancelRunRequest{Run: run}); err != nil {
		if r, gone := f.api.GetRun(t.Context(), &baiv1.GetRunRequest{Run: run}); gone != nil || r.GetRun().GetPhase() != baiv1.Phase_PHASE_FINISHED {
			t.Errorf("cancel %s: %v", run, err)
		}
	}
}

// evictOnce evicts the pod of a run that runs, and reports whether it did.
func (f *fleet) evictOnce(t *testing.T, run string) bool {
	t.Helper()
	for {
		r, err := f.api.GetRun(t.Context(), &baiv1.GetRunRequest{Run: run})
		switch {
		case err == nil && r.GetRun().GetPhase() == baiv1.Phase_PHASE_FINISHED:
			return false
		case err == nil && r.GetRun().GetPhase() == baiv1.Phase_PHASE_RUNNING:
			if evictPod(t.Context(), f.fixture, run) == nil {
				return true
			}
		}
		select {
		case <-t.Context().Done():
			return false
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// howItEnded returns how a run ended, which it must have done once.
func (f *fleet) howItEnded(ctx context.Context, run string) (string, error) {
	r, err := f.api.GetRun(ctx, &baiv1.GetRunRequest{Run: run})
	if err != nil {
		return "", err
	}
	history, err := f.api.WatchRun(ctx, &baiv1.WatchRunRequest{Run: run})
	if err != nil {
		return "", err
	}
	how := fmt.Sprintf("%s %s %s", r.GetRun().GetOutcome(), r.GetRun().GetFailureClass(), r.GetRun().GetReason())
	for n := 0; ; {
		change, err := history.Recv()
		switch {
		case errors.Is(err, io.EOF) && n != 1:
			return how, fmt.Errorf("its history ends it %d times", n)
		case errors.Is(err, io.EOF):
			return how, nil
		case err != nil:
			return how, err
		}
		if change.GetChange().GetOutcome() != baiv1.Outcome_OUTCOME_UNSPECIFIED {
			n++
		}
	}
}

// await waits until runs are over for their users.
func (f *fleet) await(t *testing.T, recorder *eventRecorder, runs []string) {
	t.Helper()
	late := time.Now().Add(stormIn)
	for _, run := range runs {
		for {
			r, err := f.api.GetRun(t.Context(), &baiv1.GetRunRequest{Run: run})
			if err == nil && r.GetRun().GetPhase() == baiv1.Phase_PHASE_FINISHED && recorder.countEnds(run) > 0 {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("run %s is still %v; %v", run, r.GetRun(), err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// eventRecorder records the topics' events of runs.
type eventRecorder struct {
	mu         sync.Mutex
	launchedAt map[string]time.Time            // by ID of the fact
	finishedAt map[string]map[string]time.Time // by run and ID of the fact
}

// recordEvents consumes launches and ends, until the test ends.
func (f *fleet) recordEvents(t *testing.T) *eventRecorder {
	t.Helper()
	h := &eventRecorder{launchedAt: map[string]time.Time{}, finishedAt: map[string]map[string]time.Time{}}
	bus := f.bus(t)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var parts sync.WaitGroup
	for _, part := range []service.Runnable{
		bus.Consume("storm-launched", service.On(h.onLaunched)), bus.Consume("storm-finished", service.On(h.onFinished)),
	} {
		parts.Go(func() {
			if err := part(ctx); err != nil {
				t.Errorf("listen: %v", err)
			}
		})
	}
	t.Cleanup(func() { stop(); parts.Wait() })
	return h
}

// bus is the platform's, for the test.
func (f *fleet) bus(t *testing.T) *kafka.Bus {
	t.Helper()
	var settings struct{ Kafka kafka.Settings }
	_, err := toml.DecodeFile(filepath.Join(f.data, "services.toml"), &settings)
	if err != nil {
		t.Fatal(err)
	}
	bus, err := kafka.NewBus(settings.Kafka, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bus.Close)
	return bus
}

func (h *eventRecorder) onLaunched(_ context.Context, ev event.Launched) ([]event.Event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, again := h.launchedAt[ev.ID]; !again {
		h.launchedAt[ev.ID] = time.Now()
	}
	return nil, nil
}

func (h *eventRecorder) onFinished(_ context.Context, ev event.Finished) ([]event.Event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.finishedAt[ev.Run] == nil {
		h.finishedAt[ev.Run] = map[string]time.Time{}
	}
	if _, again := h.finishedAt[ev.Run][ev.ID]; !again {
		h.finishedAt[ev.Run][ev.ID] = time.Now()
	}
	return nil, nil
}

// countEnds is how many different facts end a run.
func (h *eventRecorder) countEnds(run string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.finishedAt[run])
}

// countFinished is how many runs have ended.
func (h *eventRecorder) countFinished() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.finishedAt)
}

func (h *eventRecorder) endedBetween(from, to time.Time) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ends := range h.finishedAt {
		for _, at := range ends {
			if !at.Before(from) && !at.After(to) {
				n++
			}
		}
	}
	return n
}

// doneSince reports whether a service has done its work on some run since then.
func (h *eventRecorder) doneSince(service string, then time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	after := func(at time.Time) bool { return at.After(then) }
	if service == "executor" {
		return slices.ContainsFunc(slices.Collect(maps.Values(h.launchedAt)), after)
	}
	for _, ends := range h.finishedAt {
		if slices.ContainsFunc(slices.Collect(maps.Values(ends)), after) {
			return true
		}
	}
	return false
}

// kills counts the kills of a storm.
type kills struct {
	from, to time.Time
	recovery map[string][]time.Duration // by service: from a kill until it works on a run again and all of its processes are ready
	gaps     []time.Duration            // between kills
}

// String implements fmt.Stringer.
func (k kills) String() string {
	var b strings.Builder
	n := 0
	for _, service := range slices.Sorted(maps.Keys(k.recovery)) {
		all := slices.Sorted(slices.Values(k.recovery[service]))
		n += len(all)
		fmt.Fprintf(&b, ", %s works again after %s (median), %s (longest)", service,
			all[len(all)/2].Round(10*time.Millisecond), all[len(all)-1].Round(10*time.Millisecond))
	}
	return fmt.Sprintf("%d kills in %s, %s apart at least%s", n, k.to.Sub(k.from).Round(time.Second), slices.Min(k.gaps).Round(10*time.Millisecond), b.String())
}

// storm kills the replicas in turn until so many runs are over, for as long as
// there is something to launch.
// Between two kills lies at least twice the longest time that a recovery took.
func (f *fleet) storm(t *testing.T, recorder *eventRecorder, finished int) kills {
	t.Helper()
	k := kills{from: time.Now(), recovery: map[string][]time.Duration{}}
	order := []*replica{f.members[0], f.members[2], f.members[1], f.members[3]}
	longest, late := stormPause/2, time.Now().Add(stormIn)
	for i := 0; recorder.countFinished() < finished; i++ {
		r, killed := order[i%len(order)], time.Now()
		r.Kill(t)
		r.Begin(t)
		for !recorder.doneSince(r.service, killed) || r.Ready(t.Context()) != nil {
			if time.Now().After(late) {
				t.Fatalf("%s has not come to work again since %s", r.service, time.Since(killed))
			}
			time.Sleep(20 * time.Millisecond)
		}
		took := time.Since(killed)
		k.recovery[r.service] = append(k.recovery[r.service], took)
		longest = max(longest, took)
		time.Sleep(time.Until(killed.Add(2 * longest)))
		k.gaps = append(k.gaps, time.Since(killed))
	}
	k.to = time.Now()
	return k
}

// wantCreatedOnce reads in the audit log how often each Job was created.
func (f *fleet) wantCreatedOnce(t *testing.T, runs int) {
	t.Helper()
	made, of := map[string]int{}, map[string]bool{}
	all := calls(t, f.cluster, f.scope, "executor")
	writes := 0
	for _, r := range all {
		if r.writes() {
			writes++
		}
		if r.Verb == "create" && r.ObjectRef.Resource == "jobs" && r.Response.Code == http.StatusCreated {
			made[r.ObjectRef.Name]++
			of[runID.FindString(r.ObjectRef.Name)] = true
		}
	}
	for job, n := range made {
		if n > 1 {
			t.Errorf("job %s was created %d times", job, n)
		}
	}
	if len(of) == 0 || len(of) > runs {
		t.Errorf("jobs of %d runs were created, there are %d runs", len(of), runs)
	}
	t.Logf("%d jobs of %d runs were created, each once; %d writes by the executors", len(made), len(of), writes)
	wantNothingForbidden(t, append(all, calls(t, f.cluster, f.scope, "watcher")...))
}

// wantNoWritesInReplay has every service hear every event again from the first,
// and then some new runs, whose events lie behind the old ones.
func (f *fleet) wantNoWritesInReplay(t *testing.T, recorder *eventRecorder) {
	t.Helper()
	f.idle(t)
	for _, r := range f.members {
		r.Stop(t)
	}
	f.rewind(t)
	began := time.Now()
	f.begin(t, "--replay")
	for _, r := range f.members {
		r.Begin(t)
	}
	var after []string
	for range 12 { // some for each partition
		after = append(after, f.mustSubmit(t, tiny("true")))
	}
	f.await(t, recorder, after)
	awaitCleared(t, f.cluster, f.scope)
	for _, service := range []string{"executor", "watcher"} {
		for _, r := range calls(t, f.cluster, f.scope, service) {
			ours := func(run string) bool {
				return strings.Contains(r.RequestURI, run) || strings.Contains(r.ObjectRef.Name, run)
			}
			if r.writes() && r.Received.After(began) && !slices.ContainsFunc(after, ours) {
				t.Errorf("when all was heard again, %s did %s %s", service, r.Verb, r.RequestURI)
			}
		}
	}
}

// idle waits until the executors have committed all work: uncommitted work would be
// repeated.
func (f *fleet) idle(t *testing.T) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(f.data, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // only read
	for late := time.Now().Add(waitTimeout); ; time.Sleep(50 * time.Millisecond) {
		ledger, _, err := store.Get[slots.Table](t.Context(), s, store.KindSlotTable, "slots")
		if err == nil && len(ledger.Allocations) == 0 {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("slots are held though all runs are gone: %+v, %v", ledger, err)
		}
	}
}

// rewind ends the processes beside the replicas, and restarts the replicas at the first
// events.
func (f *fleet) rewind(t *testing.T) {
	t.Helper()
	bus := f.bus(t)
	executor.New(executor.Settings{}, executor.Deps{Bus: bus})
	watcher.New(watcher.Settings{}, watcher.Deps{Bus: bus})
	for late := time.Now().Add(waitTimeout); ; time.Sleep(100 * time.Millisecond) {
		err := bus.Rewind(t.Context())
		if err == nil {
			break
		}
		if time.Now().After(late) {
			t.Fatal(err)
		}
	}
	f.process.Stop(t)
}
