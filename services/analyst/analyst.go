package analyst

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// visibility is how long after an event the points that it is about may not be visible yet.
const visibility = time.Minute

// analyst gathers, decides and acts.
type analyst struct {
	store     Store
	records   store.IncidentIndex // nil for none
	receivers notice.Receivers
	decide    func(rule.Input) rule.Output // rule.Decide but in tests
	wake      func()                       // has the dispatcher look for new notices
	pace      *pacer
	now       func() time.Time
	log       *zap.Logger
}

func newAnalyst(d Deps) *analyst {
	if d.Receivers == nil {
		d.Receivers = func(_, _ string, names []string) []string { return names }
	}
	if d.Wake == nil {
		d.Wake = func() {}
	}
	return &analyst{
		store: d.Store, records: d.Index, receivers: d.Receivers, decide: rule.Decide, wake: d.Wake,
		pace: &pacer{share: cmp.Or(d.Share, 1)}, now: d.Now, log: d.Log,
	}
}

// summarised looks at the new points of a run.
func (a *analyst) summarised(ctx context.Context, ev event.Summarised) ([]event.Event, error) {
	if err := a.onPoints(ctx, ev); err != nil {
		return nil, fmt.Errorf("analyse run %s: %w", ev.Run, err)
	}
	return nil, nil
}

func (a *analyst) onPoints(ctx context.Context, ev event.Summarised) error {
	r, err := a.store.Run(ctx, ev.Run)
	if errors.Is(err, store.ErrNotFound) { // it was deleted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	all, err := a.store.RunPoints(ctx, []string{ev.Run}, nil)
	if err != nil {
		return err
	}
	if len(all) > 0 && all[0].Revision >= ev.Revision {
		if err := a.notifyOfEnd(ctx, r, all[0]); err != nil {
			return err
		}
		return a.onRun(ctx, r, all[0])
	}
	if age := a.now().Sub(ev.PublishedAt); age >= 0 && age < visibility {
		return errors.New("its points are not visible yet")
	}
	a.log.Warn("the points of a run are missing", zap.String("run", ev.Run), zap.Int64("revision", ev.Revision))
	return a.notifyOfEnd(ctx, r, points.Of(r, points.Results{}))
}

// finished looks at a run that failed: rules about failures need no points.
func (a *analyst) finished(ctx context.Context, ev event.Finished) ([]event.Event, error) {
	if ev.Outcome != event.Failed {
		return nil, nil
	}
	r, err := a.store.Run(ctx, ev.Run)
	switch {
	case errors.Is(err, store.ErrNotFound): // the event that its points are stored comes later
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("analyse the end of run %s: %w", ev.Run, err)
	}
	if r.Phase != event.PhaseFinished {
		r.Phase, r.Outcome, r.Message = event.PhaseFinished, ev.Outcome, ev.Message
	}
	if err := a.onRun(ctx, r, points.Of(r, points.Results{})); err != nil {
		return nil, fmt.Errorf("analyse the end of run %s: %w", ev.Run, err)
	}
	return nil, nil
}

// onRun looks at all that may follow from a run that has ended.
func (a *analyst) onRun(ctx context.Context, r store.Run, p store.RunPoints) error {
	if r.Confirms != "" {
		return a.confirmed(ctx, r)
	}
	if p.Task == "" || points.OutsideHistory(r) {
		return nil
	}
	rules, err := a.updateRules(ctx, r, p.PointRun)
	if err != nil || len(rules) == 0 {
		return err
	}
	one := a.analysis(p.Namespace, p.Task, r.ID)
	one.fresh, one.freshRun = &p, &r
	return one.run(ctx, targetsOf(rules, p, r.Schedule != ""))
}

// again looks at a run again whose analysis was not completed. A run that does not exist any more has nothing to look at.
func (a *analyst) again(ctx context.Context, id string) error {
	r, found, err := a.runOf(ctx, id)
	if err != nil || !found {
		return err
	}
	all, err := a.store.RunPoints(ctx, []string{id}, nil)
	if err != nil {
		return err
	}
	p := points.Of(r, points.Results{})
	if len(all) > 0 {
		p = all[0]
	}
	return a.onRun(ctx, r, p)
}

// updateRules returns the rules of the newest descriptor of a run's task. Incidents of rules that are gone are ended before their rules are
// forgotten.
func (a *analyst) updateRules(ctx context.Context, r store.Run, p store.PointRun) ([]incident.Rule, error) {
	key := ruleSetKey(p.Namespace, p.Task)
	is, version, found, err := store.Find[incident.RuleSet](ctx, a.store, store.KindRuleSet, key)
	if err != nil || !definesRules(p) {
		return is.Rules, err
	}
	rules := a.rulesOf(r, p)
	if !found && len(rules) == 0 {
		return nil, nil
	}
	next, removed, changed := renewed(is, r, p.Descriptor, rules)
	if !changed {
		return is.Rules, nil
	}
	for _, old := range removed {
		if err := a.end(ctx, old, r.ID); err != nil {
			return nil, err
		}
	}
	_, err = put(ctx, a.store, store.KindRuleSet, key, version, next)
	if err != nil { // that of a faster writer is read when the event comes again
		return nil, fmt.Errorf("store the rules of task %q: %w", p.Task, err)
	}
	return next.Rules, nil
}

// rulesOf returns the rules in a run's descriptor, which the gateway has accepted.
func (a *analyst) rulesOf(r store.Run, p store.PointRun) []incident.Rule {
	d, faults := parser.Parser{Accepted: true}.Parse(r.File, []byte(r.Descriptor))
	if d == nil {
		a.log.Error("the alarms of a run are unknown: its descriptor cannot be read", zap.String("run", r.ID), zap.Error(faults.Err()))
		return nil
	}
	return ofTask(rule.Of(p.Namespace, d, p.Time), p.Task)
}

// end ends the incidents of a rule that the newest descriptor of its task, that of a run, does not have.
func (a *analyst) end(ctx context.Context, r incident.Rule, run string) error {
	var targets []target
	for d, err := range store.All[ruleState](ctx, a.store, store.KindRuleState, statePrefix(r)) {
		switch {
		case err != nil && d.Key == "":
			return err
		case err != nil:
			a.log.Error("a state of a rule cannot be read", zap.Error(err))
		default:
			targets = append(targets, target{rule: r, series: d.Value.Series, removed: true})
		}
	}
	return a.analysis(r.Namespace, r.Task, run).run(ctx, targets)
}
