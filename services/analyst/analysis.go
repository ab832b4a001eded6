package analyst

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/group"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// maxTries is how often a decision is made again because another analyst was faster.
const maxTries = 20

// analysis looks at rules of one task, and then at the groups of the incidents that changed.
type analysis struct {
	*analyst

	namespace, task string
	writer          string           // the run that has caused it, or the clock
	fresh           *store.RunPoints // of the run that it is about; nil for none
	freshRun        *store.Run       // the same run; nil for none

	points  seriesPoints
	runs    []store.Run // the newest of the task; read if needed
	listed  bool        // runs were read
	groups  map[string][]string
	pending map[string][]string // by key of the state, the writers whose analyses this one completes
	fires   bool                // an incident begins to fire, or does and its state was pending
	found   map[string][]string // by key of the state, IDs of incidents that are stored and not in it
	open    []incident.Incident // of the namespace; read if needed
	opened  bool                // open was read

	reviewed map[string]int64 // of the clock's look at a group: the versions of its incidents by which it is decided; nil for any
}

// seriesPoints are the points of one series.
type seriesPoints struct {
	id  string
	all []store.Point // the oldest first
}

// analysis returns an analysis of a task that a run has caused, or the clock.
func (a *analyst) analysis(namespace, task, writer string) *analysis {
	return &analysis{
		analyst: a, namespace: namespace, task: task, writer: writer,
		groups: make(map[string][]string), pending: make(map[string][]string), found: make(map[string][]string),
	}
}

// run looks at targets, and notes the notices that follow. If incidents begin to fire, it looks at all targets once more before that: a run
// and its points may have become visible in between, and a notice has all incidents of a run.
func (a *analysis) run(ctx context.Context, targets []target) error {
	err := a.pass(ctx, targets)
	if err == nil && a.fires && len(targets) > 1 {
		a.points, a.runs, a.listed = seriesPoints{}, nil, false
		err = a.pass(ctx, targets)
	}
	if err != nil {
		return err
	}
	return a.settle(ctx)
}

