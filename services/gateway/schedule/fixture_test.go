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

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/gateway/projection"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// clock is a time of one day, hours and minutes, and seconds where there are any.
func clock(text string) time.Time {
	var hour, minute, second int
	_, _ = fmt.Sscanf(text, "%d:%d:%d", &hour, &minute, &second) // without seconds it stops before them
	return time.Date(2026, 5, 4, hour, minute, second, 0, time.UTC)
}

// fixture is a store, a bus and a clock that several gateways share. What is
// published is recorded at once, as by a gateway that records.
type fixture struct {
	t            *testing.T
	store        *storetest.Memory
	noProjection bool // nothing is recorded: runs are not known yet

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

// Publish keeps and records what is said.
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

// projectAll records all that was said, late.
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

// finishRuns ends every run that goes on.
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

// runs are all runs, in the order of the times that they were fired for.
func (w *fixture) runs() []store.Run {
	w.t.Helper()
	runs, _, err := w.store.Runs(w.t.Context(), store.RunFilter{}, "", 10_000)
	if err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(runs, func(a, b store.Run) int { return a.Firing.Compare(*b.Firing) })
	return runs
}

// firedRuns are the times that runs were fired for, and whether they go on.
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

// missedFirings are the firings of which it was said that they were missed, each once.
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

// privateLeases is a store whose leases no other process sees.
type privateLeases struct {
	*storetest.Memory

	suffix string
}

func (s privateLeases) key(kind store.Kind, key string) string {
	if kind == store.KindLease {
		return key + s.suffix
	}
	return key
}

func (s privateLeases) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	return s.Memory.Doc(ctx, kind, s.key(kind, key))
}

func (s privateLeases) CreateDoc(ctx context.Context, d store.Doc) error {
	d.Key = s.key(d.Kind, d.Key)
	return s.Memory.CreateDoc(ctx, d)
}

func (s privateLeases) ReplaceDoc(ctx context.Context, d store.Doc) (int64, error) {
	d.Key = s.key(d.Kind, d.Key)
	return s.Memory.ReplaceDoc(ctx, d)
}

// gateway is a process that keeps schedules.
type gateway struct {
	*schedule.Schedules
	*schedule.Runner

	w         *fixture
	submitter *submit.Submitter
}

// api returns a client of a server that serves the schedules of the gateway.
func (g *gateway) api() baiv1.ScheduleServiceClient {
	t := g.w.t
	t.Helper()
	l := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- api.New(api.Settings{}, api.Deps{Schedules: g.Schedules, Log: zap.NewNop()}).Serve(l)(ctx)
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
	return baiv1.NewScheduleServiceClient(conn)
}

func (w *fixture) gateway() *gateway { return w.crashingGateway(crashtest.New(0, false)) }

// splitBrainGateway is a gateway that holds the lease whoever else does.
func (w *fixture) splitBrainGateway(name string) *gateway {
	return w.newGateway(privateLeases{w.store, name}, w)
}

func (w *fixture) crashingGateway(p *crashtest.Process) *gateway {
	return w.newGateway(p.Store(w.store), p.Bus(w))
}

func (w *fixture) newGateway(m schedule.Store, bus schedule.Publisher) *gateway {
	in := submit.New(submit.Settings{}, submit.Deps{Store: m, Bus: bus, Scripts: w.scripts, IDs: submit.NewIDs(rand.Reader), Now: w.clock, Log: zap.NewNop()})
	deps := schedule.Deps{Store: m, Submitter: in, Scripts: in, Bus: bus, Holder: rand.Text(), Now: w.clock, Log: zap.NewNop()}
	runner := schedule.NewRunner(schedule.Settings{}, deps)
	return &gateway{Schedules: schedule.New(deps, runner.Wake), Runner: runner, w: w, submitter: in}
}

// descriptor is one that is fired at those times, with keys of its table schedule.
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

// submit asks for a schedule.
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

// reconcileAt looks at a time.
func (g *gateway) reconcileAt(at string) time.Time {
	g.w.t.Helper()
	g.w.setClock(at)
	wake, err := g.Reconcile(g.w.t.Context())
	if err != nil {
		g.w.t.Fatalf("at %s: %v", at, err)
	}
	return wake
}

// fakeScripts has the code of these digests, and knows what each is kept for.
type fakeScripts map[string]map[string]bool

// Pin keeps the contract of submit.Scripts.
func (w fakeScripts) Pin(_ context.Context, _, sha256, id string) (event.Bundle, error) {
	pins, ok := w[sha256]
	if !ok {
		return event.Bundle{}, store.ErrNotFound
	}
	pins[id] = true
	return event.Bundle{SHA256: sha256, Size: 1}, nil
}
