package analyst

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// Limits of what a decision looks at.
const (
	maxRuns   = 100  // of the task, the newest, those that confirm incidents included
	seriesOf  = 200  // series that are listed at once
	maxSeries = 2000 // of one metric of a task
	maxNewest = 20   // of these, whose points are read for the newest value: that of the newest point may be none
)

// input returns what a rule needs to be applied to a series.
func (a *analysis) input(ctx context.Context, t target, had []versioned) (in rule.Input, err error) {
	in = rule.Input{
		Rule: t.rule, Series: t.series, Acks: make(map[string]incident.Ack),
		Confirmations: make(map[string]incident.Confirmation), Removed: t.removed, Now: a.now().UTC(),
	}
	for _, i := range had {
		in.Incidents = append(in.Incidents, i.Incident)
		if err := a.statements(ctx, i.Incident, &in); err != nil {
			return in, err
		}
	}
	switch t.rule.When {
	case incident.Failed:
		runs, err := a.taskRuns(ctx)
		in.Runs = endings(runs)
		return in, err
	case incident.Missing:
		return in, a.gatherMissing(ctx, t, &in)
	case incident.Beyond:
		if in.Baseline, err = a.baseline(ctx, t); err != nil {
			return in, err
		}
	case incident.Regression, incident.Change, incident.Above, incident.Below:
	}
	in.Points, err = a.pointsOf(ctx, t.series)
	return in, err
}

// statements adds what a user and what runs say of an incident. Runs are asked for if a kill came before that.
func (a *analysis) statements(ctx context.Context, i incident.Incident, in *rule.Input) error {
	if i.State.Over() {
		return nil
	}
	ack, _, found, err := store.Find[incident.Ack](ctx, a.store, store.KindAck, documentKey(a.namespace, i.ID))
	if err != nil {
		return err
	}
	if found {
		in.Acks[i.ID] = ack
	}
	if !confirming(i) {
		return nil
	}
	if err := a.request(ctx, i); err != nil {
		return err
	}
	c, found, err := a.evidence(ctx, i)
	if found {
		in.Confirmations[i.ID] = c
	}
	return err
}

// pointsOf returns the newest points of a series, the oldest first, which nobody changes. It keeps those of one series.
func (a *analysis) pointsOf(ctx context.Context, k store.SeriesKey) ([]store.Point, error) {
	id := k.ID()
	if a.points.id == id {
		return a.points.all, nil
	}
	all, err := a.store.Points(ctx, store.PointQuery{Series: k}, rule.MaxPoints)
	if err != nil {
		return nil, fmt.Errorf("read the points of metric %q: %w", k.Metric, err)
	}
	slices.Reverse(all)
	a.points = seriesPoints{id, withPoint(all, a.fresh, k)}
	return a.points.all, nil
}

// taskRuns returns the newest runs of the task, the newest first. It reads them once. A list may be older than the end of a run: runs
// that have not ended in it are read one by one.
func (a *analysis) taskRuns(ctx context.Context) ([]store.Run, error) {
	if a.listed {
		return a.runs, nil
	}
	runs, _, err := a.store.Runs(ctx, store.RunFilter{Namespace: a.namespace, Labels: map[string]string{store.LabelTask: a.task}}, "",
		maxRuns)
	if err != nil {
		return nil, fmt.Errorf("list runs of task %q: %w", a.task, err)
	}
	for i, r := range runs {
		if r.Phase == event.PhaseFinished {
			continue
		}
		now, found, err := a.runOf(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		if found {
			runs[i] = now
		}
	}
	if runs, err = a.withoutImports(ctx, withRun(runs, a.freshRun)); err != nil {
		return nil, err
	}
	a.runs, a.listed = slices.DeleteFunc(runs, points.OutsideHistory), true
	return a.runs, nil
}

// withoutImports returns runs without those that came from another platform and are no part of the history.
func (a *analysis) withoutImports(ctx context.Context, runs []store.Run) ([]store.Run, error) {
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.ID
	}
	if len(ids) == 0 {
		return runs, nil
	}
	all, err := a.store.RunPoints(ctx, ids, []string{points.DurationMetric})
	if err != nil {
		return nil, fmt.Errorf("read which runs of task %q are imports: %w", a.task, err)
	}
	imports := make(map[string]bool)
	for _, p := range all {
		imports[p.Run] = p.Excluded == store.ExcludedImport
	}
	return slices.DeleteFunc(runs, func(r store.Run) bool { return imports[r.ID] }), nil
}

