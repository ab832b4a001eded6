// Package analysis compares results of runs, follows them over time, and keeps
// baselines. It changes no run and no result.
//
// A side of a comparison is named by an operand: a run, a set, a baseline, or the runs
// of a task in a range of time (decide_operand.go). Its runs that count are read with
// their points (side.go, read.go); the series of both sides are
// compared by package judge/compare (decide_compare.go), and what else differs is listed
// (decide_differences.go). A history is the series of a task over time, with the changes
// that package judge/changepoint finds (decide_history.go).
//
// The points of a run are stored a short time after its end. Until then, and for runs from
// before the store had points, they are made from the summary of the run, with the same
// result. Runs and summaries do not change once they are there: a request that is repeated
// has the same answer, but for runs that were added.
package analysis

import (
	"context"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Store has runs, documents and baselines.
type Store interface {
	docs
	runReader
	pointReader
}

// docs reads and writes documents.
type docs interface {
	store.Docs
	store.Lister
}

// pointReader reads points.
type pointReader interface {
	// RunPoints does the same as that of store.PointReader.
	RunPoints(ctx context.Context, runs, metrics []string) ([]store.RunPoints, error)
}

// runReader reads runs.
type runReader interface {
	// Run and Runs do the same as those of store.Runs.
	Run(ctx context.Context, id string) (store.Run, error)
	Runs(ctx context.Context, f store.RunFilter, token string, limit int) (runs []store.Run, next string, err error)
	// Streams does the same as that of store.Ingester.
	Streams(ctx context.Context, run string) ([]store.Stream, error)
}

// Sets finds sets.
type Sets interface {
	// Find does the same as set.Sets.Find.
	Find(ctx context.Context, owner, ref string) (set.Set, error)
}

// Deps are the dependencies of Analyses.
type Deps struct {
	Store     Store
	Sets      Sets
	RunByName func(ctx context.Context, owner, name string) (run string, err error) // does the same as submit.Submitter.RunByName
	Now       func() time.Time
}

// Analyses answers requests. Several goroutines may use it.
type Analyses struct{ deps Deps }

// New returns Analyses.
func New(d Deps) *Analyses { return &Analyses{deps: d} }
