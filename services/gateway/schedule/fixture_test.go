package schedule_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/gateway/projection"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// clock returns a time of a fixed day, from hours and minutes, and seconds if given.
func clock(text string) time.Time {
	var hour, minute, second int
	_, _ = fmt.Sscanf(text, "%d:%d:%d", &hour, &minute, &second) // without seconds, it stops before them
	return time.Date(2026, 5, 4, hour, minute, second, 0, time.UTC)
}

// fixture is a store, a bus and a clock that several gateways share. Published events
// are projected at once.
type fixture struct {
	t            *testing.T
	store        *storetest.Memory
	parser       parser.Parser // of gateways that are made after it is set
	noProjection bool          // events are not projected, so runs have no projection yet

	scripts fakeScripts

	mu        sync.Mutex
	now       time.Time
	published []event.Event
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{t: t, store: storetest.NewMemory(), now: clock("09:59:30")}
}

func (w *fixture) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// setClock sets the clock.
func (w *fixture) setClock(text string) { w.setTime(clock(text)) }

func (w *fixture) setTime(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
}

// Publish records and projects the events.
func (w *fixture) Publish(ctx context.Context, events ...event.Event) error {
	w.mu.Lock()
	w.published = append(w.published, events...)
	w.mu.Unlock()
	if w.noProjection {
		return nil
	}
	for _, ev := range events {
		if h := ev.Head(); h.Run != h.Schedule {
			w.project(ctx, ev)
		}
	}
	return nil
}

