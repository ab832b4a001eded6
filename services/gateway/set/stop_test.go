package set_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// latencies are recorded latencies of an HTTP server, in ms, one of each repetition.
var latencies = map[string][]float64{
	"size=1K": {212.4, 209.8, 214.1, 211.7, 210.9, 213.3, 211.2, 212.8, 210.1, 213.9, 211.5, 212.1, 209.5, 212.6, 211.9, 213.0, 210.6, 211.4, 212.2, 211.0},
	"size=1M": {512, 431, 604, 388, 745, 420, 567, 391, 688, 402, 533, 610, 417, 702, 455, 399, 641, 428, 577, 493},
}

// stopWhen is a sweep of two cells, one of which is precise early.
const stopWhen = `[sweep.stop_when]
metric = "latency"
half_width = "1.5%"
min = 6
max = 20
[sweep.product]
size = ["1K", "1M"]
`

// stopDescriptor returns a descriptor with that sweep, without the parameter n.
func stopDescriptor(sweep string) string {
	return strings.Replace(descriptor(sweep), " {{n}}", "", 1)
}

// recorded returns the recorded latency of a run.
func recorded(r store.Run) float64 { return latencies[r.Cell][r.Repetition-1] }

// summariseEnded stores the summaries of the runs that have ended and have none.
func (w *fixture) summariseEnded(metric string, value func(r store.Run) float64) {
	w.t.Helper()
	for _, r := range w.runs() {
		if r.Phase != event.PhaseFinished {
			continue
		}
		all := store.Summaries{Run: r.ID, Complete: true, Summaries: []store.Summary{{Metric: metric, Unit: "ms", N: 100, Median: store.Float(value(r))}}}
		if err := store.Create(w.t.Context(), w.store, store.KindSummary, r.ID, all); err != nil && !errors.Is(err, store.ErrExists) {
			w.t.Fatal(err)
		}
	}
}

// measureToEnd is runToEnd with the summary of each run that has ended.
func (g *gateway) measureToEnd(id, metric string, value func(r store.Run) float64) set.Set {
	g.w.t.Helper()
	for range 300 {
		g.pass()
		if s := g.get(id); s.State == set.StateFinished {
			return s
		}
		g.w.finishRuns(event.Succeeded)
		g.w.summariseEnded(metric, value)
	}
	g.w.t.Fatalf("the set has not finished: %+v", g.get(id))
	return set.Set{}
}