// pass applies each rule to its series. A target that cannot be analysed stops no other.
func (a *analysis) pass(ctx context.Context, targets []target) error {
	for _, t := range targets {
		if !a.pace.wait(ctx) {
			return ctx.Err()
		}
		begin := time.Now()
		err := a.analyse(ctx, t)
		a.pace.worked(begin)
		if err != nil && (damaged(err) || errors.Is(err, store.ErrRefused)) {
			a.log.Error("a rule cannot be applied", zap.String("rule", t.rule.ID), zap.Any("series", t.series), zap.Error(err))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// analyse applies a rule to a series, again while other analysts are faster.
func (a *analysis) analyse(ctx context.Context, t target) (err error) {
	for range maxTries {
		if err = a.apply(ctx, t); err == nil || !lostRace(err) {
			return err
		}
	}
	return err
}

// apply applies a rule to a series.
func (a *analysis) apply(ctx context.Context, t target) error {
	state, version, _, err := store.Find[ruleState](ctx, a.store, store.KindRuleState, t.key())
	if err != nil {
		return err
	}
	had, err := a.incidentsOf(ctx, a.namespace, union(state.Incidents, a.found[t.key()]))
	if err != nil {
		return err
	}
	if t.removed && !slices.ContainsFunc(had, func(i versioned) bool { return !i.State.Over() }) && !state.Pending {
		return nil
	}
	in, err := a.input(ctx, t, had)
	if err != nil {
		return err
	}
	out, fault := protected(a.decide, in)
	a.fires = a.fires || state.Pending && slices.ContainsFunc(had, versioned.fires)
	if err := a.notifyOfPending(ctx, t, state, had, out.Incidents); err != nil {
		return err
	}
	next := state
	next.Rule, next.Series, next.Fault, next.Notes = t.rule.ID, t.series, fault, out.Notes
	next.Incidents = retained(state, had, out.Incidents, oldest(in))
	if len(out.Incidents) > 0 {
		next = next.written(a.writer)
	}
	if !next.equal(state) {
		a.logFault(t, state, next)
		if _, err := put(ctx, a.store, store.KindRuleState, t.key(), version, next); err != nil {
			return err
		}
	}
	if next.Pending {
		a.pending[t.key()] = append(a.pending[t.key()], a.writer)
		if t.removed { // no other analysis comes back to it
			a.pending[t.key()] = append(a.pending[t.key()], next.Writers...)
		}
		a.touch(had)
	}
	return a.write(ctx, t, had, out.Incidents)
}

// logFault logs a fault of an analysis that is not known yet.
func (a *analysis) logFault(t target, before, now ruleState) {
	if now.Fault != "" && now.Fault != before.Fault {
		a.log.Error("a series cannot be analysed", zap.String("rule", t.rule.ID), zap.Any("series", t.series),
			zap.String("fault", now.Fault))
	}
}

// protected decides, and returns a fault that it meets, also that an incident cannot be stored: one of a series stops no other.
func protected(decide func(rule.Input) rule.Output, in rule.Input) (out rule.Output, fault string) {
	defer func() {
		if p := recover(); p != nil {
			out, fault = rule.Output{}, fmt.Sprint(p)
		}
	}()
	out = decide(in)
	if _, err := json.Marshal(out.Incidents); err != nil {
		return rule.Output{}, fmt.Sprintf("its incidents cannot be stored: %v", err)
	}
	return out, ""
}

// touch has the groups of stored incidents looked at.
func (a *analysis) touch(all []versioned) {
	for _, i := range all {
		a.groups[i.Group] = append(a.groups[i.Group], i.ID)
	}
}

// notifyOfPending decides the groups of incidents that fire and will not fire any more, as they are stored, if their state is pending.
// Another analysis has stored them, and was killed, or is about to decide their groups: people hear that an incident fires although it does
// not for long.
func (a *analysis) notifyOfPending(ctx context.Context, t target, state ruleState, had []versioned, next []incident.Incident) error {
	if _, own := a.pending[t.key()]; own || !state.Pending {
		return nil
	}
	for _, i := range had {
		ends := slices.ContainsFunc(next, func(n incident.Incident) bool { return n.ID == i.ID && n.State != incident.Firing })
		if !i.fires() || !ends {
			continue
		}
		members, err := a.openMembers(ctx, i.Group)
		if err != nil {
			return err
		}
		if err := a.notify(ctx, i.Group, append(members, i.ID)); err != nil {
			return err
		}
	}
	return nil
}

// openMembers returns the IDs of the incidents of a group that are open, or ended a short time ago.
func (a *analysis) openMembers(ctx context.Context, id string) (members []string, err error) {
	if err := a.readOpen(ctx); err != nil {
		return nil, err
	}
	for _, i := range a.open {
		if i.Group == id {
			members = append(members, i.ID)
		}
	}
	return members, nil
}

// write stores incidents, each in its group.
func (a *analysis) write(ctx context.Context, t target, had []versioned, all []incident.Incident) error {
	for _, i := range all {
		if err := a.assign(ctx, &i); err != nil {
			return err
		}
		if err := a.list(ctx, had, i); err != nil {
			return err
		}
		if err := a.put(ctx, t, had, i); err != nil {
			return err
		}
		a.groups[i.Group] = append(a.groups[i.Group], i.ID)
		begins := !slices.ContainsFunc(had, func(h versioned) bool { return h.ID == i.ID && h.fires() })
		a.fires = a.fires || i.State == incident.Firing && begins
		a.remember(i)
		a.log.Info("incident", zap.String("incident", i.ID), zap.String("state", string(i.State)), zap.String("task", a.task),
			zap.String("metric", i.Series.Metric), zap.String("group", i.Group), zap.Bool("silent", i.Silent))
	}
	return nil
}

// list adds an incident to the lists that it belongs to, before it is stored: that of all incidents, and that of the open ones. One that
// goes on after its end may be about to be removed from the latter: it is listed anew.
func (a *analysis) list(ctx context.Context, had []versioned, i incident.Incident) error {
	at := slices.IndexFunc(had, func(h versioned) bool { return h.ID == i.ID })
	if at < 0 {
		if err := a.index(ctx, a.namespace, i); err != nil {
			return err
		}
	}
	if i.State.Over() {
		return nil
	}
	over := at >= 0 && had[at].State.Over()
	_, err := store.Update(ctx, a.store, store.KindOpenIncident, documentKey(a.namespace, i.ID),
		func(_ openIncident, found bool) (openIncident, bool, error) {
			return openIncident{Since: a.now().UTC()}, over || !found, nil
		})
	if err != nil {
		return fmt.Errorf("list incident %s as open: %w", i.ID, err)
	}
	return nil
}

// put stores an incident, and then asks for the runs that it needs.
func (a *analysis) put(ctx context.Context, t target, had []versioned, i incident.Incident) error {
	var version int64
	if at := slices.IndexFunc(had, func(h versioned) bool { return h.ID == i.ID }); at >= 0 {
		version = had[at].version
	}
	_, err := put(ctx, a.store, store.KindIncident, documentKey(a.namespace, i.ID), version, i)
	if errors.Is(err, store.ErrExists) { // the next decision has to know it
		a.found[t.key()] = append(a.found[t.key()], i.ID)
	}
	if err != nil {
		return err
	}
	return a.request(ctx, i)
}

// assign puts an incident that has no group into one.
func (a *analysis) assign(ctx context.Context, i *incident.Incident) error {
	if i.Group == "" {
		if err := a.readOpen(ctx); err != nil {
			return err
		}
	}
	*i = group.Assign(*i, a.open)
	return nil
}

// readOpen reads the open incidents of the namespace, and those that ended a short time ago.
func (a *analysis) readOpen(ctx context.Context) error {
	if a.opened {
		return nil
	}
	var ids []string
	for d, err := range store.AllDocs(ctx, a.store, store.KindOpenIncident, a.namespace+"/") {
		if err != nil {
			return err
		}
		ids = append(ids, d.Key[len(a.namespace)+1:])
	}
	all, err := a.incidentsOf(ctx, a.namespace, ids)
	if err != nil {
		return err
	}
	for _, i := range all {
		a.open = append(a.open, i.Incident)
	}
	a.opened = true
	return nil
}

// remember adds an incident that was written to the open ones: a list may lack it for a while.
func (a *analysis) remember(i incident.Incident) {
	at := slices.IndexFunc(a.open, func(o incident.Incident) bool { return o.ID == i.ID })
	if at >= 0 {
		a.open[at] = i
		return
	}
	a.open = append(a.open, i)
}

// settle decides the groups of the incidents that changed, and completes the pending states.
func (a *analysis) settle(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(a.groups)) {
		if err := a.notify(ctx, id, a.groups[id]); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a.pending)) {
		_, err := store.Update(ctx, a.store, store.KindRuleState, key, func(is ruleState, found bool) (ruleState, bool, error) {
			next := is.completed(a.pending[key])
			return next, found && !next.equal(is), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// union returns all texts of a and b, sorted, each once.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
