package executor_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

const descriptor = `spec_version = "1.0"
[info]
description = "x"
[hardware]
cpus = 1
[env]
docker_image = "debian:12"
[ml]
benchmark_code = "true"
`

// fixture has everything that outlives an executor: the store, the topics, the cluster,
// and fakes of the other services.
type fixture struct {
	t          *testing.T
	store      *storetest.Memory
	broker     *broker
	cluster    *fakeCluster
	engines    map[string]*fakeCluster // of the engines beside the default one
	docsListed atomic.Int64            // number of documents read in lists
	storeDown  atomic.Bool             // the store is down for executors
	log        *zap.Logger             // log of executors; nil for none
	images     plan.Images

	runDuration   time.Duration                  // how long a run runs
	beforeEffect  func(effect int)               // called before each effect of a process
	readDelay     func(store.Kind) time.Duration // how long reading a document takes; nil: no time
	infraFailures map[string]bool                // Jobs that fail for a reason of class infra
	userFailures  map[string]bool                // Jobs that fail
	unschedulable map[string]bool                // Jobs that are given up before they start
	finished      map[string]bool                // Jobs whose end the watcher has published
	otherServices []service.Runnable
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, store: storetest.NewMemory(), broker: newBroker(), cluster: newCluster(), runDuration: 20 * time.Millisecond, infraFailures: make(map[string]bool), userFailures: make(map[string]bool), unschedulable: make(map[string]bool), finished: make(map[string]bool)}
	w.cluster.deletionDelay = 5 * time.Millisecond
	w.otherServices = []service.Runnable{
		w.broker.Consume("watcher", service.On(w.runWatcher)),
		w.broker.Consume("record", service.On(w.projectFinished)),
	}
	return w
}

// runWatcher is a simple watcher: a run ends by itself after runDuration, or because
// its objects were deleted.
func (w *fixture) runWatcher(ctx context.Context, ev event.Launched) ([]event.Event, error) {
	if w.finished[ev.Job] {
		return nil, nil // a repeated event, after the end
	}
	ref := cluster.Ref{Run: ev.Run, Attempt: ev.Attempt, Scope: ev.Scope, Job: ev.Job}
	on := w.cluster
	if named, ok := w.engines[ev.Cluster]; ok {
		on = named
	}
	end := event.Finished{Header: ev.Cause("finished", ""), Outcome: event.Succeeded, Message: "fine"}
	for since := time.Now(); time.Since(since) < w.runDuration; control.Sleep(ctx, time.Millisecond) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		_, err := on.Observe(ctx, ref)
		if !errors.Is(err, cluster.ErrNotFound) {
			continue
		}
		end.Outcome, end.Reason, end.Message = event.Canceled, event.CanceledByUser, "gone"
		if _, err := w.store.Doc(ctx, store.KindCancel, ev.Run); err != nil {
			end.Outcome, end.Class, end.Reason = event.Failed, event.ClassInfra, event.JobDisappeared
		}
		w.finished[ev.Job] = true
		return []event.Event{end}, nil
	}
	w.finished[ev.Job] = true
	switch {
	case w.unschedulable[ev.Job]:
		end.Outcome, end.Class, end.Reason = event.Failed, event.ClassInfra, event.Unschedulable
		return []event.Event{end}, nil
	case w.userFailures[ev.Job]:
		on.endJob(ev.Job, batchv1.JobFailed)
		end.Outcome, end.Class, end.Reason = event.Failed, event.ClassUser, event.NonZeroExit
		return []event.Event{end}, nil
	}
	on.endJob(ev.Job, batchv1.JobComplete)
	if w.infraFailures[ev.Job] {
		h := ev.Cause("retried", "")
		h.Attempt++
		return []event.Event{event.Retried{Header: h, Class: event.ClassInfra, Reason: event.NodeLost, Message: "lost"}}, nil
	}
	return []event.Event{end}, nil
}

// projectFinished stores the gateway's projection of a run's end.
func (w *fixture) projectFinished(ctx context.Context, ev event.Finished) ([]event.Event, error) {
	run, err := w.store.Run(ctx, ev.Run)
	if err != nil && !errors.Is(err, store.ErrNotFound) || run.Phase == event.PhaseFinished {
		return nil, err
	}
	run.ID, run.Phase, run.Outcome, run.Attempt = ev.Run, event.PhaseFinished, ev.Outcome, ev.Attempt
	run.Revision++
	return nil, w.store.PutRun(ctx, run, store.Change{Run: run.ID, Revision: run.Revision, Event: ev.ID})
}

