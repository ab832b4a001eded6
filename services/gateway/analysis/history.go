package analysis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// Limits of a history.
const (
	defaultPoints = 200
	maxPoints     = 1000
)

// HistoryRequest selects the series of a task.
type HistoryRequest struct {
	Task         string
	Namespace    string
	Metrics      []string // names; none means all
	Since, Until time.Time
	Limit        int // newest runs; 0 means 200
	Labels       map[string]string

	cells []string // names; none means all
}

// History returns the series of a task. The error is *OperandError for a request that cannot
// be answered, or *MissingError if the task has no runs.
func (a *Analyses) History(ctx context.Context, req HistoryRequest) (History, error) {
	if req.Task == "" {
		return History{}, &OperandError{Field: "task", Message: "is empty", Remedy: "give the task_name of a descriptor"}
	}
	if req.Limit < 0 || req.Limit > maxPoints {
		return History{}, &OperandError{
			Field: "limit", Message: fmt.Sprintf("is %d", req.Limit),
			Remedy: fmt.Sprintf("give 1 to %d", maxPoints),
		}
	}
	if req.Limit == 0 {
		req.Limit = defaultPoints
	}
	found, err := a.newest(ctx, req)
	if err != nil {
		return History{}, err
	}
	if len(found.runs) == 0 {
		return History{}, &MissingError{Message: fmt.Sprintf("task %.100q of team %s has no runs of that kind that succeeded (baictl list --label %s=%.100s)", req.Task, req.Namespace, store.LabelTask, req.Task)}
	}
	members, err := a.historyMembers(ctx, found.runs, req.Metrics)
	if err != nil {
		return History{}, err
	}
	r, err := newRules()
	if err != nil {
		return History{}, fmt.Errorf("analyse the history: %w", err)
	}
	h := r.history(members, req.Metrics)
	h.Excluded, h.Truncated = h.Excluded+found.excluded, found.more
	return h, nil
}

// newestRuns are the newest runs of a task that succeeded.
type newestRuns struct {
	runs     []store.Run // the newest first
	excluded int         // others among them
	more     bool        // there are older ones
}

// newest returns the newest runs that a request selects and that may be points. It looks at
// maxLooked runs at most.
func (a *Analyses) newest(ctx context.Context, req HistoryRequest) (found newestRuns, err error) {
	labels := map[string]string{store.LabelTask: req.Task}
	maps.Copy(labels, req.Labels)
	f := store.RunFilter{Namespace: req.Namespace, Labels: labels, Since: req.Since, Until: req.Until}
	looked := 0
	for token := ""; ; {
		var page []store.Run
		if page, token, err = a.deps.Store.Runs(ctx, f, token, pageRuns); err != nil {
			return newestRuns{}, fmt.Errorf("list the runs of task %.100q: %w", req.Task, err)
		}
		looked += len(page)
		if found.add(page, req); found.more {
			return found, nil
		}
		if found.more = token != "" && looked >= maxLooked; found.more || token == "" {
			return found, nil
		}
	}
}

// maxLooked is how many runs are looked at for a history.
const maxLooked = 10_000

// add adds the runs of a page that may be points, up to the limit of the request.
func (n *newestRuns) add(page []store.Run, req HistoryRequest) {
	for _, r := range page {
		switch {
		case points.OutsideHistory(r), len(req.cells) > 0 && !slices.Contains(req.cells, r.Cell):
		case exclusion(r) != "":
			n.excluded++
		case len(n.runs) == req.Limit:
			n.more = true
			return
		default:
			n.runs = append(n.runs, r)
		}
	}
}
