// Package flow_test runs all services on an in-memory bus that delivers every event
// twice, and compares README.md's table with the topics that they consume and publish.
package flow_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestEachRunEndsOnceAndAsItsStorySays(t *testing.T) {
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			runScenario(t, func(w *fixture) {
				run := s.play(w)
				w.awaitQuiescence()
				if diff := cmp.Diff(s.want, w.ending(run)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				w.wantOneEndEach()
				if left := w.cluster.Objects(); len(left) != 0 {
					t.Errorf("left in the cluster: %v", left)
				}
			})
		})
	}
}

func TestWhatABenchmarkWroteIsInTheStoreOnce(t *testing.T) {
	runScenario(t, func(w *fixture) {
		run := succeeds(w)
		w.awaitQuiescence()
		var lines, samples []string
		for _, l := range w.lines(run) {
			lines = append(lines, l.Text)
		}
		for _, s := range w.samples(run) {
			samples = append(samples, fmt.Sprintf("%s %g", s.Name, s.Float()))
		}
		slices.Sort(samples)
		if diff := cmp.Diff([]string{"epoch 1 loss=0.5", "epoch 2 loss=0.25", "done"}, lines); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"loss 0.25", "loss 0.5", "speed 12.5"}, samples); diff != "" {
			t.Errorf("samples (-want +got):\n%s", diff)
		}
	})
}

func TestAReplayOfEverythingAfterTheEndChangesNothing(t *testing.T) {
	runScenario(t, func(w *fixture) {
		for _, s := range scenarios() {
			s.play(w)
		}
		w.awaitQuiescence()
		before, writes := w.contents(), w.cluster.writeCount()
		w.bus.TakeLines()
		w.bus.Replay()
		w.awaitQuiescence()
		if diff := cmp.Diff(before, w.contents()); diff != "" {
			t.Errorf("the store (-before +after):\n%s", diff)
		}
		if n := w.cluster.writeCount() - writes; n != 0 {
			t.Errorf("the cluster was asked for %d creations and deletions, want none", n)
		}
		if events := w.bus.TakeLines(); len(events) != 0 {
			t.Errorf("it was said anew: %q", events)
		}
		w.wantOneEndEach()
	})
}

// ending returns the final state of a run.
func (w *fixture) ending(run string) ending {
	w.t.Helper()
	r, err := w.store.Run(w.t.Context(), run)
	streams, err2 := w.store.Streams(w.t.Context(), run)
	if err := errors.Join(err, err2); err != nil {
		w.t.Fatal(err)
	}
	e := ending{Outcome: r.Outcome, Class: r.Class, Reason: r.Reason, ExitCode: -1, Attempt: r.Attempt, Data: store.Complete(r, streams)}
	if r.ExitCode != nil {
		e.ExitCode = *r.ExitCode
	}
	for _, c := range w.changes(run) {
		if n := len(e.Phases); c.Phase != event.PhaseFetching && (n == 0 || e.Phases[n-1] != c.Phase) {
			e.Phases = append(e.Phases, c.Phase)
		}
	}
	return e
}

func (w *fixture) changes(run string) []store.Change {
	w.t.Helper()
	changes, err := w.store.Changes(w.t.Context(), run, 0, maxResults)
	if err != nil {
		w.t.Fatal(err)
	}
	return changes
}

func (w *fixture) runs() []store.Run {
	w.t.Helper()
	runs, _, err := w.store.Runs(w.t.Context(), store.RunFilter{}, "", maxResults)
	if err != nil {
		w.t.Fatal(err)
	}
	return runs
}

// wantOneEndEach checks that each run has one terminal change.
func (w *fixture) wantOneEndEach() {
	w.t.Helper()
	for _, r := range w.runs() {
		ends := 0
		for _, c := range w.changes(r.ID) {
			if c.Topic == event.TopicFinished {
				ends++
			}
		}
		if ends != 1 {
			w.t.Errorf("run %s has %d ends, want 1", r.ID, ends)
		}
	}
}

// maxResults is more of anything than a scene makes.
const maxResults = 10_000

// contents is all that a store holds, but for leases, which are renewed while
// time passes.
type contents struct {
	Runs    []store.Run
	Changes map[string][]store.Change
	Samples map[string][]store.Sample
	Lines   map[string][]store.Line
	Streams map[string][]store.Stream
	Docs    map[store.Kind][]store.Doc
}

func (w *fixture) contents() contents {
	w.t.Helper()
	c := contents{
		Runs: w.runs(), Changes: make(map[string][]store.Change), Samples: make(map[string][]store.Sample),
		Lines: make(map[string][]store.Line), Streams: make(map[string][]store.Stream), Docs: make(map[store.Kind][]store.Doc),
	}
	for _, r := range c.Runs {
		c.Changes[r.ID], c.Samples[r.ID], c.Lines[r.ID] = w.changes(r.ID), w.samples(r.ID), w.lines(r.ID)
		streams, err := w.store.Streams(w.t.Context(), r.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		c.Streams[r.ID] = streams
	}
	for _, k := range []store.Kind{
		store.KindIdempotencyKey, store.KindRunName, store.KindSubmission, store.KindOutbox, store.KindCancel, store.KindOrder,
		store.KindDownload, store.KindObject, store.KindQueue, store.KindSlotTable, store.KindPlan, store.KindWatch,
	} {
		docs, err := w.store.Docs(w.t.Context(), k, "", maxResults)
		if err != nil {
			w.t.Fatal(err)
		}
		c.Docs[k] = docs
	}
	return c
}

func (w *fixture) samples(run string) []store.Sample {
	w.t.Helper()
	samples, _, err := w.store.Samples(w.t.Context(), store.SampleQuery{Run: run}, "", maxResults)
	if err != nil {
		w.t.Fatal(err)
	}
	return samples
}

func (w *fixture) lines(run string) []store.Line {
	w.t.Helper()
	lines, _, err := w.store.Lines(w.t.Context(), store.LineQuery{Run: run}, "", maxResults)
	if err != nil {
		w.t.Fatal(err)
	}
	return lines
}
