package rule_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// start is the time of the first point; points are an hour apart.
var start = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

const task, metric = "checksums", "rate"

// at is the time of a point.
func at(i int) time.Time { return start.Add(time.Duration(i) * time.Hour) }

func key() store.SeriesKey {
	return store.SeriesKey{Namespace: "perf", Task: task, Metric: metric, Unit: "MB/s"}
}

// regression is a rule of a metric that is better if it is higher.
func regression() incident.Rule {
	return incident.Rule{Namespace: "perf", Task: task, Metric: metric, When: incident.Regression, Statistic: incident.Median, For: 1, Since: start}.WithID()
}

// above is a rule with a limit of 100.
func above() incident.Rule {
	return incident.Rule{Namespace: "perf", Task: task, Metric: metric, When: incident.Above, Statistic: incident.Median, Limit: 100, For: 2, Since: start}.WithID()
}

// point is the value of run i.
func point(i int, v float64) store.Point {
	f := store.Float(v)
	return store.Point{
		PointRun: store.PointRun{
			Run: fmt.Sprintf("run-%04d", i), Namespace: "perf", Task: task, Time: at(i), Complete: true, Machine: "m1", Version: fmt.Sprint("v", i),
			Image: "app", Images: []string{"sha256:1"}, Descriptor: "d",
		},
		Summary: store.Summary{Metric: metric, Unit: "MB/s", N: 1000, Median: f, Mean: f, Min: f, Max: f, P90: f, P95: f, P99: f, Last: f, Direction: "higher"},
	}
}

// series are points with values.
func series(values ...float64) []store.Point {
	var all []store.Point
	for i, v := range values {
		all = append(all, point(i, v))
	}
	return all
}

// noisy are values around levels, each of which has a length.
func noisy(seed uint64, sd float64, levels ...[2]float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []float64
	for _, l := range levels {
		for range int(l[1]) {
			all = append(all, l[0]+sd*r.NormFloat64())
		}
	}
	return all
}

// watcher applies a rule to points as they come, and keeps its incidents, as the store does.
type watcher struct {
	t         testing.TB
	rule      incident.Rule
	incidents map[string]incident.Incident
	order     []string
	acks      map[string]incident.Ack
	points    []store.Point
	edit      func(*rule.Input)
}

func watch(tb testing.TB, r incident.Rule) *watcher {
	tb.Helper()
	return &watcher{t: tb, rule: r, incidents: map[string]incident.Incident{}, acks: map[string]incident.Ack{}}
}

// add adds points, one after the other, with a decision after each.
func (w *watcher) add(all ...store.Point) *watcher {
	w.t.Helper()
	for _, p := range all {
		w.points = append(w.points, p)
		w.decide(p.Time.Add(time.Minute))
	}
	return w
}

// decide decides at a time, and a second time, after which nothing changes.
func (w *watcher) decide(now time.Time) rule.Output {
	w.t.Helper()
	out := rule.Decide(w.input(now))
	for _, i := range out.Incidents {
		if _, ok := w.incidents[i.ID]; !ok {
			w.order = append(w.order, i.ID)
		}
		w.incidents[i.ID] = stored(w.t, i)
	}
	if again := rule.Decide(w.input(now)); len(again.Incidents) > 0 {
		w.t.Fatalf("the same decision again changes %d incidents: %+v", len(again.Incidents), again.Incidents)
	}
	return out
}

func (w *watcher) input(now time.Time) rule.Input {
	in := rule.Input{Rule: w.rule, Series: key(), Points: newest(w.points), Acks: w.acks, Now: now}
	for _, id := range w.order {
		in.Incidents = append(in.Incidents, w.incidents[id])
	}
	if w.edit != nil {
		w.edit(&in)
	}
	return in
}

// newest are the newest points, as the store gives them.
func newest(all []store.Point) []store.Point {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b store.Point) int { return a.Time.Compare(b.Time) })
	return sorted[max(0, len(sorted)-rule.MaxPoints):]
}

// stored is an incident as the store returns it.
func stored(tb testing.TB, i incident.Incident) incident.Incident {
	tb.Helper()
	text, err := json.Marshal(i)
	if err != nil {
		tb.Fatal(err)
	}
	var back incident.Incident
	if err := json.Unmarshal(text, &back); err != nil {
		tb.Fatal(err)
	}
	return back
}

// all are the incidents in the order in which they were opened.
func (w *watcher) all() []incident.Incident {
	var all []incident.Incident
	for _, id := range w.order {
		all = append(all, w.incidents[id])
	}
	return all
}

// only is the one incident that there is.
func (w *watcher) only() incident.Incident {
	w.t.Helper()
	if all := w.all(); len(all) != 1 {
		w.t.Fatalf("%d incidents, want 1: %v", len(all), w.became())
	}
	return w.all()[0]
}

// became are the states of all incidents, each with the time of its first bad point.
func (w *watcher) became() []string {
	var all []string
	for _, i := range w.all() {
		text := "?"
		if i.FirstBad != nil {
			text = i.FirstBad.Run
		}
		for _, b := range i.Became {
			text += " " + string(b.State)
		}
		if i.Silent {
			text += " (silent)"
		}
		all = append(all, text)
	}
	return all
}

// notified counts the incidents that somebody hears of.
func notified(all []incident.Incident) int {
	n := 0
	for _, i := range all {
		if !i.Silent && slices.ContainsFunc(i.Became, func(b incident.Transition) bool { return b.State == incident.Firing }) {
			n++
		}
	}
	return n
}

func near(a, b, by float64) bool { return math.Abs(a-b) <= by }

func nan() float64 { return math.NaN() }

func inf() float64 { return math.Inf(1) }