// start starts an executor and the other services, and returns a function that stops
// them.
func (w *fixture) start(s executor.Settings) (stop func()) {
	w.t.Helper()
	return w.startIn(crashtest.New(0, false), s)
}

// startIn does the same as start, in a process that may crash.
func (w *fixture) startIn(p *crashtest.Process, s executor.Settings) (stop func()) {
	ctx, cancel := p.Context(w.t.Context())
	p.BeforeEffect = w.beforeEffect
	if s.Name == "" {
		s.Name = "one"
	}
	token := func(run string) string { return "token of " + run }
	engines := make(map[string]launch.Cluster, len(w.engines))
	for name, c := range w.engines {
		engines[name] = p.Cluster(c)
	}
	parts := executor.New(s, executor.Deps{
		Engines: engines,
		Bus:     p.Bus(w.broker), Store: p.Store(flakyStore{w.store, w}), Cluster: p.Cluster(w.cluster), Images: registries(w.images), Token: token, Log: w.log,
	})
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(func() { _ = part(ctx) })
	}
	rest, end := context.WithCancel(w.t.Context())
	for _, part := range w.otherServices {
		all.Go(func() { _ = part(rest) })
	}
	return func() { cancel(); end(); all.Wait() }
}

func (w *fixture) publish(evs ...event.Event) {
	w.t.Helper()
	if err := w.broker.Publish(w.t.Context(), evs...); err != nil {
		w.t.Fatal(err)
	}
}

// cancel sets the mark and then publishes the command, as the gateway does.
func (w *fixture) cancel(run string) {
	w.t.Helper()
	err := store.Create(w.t.Context(), w.store, store.KindCancel, run, struct{}{})
	if err != nil && !errors.Is(err, store.ErrExists) {
		w.t.Fatal(err)
	}
	w.publish(event.Command{Header: header(run).Cause("cancel", ""), Kind: event.CommandCancel})
}

func header(run string) event.Header {
	return event.NewHeader("submitted "+run, run, "pets", "ann", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
}

func fetched(run string) event.Fetched {
	return event.Fetched{Header: header(run), File: "d.toml", Descriptor: descriptor, Data: []event.Data{}}
}

// docKeys returns the keys of all documents of a kind.
func (w *fixture) docKeys(kind store.Kind) []string {
	w.t.Helper()
	docs, err := w.store.Docs(w.t.Context(), kind, "", 10000)
	if err != nil {
		w.t.Fatal(err)
	}
	keys := []string{}
	for _, d := range docs {
		keys = append(keys, d.Key)
	}
	return keys
}

// docTexts returns all documents of a kind.
func (w *fixture) docTexts(kind store.Kind) []string {
	w.t.Helper()
	docs, err := w.store.Docs(w.t.Context(), kind, "", 10000)
	if err != nil {
		w.t.Fatal(err)
	}
	texts := []string{}
	for _, d := range docs {
		texts = append(texts, string(d.Value))
	}
	return texts
}

func (w *fixture) slots() []string {
	w.t.Helper()
	l, _, err := store.Get[slots.Table](w.t.Context(), w.store, store.KindSlotTable, "slots")
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		w.t.Fatal(err)
	}
	held := []string{}
	for _, e := range l.Allocations {
		held = append(held, fmt.Sprintf("%s/%d", e.Run, e.Attempt))
	}
	return held
}

// runOutcomes returns the outcome of each run, with any further end of the run.
func (w *fixture) runOutcomes() map[string]string {
	w.t.Helper()
	ends := make(map[string]string)
	for _, f := range published[event.Finished](w.t, w.broker) {
		ends[f.Run] = strings.TrimPrefix(ends[f.Run]+" and ", " and ") + string(f.Outcome)
	}
	return ends
}