// newestScheduled returns the index of the newest run that a schedule of this platform has made, or -1.
func (a *analysis) newestScheduled(ctx context.Context, runs []store.Run) (int, error) {
	for i, r := range runs {
		if r.Schedule == "" {
			continue
		}
		_, err := a.store.Doc(ctx, store.KindImport, r.ID)
		if errors.Is(err, store.ErrNotFound) {
			return i, nil
		}
		if err != nil {
			return -1, fmt.Errorf("look whether run %s is an import: %w", r.ID, err)
		}
	}
	return -1, nil
}

// runOf returns a run; found is false if it does not exist, or not yet.
func (a *analyst) runOf(ctx context.Context, id string) (r store.Run, found bool, err error) {
	r, err = a.store.Run(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return r, false, nil
	case err != nil:
		return r, false, fmt.Errorf("read run %s: %w", id, err)
	}
	return r, true, nil
}

// gatherMissing adds what a rule about missing values needs.
func (a *analysis) gatherMissing(ctx context.Context, t target, in *rule.Input) error {
	newest, err := a.newestPoint(ctx, t)
	if err != nil {
		return err
	}
	after := t.rule.Since
	if newest != nil {
		in.Points, after = []store.Point{*newest}, newest.Time
	}
	runs, err := a.taskRuns(ctx)
	if err != nil {
		return err
	}
	at, err := a.newestScheduled(ctx, runs)
	if err != nil {
		return err
	}
	if at < 0 || at > 0 && t.rule.Within > 0 {
		return nil // no schedule makes the values
	}
	return a.expect(ctx, runs, runs[at].Schedule, after, t.without, in)
}

// expect adds when the schedule of a task makes the next value.
func (a *analysis) expect(ctx context.Context, runs []store.Run, id string, after, without time.Time, in *rule.Input) error {
	s, _, found, err := store.Find[firings](ctx, a.store, store.KindSchedule, id)
	if err != nil {
		return fmt.Errorf("read schedule %s: %w", id, err)
	}
	if in.Paused = !found || s.Paused; in.Paused {
		return nil
	}
	in.Resumed = s.Updated // any change begins anew
	at, err := s.next(latest(after, s.Updated))
	if err != nil {
		in.Paused = true // it fires never
		return nil       //nolint:nilerr // the schedule is the gateway's, which has accepted it
	}
	if at.IsZero() {
		in.Paused = true
		return nil
	}
	in.Expected = at.Add(s.allowance(slices.DeleteFunc(slices.Clone(runs),
		func(r store.Run) bool { return r.Phase != event.PhaseFinished })))
	if without.After(latest(after, s.Updated)) { // the run of that firing has brought none
		in.Expected = without
	}
	return nil
}

// newestPoint returns the newest point with a value of all series of a metric; nil if there is none.
func (a *analysis) newestPoint(ctx context.Context, t target) (*store.Point, error) {
	all, err := a.newestSeries(ctx, t)
	if err != nil {
		return nil, err
	}
	newest := a.freshPoint(t)
	for _, s := range all[:min(len(all), maxNewest)] {
		if newest != nil && !s.Newest.After(newest.Time) {
			break
		}
		p, err := a.newestValue(ctx, t, s.SeriesKey)
		if err != nil {
			return nil, err
		}
		if p != nil && (newest == nil || p.Time.After(newest.Time)) {
			newest = p
		}
	}
	return newest, nil
}

