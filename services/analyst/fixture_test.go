package analyst_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/points"
)

// begin is the time of the first run of a task.
var begin = time.Date(2026, 5, 4, 2, 0, 0, 0, time.UTC)

// descriptor returns the descriptor of a task with some alarms.
func descriptor(alarms ...string) string {
	return `spec_version = "0.1.0"
[info]
description = "a test"
scheduling = "0 2 * * *"
[info.labels]
task_name = "rates"
[hardware]
instance_type = "t3.small"
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = "true"
[output]
[[output.metrics]]
name = "rate"
units = "B/s"
pattern = 'rate=(\d+)'
direction = "higher"
` + strings.Join(alarms, "\n")
}

// Alarms of descriptors.
const (
	tooSlow = "[[alarms]]\nmetric = \"rate\"\nbelow = 100\nnotify = [\"perf\", \"ops\"]\n"
	fails   = "[[alarms]]\nwhen = \"failed\"\nnotify = [\"ops\"]\n"
	silence = "[[alarms]]\nmetric = \"rate\"\nwhen = \"missing\"\nwithin = \"26h\"\nnotify = [\"ops\"]\n"
	nightly = "[[alarms]]\nmetric = \"rate\"\nwhen = \"missing\"\nnotify = [\"ops\"]\n"
)

// atOnce returns an alarm that fires with the first bad run.
func atOnce(alarm string) string { return strings.Replace(alarm, "\nnotify", "\nfor = 1\nnotify", 1) }

// fixture is a store, a bus and a clock that analysts share.
type fixture struct {
	t     *testing.T
	store storetest.Store
	bus   *eventtest.Bus
	now   time.Time
	runs  int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{t: t, store: storetest.NewMemory(), bus: eventtest.NewBus(t), now: begin}
}

// deps are the dependencies of an analyst on a store.
func (w *fixture) deps(s analyst.Store) analyst.Deps {
	return analyst.Deps{Bus: w.bus, Store: s, Now: func() time.Time { return w.now }, Log: zap.NewNop()}
}

// listen starts an analyst that hears events.
func (w *fixture) listen() *fixture {
	analyst.New(analyst.Settings{}, w.deps(w.store))
	return w
}

// tick lets the clock of an analyst strike once.
func (w *fixture) tick() {
	w.t.Helper()
	if err := analyst.Tick(w.t.Context(), w.deps(w.store)); err != nil {
		w.t.Fatal(err)
	}
}

// put stores the next run of the task, a day after the one before, with its points, and returns the event that they are stored.
func (w *fixture) put(text string, value float64, changes ...func(*store.Run)) event.Summarised {
	w.t.Helper()
	w.now = begin.Add(time.Duration(w.runs) * 24 * time.Hour)
	w.runs++
	r, c := storetest.NewRun(fmt.Sprintf("r%02d", w.runs), w.now)
	started, ended := w.now.Add(time.Second), w.now.Add(10*time.Second)
	r.Phase, r.Outcome, r.Started, r.Ended, r.Descriptor = event.PhaseFinished, event.Succeeded, &started, &ended, text
	r.Labels = map[string]string{store.LabelTask: "rates"}
	for _, change := range changes {
		change(&r)
	}
	v := store.Float(value)
	all := &store.Summaries{Run: r.ID, Complete: true, Summaries: []store.Summary{{
		Metric: "rate", Unit: "B/s", N: 1, Min: v, Max: v, Median: v, P90: v, P95: v, P99: v, Mean: v, First: v, Last: v, Direction: event.Higher,
	}}}
	if r.Outcome != event.Succeeded || value < 0 {
		all = nil
	}
	p := points.Of(r, points.Results{Summaries: all, Revision: 1})
	if err := errors.Join(w.store.PutRun(w.t.Context(), r, c), w.store.PutPoints(w.t.Context(), p)); err != nil {
		w.t.Fatal(err)
	}
	h := event.NewHeader("s-"+r.ID, r.ID, r.Namespace, r.Owner, w.now)
	w.now = w.now.Add(time.Minute)
	return event.Summarised{Header: h, Revision: 1, Complete: true}
}

