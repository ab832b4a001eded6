package analyst

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/group"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	leaseName    = "analyst/clock"
	failPause    = time.Second
	analysisTime = time.Minute // from the first incident of a run to its group: before that, the notice would have some of the incidents alone
)

// ticker looks for what no event says: values that did not come, what users said of incidents, and the end of that, and what
// runs say of incidents that they confirm.
type ticker struct {
	*analyst

	leader *control.Leader
	meter  Meter
	forgot time.Time // when old incidents were last looked for
}

func newTicker(s Settings, d Deps, a *analyst) *ticker {
	if d.Meter == nil {
		d.Meter = noMeter{}
	}
	return &ticker{analyst: a, meter: d.Meter, leader: control.NewLeader(d.Store, leaseName, rand.Text(), s.Lease, control.LeaderSettings{Now: d.Now, Log: d.Log})}
}

// loop returns the runnable of the ticker.
func (t *ticker) loop(every time.Duration, log *zap.Logger) service.Runnable {
	loop := control.NewLoop("analyst", every, log, t.tick, control.LoopSettings{
		Backoff: control.Backoff{First: failPause, Max: every},
		Failing: "missing values and acknowledgements cannot be looked for now", Working: "missing values and acknowledgements are looked for again",
	})
	return func(ctx context.Context) error {
		defer t.leader.Release(ctx)
		return loop.Run(ctx)
	}
}

// tick looks once, if no other process does.
func (t *ticker) tick(ctx context.Context) (time.Duration, error) {
	_, err := t.leader.Hold(ctx)
	if errors.Is(err, store.ErrHeld) {
		t.meter.RecordIncidents(nil)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return 0, errors.Join(t.review(ctx), t.missing(ctx), t.confirmations(ctx), t.forget(ctx))
}

// review looks at the incidents that are open, or ended a short time ago: it completes what a process left when it was killed, applies what
// users said of them, and forgets that they were open. An event would come again; what the ticker does has none.
func (t *ticker) review(ctx context.Context) error {
	states := map[string]int{}
	for d, err := range store.All[openIncident](ctx, t.store, store.KindOpenIncident, "") {
		if err != nil && d.Key == "" {
			return err
		}
		i, _, found, err := store.Find[incident.Incident](ctx, t.store, store.KindIncident, d.Key)
		switch {
		case err != nil && damaged(err):
			t.log.Error("an incident cannot be read", zap.String("incident", d.Key), zap.Error(err))
			found = false
		case err != nil:
			return err
		case found:
			states[string(i.State)]++
			if err := errors.Join(t.resume(ctx, i), t.acknowledge(ctx, i), t.updateGroup(ctx, i)); err != nil {
				return fmt.Errorf("review incident %s: %w", d.Key, err)
			}
		}
		if err := t.prune(ctx, d, i, found); err != nil {
			return err
		}
	}
	t.meter.RecordIncidents(states)
	return nil
}

// resume decides the groups of the incidents of a rule that a process has left pending.
func (t *ticker) resume(ctx context.Context, i incident.Incident) error {
	key := target{rule: i.Rule, series: i.Series}.key()
	is, _, _, err := store.Find[ruleState](ctx, t.store, store.KindRuleState, key)
	if err != nil || !is.Pending {
		return err
	}
	one := t.analysis(i.Rule.Namespace, i.Rule.Task)
	had, err := t.incidentsOf(ctx, one.namespace, is.Incidents)
	if err != nil || slices.ContainsFunc(had, func(i versioned) bool { return t.now().Sub(i.Updated) < analysisTime }) {
		return err
	}
	one.pending = []string{key}
	one.touch(had)
	return one.settle(ctx)
}

// updateGroup decides the group of an incident again when its receivers are to hear of further tasks.
func (t *ticker) updateGroup(ctx context.Context, i incident.Incident) error {
	if i.State != incident.Firing || i.Silent {
		return nil
	}
	g, _, found, err := store.Find[group.Group](ctx, t.store, store.KindIncidentGroup, documentKey(i.Series.Namespace, i.Group))
	if err != nil || !found || g.Update.IsZero() || t.now().Before(g.Update) {
		return err
	}
	return t.analysis(i.Rule.Namespace, i.Rule.Task).notify(ctx, g.ID, g.Members)
}

// missing looks at the rules about values that do not come.
func (t *ticker) missing(ctx context.Context) error {
	for d, err := range store.All[incident.RuleSet](ctx, t.store, store.KindRuleSet, "") {
		if err != nil && d.Key == "" {
			return err
		}
		if err != nil {
			t.log.Error("the rules of a task cannot be read", zap.String("task", d.Key), zap.Error(err))
			continue
		}
		var targets []target
		for _, r := range d.Value.Rules {
			if r.When == incident.Missing {
				targets = append(targets, target{rule: r, series: taskSeries(r)})
			}
		}
		if len(targets) == 0 {
			continue
		}
		if err := t.analysis(targets[0].rule.Namespace, targets[0].rule.Task).run(ctx, targets); err != nil {
			return fmt.Errorf("look for missing values of task %q: %w", d.Key, err)
		}
	}
	return nil
}

// acknowledge applies what a user said of an incident.
func (t *ticker) acknowledge(ctx context.Context, i incident.Incident) error {
	if i.State.Over() {
		return nil
	}
	ack, _, found, err := store.Find[incident.Ack](ctx, t.store, store.KindAck, documentKey(i.Series.Namespace, i.ID))
	if err != nil && damaged(err) {
		t.log.Error("an acknowledgement cannot be read", zap.String("incident", i.ID), zap.Error(err))
		return nil
	}
	if err != nil || !found || !acknowledgementDue(i, ack, t.now()) {
		return err
	}
	return t.analysis(i.Rule.Namespace, i.Rule.Task).run(ctx, []target{{rule: i.Rule, series: i.Series}})
}

// prune forgets that an incident was open, some time after its end.
func (t *ticker) prune(ctx context.Context, d store.Document[openIncident], i incident.Incident, found bool) error {
	if !outdated(i, found, d.Value.Since, t.now()) {
		return nil
	}
	err := t.store.DeleteDoc(ctx, store.Doc{Kind: store.KindOpenIncident, Key: d.Key, Version: d.Version})
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}
