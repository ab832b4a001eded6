// Package storetest has the contract of a store as a suite that every driver passes, and opens stores for other tests.
package storetest

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// Store is every verb of a store.
type Store interface {
	docs
	runs
	data
}

// data are all verbs of the data of runs.
type data interface {
	store.Streams
	store.Points
}

// docs are all verbs of documents.
type docs interface {
	store.Docs
	store.Lister
}

// runs are all verbs of runs.
type runs interface {
	store.Runs
	store.Counter
}

// Open opens an empty store of the embedded kind, which ends with the test.
func Open(tb testing.TB) *sqlite.Store {
	tb.Helper()
	s, err := sqlite.Open(tb.Context(), filepath.Join(tb.TempDir(), "store.db"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Run checks, side by side, that the stores that open returns, each of them empty,
// fulfil the contract. It waits for writes that the contract lets a store show a
// moment later.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s Store){
		"documents": testDocs, "documents are found by kind": testLister, "documents of every kind": testKinds,
		"results": testResults, "leases": testLeases,
		"runs": testRuns, "runs are counted": testStats, "runs are found by filter": testFilters, "pages of runs": testPages,
		"points": testPoints, "points of runs": testRunPoints, "series": testSeries,
		"samples": testSamples, "lines": testLines, "streams": testStreams, "cursors": testCursors,
		"what no store keeps is refused": testRefused, "many at once": testConcurrency, "any sequence of calls has one answer": testModel,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// visibilityTimeout is how long a store may take to show a write.
const visibilityTimeout = 2 * time.Minute

// eventually checks that read returns want after a while, and once more after that.
func eventually[T any](t *testing.T, description string, want T, read func() (T, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), visibilityTimeout)
	defer cancel()
	for {
		got, err := read()
		if err != nil {
			t.Fatalf("%s: %v", description, err)
		}
		diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs(), cmp.Comparer(sameFloat))
		if diff == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s (-want +got):\n%s", description, diff)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// sameFloat reports whether two numbers have the same bits, or are both NaN.
func sameFloat(a, b store.Float) bool {
	return math.Float64bits(float64(a)) == math.Float64bits(float64(b)) || math.IsNaN(float64(a)) && math.IsNaN(float64(b))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at returns a time that has no zone and no zeros.
func at(seconds int) time.Time {
	return time.Date(2026, 3, 4, 5, 6, 0, 123456789, time.UTC).Add(time.Duration(seconds) * time.Second)
}

// NewRun returns a run that was just submitted, and its first change.
func NewRun(id string, created time.Time) (store.Run, store.Change) {
	r := store.Run{
		ID: id, Namespace: "pets", Owner: "ann", Descriptor: "spec_version = '0.1.0'\n", Phase: event.PhaseSubmitted, Attempt: 1,
		Created: created, Updated: created, Revision: 1,
	}
	return r, store.Change{
		Run: id, Revision: 1, Event: id + "-1", Topic: event.TopicSubmitted, Time: created,
		Attempt: 1, Phase: event.PhaseSubmitted,
	}
}

// NewOrigin returns the output of a pod of a run's first attempt.
func NewOrigin(run, pod string) store.Origin {
	return store.Origin{
		Run: run, Attempt: 1,
		Stream: event.Stream{Role: "benchmark", Pod: pod, Container: "benchmark", Kind: event.StreamOutput},
	}
}

// NewSample returns a sample.
func NewSample(seq int64, name string, value float64) event.Sample {
	s := event.Sample{Seq: seq, Name: name, Time: at(0).UnixNano() + seq}
	s.Set(value)
	return s
}

// NewLine returns a line.
func NewLine(seq int64, text string) event.Line {
	return event.Line{Seq: seq, Text: text, Time: at(0).UnixNano() + seq}
}
