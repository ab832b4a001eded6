package analysis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/analyst/judge/power"
	"github.com/benchmark-ai/bai/services/gateway/series"
)

// PowerRequest names series of a task.
type PowerRequest struct {
	Task      string
	Namespace string
	Metrics   []string // names; none means all
	Runs      []int    // numbers of runs a side; none means 3, 5, 10 and 20
	Effect    float64  // change to find the number of runs for; 0 for none
}

// Power is what runs of a task can show.
type Power struct {
	Series   []SeriesPower // by cell, metric, unit and labels
	Duration time.Duration // median of the times that the runs took; 0 where none is known
	Cost     *RunCost      // nil where it is not known
}

// SeriesPower is what runs can show in one series.
type SeriesPower struct {
	series.Series // without points

	Cell       string
	History    power.History // of the newest level
	Detectable []power.Detectable
	Needed     *power.Needed // nil without an effect
}

// maxPlans is how many numbers of runs a request has at most.
const maxPlans = 20

// Power says what runs of a task can show, by the newest level of its history. The error is
// *OperandError or *MissingError, as those of History.
func (a *Analyses) Power(ctx context.Context, req PowerRequest) (Power, error) {
	if err := req.check(); err != nil {
		return Power{}, err
	}
	planner, err := power.New(power.Settings{})
	if err != nil {
		return Power{}, fmt.Errorf("plan: %w", err)
	}
	read := slices.Clone(req.Metrics)
	if len(read) > 0 {
		read = append(read, descriptors.CostAmount)
	}
	h, err := a.History(ctx, HistoryRequest{Task: req.Task, Namespace: req.Namespace, Metrics: read})
	if err != nil {
		return Power{}, err
	}
	return planPower(planner, h, req), nil
}

// check returns an error for a request that cannot be answered.
func (r PowerRequest) check() error {
	switch {
	case len(r.Runs) > maxPlans || slices.ContainsFunc(r.Runs, func(n int) bool { return n < 1 || n > power.MaxRuns }):
		return &OperandError{
			Field: "runs", Message: fmt.Sprintf("are %v", r.Runs),
			Remedy: fmt.Sprintf("give at most %d numbers of 1 to %d", maxPlans, power.MaxRuns),
		}
	case !(r.Effect >= 0 && r.Effect < 10): // NaN, too
		return &OperandError{
			Field: "effect", Message: fmt.Sprintf("is %v", r.Effect),
			Remedy: "give at least 0, and less than 10: 0.02 is 2 %",
		}
	}
	return nil
}