// assertClean checks that no documents or objects are left.
func (w *fixture) assertClean(t *testing.T) {
	t.Helper()
	for kind, left := range map[string][]string{"slots": w.slots(), "queue": w.docKeys(store.KindQueue), "cluster": w.cluster.objectKeys()} {
		if len(left) > 0 {
			t.Errorf("%s: %q is left", kind, left)
		}
	}
}

// assertCreatedOnce checks that no Job was created more than once.
func (w *fixture) assertCreatedOnce(t *testing.T) {
	t.Helper()
	for o, n := range w.cluster.createCount {
		if n != 1 && strings.HasPrefix(o, "Job ") {
			t.Errorf("%s was created %d times", o, n)
		}
	}
}

func TestARunIsLaunchedAndItsSlotFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.broker.redeliver = true
		stop := w.start(executor.Settings{Slots: 1})
		w.publish(fetched("r1"), fetched("r2"))
		time.Sleep(2 * time.Second)
		stop()

		w.assertClean(t)
		w.assertCreatedOnce(t)
		if diff := cmp.Diff(map[string]string{"r1": "succeeded", "r2": "succeeded"}, w.runOutcomes()); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
		if w.cluster.maxJobs != 1 {
			t.Errorf("%d Jobs at a time, but there is one slot", w.cluster.maxJobs)
		}
		launched := published[event.Launched](t, w.broker)
		want := event.Launched{Header: fetched("r1").Cause("launched", ""), Cluster: "local", Scope: "default", Job: "bai-r1-1", UID: "uid-bai-r1-1-1"}
		if diff := cmp.Diff(want, launched[0]); diff != "" {
			t.Errorf("launched (-want +got):\n%s", diff)
		}
		var phases []string
		for _, s := range published[event.Status](t, w.broker) {
			if s.Run == "r1" {
				phases = append(phases, string(s.Phase))
			}
		}
		if diff := cmp.Diff([]string{"queued", "launching"}, phases); diff != "" {
			t.Errorf("phases (-want +got):\n%s", diff)
		}
	})
}

func TestAStoreThatIsAwayIsWaitedForAndThatIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		core, logs := observer.New(zap.InfoLevel)
		w.log = zap.New(core)
		w.storeDown.Store(true)
		settings := executor.Settings{Slots: 1, Poll: time.Second}
		stop := w.start(settings)
		w.publish(fetched("r1"))
		time.Sleep(time.Hour)
		w.storeDown.Store(false)
		back := time.Now()
		for len(w.runOutcomes()) == 0 && time.Since(back) < time.Hour {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(back); took > 6*settings.Poll {
			t.Errorf("the run ended %s after the store had come back, want some seconds", took)
		}
		time.Sleep(time.Second)
		stop()
		w.assertClean(t)
		w.assertCreatedOnce(t)
		for _, message := range []string{"cannot admit, tries again", "admits again"} {
			if n := logs.FilterMessage(message).Len(); n != 1 {
				t.Errorf("%q is said %d times, want once", message, n)
			}
		}
	})
}

// scenario has the events of some runs, and the expected end.
type scenario struct {
	setup    func(w *fixture)
	do       func(w *fixture)
	want     map[string]string
	launches int // -1: depends on when the process is killed
}

// TestKilledAnywhere kills the process before and after each of its effects, then
// starts it again.
func TestKilledAnywhere(t *testing.T) {
	for name, s := range map[string]scenario{
		"two runs, one slot": {
			do:   func(w *fixture) { w.publish(fetched("r1"), fetched("r2")) },
			want: map[string]string{"r1": "succeeded", "r2": "succeeded"}, launches: 2,
		},
		"a run that is canceled while it runs": {
			setup: func(w *fixture) { w.runDuration = 15 * time.Second },
			do: func(w *fixture) {
				w.publish(fetched("r1"))
				time.Sleep(10 * time.Millisecond)
				w.cancel("r1")
			},
			want: map[string]string{"r1": "canceled"}, launches: -1,
		},
		"a run that is canceled in the queue": {
			do: func(w *fixture) {
				w.publish(fetched("r1"), fetched("r2"))
				time.Sleep(10 * time.Millisecond)
				w.cancel("r2")
			},
			want: map[string]string{"r1": "succeeded", "r2": "canceled"}, launches: 1,
		},
		"an attempt that another follows": {
			setup: func(w *fixture) { w.infraFailures["bai-r1-1"] = true },
			do:    func(w *fixture) { w.publish(fetched("r1")) },
			want:  map[string]string{"r1": "succeeded"}, launches: 2,
		},
		"a run that the cluster refuses": {
			setup: func(w *fixture) { w.cluster.refuse = refuseJobs },
			do:    func(w *fixture) { w.publish(fetched("r1")) },
			want:  map[string]string{"r1": "failed"},
		},
		"a run on another engine": {
			do:   func(w *fixture) { w.publish(onEngine("r1", "gpu"), onEngine("r2", "default")) },
			want: map[string]string{"r1": "succeeded", "r2": "succeeded"}, launches: 2,
		},
		"a run that nobody can read": {
			do:   func(w *fixture) { w.publish(runUnreadable("r1")) },
			want: map[string]string{"r1": "failed"},
		},
	} {
		for _, engine := range []string{plan.EngineLocal, plan.EngineKubernetes} {
			t.Run(name+", "+engine, func(t *testing.T) {
				settings := twoEngines()
				settings.Engine = engine
				for p := range crashtest.Points() {
					s.play(t, settings, p)
				}
			})
		}
	}
}

