package analyst

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/descriptors/cron"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// target is a rule, and a series that it watches.
type target struct {
	rule    incident.Rule
	series  store.SeriesKey
	removed bool      // the newest descriptor of the task has no such rule
	without time.Time // of Missing: time of the newest run of the schedule if that ended without a value; else zero
}

// key is the key of the state of the rule in the series.
func (t target) key() string { return statePrefix(t.rule) + t.series.ID() }

// targetsOf returns what to look at after a run, the rules of one series one after the other: each series in which the run has a value that
// a rule watches, and the rules that watch no series.
func targetsOf(rules []incident.Rule, p store.RunPoints, scheduled bool) []target {
	var all []target
	for _, r := range rules {
		if r.When != incident.Failed && r.When != incident.Missing {
			all = append(all, watched(r, p)...)
			continue
		}
		t := target{rule: r, series: taskSeries(r)}
		if r.When == incident.Missing && scheduled && !hasValue(p, r) {
			t.without = p.Time
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.series.ID(), b.series.ID()), cmp.Compare(a.rule.ID, b.rule.ID))
	})
	return slices.CompactFunc(all, func(a, b target) bool { return a.key() == b.key() })
}

// watched returns a rule with each series that it watches and in which a run has a point.
func watched(r incident.Rule, p store.RunPoints) (all []target) {
	if p.Excluded != "" {
		return nil
	}
	for _, s := range p.Points {
		if k := p.Key(s); rule.Watches(r, k) {
			all = append(all, target{rule: r, series: k})
		}
	}
	return all
}

// taskSeries is the series of a rule that is about all runs of a task, or about all series of a metric.
func taskSeries(r incident.Rule) store.SeriesKey {
	return store.SeriesKey{Namespace: r.Namespace, Task: r.Task, Metric: r.Metric}
}

// hasValue reports whether a run has a value of a rule's metric that counts.
func hasValue(p store.RunPoints, r incident.Rule) bool {
	return p.Excluded == "" && slices.ContainsFunc(p.Points, func(s store.Summary) bool {
		return s.Metric == r.Metric && rule.HasValue(s, r.Statistic)
	})
}

// definesRules reports whether the descriptor of a run may be the newest of its task: a run that confirms an incident was made with an
// older one, and an import comes from another platform.
func definesRules(p store.PointRun) bool {
	return p.Task != "" && p.Excluded != store.ExcludedConfirmation && p.Excluded != store.ExcludedImport
}

// renewed returns the rules of a task after a run of it, whose descriptor has some rules, and those that are gone. A run that is older than
// the one that they are of changes nothing.
func renewed(
	is incident.RuleSet, r store.Run, descriptor string, rules []incident.Rule,
) (next incident.RuleSet, removed []incident.Rule, changed bool) {
	if !r.Created.After(is.Newest) {
		return is, nil, false
	}
	next = incident.RuleSet{Rules: is.Renew(rules), Descriptor: descriptor, Labels: r.Labels, Newest: r.Created}
	for _, old := range is.Rules {
		if !next.Has(old.ID) {
			removed = append(removed, old)
		}
	}
	return next, removed, true
}

// ofTask returns rules of a descriptor as those of a task: the label of a run may be another than that of its descriptor.
func ofTask(rules []incident.Rule, task string) []incident.Rule {
	for i, r := range rules {
		if r.Task != task {
			r.Task = task
			rules[i] = r.WithID()
		}
	}
	return rules
}

// withPoint returns points of a series, the oldest first, with that of a run, if it has one there: a list may lack the latest writes.
func withPoint(all []store.Point, p *store.RunPoints, series store.SeriesKey) []store.Point {
	if p == nil || p.Excluded != "" {
		return all
	}
	at := slices.IndexFunc(p.Points, func(s store.Summary) bool { return p.Key(s).Equal(series) })
	if at < 0 {
		return all
	}
	one := store.Point{PointRun: p.PointRun, Summary: p.Points[at]}
	all = slices.DeleteFunc(all, func(o store.Point) bool { return o.Run == one.Run })
	i, _ := slices.BinarySearchFunc(all, one.Position(), func(o store.Point, at store.PointPosition) int {
		return cmp.Or(o.Time.Compare(at.Time), cmp.Compare(o.Run, at.Run))
	})
	all = slices.Insert(all, i, one)
	return all[max(0, len(all)-rule.MaxPoints):]
}

// withRun returns runs with one that is known better than by the list, nil for none. The order changes only if the list lacks it.
func withRun(runs []store.Run, one *store.Run) []store.Run {
	if one == nil {
		return runs
	}
	at := slices.IndexFunc(runs, func(r store.Run) bool { return r.ID == one.ID })
	if at < 0 {
		return append([]store.Run{*one}, runs...)
	}
	runs[at] = *one
	return runs
}

