package set_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/projection"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// fixture is a store, a bus and a clock that several gateways share. Published events are
// projected at once.
type fixture struct {
	t       *testing.T
	store   *storetest.Memory
	scripts fakeScripts
	full    string // reason why no run can be stored

	noProjection bool // events are not projected, so runs have no projection yet

	mu  sync.Mutex
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{t: t, store: storetest.NewMemory(), now: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)}
}

func (w *fixture) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// wait moves the clock.
func (w *fixture) wait(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// Publish projects the events.
func (w *fixture) Publish(ctx context.Context, events ...event.Event) error {
	if w.noProjection {
		return nil
	}
	for _, ev := range events {
		w.project(ctx, ev)
	}
	return nil
}

func (w *fixture) project(ctx context.Context, ev event.Event) {
	var before *store.Run
	if run, err := w.store.Run(ctx, ev.Head().Run); err == nil {
		before = &run
	}
	run, change, ok := projection.Apply(before, ev)
	if !ok {
		return
	}
	if err := w.store.PutRun(ctx, run, change); err != nil && !errors.Is(err, store.ErrExists) {
		w.t.Error(err)
	}
}

// finish ends a run with an outcome.
func (w *fixture) finish(run store.Run, outcome event.Outcome) {
	w.t.Helper()
	h := event.NewHeader("end "+run.ID, run.ID, run.Namespace, run.Owner, w.clock())
	h.Lineage = run.Lineage
	end := event.Finished{Header: h, Outcome: outcome, Message: "it ended"}
	if outcome == event.Failed {
		end.Class, end.Reason = event.ClassInfra, event.NonZeroExit
	}
	w.project(w.t.Context(), end)
}

// finishRuns ends every active run: a canceled one as canceled, the others with an outcome.
func (w *fixture) finishRuns(outcome event.Outcome) {
	w.t.Helper()
	for _, run := range w.active() {
		if run.Phase == event.PhaseCanceling {
			w.finish(run, event.Canceled)
			continue
		}
		w.finish(run, outcome)
	}
}

// runs returns all runs, in the order of their submission.
func (w *fixture) runs() []store.Run {
	w.t.Helper()
	runs, _, err := w.store.Runs(w.t.Context(), store.RunFilter{Oldest: true}, "", 10_000)
	if err != nil {
		w.t.Fatal(err)
	}
	return runs
}

// active returns the runs that have not ended.
func (w *fixture) active() []store.Run {
	w.t.Helper()
	return slices.DeleteFunc(w.runs(), func(r store.Run) bool { return r.Phase == event.PhaseFinished })
}

// places returns the places of all runs in their sets, one a line, in order.
func (w *fixture) places() string {
	w.t.Helper()
	var all []string
	for _, r := range w.runs() {
		line := fmt.Sprintf("%s %d", r.Cell, r.Repetition)
		if r.Warmup {
			line += " warmup"
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// gateway is a process that runs sets.
type gateway struct {
	*set.Sets
	*set.Runner

	w         *fixture
	submitter *submit.Submitter
}

func (w *fixture) gateway() *gateway { return w.crashingGateway(crashtest.New(0, false)) }

func (w *fixture) crashingGateway(p *crashtest.Process) *gateway {
	return w.newGateway(p.Store(w.store), p.Bus(w))
}

// splitBrainGateway returns a gateway that always holds the lease, even if another one does.
func (w *fixture) splitBrainGateway(name string) *gateway {
	return w.newGateway(storetest.PrivateLeases{Memory: w.store, Suffix: name}, w)
}

func (w *fixture) newGateway(m set.Store, bus submit.Publisher) *gateway {
	ids := submit.NewIDs(rand.Reader)
	full := func() string { return w.full }
	in := submit.New(submit.Settings{}, submit.Deps{Store: m, Bus: bus, Scripts: w.scripts, IDs: ids, StorageFull: full, Now: w.clock, Log: zap.NewNop()})
	receivers := func(_, owner string, notify []string) []string { return append([]string{"to-" + owner}, notify...) }
	deps := set.Deps{Store: m, Receivers: receivers, Submitter: in, NewID: ids.New, StorageFull: full, Holder: rand.Text(), Now: w.clock, Log: zap.NewNop()}
	runner := set.NewRunner(set.Settings{}, deps)
	return &gateway{Sets: set.New(deps, runner), Runner: runner, w: w, submitter: in}
}

// submit creates a set.
func (g *gateway) submit(req submit.Request) (set.Set, bool, error) {
	req.Owner = "ann"
	_, err := g.submitter.Submit(g.w.t.Context(), req)
	var asked *submit.SetError
	if !errors.As(err, &asked) {
		return set.Set{}, false, fmt.Errorf("no set: %w", err)
	}
	return g.Put(g.w.t.Context(), req, asked)
}

// put creates a set of a descriptor.
func (g *gateway) put(text string) set.Set {
	g.w.t.Helper()
	s, _, err := g.submit(submit.Request{Key: "k", Descriptor: []byte(text), File: "f.toml"})
	if err != nil {
		g.w.t.Fatal(err)
	}
	return s
}

// pass makes passes until none has more to do at once. Before that it waits for the interval.
func (g *gateway) pass() {
	g.w.t.Helper()
	g.w.wait(2 * time.Second)
	for range 100 {
		more, err := g.Reconcile(g.w.t.Context())
		if err != nil {
			g.w.t.Fatal(err)
		}
		if !more {
			return
		}
	}
	g.w.t.Fatal("100 passes, and each has more to do at once")
}

// get returns a set as it is stored.
func (g *gateway) get(id string) set.Set {
	g.w.t.Helper()
	s, err := g.Find(g.w.t.Context(), "ann", id)
	if err != nil {
		g.w.t.Fatal(err)
	}
	return s
}

// runToEnd makes passes and ends all runs, until a set has finished. Runs that are not
// canceled succeed.
func (g *gateway) runToEnd(id string) set.Set {
	g.w.t.Helper()
	for range 200 {
		g.pass()
		if s := g.get(id); s.State == set.StateFinished {
			return s
		}
		g.w.finishRuns(event.Succeeded)
	}
	g.w.t.Fatalf("the set has not finished: %+v", g.get(id))
	return set.Set{}
}

// summary describes a set on one line.
func summary(s set.Set) string {
	text := fmt.Sprintf("%s, %d of %d submitted, %d active, %d succeeded, %d failed, %d canceled", s.State, s.Next, s.Runs, len(s.Active), s.Counts.Succeeded, s.Counts.Failed, s.Counts.Canceled)
	if s.Outcome != "" {
		text += ": " + string(s.Outcome)
	}
	return text
}

func want[T any](t *testing.T, subject string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", subject, diff)
	}
}

// descriptor returns a descriptor whose sweep has that text.
func descriptor(sweep string) string {
	return `spec_version = "1.0"
[info]
description = "x"
labels = { task_name = "t" }
[hardware]
cpus = 1
[env]
docker_image = "alpine"
[ml]
benchmark_code = "true {{size}} {{n}}"
[sweep]
` + sweep
}

// sixCells has two axes, with six cells.
const sixCells = `
[sweep.product]
size = ["1K", "1M"]
n = [1, 2, 3]
`

// fakeScripts has the code with these digests, and the pins of each.
type fakeScripts map[string]map[string]bool

// Pin implements submit.Scripts.
func (w fakeScripts) Pin(_ context.Context, _, sha256, id string) (event.Bundle, error) {
	pins, ok := w[sha256]
	if !ok {
		return event.Bundle{}, store.ErrNotFound
	}
	pins[id] = true
	return event.Bundle{SHA256: sha256, Size: 1}, nil
}