// play plays the scenario with a process that crashes, then continues with one that
// does not.
func (s scenario) play(t *testing.T, settings executor.Settings, p *crashtest.Process) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.addEngine()
		if s.setup != nil {
			s.setup(w)
		}
		stop := w.startIn(p, settings)
		s.do(w)
		time.Sleep(2 * time.Second)
		stop()
		stop = w.start(settings)
		time.Sleep(30 * time.Second)
		stop()

		w.assertClean(t)
		w.assertCreatedOnce(t)
		if left := w.engines["gpu"].objectKeys(); len(left) > 0 {
			t.Errorf("left on the other engine: %q", left)
		}
		if diff := cmp.Diff(s.want, w.runOutcomes()); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
		if got := len(published[event.Launched](t, w.broker)); got != s.launches && s.launches >= 0 {
			t.Errorf("launched %d times, want %d", got, s.launches)
		}
		if t.Failed() {
			t.Logf("a process %s", p)
		}
	})
}

// TestCanceledAnywhere cancels a run before each effect. The run must end once, leave
// nothing behind, and not be launched after its end.
func TestCanceledAnywhere(t *testing.T) {
	for at := 1; at <= 40; at++ {
		synctest.Test(t, func(t *testing.T) {
			w := newFixture(t)
			at, engine := (at+1)/2, []string{plan.EngineLocal, plan.EngineKubernetes}[at%2]
			w.beforeEffect = func(effect int) {
				if effect == at {
					w.cancel("r1")
				}
			}
			stop := w.start(executor.Settings{Slots: 1, Engine: engine})
			w.publish(fetched("r1"), fetched("r2"))
			time.Sleep(10 * time.Second)
			stop()
			w.assertClean(t)
			w.assertCreatedOnce(t)
			ends := w.runOutcomes()
			if got := ends["r1"]; got != "canceled" && got != "succeeded" {
				t.Errorf("canceled before effect %d: r1 %q", at, got)
			}
			if got := ends["r2"]; got != "succeeded" {
				t.Errorf("canceled before effect %d: r2 %q", at, got)
			}
		})
	}
}

func TestARefusalIsTheFaultOfWhoeverTheClusterSays(t *testing.T) {
	for name, tt := range map[string]struct{ says, want event.Class }{
		"of the user, where it does not say":                          {"", event.ClassUser},
		"of the user, whose image or quota it is":                     {event.ClassUser, event.ClassUser},
		"of the platform, whose account may not or has no such place": {event.ClassPlatform, event.ClassPlatform},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t)
				w.cluster.refuse = func(o cluster.Object) error {
					return &cluster.RefusedError{Object: objectKey(o), Class: tt.says, Message: "no"}
				}
				stop := w.start(executor.Settings{Slots: 1})
				w.publish(fetched("r1"))
				time.Sleep(5 * time.Second)
				stop()
				ends := published[event.Finished](t, w.broker)
				if len(ends) != 1 || ends[0].Class != tt.want || ends[0].Reason != event.LaunchRefused {
					t.Errorf("%+v, want one that is the fault of the %s", ends, tt.want)
				}
				w.assertClean(t)
			})
		})
	}
}

