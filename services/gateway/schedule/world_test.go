package schedule_test

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

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/intake"
	"github.com/benchmark-ai/bai/services/gateway/record"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

var errDead = errors.New("dead")

// world is a store, a bus and a clock that several gateways share. What is
// published is recorded at once, as by a gateway that records.
type world struct {
	t     *testing.T
	store *storetest.Memory
	blind bool // nothing is recorded: runs are not known yet

	scripts wardrobe

	mu   sync.Mutex
	now  time.Time
	said []event.Event
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, store: storetest.NewMemory(), now: clock("09:59:30")}
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// at sets the clock.
func (w *world) at(text string) { w.set(clock(text)) }

func (w *world) set(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
}

// Publish keeps and records what is said.
func (w *world) Publish(ctx context.Context, events ...event.Event) error {
	w.mu.Lock()
	w.said = append(w.said, events...)
	w.mu.Unlock()
	if w.blind {
		return nil
	}
	for _, ev := range events {
		if h := ev.Head(); h.Run != h.Schedule {
			w.record(ctx, ev)
		}
	}
	return nil
}

// recordAll records all that was said, late.
func (w *world) recordAll() {
	w.mu.Lock()
	said := slices.Clone(w.said)
	w.mu.Unlock()
	for _, ev := range said {
		if h := ev.Head(); h.Run != h.Schedule {
			w.record(w.t.Context(), ev)
		}
	}
}

func (w *world) record(ctx context.Context, ev event.Event) {
	var before *store.Run
	if run, err := w.store.Run(ctx, ev.Head().Run); err == nil {
		before = &run
	}
	run, change, ok := record.Apply(before, ev)
	if !ok {
		return
	}
	if err := w.store.PutRun(ctx, run, change); err != nil && !errors.Is(err, store.ErrExists) {
		w.t.Error(err)
	}
}

// finish ends every run that goes on.
func (w *world) finish() {
	w.t.Helper()
	for _, run := range w.runs() {
		if run.Phase == event.PhaseFinished {
			continue
		}
		h := event.NewHeader("end "+run.ID, run.ID, run.Namespace, run.Owner, w.clock())
		h.Lineage = run.Lineage
		w.record(w.t.Context(), event.Finished{Header: h, Outcome: event.Succeeded, Message: "done"})
	}
}

// runs are all runs, in the order of the times that they were fired for.
func (w *world) runs() []store.Run {
	w.t.Helper()
	runs, _, err := w.store.Runs(w.t.Context(), store.RunFilter{}, "", 10_000)
	if err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(runs, func(a, b store.Run) int { return a.Firing.Compare(*b.Firing) })
	return runs
}

// fired are the times that runs were fired for, and whether they go on.
func (w *world) fired() string {
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

// missed are the firings of which it was said that they were missed, each once.
func (w *world) missed() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var words []string
	seen := map[string]bool{}
	for _, ev := range w.said {
		s, ok := ev.(event.Status)
		if ok && s.Reason == event.ScheduleMissed && !seen[s.ID] {
			seen[s.ID] = true
			words = append(words, s.Firing.UTC().Format("15:04")+" "+s.Message)
		}
	}
	return strings.Join(words, "\n")
}

// end decides which effects still happen: a process that dies at an effect has
// carried it out or not, and carries out no other.
type end struct {
	mu    sync.Mutex
	left  int  // effects before the one at which it dies; negative: it lives
	after bool // that one still happens
	dead  bool
}

func (f *end) meet(effect func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return errDead
	}
	if f.left == 0 {
		f.dead = true
		if f.after {
			_ = effect() // nobody is left to hear
		}
		return errDead
	}
	f.left--
	return effect()
}

// mortal is the world as a process with that fate reaches it.
type mortal struct {
	*storetest.Memory

	world *world
	end   *end
	own   string // not empty: leases are its own, and nobody else sees them
}

// lease hides a lease from others.
func (m mortal) lease(d store.Doc) store.Doc {
	if d.Kind == store.KindLease {
		d.Key += m.own
	}
	return d
}

func (m mortal) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	return m.Memory.Doc(ctx, kind, m.lease(store.Doc{Kind: kind, Key: key}).Key)
}

func (m mortal) CreateDoc(ctx context.Context, d store.Doc) error {
	d = m.lease(d)
	return m.end.meet(func() error { return m.Memory.CreateDoc(ctx, d) })
}

func (m mortal) ReplaceDoc(ctx context.Context, d store.Doc) (version int64, err error) {
	d = m.lease(d)
	err = m.end.meet(func() error { version, err = m.Memory.ReplaceDoc(ctx, d); return err })
	return version, err
}

func (m mortal) DeleteDoc(ctx context.Context, d store.Doc) error {
	return m.end.meet(func() error { return m.Memory.DeleteDoc(ctx, d) })
}

func (m mortal) Publish(ctx context.Context, events ...event.Event) error {
	return m.end.meet(func() error { return m.world.Publish(ctx, events...) })
}

// gateway is a process that keeps schedules.
type gateway struct {
	*schedule.Schedules

	w      *world
	intake *intake.Intake
	api    *schedule.Server
}

func (w *world) gateway() *gateway { return w.mortal(&end{left: -1}) }

// deluded is a gateway that holds the lease whoever else does.
func (w *world) deluded(name string) *gateway {
	return w.born(mortal{w.store, w, &end{left: -1}, name})
}

func (w *world) mortal(f *end) *gateway { return w.born(mortal{w.store, w, f, ""}) }

func (w *world) born(m mortal) *gateway {
	in := intake.New(intake.Settings{}, intake.Deps{Store: m, Bus: m, Scripts: w.scripts, IDs: intake.NewIDs(rand.Reader), Now: w.clock, Log: zap.NewNop()})
	k := schedule.New(schedule.Settings{}, schedule.Deps{Store: m, Intake: in, Code: in, Bus: m, Holder: rand.Text(), Now: w.clock, Log: zap.NewNop()})
	return &gateway{Schedules: k, w: w, intake: in, api: schedule.NewServer(k)}
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
func (g *gateway) submit(req intake.Request) (schedule.Schedule, bool, error) {
	if req.Owner == "" {
		req.Owner = "ann"
	}
	_, err := g.intake.Submit(g.w.t.Context(), req)
	var asked *intake.ScheduleError
	if !errors.As(err, &asked) {
		return schedule.Schedule{}, false, fmt.Errorf("no schedule: %w", err)
	}
	return g.Put(g.w.t.Context(), req, asked)
}

func (g *gateway) put(name, text string) schedule.Schedule {
	g.w.t.Helper()
	s, _, err := g.submit(intake.Request{Name: name, Descriptor: []byte(text), File: "f.toml"})
	if err != nil {
		g.w.t.Fatal(err)
	}
	return s
}

// look looks at a time.
func (g *gateway) look(at string) time.Time {
	g.w.t.Helper()
	g.w.at(at)
	wake, err := g.Look(g.w.t.Context())
	if err != nil {
		g.w.t.Fatalf("at %s: %v", at, err)
	}
	return wake
}

// wardrobe has the code of these digests, and knows what each is kept for.
type wardrobe map[string]map[string]bool

// Pin keeps the contract of intake.Scripts.
func (w wardrobe) Pin(_ context.Context, _, sha256, id string) (event.Script, error) {
	kept, ok := w[sha256]
	if !ok {
		return event.Script{}, store.ErrNotFound
	}
	kept[id] = true
	return event.Script{SHA256: sha256, Size: 1}, nil
}
