package analyst

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// analysisTime is how long after the last write of a pending incident its analysis is believed to go on.
const analysisTime = time.Minute

// taskReview is what a review finds to do for the incidents of one task. It is done at once, so that all that fire are in one notice.
type taskReview struct {
	namespace, task string

	targets []target            // of which users said something, or the time of that is over, or whose alarm is gone
	rules   *incident.RuleSet   // of the task; read if needed
	found   map[string][]string // by key of the state, the IDs of the incidents of targets: it may lack them
	pending map[string][]string // by key of the state, the writers whose analyses were not completed
	touched []versioned
}

// groupReview is what a review knows of a group.
type groupReview struct {
	namespace, id string

	versions map[string]int64 // of its incidents, by their IDs
	pending  bool             // an analysis of one of them may go on
}

// reviews are those of all tasks and groups, by their keys.
type reviews struct {
	tasks  map[string]*taskReview
	groups map[string]*groupReview

	outdated []listing
}

// listing says that an incident is open, and is to say so no longer.
type listing struct {
	doc   store.Document[openIncident]
	group *groupReview // of the incident; nil if that is not stored
}

// taskOf returns the review of an incident's task.
func (r reviews) taskOf(i incident.Incident) *taskReview {
	key := ruleSetKey(i.Rule.Namespace, i.Rule.Task)
	if r.tasks[key] == nil {
		r.tasks[key] = &taskReview{
			namespace: i.Rule.Namespace, task: i.Rule.Task, found: make(map[string][]string), pending: make(map[string][]string),
		}
	}
	return r.tasks[key]
}

// groupOf returns the review of an incident's group.
func (r reviews) groupOf(i incident.Incident) *groupReview {
	key := documentKey(i.Series.Namespace, i.Group)
	if r.groups[key] == nil {
		r.groups[key] = &groupReview{namespace: i.Series.Namespace, id: i.Group, versions: make(map[string]int64)}
	}
	return r.groups[key]
}

// review looks at the incidents that are open, or ended a short time ago: it completes what a process left when it was killed, applies what
// users said of them, ends those whose alarm is gone, decides the groups that are due, and forgets that they were open.
func (t *ticker) review(ctx context.Context) error {
	states, all := map[string]int{}, reviews{tasks: map[string]*taskReview{}, groups: map[string]*groupReview{}}
	for d, err := range store.All[openIncident](ctx, t.store, store.KindOpenIncident, "") {
		if err != nil && d.Key == "" {
			return err
		}
		i, version, found, err := store.Find[incident.Incident](ctx, t.store, store.KindIncident, d.Key)
		switch {
		case err != nil && damaged(err):
			t.log.Error("an incident cannot be read", zap.String("incident", d.Key), zap.Error(err))
			found = false
		case err != nil:
			return err
		case found:
			states[string(i.State)]++
			if err := t.reviewOne(ctx, versioned{i, version}, all); err != nil {
				return fmt.Errorf("review incident %s: %w", d.Key, err)
			}
		}
		all.noteOutdated(d, i, found, t.now())
	}
	t.meter.RecordIncidents(states)
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(all.tasks)) {
		if err := t.complete(ctx, *all.tasks[key]); err != nil {
			errs = append(errs, fmt.Errorf("review the incidents of task %q: %w", all.tasks[key].task, err))
		}
	}
	if err := errors.Join(append(errs, t.decideGroups(ctx, all.groups))...); err != nil {
		return err
	}
	return t.prune(ctx, all.outdated)
}

// reviewOne adds an incident to the reviews.
func (t *ticker) reviewOne(ctx context.Context, i versioned, all reviews) error {
	pending, err := t.reviewState(ctx, i.Incident, all.taskOf(i.Incident))
	if err != nil {
		return err
	}
	g := all.groupOf(i.Incident)
	g.versions[i.ID], g.pending = i.version, g.pending || pending
	return nil
}