// refuseJobs refuses Jobs, like a cluster without images.
func refuseJobs(o cluster.Object) error {
	if strings.HasPrefix(objectKey(o), "Job ") {
		return &cluster.RefusedError{Object: objectKey(o), Reason: string(event.NeedsImage), Message: "no images here"}
	}
	return nil
}

func runUnreadable(run string) event.Fetched {
	f := fetched(run)
	f.Descriptor = "nonsense = 1\n[limits]\npending_deadline = \"5s\"\n"
	return f
}

func TestEverythingReplayedAfterTheEndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.infraFailures["bai-r3-1"] = true
		stop := w.start(executor.Settings{Slots: 2})
		for i := range 10 {
			w.publish(fetched(fmt.Sprintf("r%d", i)))
		}
		time.Sleep(30 * time.Millisecond)
		w.cancel("r4")
		w.cancel("r9")
		w.publish(runUnreadable("bad"))
		time.Sleep(20 * time.Second)
		stop()
		w.assertClean(t)

		writes, ends, launched := w.cluster.writeCount(), w.runOutcomes(), len(published[event.Launched](t, w.broker))
		plans := w.docKeys(store.KindPlan)
		w.broker.rewind()
		stop = w.start(executor.Settings{Slots: 2, Name: "two"})
		time.Sleep(20 * time.Second)
		stop()

		w.assertClean(t)
		if got := w.cluster.writeCount(); got != writes {
			t.Errorf("the cluster was asked to write %d times more", got-writes)
		}
		if diff := cmp.Diff(ends, w.runOutcomes()); diff != "" {
			t.Errorf("ends (-before +after):\n%s", diff)
		}
		if got := len(published[event.Launched](t, w.broker)); got != launched {
			t.Errorf("launched %d runs, before it were %d", got, launched)
		}
		if diff := cmp.Diff(plans, w.docKeys(store.KindPlan)); diff != "" {
			t.Errorf("plans (-before +after):\n%s", diff)
		}
	})
}

// TestTheQueueIsServedInOrder: by priority, then by the time of submission, which is
// part of a run's ID.
func TestTheQueueIsServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		s := executor.Settings{Slots: 1, Priorities: map[string]int{"class=urgent": 5, "class=later": -5}}
		stop := w.start(s)
		w.publish(fetched("r0"))
		time.Sleep(5 * time.Millisecond)
		for run, class := range map[string]string{"r4": "later", "r3": "", "r2": "", "r1": "later", "r5": "urgent"} {
			f := fetched(run)
			f.Labels = map[string]string{"class": class}
			w.publish(f)
		}
		time.Sleep(5 * time.Second)
		stop()
		var order []string
		for _, l := range published[event.Launched](t, w.broker) {
			order = append(order, l.Run)
		}
		if diff := cmp.Diff([]string{"r0", "r5", "r2", "r3", "r1", "r4"}, order); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		w.assertClean(t)
	})
}

func TestThoseInTheQueueAreToldTheirPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.runDuration = 25 * time.Second
		stop := w.start(executor.Settings{Slots: 1})
		w.publish(fetched("r0"))
		time.Sleep(time.Second)
		w.publish(fetched("r1"), fetched("r2"))
		time.Sleep(6 * time.Second)
		w.cancel("r1")
		time.Sleep(10 * time.Second)
		stop()
		var got []string
		for _, s := range published[event.Status](t, w.broker) {
			if s.Run == "r2" {
				got = append(got, s.Message)
			}
		}
		want := []string{"waiting for a free slot", "waiting for a free slot, number 2 in the queue", "waiting for a free slot, number 1 in the queue"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestTwoExecutors: one executor admits runs, both handle events, and the other takes
// over when the first is killed.
func TestTwoExecutors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.runDuration = 100 * time.Millisecond
		dies := crashtest.New(45, true)
		stop1 := w.startIn(dies, executor.Settings{Slots: 2, Name: "one"})
		others := w.otherServices
		w.otherServices = nil
		stop2 := w.start(executor.Settings{Slots: 2, Name: "two"})
		w.otherServices = others
		want := make(map[string]string)
		for i := range 20 {
			run := fmt.Sprintf("r%02d", i)
			want[run] = "succeeded"
			w.publish(fetched(run))
		}
		time.Sleep(time.Minute)
		stop1()
		stop2()
		w.assertClean(t)
		w.assertCreatedOnce(t)
		if diff := cmp.Diff(want, w.runOutcomes()); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
		if !dies.Dead() {
			t.Errorf("the first executor lives after %d effects", dies.Effects())
		}
		if w.cluster.maxJobs > 2 {
			t.Errorf("%d Jobs at a time, but there are two slots", w.cluster.maxJobs)
		}
	})
}

