package analysis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Limits of a history.
const (
	defaultPoints = 200
	maxPoints     = 1000
)

// HistoryRequest selects the series of a task.
type HistoryRequest struct {
	Task         string
	Namespace    string   // empty means "default"
	Metrics      []string // names; none means all
	Since, Until time.Time
	Limit        int // newest runs; 0 means 200
	Labels       map[string]string
}

// History returns the series of a task. The error is *OperandError for a request that cannot
// be answered, or *MissingError if the task has no runs.
func (a *Analyses) History(ctx context.Context, req HistoryRequest) (History, error) {
	if req.Task == "" {
		return History{}, &OperandError{Field: "task", Message: "is empty", Remedy: "give the task_name of a descriptor"}
	}
	if req.Limit < 0 || req.Limit > maxPoints {
		return History{}, &OperandError{Field: "limit", Message: fmt.Sprintf("is %d", req.Limit), Remedy: fmt.Sprintf("give 1 to %d", maxPoints)}
	}
	if req.Limit == 0 {
		req.Limit = defaultPoints
	}
	runs, truncated, err := a.newest(ctx, req)
	if err != nil {
		return History{}, err
	}
	if len(runs) == 0 {
		return History{}, &MissingError{Message: fmt.Sprintf("task %.100q of team %s has no runs of that kind (baictl list --label %s=%.100s)", req.Task, Scope{Namespace: req.Namespace}.namespace(), store.LabelTask, req.Task)}
	}
	members, err := a.members(ctx, runs)
	if err != nil {
		return History{}, err
	}
	r, err := newRules()
	if err != nil {
		return History{}, fmt.Errorf("analyse the history: %w", err)
	}
	h := r.history(members, req.Metrics)
	h.Truncated = truncated
	return h, nil
}

// newest returns the newest runs that a request selects, and whether there are more.
func (a *Analyses) newest(ctx context.Context, req HistoryRequest) (runs []store.Run, more bool, err error) {
	labels := map[string]string{store.LabelTask: req.Task}
	maps.Copy(labels, req.Labels)
	f := store.RunFilter{Namespace: Scope{Namespace: req.Namespace}.namespace(), Labels: labels, Since: req.Since, Until: req.Until}
	for token := ""; ; {
		var page []store.Run
		if page, token, err = a.deps.Store.Runs(ctx, f, token, min(pageRuns, req.Limit)); err != nil {
			return nil, false, fmt.Errorf("list the runs of task %.100q: %w", req.Task, err)
		}
		page = slices.DeleteFunc(page, confirms)
		if runs = append(runs, page...); len(runs) >= req.Limit {
			return runs[:req.Limit], token != "" || len(runs) > req.Limit, nil
		}
		if token == "" {
			return runs, false, nil
		}
	}
}
