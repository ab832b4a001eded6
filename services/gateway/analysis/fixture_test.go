package analysis_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/points"
)

// bothWays runs a test with points in the store, and with those of runs from before the store had points.
func bothWays(t *testing.T, test func(t *testing.T, w *fixture)) {
	t.Helper()
	for name, upgraded := range map[string]bool{"from points": false, "from summaries": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.upgraded = upgraded
			test(t, w)
		})
	}
}

// start is the time of the first run; runs are submitted one a day.
func start() time.Time { return time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC) }

// fixture is a store with runs of task rates.
type fixture struct {
	*analysis.Analyses

	t        *testing.T
	store    *countingStore
	runs     int
	names    map[string]string // of runs → IDs
	sets     map[string]string // names → IDs
	upgraded bool              // the points of runs are not stored yet
}

// countingStore is a store that counts how often it is read.
type countingStore struct {
	*storetest.Memory

	reads atomic.Int64
}

func (s *countingStore) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	s.reads.Add(1)
	return s.Memory.Doc(ctx, kind, key)
}

func (s *countingStore) Runs(ctx context.Context, f store.RunFilter, token string, limit int) ([]store.Run, string, error) {
	s.reads.Add(1)
	return s.Memory.Runs(ctx, f, token, limit)
}

func (s *countingStore) RunPoints(ctx context.Context, runs, metrics []string) ([]store.RunPoints, error) {
	s.reads.Add(1)
	return s.Memory.RunPoints(ctx, runs, metrics)
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, store: &countingStore{Memory: storetest.NewMemory()}, names: map[string]string{}, sets: map[string]string{}}
	w.Analyses = analysis.New(analysis.Deps{
		Store: w.store, Sets: w, Now: func() time.Time { return start().AddDate(0, 0, 100) },
		RunByName: func(_ context.Context, _, name string) (string, error) {
			if id, ok := w.names[name]; ok {
				return id, nil
			}
			return "", store.ErrNotFound
		},
	})
	return w
}

// Find implements analysis.Sets.
func (w *fixture) Find(_ context.Context, owner, ref string) (set.Set, error) {
	if id, ok := w.sets[ref]; ok {
		return set.Set{ID: id}, nil
	}
	return set.Set{}, &set.MissingError{Ref: ref, Owner: owner}
}

// spec is a run to store.
type spec struct {
	name      string
	values    []float64 // of rate, one for each label set i=0, 1, …; one has no label
	unit      string
	cell      string
	set       string
	machine   string // model of its processor
	image     string
	labels    map[string]string
	direction string
	costs     float64 // USD; 0 is unknown
	change    func(*store.Run)
	summaries func(*store.Summaries) // changes those of values

	unsummarised bool
	incomplete   bool
}

// add stores a run.
func (w *fixture) add(s spec) {
	w.t.Helper()
	w.runs++
	id := fmt.Sprintf("01k8h4fzqh3v7x9y2m5n8p%04d", w.runs)
	run, change := storetest.NewRun(id, start().AddDate(0, 0, w.runs-1))
	run.Namespace, run.Labels = "default", map[string]string{store.LabelTask: "rates"}
	maps.Copy(run.Labels, s.labels)
	run.Phase, run.Outcome, run.Attempt, run.Set, run.Cell, run.Repetition = event.PhaseFinished, event.Succeeded, 1, s.set, s.cell, w.runs
	run.Descriptor = descriptor(s.image)
	if s.change != nil {
		s.change(&run)
	}
	if err := w.store.PutRun(w.t.Context(), run, change); err != nil {
		w.t.Fatal(err)
	}
	if s.name != "" {
		w.names[s.name] = id
	}
	if s.set != "" {
		w.sets[s.set] = s.set
	}
	w.addResults(run, s)
}

// descriptor returns a descriptor that runs an image.
func descriptor(image string) string {
	return `spec_version = "0.1.0"
info = { description = "rates" }
hardware = { instance_type = "t3.small" }
ml = { benchmark_code = "echo 1" }
env = { docker_image = "` + cmp.Or(image, "alpine") + `" }
`
}

// addResults stores the summary, the environment and the points of a run.
func (w *fixture) addResults(run store.Run, s spec) {
	w.t.Helper()
	id := run.ID
	all := store.Summaries{Run: id, Attempt: 1, Complete: !s.incomplete}
	for i, v := range s.values {
		one := store.Summary{Metric: "rate", Unit: s.unit, N: 50, Median: store.Float(v), Direction: s.direction}
		if len(s.values) > 1 {
			one.Labels = map[string]string{"i": fmt.Sprint(i)}
		}
		all.Summaries = append(all.Summaries, one)
	}
	if s.costs > 0 {
		all.Summaries = append(all.Summaries, store.Summary{Metric: "cost.amount", Unit: "USD", Median: store.Float(s.costs), Direction: event.Lower})
	}
	if s.summaries != nil {
		s.summaries(&all)
	}
	var err error
	if !s.unsummarised {
		err = store.Create(w.t.Context(), w.store, store.KindSummary, id, all)
	}
	results := points.Results{Summaries: &all, Revision: 1}
	if s.machine != "" {
		results.Environment = []store.PodEnvironment{{
			Origin:      storetest.NewOrigin(id, "p"),
			Environment: event.Environment{Platform: "v1", Machine: event.Machine{Node: "node-a", CPUModel: s.machine, CPUs: 8, Memory: 32 << 30}},
		}}
		err = errors.Join(err, store.Create(w.t.Context(), w.store, store.KindEnvironment, id, store.RunEnvironment{Pods: results.Environment}))
	}
	if !s.unsummarised && !w.upgraded && run.Outcome != "" {
		err = errors.Join(err, w.store.PutPoints(w.t.Context(), points.Of(run, results)))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// addAll stores a run for each value, named by a prefix and its number from 1.
func (w *fixture) addAll(prefix string, values []float64, s spec) {
	w.t.Helper()
	for i, v := range values {
		s.name, s.values = fmt.Sprintf("%s%d", prefix, i+1), []float64{v}
		w.add(s)
	}
}

// around returns n values whose median is about a level, and which vary by a few tenths of a
// percent.
func around(level float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = level * (1 + 0.001*float64(i*7%5-2))
	}
	return values
}