// TestASlotIsKeptUntilItsObjectsAreGone: the pod of a finished run uses the machine
// until it is gone.
func TestASlotIsKeptUntilItsObjectsAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.cluster.deletionDelay = 10 * time.Second
		stop := w.start(executor.Settings{Slots: 1})
		w.publish(fetched("r1"), fetched("r2"))
		time.Sleep(5 * time.Second)
		if diff := cmp.Diff([]string{"r1/1"}, w.slots()); diff != "" {
			t.Errorf("slots (-want +got):\n%s", diff)
		}
		time.Sleep(30 * time.Second)
		stop()
		w.assertClean(t)
		if w.cluster.maxJobs != 1 {
			t.Errorf("%d Jobs at a time, but there is one slot", w.cluster.maxJobs)
		}
	})
}

func TestReleasesThatWaitDelayNoLaunchAndNoOtherRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.cluster.deletionDelay = 10 * time.Minute
		stop := w.start(executor.Settings{Slots: 64})
		for i := range 40 {
			w.publish(fetched(fmt.Sprintf("r%02d", i)))
		}
		time.Sleep(time.Minute)
		w.cluster.mu.Lock()
		if n := len(w.cluster.goneAt); n != 80 {
			t.Errorf("%d of 80 objects are being deleted", n)
		}
		w.cluster.mu.Unlock()
		w.publish(fetched("s1"))
		time.Sleep(10 * time.Second)
		if w.cluster.object("Job bai-s1-1") == nil {
			t.Error("a run is not launched while others are released")
		}
		time.Sleep(time.Hour)
		stop()
		w.assertClean(t)
		w.assertCreatedOnce(t)
	})
}

// TestARunThatEndedWhileNobodyListened: a process committed the event of the end and
// crashed right after.
func TestARunThatEndedWhileNobodyListened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.runDuration = time.Hour
		stop := w.start(executor.Settings{Slots: 1})
		w.publish(fetched("r1"))
		time.Sleep(2 * time.Second)
		stop()
		end := event.Finished{Header: header("r1").Cause("x", ""), Outcome: event.Succeeded}
		if _, err := w.projectFinished(t.Context(), end); err != nil {
			t.Fatal(err)
		}
		stop = w.start(executor.Settings{Slots: 1})
		time.Sleep(30 * time.Second)
		stop()
		w.assertClean(t)
	})
}

// TestALaunchThatWasHeardOfIsNotMadeAnew: the process crashed before the table had the
// launch, and the launched objects have disappeared since. The watcher reports that.
func TestALaunchThatWasHeardOfIsNotMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.otherServices = nil
		stop := w.start(executor.Settings{Slots: 1})
		w.publish(fetched("r1"))
		time.Sleep(2 * time.Second)
		stop()

		l, version, err := store.Get[slots.Table](t.Context(), w.store, store.KindSlotTable, "slots")
		if err != nil || !l.Allocations[0].Launched {
			t.Fatalf("%+v %v", l, err)
		}
		l.Allocations[0].Launched = false
		_, err1 := store.Replace(t.Context(), w.store, store.KindSlotTable, "slots", version, l)
		err2 := w.store.PutRun(t.Context(), store.Run{ID: "r1", Attempt: 1, Phase: event.PhaseRunning, Revision: 1}, store.Change{Run: "r1", Revision: 1, Event: "e"})
		err3 := w.cluster.Delete(t.Context(), cluster.Ref{Run: "r1", Attempt: 1})
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		stop = w.start(executor.Settings{Slots: 1})
		time.Sleep(2 * time.Second)
		stop()
		w.assertCreatedOnce(t)
		if diff := cmp.Diff([]string{"r1/1"}, w.slots()); diff != "" {
			t.Errorf("slots (-want +got):\n%s", diff)
		}
	})
}