// enough returns the number of repetitions after which the rule of stopWhen, with this max, stops.
func enough(t *testing.T, values []float64, most int) int {
	t.Helper()
	j, err := judge.New(judge.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	rule, err := j.Stopping(judge.StopWhen{HalfWidth: 0.015, Min: 6, Max: most})
	if err != nil {
		t.Fatal(err)
	}
	for n := 6; n <= most; n++ {
		if rule.Decide(values[:n]).Reason != judge.GoOn {
			return n
		}
	}
	return most
}

// repetitions returns the number of repetitions of each cell, "6 20".
func (w *fixture) repetitions() string {
	n := map[string]int{}
	for _, r := range w.runs() {
		if !r.Warmup {
			n[r.Cell]++
		}
	}
	return fmt.Sprint(n["size=1K"], n["size=1M"])
}

func TestACellStopsAtTheRepetitionAtWhichItIsPreciseEnough(t *testing.T) {
	precise := enough(t, latencies["size=1K"], 20)
	if wide := enough(t, latencies["size=1M"], 20); precise <= 6 || precise >= 20 || wide != 20 {
		t.Fatalf("the recorded data stop at %d and %d", precise, wide)
	}
	for _, order := range []string{"sequential", "interleaved"} {
		for _, parallel := range []int{0, 1, 3} {
			t.Run(fmt.Sprint(order, parallel), func(t *testing.T) {
				w := newFixture(t)
				g := w.gateway()
				s := g.put(stopDescriptor(fmt.Sprintf("warmup = 1\nmax_parallel = %d\norder = %q\n%s", parallel, order, stopWhen)))
				s = g.measureToEnd(s.ID, "latency", recorded)
				want(t, "repetitions", w.repetitions(), fmt.Sprint(precise, 20))
				want(t, "outcome", s.Outcome, event.Succeeded)
				want(t, "submitted, skipped, message", fmt.Sprint(s.Submitted(), s.Skipped, s.StopMessage), fmt.Sprint(2+precise+20, 20-precise, ""))
				cells, _, err := g.Cells(t.Context(), s, "", 10)
				if err != nil || len(cells) != 2 {
					t.Fatal(cells, err)
				}
				want(t, "skipped of cells", fmt.Sprint(cells[0].Skipped, cells[1].Skipped), fmt.Sprint(20-precise, 0))
				results, _, err := g.Results(t.Context(), s, "", 10, nil)
				if err != nil || len(results) != 2 {
					t.Fatal(results, err)
				}
				want(t, "skipped of results", fmt.Sprint(results[0].Skipped, results[1].Skipped), fmt.Sprint(20-precise, 0))
			})
		}
	}
}

func TestACellWaitsForASummaryWhileOthersGoOn(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(stopDescriptor("order = \"interleaved\"\n" + stopWhen))
	g.pass()
	want(t, "repetitions without a decision", w.repetitions(), "6 6")
	w.finishRuns(event.Succeeded)
	w.summariseEnded("latency", recorded)
	for range 3 {
		g.pass()
	}
	want(t, "repetitions after a decision", w.repetitions(), "7 7")
	for _, r := range w.active() {
		w.finish(r, event.Succeeded)
		if r.Cell == "size=1K" {
			w.collects(r) // its summary may come
		}
	}
	for range 3 {
		g.pass()
	}
	want(t, "repetitions while a summary is awaited", w.repetitions(), "7 8")
	w.wait(15 * time.Minute)
	g.pass()
	want(t, "repetitions after the wait", w.repetitions(), "8 8")
	want(t, "state", g.get(s.ID).State, set.StateRunning)
}

// collects gives a run a collector, whose data never come.
func (w *fixture) collects(r store.Run) {
	w.t.Helper()
	run, err := w.store.Run(w.t.Context(), r.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	run.Collectors = []string{"pod"}
	run.Revision++
	if err := w.store.PutRun(w.t.Context(), run, store.Change{Run: run.ID, Revision: run.Revision, Event: "collector " + run.ID}); err != nil {
		w.t.Fatal(err)
	}
}

func TestACellWithoutTheMetricGoesOnToMaxAndTheSetSaysWhy(t *testing.T) {
	for metric, message := range map[string]string{
		"other": `metric "latency" of stop_when has no values in cell size=1K: its repetitions go on to 20`,
	} {
		w := newFixture(t)
		g := w.gateway()
		s := g.put(stopDescriptor(stopWhen))
		s = g.measureToEnd(s.ID, metric, recorded)
		want(t, "repetitions", w.repetitions(), "20 20")
		want(t, "message", s.StopMessage, message)
		want(t, "skipped", s.Skipped, 0)
	}
}

func TestACanceledSetWithStopWhenIsResumed(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(stopDescriptor("order = \"interleaved\"\n" + stopWhen))
	g.pass()
	if _, err := g.Cancel(t.Context(), "ann", s.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	g.runToEnd(s.ID)
	if _, err := g.Resume(t.Context(), "ann", s.ID); err != nil {
		t.Fatal(err)
	}
	s = g.measureToEnd(s.ID, "latency", recorded)
	want(t, "canceled and skipped", fmt.Sprint(s.Counts.Canceled, s.Submitted()+s.Skipped), "12 40")
}

func TestARepetitionThatWasWithdrawnIsMadeBeforeItsCellIsJudged(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(stopDescriptor("max_parallel = 1\n" + stopWhen))
	resumes := 0
	for again := false; s.State != set.StateFinished; s = g.get(s.ID) {
		w.wait(2 * time.Second)
		if _, err := g.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s = g.get(s.ID); len(s.Active) > 0 && len(s.ActiveRuns()) == 0 && !again {
			_, err := g.Cancel(t.Context(), "ann", s.ID, "ann")
			g.pass()
			_, resumeErr := g.Resume(t.Context(), "ann", s.ID)
			want(t, "errors", fmt.Sprint(err, resumeErr), "<nil> <nil>")
			resumes, again = resumes+1, true
			continue
		}
		again = again && len(s.ActiveRuns()) == 0
		w.finishRuns(event.Succeeded)
		w.summariseEnded("latency", recorded)
	}
	precise := enough(t, latencies["size=1K"], 20)
	want(t, "repetitions", w.repetitions(), fmt.Sprint(precise, 20))
	want(t, "resumes", fmt.Sprint(s.Resumes, s.Counts.Canceled), fmt.Sprint(resumes, 0))
	if resumes < 20 {
		t.Errorf("%d resumes", resumes)
	}
}

// A gateway crashes before or after each of its effects, and another gateway continues.
func TestACellStopsAtTheSameRepetitionWhereverAGatewayDies(t *testing.T) {
	const most = 8 // each repetition is some effects more, at each of which a gateway dies
	precise := enough(t, latencies["size=1K"], most)
	if precise == most {
		t.Fatal("no cell stops early")
	}
	for p := range crashtest.Points() {
		w := newFixture(t)
		dying := w.crashingGateway(p)
		text := []byte(stopDescriptor("order = \"interleaved\"\nmax_parallel = 3\n" + strings.Replace(stopWhen, "max = 20", fmt.Sprintf("max = %d", most), 1)))
		_, _, _ = dying.submit(submit.Request{Key: "k", Descriptor: text}) // the gateway may crash
		for range 60 {
			if p.Dead() {
				break
			}
			w.wait(2 * time.Second)
			for more := true; more && !p.Dead(); {
				more, _ = dying.Reconcile(t.Context())
			}
			w.finishRuns(event.Succeeded)
			w.summariseEnded("latency", recorded)
		}
		w.wait(20 * time.Second) // the lease ends
		second := w.gateway()
		s, _, err := second.submit(submit.Request{Key: "k", Descriptor: text})
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		s = second.measureToEnd(s.ID, "latency", recorded)
		want(t, p.String(), w.repetitions(), fmt.Sprint(precise, most))
		want(t, p.String(), s.Skipped, most-precise)
		places := strings.Split(w.places(), "\n")
		want(t, p.String(), len(slices.Compact(slices.Clone(places))), len(places))
	}
}