// newestValue returns the newest point with a value of a series, which is the newest one of all but rarely; nil if there is none.
func (a *analysis) newestValue(ctx context.Context, t target, k store.SeriesKey) (*store.Point, error) {
	for _, limit := range []int{1, rule.MaxPoints} {
		all, err := a.store.Points(ctx, store.PointQuery{Series: k}, limit)
		if err != nil {
			return nil, fmt.Errorf("read the newest points of metric %q: %w", k.Metric, err)
		}
		for i := range all {
			if rule.HasValue(all[i].Summary, t.rule.Statistic) {
				return &all[i], nil
			}
		}
		if len(all) < limit {
			break
		}
	}
	return nil, nil //nolint:nilnil // no point, as newestPoint has it
}

// newestSeries returns the series of a metric, those with the newest points first.
func (a *analysis) newestSeries(ctx context.Context, t target) (all []store.Series, err error) {
	cursor := ""
	for range maxSeries / seriesOf {
		page, next, err := a.store.Series(ctx, store.SeriesQuery{Namespace: a.namespace, Task: a.task, MetricPrefix: t.rule.Metric}, cursor,
			seriesOf)
		if err != nil {
			return nil, fmt.Errorf("list series of metric %q: %w", t.rule.Metric, err)
		}
		all = append(all, slices.DeleteFunc(page, func(s store.Series) bool { return !rule.Watches(t.rule, s.SeriesKey) })...)
		if cursor = next; next == "" {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b store.Series) int { return b.Newest.Compare(a.Newest) })
	return all, nil
}

// freshPoint returns the point of the run that the analysis is about, if it has one with a value that a rule watches.
func (a *analysis) freshPoint(t target) *store.Point {
	if a.fresh == nil || a.fresh.Excluded != "" {
		return nil
	}
	for _, s := range a.fresh.Points {
		if rule.Watches(t.rule, a.fresh.Key(s)) && rule.HasValue(s, t.rule.Statistic) {
			return &store.Point{PointRun: a.fresh.PointRun, Summary: s}
		}
	}
	return nil
}

// baselineRuns is what the analyst reads of a document of KindBaseline.
type baselineRuns struct {
	Revisions []struct {
		Runs []string `json:"runs"`
	} `json:"revisions"` // the newest first
}

// baseline returns the points of the runs of a rule's baseline in a series; none if there is no such baseline.
func (a *analysis) baseline(ctx context.Context, t target) ([]store.Point, error) {
	b, _, err := store.Get[baselineRuns](ctx, a.store, store.KindBaseline, documentKey(a.namespace, t.rule.Baseline))
	if errors.Is(err, store.ErrNotFound) || err == nil && len(b.Revisions) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read baseline %q: %w", t.rule.Baseline, err)
	}
	runs := b.Revisions[0].Runs
	all, err := a.store.RunPoints(ctx, runs[max(0, len(runs)-store.MaxPointRuns):], []string{t.series.Metric})
	if err != nil {
		return nil, fmt.Errorf("read the points of baseline %q: %w", t.rule.Baseline, err)
	}
	return inSeries(all, t.series), nil
}

// inSeries returns the points of runs that are those of a series but for their task and cell: a baseline may be of another one.
func inSeries(all []store.RunPoints, k store.SeriesKey) (in []store.Point) {
	for _, p := range all {
		for _, s := range p.Points {
			of := p.Key(s)
			of.Task, of.Cell = k.Task, k.Cell
			if p.Excluded == "" && of.ID() == k.ID() {
				in = append(in, store.Point{PointRun: p.PointRun, Summary: s})
			}
		}
	}
	return in
}

// oldest returns the time of the oldest point or run that a decision looked at.
func oldest(in rule.Input) time.Time {
	switch {
	case len(in.Points) > 0:
		return in.Points[0].Time
	case len(in.Runs) > 0:
		return in.Runs[0].Time
	}
	return time.Time{}
}
