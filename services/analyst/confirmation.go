package analyst

import (
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/confirm"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// confirming reports whether runs are to say something of an incident.
func confirming(i incident.Incident) bool {
	return i.State == incident.Confirming && i.Rule.Confirm != nil && i.Confirmation != nil && i.Confirmation.Verdict == ""
}

// request has the runs of an incident made if it is confirming, and says that it needs no further ones if it is not any more. Incidents
// that share runs are added to one request.
func (a *analyst) request(ctx context.Context, i incident.Incident) error {
	if i.Confirmation == nil {
		return nil
	}
	key := confirm.Key(i.Series.Namespace, confirm.ID(i))
	_, err := store.Update(ctx, a.store, store.KindConfirmation, key, func(is confirm.Request, found bool) (confirm.Request, bool, error) {
		asks := slices.Contains(is.Incidents, i.ID)
		switch {
		case confirming(i) == asks:
			return is, false, nil
		case asks:
			return is.Without(i.ID), true, nil
		case found:
			return is.With(confirm.New(i, a.now().UTC())), true, nil
		}
		return confirm.New(i, a.now().UTC()), true, nil
	})
	if err != nil {
		return fmt.Errorf("ask for runs that confirm incident %s: %w", i.ID, err)
	}
	return nil
}

// evidence returns what the runs say of an incident that is confirming so far; found is false if none were asked for yet.
func (a *analyst) evidence(ctx context.Context, i incident.Incident) (c incident.Confirmation, found bool, err error) {
	key := confirm.Key(i.Series.Namespace, confirm.ID(i))
	r, _, found, err := store.Find[confirm.Request](ctx, a.store, store.KindConfirmation, key)
	if err != nil || !found || !slices.Contains(r.Incidents, i.ID) {
		return c, false, err
	}
	p, _, _, err := store.Find[confirm.Progress](ctx, a.store, store.KindConfirmationRuns, key)
	if err != nil {
		return c, false, err
	}
	if err := a.refresh(ctx, p); err != nil {
		return c, false, err
	}
	values, err := a.valuesOf(ctx, i, p)
	if err != nil {
		return c, false, fmt.Errorf("read the values of runs that confirm incident %s: %w", i.ID, err)
	}
	return confirm.Judge(i, r, p, values, a.now().UTC()), true, nil
}

// refresh brings the state of the last run up to date: the gateway may not have noticed its end yet.
func (a *analyst) refresh(ctx context.Context, p confirm.Progress) error {
	for n, one := range p.Runs {
		if one.State != confirm.Running {
			continue
		}
		r, found, err := a.runOf(ctx, one.Run)
		if err != nil {
			return err
		}
		if found && r.Phase == event.PhaseFinished {
			p.Runs[n].State = confirm.StateOf(r.Outcome)
		}
	}
	return nil
}

// valuesOf returns the values of the runs that have points, in the series of an incident.
func (a *analyst) valuesOf(ctx context.Context, i incident.Incident, p confirm.Progress) (map[string]float64, error) {
	var ids []string
	for _, one := range p.Runs {
		ids = append(ids, one.Run)
	}
	values := make(map[string]float64)
	if len(ids) == 0 {
		return values, nil
	}
	all, err := a.store.RunPoints(ctx, ids, nil)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if one.Complete {
			values[one.Run] = valueIn(one, i)
		}
	}
	return values, nil
}

// valueIn returns the value of a run in the series of an incident, and NaN if it has none. A run that confirms belongs to no cell.
func valueIn(p store.RunPoints, i incident.Incident) float64 {
	for _, s := range p.Points {
		k := p.Key(s)
		k.Cell = i.Series.Cell
		if k.ID() == i.Series.ID() {
			return rule.Value(s, i.Rule.Statistic)
		}
	}
	return math.NaN()
}

// confirmed looks at the incidents that a run was made for.
func (a *analyst) confirmed(ctx context.Context, r store.Run) error {
	i, _, found, err := store.Find[incident.Incident](ctx, a.store, store.KindIncident, documentKey(r.Namespace, r.Confirms))
	if err != nil || !found {
		return err
	}
	req, _, found, err := store.Find[confirm.Request](ctx, a.store, store.KindConfirmation, confirm.Key(r.Namespace, confirm.ID(i)))
	if err != nil || !found {
		return err
	}
	return a.judge(ctx, req, r.ID)
}

// judge looks at the incidents of a request, as a run has caused it, or the clock: those of which the runs say something new fire together.
func (a *analyst) judge(ctx context.Context, r confirm.Request, writer string) error {
	tasks := map[string][]target{}
	for _, id := range r.Incidents {
		i, _, found, err := store.Find[incident.Incident](ctx, a.store, store.KindIncident, documentKey(r.Namespace, id))
		newer := false
		switch {
		case err != nil:
		case found && confirming(i):
			newer, err = a.hasNewEvidence(ctx, i)
		case found: // its transition was stored, and a kill came before the request
			err = a.request(ctx, i)
		}
		if err != nil {
			return fmt.Errorf("judge incident %s by the runs that confirm it: %w", id, err)
		}
		if newer {
			tasks[i.Rule.Task] = append(tasks[i.Rule.Task], target{rule: i.Rule, series: i.Series})
		}
	}
	for _, task := range slices.Sorted(maps.Keys(tasks)) {
		if err := a.analysis(r.Namespace, task, writer).run(ctx, tasks[task]); err != nil {
			return fmt.Errorf("judge incidents of task %q by the runs that confirm them: %w", task, err)
		}
	}
	return nil
}

// hasNewEvidence reports whether the runs of an incident say something that it does not have yet.
func (a *analyst) hasNewEvidence(ctx context.Context, i incident.Incident) (bool, error) {
	c, found, err := a.evidence(ctx, i)
	return found && !reflect.DeepEqual(&c, i.Confirmation), err
}

// confirmations looks at all requests.
func (t *ticker) confirmations(ctx context.Context) error {
	for d, err := range store.All[confirm.Request](ctx, t.store, store.KindConfirmation, "") {
		if err != nil && d.Key == "" {
			return err
		}
		if err != nil {
			t.log.Error("a request for runs that confirm an incident cannot be read", zap.String("request", d.Key), zap.Error(err))
			continue
		}
		if err := t.judge(ctx, d.Value, clock); err != nil {
			return err
		}
	}
	return nil
}
