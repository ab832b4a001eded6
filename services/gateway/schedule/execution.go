package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Execution is what a firing makes: a run, or a set of runs if the descriptor has a sweep.
// The zero value is neither.
type Execution struct {
	Run string `json:"run,omitempty"`
	Set string `json:"set,omitempty"`
}

// id returns the ID of the run or the set.
func (w Execution) id() string { return cmp.Or(w.Run, w.Set) }

// noun returns "run" or "set".
func (w Execution) noun() string {
	if w.Set != "" {
		return "set"
	}
	return "run"
}

// String returns the noun and the ID.
func (w Execution) String() string { return w.noun() + " " + w.id() }

// setGrace is the time for which a setLog keeps a set that is not made yet; longer than
// any request takes.
const setGrace = time.Minute

// setLog has the sets of a schedule: those that have not finished since they were made,
// and the last ones. It is a document of KindFirings beside the firingLog. An ID is
// written before its set is made, so that no set is overlooked. A set that left the log
// and was resumed is in the list of unfinished sets alone.
type setLog struct {
	Sets []setEntry `json:"sets"`
}

type setEntry struct {
	Set       string    `json:"set"`
	Time      time.Time `json:"time"`                // firing time
	Added     time.Time `json:"added"`               // when the entry was written
	Triggered bool      `json:"triggered,omitempty"` // a user triggered the set
}

func setsKey(id string) string { return id + "!sets" }

// makeExecution makes the run or the set of a firing, and reports whether the firing had
// one before: under one key it is one run or one set, even if the descriptor has changed
// in between. The error is that of submit.Submitter.Submit or set.Sets.Put.
func (r runs) makeExecution(ctx context.Context, s Schedule, req submit.Request, triggered bool) (w Execution, repeated bool, err error) {
	id := set.FiringID(s.ID, req.Key)
	if _, found, err := r.findSet(ctx, id); err != nil || found {
		return Execution{Set: id}, true, err
	}
	acc, err := r.submitter.Submit(ctx, req)
	asked := new(submit.SetError)
	if !errors.As(err, &asked) {
		return Execution{Run: acc.Run}, acc.Repeated, err
	}
	entry := setEntry{Set: id, Time: req.Firing.Time, Added: r.now().UTC().Round(0), Triggered: triggered}
	if err := r.recordSet(ctx, s, entry); err != nil {
		return Execution{}, false, err
	}
	_, repeated, err = r.sets.Put(ctx, req, asked)
	return Execution{Set: id}, repeated, err
}

// executionOf returns the run or the set that a schedule has made under a key, and reports
// whether there is one.
func (r runs) executionOf(ctx context.Context, id, key string) (w Execution, found bool, err error) {
	run, err := r.submitter.RunOfFiring(ctx, id, key)
	if err == nil {
		return Execution{Run: run}, true, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return Execution{}, false, err
	}
	w = Execution{Set: set.FiringID(id, key)}
	_, found, err = r.findSet(ctx, w.Set)
	return w, found, err
}

// findSet returns the set with that ID, and reports whether there is one.
func (r runs) findSet(ctx context.Context, id string) (s set.Set, found bool, err error) {
	s, err = r.sets.Find(ctx, "", id)
	if missing := new(set.MissingError); errors.As(err, &missing) {
		return set.Set{}, false, nil
	}
	if err != nil {
		return set.Set{}, false, fmt.Errorf("look for set %s: %w", id, err)
	}
	return s, true, nil
}

// recordSet adds a set to the log of a schedule, unless the log has it, and removes the
// oldest finished ones beyond the history limit.
func (r runs) recordSet(ctx context.Context, s Schedule, e setEntry) error {
	_, err := store.Update(ctx, r.store, store.KindFirings, setsKey(s.ID), func(l setLog, _ bool) (setLog, bool, error) {
		if slices.ContainsFunc(l.Sets, func(old setEntry) bool { return old.Set == e.Set }) {
			return l, false, nil
		}
		removable, err := r.removableSets(ctx, l, e.Added)
		return setLog{Sets: append(trimSets(l.Sets, removable, s.Rules.History), e)}, true, err
	})
	return err
}

// removableSets returns the sets of a log that have finished, or that were not made in
// time.
func (r runs) removableSets(ctx context.Context, l setLog, now time.Time) (map[string]bool, error) {
	removable := make(map[string]bool)
	for _, e := range l.Sets {
		s, found, err := r.findSet(ctx, e.Set)
		if err != nil {
			return nil, err
		}
		removable[e.Set] = s.State == set.StateFinished || !found && now.Sub(e.Added) > setGrace
	}
	return removable, nil
}

// madeSet is a set of a schedule that exists.
type madeSet struct {
	setEntry

	set set.Set
}

// setsOf returns the sets of a schedule that its log has and that exist, oldest first, and
// then those that have not finished and are not in the log.
func (r runs) setsOf(ctx context.Context, id string) (all []madeSet, err error) {
	l, _, _, err := store.Find[setLog](ctx, r.store, store.KindFirings, setsKey(id))
	if err != nil {
		return nil, err
	}
	for _, e := range l.Sets {
		s, found, err := r.findSet(ctx, e.Set)
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, madeSet{e, s})
		}
	}
	unfinished, err := r.sets.Unfinished(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, s := range unfinished {
		if !slices.ContainsFunc(l.Sets, func(e setEntry) bool { return e.Set == s.ID }) {
			all = append(all, madeSet{entryOf(s), s})
		}
	}
	return all, nil
}

// entryOf returns the entry that a set had in the log of its schedule. The ID of a set that
// a user triggered is not that of a firing.
func entryOf(s set.Set) setEntry {
	return setEntry{Set: s.ID, Time: s.Firing, Added: s.Created, Triggered: s.ID != set.FiringID(s.Schedule, firingKey(s.Firing))}
}

// addSets adds the unfinished sets to the active executions of a schedule, and marks those
// that a user triggered.
func (r runs) addSets(ctx context.Context, id string, active []activeExecution) ([]activeExecution, error) {
	sets, err := r.setsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, one := range sets {
		listed := slices.ContainsFunc(active, func(g activeExecution) bool { return g.Set == one.Set })
		if !listed && one.set.State != set.StateFinished {
			active = append(active, activeExecution{
				Execution: Execution{Set: one.Set}, Time: one.Time,
				Reported: true, Triggered: one.Triggered,
			})
		}
	}
	return active, nil
}

// phaseOfSet returns the phase that a set has as a firing.
func phaseOfSet(s set.Set) event.Phase {
	switch s.State {
	case set.StateFinished:
		return event.PhaseFinished
	case set.StateCanceling:
		return event.PhaseCanceling
	case set.StateRunning, set.StateStopping:
	}
	return event.PhaseRunning
}