// reviewState adds to a review what is to do for an incident. An analysis that may go on is left alone. Pending says that the group of the
// incident may not be decided since the incident was written.
func (t *ticker) reviewState(ctx context.Context, i incident.Incident, todo *taskReview) (pending bool, err error) {
	one := target{rule: i.Rule, series: i.Series}
	is, _, _, err := store.Find[ruleState](ctx, t.store, store.KindRuleState, one.key())
	if err != nil {
		return false, err
	}
	if is.Pending {
		had, err := t.incidentsOf(ctx, todo.namespace, is.Incidents)
		if err != nil || slices.ContainsFunc(had, func(i versioned) bool { return t.now().Sub(i.Updated) < analysisTime }) {
			return true, err
		}
		todo.pending[one.key()], todo.touched = is.Writers, append(todo.touched, had...)
	}
	if one.removed, err = t.orphaned(ctx, i, todo); err != nil {
		return is.Pending, err
	}
	due, err := t.ackDue(ctx, i)
	if due || one.removed {
		todo.targets, todo.found[one.key()] = append(todo.targets, one), append(todo.found[one.key()], i.ID)
	}
	return is.Pending, err
}

// orphaned reports whether an incident is open although its task does not have its rule any more: an analysis that had read the rules
// before has opened it since these were replaced.
func (t *ticker) orphaned(ctx context.Context, i incident.Incident, todo *taskReview) (bool, error) {
	if i.State.Over() {
		return false, nil
	}
	if todo.rules == nil {
		rules, _, _, err := store.Find[incident.RuleSet](ctx, t.store, store.KindRuleSet, ruleSetKey(todo.namespace, todo.task))
		switch {
		case err != nil && damaged(err):
			return false, nil // missing logs it
		case err != nil:
			return false, err
		}
		todo.rules = &rules
	}
	return !todo.rules.Has(i.Rule.ID), nil
}

// complete does what a review has found. A run whose analysis was not completed is looked at as a whole before any group is decided: the
// notice has all incidents of the run, not those alone that were stored before a kill.
func (t *ticker) complete(ctx context.Context, todo taskReview) error {
	var writers []string
	for _, some := range todo.pending {
		writers = union(writers, some)
	}
	for _, id := range writers {
		if id == clock {
			continue
		}
		if err := t.again(ctx, id); err != nil {
			return fmt.Errorf("analyse run %s again: %w", id, err)
		}
	}
	one := t.analysis(todo.namespace, todo.task, clock)
	one.pending, one.found = todo.pending, todo.found
	one.touch(todo.touched)
	return one.run(ctx, todo.targets)
}

// ackDue reports whether what a user said of an incident is to be applied, or the time of that is over.
func (t *ticker) ackDue(ctx context.Context, i incident.Incident) (bool, error) {
	if i.State.Over() {
		return false, nil
	}
	ack, _, found, err := store.Find[incident.Ack](ctx, t.store, store.KindAck, documentKey(i.Series.Namespace, i.ID))
	if err != nil && damaged(err) {
		t.log.Error("an acknowledgement cannot be read", zap.String("incident", i.ID), zap.Error(err))
		return false, nil
	}
	return found && acknowledgementDue(i, ack, t.now()), err
}

// decideGroups decides those of the groups that are not as their incidents are, or whose receivers are to hear of further tasks. None of
// them is left for ever by analysts that were killed, or did not see the writes of each other. A group is left alone as long as an incident
// of it is pending, or has changed since it was reviewed: an analysis may go on.
func (t *ticker) decideGroups(ctx context.Context, groups map[string]*groupReview) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := groups[key]
		if g.pending {
			continue
		}
		one := t.analysis(g.namespace, "", clock)
		one.reviewed = g.versions
		if err := one.notify(ctx, g.id, slices.Sorted(maps.Keys(g.versions))); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// noteOutdated notes a document that says that an incident is open if it is to say so no longer.
func (r *reviews) noteOutdated(d store.Document[openIncident], i incident.Incident, found bool, now time.Time) {
	switch {
	case !outdated(i, found, d.Value.Since, now):
	case found:
		r.outdated = append(r.outdated, listing{d, r.groupOf(i)})
	default:
		r.outdated = append(r.outdated, listing{doc: d})
	}
}

// prune forgets that incidents were open, some time after their ends, once their groups are decided: no later review looks at them.
func (t *ticker) prune(ctx context.Context, all []listing) error {
	for _, l := range all {
		if l.group != nil && l.group.pending {
			continue
		}
		err := t.store.DeleteDoc(ctx, store.Doc{Kind: store.KindOpenIncident, Key: l.doc.Key, Version: l.doc.Version})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}
