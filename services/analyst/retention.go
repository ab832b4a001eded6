package analyst

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/group"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// forgetEvery is how often old incidents are looked for.
const forgetEvery = 24 * time.Hour

// forget deletes the incidents that nobody looks at any more, with their groups and acknowledgements, and then the states of rules that are
// gone, once a day. A group is deleted after its members, so that a kill leaves nothing that is not found again.
func (t *ticker) forget(ctx context.Context) error {
	if t.now().Before(t.forgot.Add(forgetEvery)) {
		return nil
	}
	known, err := t.indexed(ctx)
	if err != nil {
		return err
	}
	for d, err := range store.All[group.Group](ctx, t.store, store.KindIncidentGroup, "") {
		if err != nil && d.Key == "" {
			return err
		}
		if err != nil {
			t.log.Error("a group of incidents cannot be read", zap.String("group", d.Key), zap.Error(err))
			continue
		}
		if err := t.indexGroup(ctx, d.Value, known); err != nil {
			return fmt.Errorf("list the incidents of group %s: %w", d.Key, err)
		}
		if err := t.forgetGroup(ctx, d); err != nil && !errors.Is(err, store.ErrConflict) && !damaged(err) {
			return fmt.Errorf("forget the incidents of group %s: %w", d.Key, err)
		}
	}
	if err := t.forgetStates(ctx); err != nil {
		return err
	}
	if err := t.completeIndex(ctx); err != nil {
		return err
	}
	t.forgot = t.now()
	return nil
}

// forgetStates deletes the states of rules that their tasks do not have any more, once none of their incidents is stored. Such a state says
// nothing, so that of a rule that the list of rules lacks is no loss.
func (t *ticker) forgetStates(ctx context.Context) error {
	rules := make(map[string]incident.RuleSet)
	for d, err := range store.All[incident.RuleSet](ctx, t.store, store.KindRuleSet, "") {
		if err != nil && d.Key == "" {
			return err
		}
		rules[d.Key] = d.Value
	}
	for d, err := range store.All[ruleState](ctx, t.store, store.KindRuleState, "") {
		if err != nil && d.Key == "" {
			return err
		}
		series := d.Value.Series
		if err != nil || d.Value.Pending || rules[ruleSetKey(series.Namespace, series.Task)].Has(d.Value.Rule) {
			continue
		}
		if err := t.forgetState(ctx, d); err != nil && !errors.Is(err, store.ErrConflict) && !damaged(err) {
			return fmt.Errorf("forget the state %s of a rule: %w", d.Key, err)
		}
	}
	return nil
}

// forgetState deletes a state if none of its incidents is stored.
func (t *ticker) forgetState(ctx context.Context, d store.Document[ruleState]) error {
	stored, err := t.incidentsOf(ctx, d.Value.Series.Namespace, d.Value.Incidents)
	if err != nil || len(stored) > 0 {
		return err
	}
	return t.store.DeleteDoc(ctx, store.Doc{Kind: store.KindRuleState, Key: d.Key, Version: d.Version})
}

// forgetGroup deletes a group if all of its incidents are to be forgotten.
func (t *ticker) forgetGroup(ctx context.Context, d store.Document[group.Group]) error {
	g := d.Value
	if n := len(g.Notified); n > 0 && t.now().Sub(g.Notified[n-1].At) < keepIncident {
		return nil
	}
	members, err := t.incidentsOf(ctx, g.Namespace, g.Members)
	if err != nil {
		return err
	}
	for _, i := range members {
		if used, err := t.used(ctx, i.Incident); err != nil || used {
			return err
		}
	}
	for _, i := range members {
		if err := t.forgetMember(ctx, g.Namespace, i); err != nil {
			return err
		}
	}
	return t.store.DeleteDoc(ctx, store.Doc{Kind: store.KindIncidentGroup, Key: d.Key, Version: d.Version})
}

// forgetMember deletes an incident, after all that belongs to it.
func (t *ticker) forgetMember(ctx context.Context, namespace string, i versioned) error {
	if t.records != nil {
		if err := t.records.DeleteIncident(ctx, namespace, i.ID); err != nil {
			return err
		}
	}
	key := documentKey(namespace, i.ID)
	for _, doc := range []store.Doc{
		{Kind: store.KindAck, Key: key},
		{Kind: store.KindIncidentIndex, Key: incident.IndexKey(namespace, i.Opened, i.ID)},
		{Kind: store.KindIncident, Key: key, Version: i.version},
	} {
		if err := t.store.DeleteDoc(ctx, doc); err != nil {
			return err
		}
	}
	return nil
}

// used reports whether an incident is to stay: it has not ended long ago, or its rule, which the task still has, looks at its points.
func (t *ticker) used(ctx context.Context, i incident.Incident) (bool, error) {
	if !forgettable(i, t.now()) {
		return true, nil
	}
	rules, _, _, err := store.Find[incident.RuleSet](ctx, t.store, store.KindRuleSet, ruleSetKey(i.Rule.Namespace, i.Rule.Task))
	if err != nil || !rules.Has(i.Rule.ID) {
		return false, err
	}
	state, _, _, err := store.Find[ruleState](ctx, t.store, store.KindRuleState, target{rule: i.Rule, series: i.Series}.key())
	return state.Pending || slices.Contains(state.Incidents, i.ID), err
}