// endings returns how runs ended, the oldest first. Canceled runs, warm-ups and confirmations are left out.
func endings(runs []store.Run) []rule.EndedRun {
	var all []rule.EndedRun
	for _, r := range runs {
		at, version, excluded := points.Ending(r)
		if r.Phase != event.PhaseFinished || excluded != "" && excluded != store.ExcludedFailed {
			continue
		}
		one := rule.EndedRun{Run: r.ID, Time: at, Version: version, Failed: excluded == store.ExcludedFailed}
		if one.Failed {
			one.Reason = r.Message
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b rule.EndedRun) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Run, b.Run)) })
	return all
}

// Times that a value may take after its run was to begin: half as long again as the slowest of the last runs took, and some more.
const (
	slack       = 15 * time.Minute
	slackFactor = 1.5
)

// firings is what the analyst reads of a document of KindSchedule.
type firings struct {
	Paused  bool      `json:"paused"`
	From    time.Time `json:"from"`
	Updated time.Time `json:"updated"`
	Rules   struct {
		Cron  string        `json:"cron"`
		Zone  string        `json:"zone"`
		Delay time.Duration `json:"delay"`
		End   time.Time     `json:"end"`
	} `json:"rules"`
}

// next returns the first firing after a time; zero if there is none.
func (s firings) next(after time.Time) (time.Time, error) {
	c, err := cron.Parse(s.Rules.Cron)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the schedule %q: %w", s.Rules.Cron, err)
	}
	zone, err := time.LoadLocation(s.Rules.Zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time zone %q: %w", s.Rules.Zone, err)
	}
	if after.Before(s.From) {
		after = s.From
	}
	at := c.Next(after.In(zone))
	if at.IsZero() || !s.Rules.End.IsZero() && at.After(s.Rules.End) {
		return time.Time{}, nil
	}
	return at, nil
}

// allowance returns how long after a firing its value may come.
func (s firings) allowance(runs []store.Run) time.Duration {
	var slowest time.Duration
	for _, r := range runs {
		if r.Ended != nil {
			slowest = max(slowest, r.Ended.Sub(r.Created))
		}
	}
	return s.Rules.Delay + time.Duration(slackFactor*float64(slowest)) + slack
}

// latest returns the latest of times.
func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// retained returns the IDs of a state after a decision, in order: those of open incidents, of ones that ended among the points, and of new
// ones. A pending state keeps all that it has: another analysis may be about to store them, and their groups are to be decided.
func retained(state ruleState, had []versioned, written []incident.Incident, oldest time.Time) []string {
	var ids []string
	if state.Pending {
		ids = slices.Clone(state.Incidents)
	}
	for _, i := range had {
		if !i.State.Over() || !began(i.Incident).Before(oldest) {
			ids = append(ids, i.ID)
		}
	}
	for _, i := range written {
		ids = append(ids, i.ID)
	}
	return union(ids, nil)
}

// began returns the time of the first bad point of an incident, or when it was opened.
func began(i incident.Incident) time.Time {
	if i.FirstBad != nil {
		return i.FirstBad.Time
	}
	return i.Opened
}

// acknowledgementDue reports whether an acknowledgement changes an incident: it is new, or its time is over.
func acknowledgementDue(i incident.Incident, a incident.Ack, now time.Time) bool {
	switch {
	case i.State.Over():
		return false
	case i.Acked == nil || a.At.After(i.Acked.At):
		return true
	}
	return i.State == incident.Acknowledged && !a.Until.IsZero() && !now.Before(a.Until)
}

// retention is how long an incident that has ended is among those of its namespace that new ones may belong to.
const retention = 3 * 24 * time.Hour

// outdated reports whether an incident that is listed as open is to be listed no longer. One that was never stored is listed for a while:
// it may be about to be, and so may be the next transition of one that goes on after its end.
func outdated(i incident.Incident, found bool, listed, now time.Time) bool {
	return now.Sub(listed) > retention && (!found || i.State.Over() && now.Sub(i.Since()) > retention)
}

// keepIncident is how long an incident stays after its end at least: as long as its notices.
const keepIncident = 90 * 24 * time.Hour

// forgettable reports whether an incident has ended long ago.
func forgettable(i incident.Incident, now time.Time) bool {
	return i.State.Over() && now.Sub(i.Since()) > keepIncident
}

// maxPause bounds the pause after a series whose reads took long because the store was slow.
const maxPause = time.Second

// pauseAfter returns how long an analyst pauses after so much work, to work for a share of the time that is over 0 and at most 1.
func pauseAfter(worked time.Duration, share float64) time.Duration {
	return min(time.Duration(float64(worked)*(1/share-1)), maxPause)
}