// TestARunInAQueueOfTheClusterTakesNoSlot: its status is in the store.
func TestARunInAQueueOfTheClusterTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.runDuration = time.Hour
		stop := w.start(executor.Settings{Slots: 1})
		w.publish(fetched("r1"), fetched("r2"), fetched("r3"))
		time.Sleep(15 * time.Second)
		if diff := cmp.Diff([]string{"r1/1"}, w.slots()); diff != "" {
			t.Errorf("slots before (-want +got):\n%s", diff)
		}
		waiting := store.Run{ID: "r1", Attempt: 1, Phase: event.PhaseQueued, Reason: event.QueueSuspended, Revision: 1}
		if err := w.store.PutRun(t.Context(), waiting, store.Change{Run: "r1", Revision: 1, Event: "e"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		if diff := cmp.Diff([]string{"r1/1", "r2/1"}, w.slots()); diff != "" {
			t.Errorf("slots while r1 is suspended (-want +got):\n%s", diff)
		}
		stop()
	})
}

// TestARunThatEndedBeforeItsDataWereThere: the run is never launched, even though its
// end has no projection yet.
func TestARunThatEndedBeforeItsDataWereThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.otherServices = w.otherServices[:1]
		stop := w.start(executor.Settings{})
		w.publish(event.Finished{Header: header("r1").Cause("x", ""), Outcome: event.Failed, Class: event.ClassPlatform, Reason: event.NoProgress})
		time.Sleep(time.Second)
		w.publish(fetched("r1"))
		time.Sleep(10 * time.Second)
		stop()
		w.assertClean(t)
		if n := len(published[event.Launched](t, w.broker)); n != 0 {
			t.Errorf("launched %d times", n)
		}
	})
}

func TestACommandAboutARunThatIsElsewhereIsLeftToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		stop := w.start(executor.Settings{})
		w.cancel("r1")
		time.Sleep(time.Second)
		if got := w.runOutcomes(); len(got) > 0 {
			t.Errorf("a run that is being fetched: %v", got)
		}
		w.publish(fetched("r1"))
		time.Sleep(time.Second)
		stop()
		if diff := cmp.Diff(map[string]string{"r1": "canceled"}, w.runOutcomes()); diff != "" {
			t.Errorf("once fetched (-want +got):\n%s", diff)
		}
		w.assertClean(t)
		if w.cluster.writeCount() != 0 {
			t.Error("a canceled run was launched")
		}
	})
}

// TestTheQueueIsNotScanned: the number of documents read for a run does not depend on
// the length of the queue.
func TestTheQueueIsNotScanned(t *testing.T) {
	listed := func(t *testing.T, runs int) (perRun int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newFixture(t)
			w.runDuration = time.Millisecond
			stop := w.start(executor.Settings{Slots: 4, Positions: time.Hour})
			for i := range runs {
				w.publish(fetched(fmt.Sprintf("r%04d", i)))
			}
			time.Sleep(time.Minute)
			stop()
			w.assertClean(t)
			perRun = w.docsListed.Load() / int64(runs)
		})
		return perRun
	}
	few, many := listed(t, 20), listed(t, 400)
	if many > 2*few+4 {
		t.Errorf("%d documents listed per run with 400 waiting, %d with 20", many, few)
	}
}

func TestNoDocumentHoldsASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.runDuration = time.Second
		stop := w.start(executor.Settings{Pods: transpile.Settings{Brokers: []string{"kafka:9092"}}})
		w.publish(fetched("r1"))
		time.Sleep(500 * time.Millisecond)
		secret, ok := w.cluster.object("Secret bai-r1-1").(*corev1.Secret)
		if !ok || !strings.Contains(string(secret.Data[pod.CollectFile]), "token of r1") {
			t.Errorf("the Secret in the cluster lacks the token: %v", secret)
		}
		stop()
		for _, kind := range []store.Kind{store.KindPlan, store.KindQueue, store.KindSlotTable} {
			for _, text := range w.docTexts(kind) {
				if strings.Contains(text, "token of") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("token of"))[:8]) {
					t.Errorf("a %s: %s", kind, text)
				}
			}
		}
	})
}