// projectAll projects all events that were published before.
func (w *fixture) projectAll() {
	w.mu.Lock()
	published := slices.Clone(w.published)
	w.mu.Unlock()
	for _, ev := range published {
		if h := ev.Head(); h.Run != h.Schedule {
			w.project(w.t.Context(), ev)
		}
	}
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

// finishRuns finishes every active run.
func (w *fixture) finishRuns() {
	w.t.Helper()
	for _, run := range w.runs() {
		if run.Phase == event.PhaseFinished {
			continue
		}
		h := event.NewHeader("end "+run.ID, run.ID, run.Namespace, run.Owner, w.clock())
		h.Lineage = run.Lineage
		w.project(w.t.Context(), event.Finished{Header: h, Outcome: event.Succeeded, Message: "done"})
	}
}

// records returns the number of records in the firing log of a schedule.
func (w *fixture) records(id string) int {
	w.t.Helper()
	l, _, err := store.Get[struct{ Records []any }](w.t.Context(), w.store, store.KindFirings, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(l.Records)
}

// runs returns all runs of firings, in the order of their firing times.
func (w *fixture) runs() []store.Run {
	w.t.Helper()
	runs, _, err := w.store.Runs(w.t.Context(), store.RunFilter{}, "", 10_000)
	if err != nil {
		w.t.Fatal(err)
	}
	runs = slices.DeleteFunc(runs, func(r store.Run) bool { return r.Set != "" })
	slices.SortFunc(runs, func(a, b store.Run) int { return a.Firing.Compare(*b.Firing) })
	return runs
}

// firedRuns returns the firing times of the runs, and whether the runs are active.
func (w *fixture) firedRuns() string {
	w.t.Helper()
	var words []string
	for _, r := range w.runs() {
		word := r.Firing.UTC().Format("15:04")
		if mark, err := w.store.Doc(w.t.Context(), store.KindCancel, r.ID); err == nil && len(mark.Value) > 0 {
			word += " canceled"
		} else if r.Phase != event.PhaseFinished {
			word += " goes on"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// missedFirings returns the firings that were reported as missed, each once.
func (w *fixture) missedFirings() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var words []string
	seen := map[string]bool{}
	for _, ev := range w.published {
		s, ok := ev.(event.Status)
		if ok && s.Reason == event.ScheduleMissed && !seen[s.ID] {
			seen[s.ID] = true
			words = append(words, s.Firing.UTC().Format("15:04")+" "+s.Message)
		}
	}
	return strings.Join(words, "\n")
}

// gateway is a process that fires schedules.
type gateway struct {
	*schedule.Schedules
	*schedule.Runner

	w         *fixture
	submitter *submit.Submitter
	sets      *set.Sets
	setRunner *set.Runner
}

// api returns a client of a server that serves the gateway's schedules.
func (g *gateway) api() baiv1.ScheduleServiceClient {
	return baiv1.NewScheduleServiceClient(g.connect())
}

// connect returns a connection to a server that serves the gateway's schedules and sets.
func (g *gateway) connect() *grpc.ClientConn {
	t := g.w.t
	t.Helper()
	l := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- api.New(api.Settings{}, api.Deps{Schedules: g.Schedules, Sets: g.sets, Log: zap.NewNop()}).Serve(l)(ctx)
	}()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(conn.Close(), <-done); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func (w *fixture) gateway() *gateway { return w.crashingGateway(crashtest.New(0, false)) }

// splitBrainGateway returns a gateway that always holds the lease, even if another one
// does.
func (w *fixture) splitBrainGateway(name string) *gateway {
	return w.newGateway(storetest.PrivateLeases{Memory: w.store, Suffix: name}, w)
}

func (w *fixture) crashingGateway(p *crashtest.Process) *gateway {
	return w.newGateway(p.Store(w.store), p.Bus(w))
}

func (w *fixture) newGateway(m set.Store, bus schedule.Publisher) *gateway {
	ids := submit.NewIDs(rand.Reader)
	in := submit.New(submit.Settings{}, submit.Deps{Store: m, Bus: bus, Scripts: w.scripts, Parser: w.parser, IDs: ids, Now: w.clock, Log: zap.NewNop()})
	setDeps := set.Deps{Store: m, Submitter: in, NewID: ids.New, Holder: rand.Text(), Now: w.clock, Log: zap.NewNop()}
	setRunner := set.NewRunner(set.Settings{}, setDeps)
	sets := set.New(setDeps, setRunner)
	deps := schedule.Deps{Store: m, Submitter: in, Sets: sets, Scripts: in, Bus: bus, Holder: rand.Text(), Now: w.clock, Log: zap.NewNop()}
	runner := schedule.NewRunner(schedule.Settings{}, deps)
	return &gateway{Schedules: schedule.New(deps, runner.Wake), Runner: runner, w: w, submitter: in, sets: sets, setRunner: setRunner}
}

// descriptor returns a descriptor with that cron rule, and the given keys in its table
// schedule.
func descriptor(cron, table string) string {
	return fmt.Sprintf(`spec_version = "1.0"
[info]
description = "x"
scheduling = %q
labels = { task_name = "t" }
[hardware]
cpus = 1
[env]
docker_image = "alpine"
[ml]
benchmark_code = "true"
[schedule]
%s
`, cron, table)
}

// submit creates a schedule.
func (g *gateway) submit(req submit.Request) (schedule.Schedule, bool, error) {
	if req.Owner == "" {
		req.Owner = "ann"
	}
	_, err := g.submitter.Submit(g.w.t.Context(), req)
	var asked *submit.ScheduleError
	if !errors.As(err, &asked) {
		return schedule.Schedule{}, false, fmt.Errorf("no schedule: %w", err)
	}
	return g.Put(g.w.t.Context(), req, asked)
}

func (g *gateway) put(name, text string) schedule.Schedule {
	g.w.t.Helper()
	s, _, err := g.submit(submit.Request{Name: name, Descriptor: []byte(text), File: "f.toml"})
	if err != nil {
		g.w.t.Fatal(err)
	}
	return s
}

// reconcileAt reconciles at a time.
func (g *gateway) reconcileAt(at string) time.Time {
	g.w.t.Helper()
	g.w.setClock(at)
	wake, err := g.Reconcile(g.w.t.Context())
	if err != nil {
		g.w.t.Fatalf("at %s: %v", at, err)
	}
	return wake
}

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
