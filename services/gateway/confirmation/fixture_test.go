package confirmation_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/incident/confirm"
	"github.com/benchmark-ai/bai/services/gateway/confirmation"
	"github.com/benchmark-ai/bai/services/gateway/projection"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// descriptor is that of the runs that are repeated. It is a schedule.
const descriptor = `spec_version = "1.0"
[info]
description = "d"
task_name = "sums"
scheduling = "0 2 * * *"
[info.labels]
version = "v%d"
[hardware]
cpus = 1
[env]
docker_image = "registry:5000/team/app:1"
[ml]
benchmark_code = "true"
[[data.sources]]
src = "https://example.org/set"
path = "/set"
[[data.sources]]
src = "s3://bucket/folder/"
path = "/folder"
`

// fixture is a store and a clock that several gateways share. Published events are projected at once.
type fixture struct {
	t        *testing.T
	store    *storetest.Memory
	now      time.Time
	node     string // where runs run; empty if that is not known
	noScript bool   // the code that was sent along is not stored any more
}

// newFixture returns a fixture with the two runs that are repeated, old and new.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, store: storetest.NewMemory(), now: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)}
	for n, id := range []string{oldRun, newRun} {
		r, c := storetest.NewRun(id, w.now.Add(-time.Hour))
		r.Namespace, r.Owner, r.Phase, r.Outcome, r.Descriptor = "perf", "ann", event.PhaseFinished, event.Succeeded, fmt.Sprintf(descriptor, n+1)
		r.Labels = map[string]string{"task_name": "sums", "version": fmt.Sprint("v", n+1), "commit": "abc", "confirms": "another"}
		r.Images = map[string]string{"pod": "sha256:" + strings.Repeat(fmt.Sprint(n), 64)}
		r.Data = []event.Data{
			{Source: "https://example.org/set", Path: "/set", SHA256: strings.Repeat("a", 64)},
			{Source: "s3://bucket/folder/", Path: "/folder", SHA256: strings.Repeat("b", 64), Unpack: true},
			{Source: "script:" + strings.Repeat("c", 64), Path: pod.ScriptsDir, SHA256: strings.Repeat("c", 64), Unpack: true},
		}
		if err := w.store.PutRun(t.Context(), r, c); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

const oldRun, newRun = "01kdyt1q880000000000000001", "01kdyt1q880000000000000002"

// Pin implements submit.Scripts.
func (w *fixture) Pin(_ context.Context, _, sha256, _ string) (event.Bundle, error) {
	if w.noScript {
		return event.Bundle{}, store.ErrNotFound
	}
	return event.Bundle{SHA256: sha256, Size: 1}, nil
}

// Publish projects the events.
func (w *fixture) Publish(ctx context.Context, events ...event.Event) error {
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

// gateway returns a process that makes runs, and may be killed.
func (w *fixture) gateway(p *crashtest.Process) *confirmation.Runner {
	return w.newGateway(p.Store(w.store), p.Bus(w))
}

func (w *fixture) newGateway(s confirmation.Store, bus submit.Publisher) *confirmation.Runner {
	clock := func() time.Time { return w.now }
	in := submit.New(submit.Settings{}, submit.Deps{Store: s, Bus: bus, Scripts: w, IDs: submit.NewIDs(rand.Reader), Now: clock, Log: zap.NewNop()})
	return confirmation.NewRunner(confirmation.Deps{Store: s, Submitter: in, Holder: rand.Text(), Now: clock, Log: zap.NewNop()})
}

// pass makes a pass.
func (w *fixture) pass(r *confirmation.Runner) {
	w.t.Helper()
	if err := r.Reconcile(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// ask stores the request for five pairs, for some incidents.
func (w *fixture) ask(incidents ...string) {
	w.t.Helper()
	_, err := store.Update(w.t.Context(), w.store, store.KindConfirmation, "perf/request", func(confirm.Request, bool) (confirm.Request, bool, error) {
		return confirm.Request{
			ID: "request", Namespace: "perf", Incidents: incidents, First: "incident", Old: oldRun, New: newRun, Pairs: 5, MaxRuns: 12, Deadline: w.now.Add(24 * time.Hour),
		}, true, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// made returns the runs that were made, in the order of their submission.
func (w *fixture) made() (all []store.Run) {
	w.t.Helper()
	runs, _, err := w.store.Runs(w.t.Context(), store.RunFilter{Oldest: true}, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range runs {
		if r.Confirms != "" {
			all = append(all, r)
		}
	}
	return all
}

// active returns those that have not ended.
func (w *fixture) active() (all []store.Run) {
	w.t.Helper()
	for _, r := range w.made() {
		if r.Phase != event.PhaseFinished {
			all = append(all, r)
		}
	}
	return all
}

// finish ends the runs that have not ended: a canceled one as canceled, others with an outcome.
func (w *fixture) finish(o event.Outcome) {
	w.t.Helper()
	for _, r := range w.active() {
		h := event.NewHeader("end "+r.ID, r.ID, r.Namespace, r.Owner, w.now)
		h.Lineage = r.Lineage
		end := event.Finished{Header: h, Outcome: o, Message: "it ended"}
		if r.Phase == event.PhaseCanceling {
			end.Outcome = event.Canceled
		}
		if w.node != "" {
			end.Machines = []event.MachineUse{{Node: w.node, From: w.now, Until: w.now}}
		}
		if end.Outcome == event.Failed {
			end.Class, end.Reason = event.ClassInfra, event.NonZeroExit
		}
		w.project(w.t.Context(), end)
	}
	w.now = w.now.Add(time.Minute)
}

// progress returns how far the request has come; found is false if there is no such document.
func (w *fixture) progress() (p confirm.Progress, found bool) {
	w.t.Helper()
	p, _, found, err := store.Find[confirm.Progress](w.t.Context(), w.store, store.KindConfirmationRuns, "perf/request")
	if err != nil {
		w.t.Fatal(err)
	}
	return p, found
}