// run is put, with the event published.
func (w *fixture) run(text string, value float64, changes ...func(*store.Run)) {
	w.t.Helper()
	w.bus.PublishAndWait(w.put(text, value, changes...))
}

// docs returns the values of the documents of a kind, by key.
func docs[T any](w *fixture, kind store.Kind) map[string]T {
	w.t.Helper()
	all := make(map[string]T)
	for d, err := range store.All[T](w.t.Context(), w.store, kind, "") {
		if err != nil {
			w.t.Fatal(err)
		}
		all[d.Key] = d.Value
	}
	return all
}

// incidents describes all incidents, one a line, by condition and state.
func (w *fixture) incidents() []string {
	w.t.Helper()
	var all []string
	for _, i := range docs[incident.Incident](w, store.KindIncident) {
		first := "no run"
		if i.FirstBad != nil {
			first = i.FirstBad.Run
		}
		all = append(all, fmt.Sprintf("%s %s %s from %s", i.Rule.When, i.Rule.Metric, i.State, first))
	}
	slices.Sort(all)
	return all
}

// deliveries describes the deliveries, one a line, by receiver.
func (w *fixture) deliveries() []string {
	w.t.Helper()
	var all []string
	for key, d := range docs[notice.Delivery](w, store.KindDelivery) {
		receiver, _, _ := strings.Cut(key, "/")
		text := fmt.Sprintf("%s %s %s", receiver, d.Notice.Became, d.Status)
		if d.Notice.Receiver != receiver {
			text += ", for " + d.Notice.Receiver
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// analystKinds are the documents that an analyst writes, but for leases.
var analystKinds = []store.Kind{
	store.KindRuleSet, store.KindRuleState, store.KindIncident, store.KindOpenIncident, store.KindIncidentGroup, store.KindIncidentIndex, store.KindDelivery,
	store.KindUnsentNotice, store.KindConfirmation,
}

// contents returns all that an analyst has written, without versions.
func (w *fixture) contents() map[string]string {
	w.t.Helper()
	all := make(map[string]string)
	for _, kind := range analystKinds {
		for key, v := range docs[json.RawMessage](w, kind) {
			all[string(kind)+" "+key] = string(v)
		}
	}
	return all
}

// mend lets the clock strike when no analysis goes on any more.
func (w *fixture) mend() {
	w.t.Helper()
	w.now = w.now.Add(2 * time.Minute)
	w.tick()
}

// undated is contents without times.
func (w *fixture) undated() map[string]string {
	w.t.Helper()
	all := w.contents()
	for key, text := range all {
		all[key] = regexp.MustCompile(`\d{4}-\d\d-\d\dT[^"]+Z`).ReplaceAllString(text, "")
	}
	return all
}

// ack stores what a user said of the only open incident.
func (w *fixture) ack(a incident.Ack) {
	w.t.Helper()
	for key, i := range docs[incident.Incident](w, store.KindIncident) {
		if i.State.Over() {
			continue
		}
		a.By, a.At = "ann", w.now
		_, err := store.Update(w.t.Context(), w.store, store.KindAck, key, func(incident.Ack, bool) (incident.Ack, bool, error) { return a, true, nil })
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// failed changes a run into one that failed.
func failed(r *store.Run) {
	r.Outcome, r.Class, r.Message = event.Failed, event.ClassUser, "exit code 1"
}

// handle passes an event to the step of an analyst that hears it, once.
func handle(ctx context.Context, step func(ctx context.Context, ms []event.Message) ([]event.Event, error), ev event.Event) error {
	m, err := event.Encode(ev)
	if err != nil {
		return err
	}
	_, err = step(ctx, []event.Message{m})
	return err
}
