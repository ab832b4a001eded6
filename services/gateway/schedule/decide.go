package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/cron"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
)

const (
	gracePeriod = time.Minute // delay up to which a firing is on time; longer than the takeover from a crashed gateway
	maxPerPass  = 10          // maximum number of firings in one pass
	maxMissed   = 1000        // maximum number of missed firings that are made up for

	maxBackfill     = 10_000 // firings in one backfill; nearly one week of a minutely schedule
	backfillBatch   = 200    // firings of a backfill that one pass checks
	maxBackfillRuns = 100    // number of active runs at which a backfill pauses, so that the firing log can list them all
)

// Rules is the part of a descriptor that controls its schedule.
type Rules struct {
	Cron        string        `json:"cron"`
	Zone        string        `json:"zone"`
	Concurrency string        `json:"concurrency"`
	Missed      string        `json:"missed"`
	Window      time.Duration `json:"window"`
	Delay       time.Duration `json:"delay,omitempty"` // constant delay of all firings of this schedule
	History     int           `json:"history"`
	Start       time.Time     `json:"start,omitzero"`
	End         time.Time     `json:"end,omitzero"`
}

// formatTime returns a time in the zone of the schedule.
func (r Rules) formatTime(at time.Time) string {
	zone, err := time.LoadLocation(r.Zone)
	if err != nil {
		zone = time.UTC
	}
	return at.In(zone).Format(time.RFC3339)
}

// rulesOf returns the rules of the schedule with that ID.
func rulesOf(id string, d *descriptors.Descriptor) Rules {
	r := Rules{
		Cron: d.Info.Scheduling, Zone: d.Info.Timezone, Concurrency: d.Schedule.Concurrency, Missed: d.Schedule.Missed,
		Window: d.Schedule.MissedWindow, History: d.Schedule.History, Delay: jitterDelay(id, d.Schedule.Jitter),
	}
	r.Start, r.End = d.Firing()
	return r
}

// jitterDelay returns the share of the jitter that a schedule with that ID gets, in
// whole seconds.
func jitterDelay(id string, jitter time.Duration) time.Duration {
	if jitter <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(id))
	seconds := binary.BigEndian.Uint64(sum[:8]) % uint64(jitter/time.Second+1)
	return time.Duration(seconds) * time.Second //nolint:gosec // no more than the jitter
}

// sameTimes reports whether two rules give the same firing times.
func (r Rules) sameTimes(o Rules) bool {
	return r.Cron == o.Cron && r.Zone == o.Zone && r.Start.Equal(o.Start) && r.End.Equal(o.End)
}

// firingTimes are the times at which a schedule fires.
type firingTimes struct {
	cron       cron.Schedule
	zone       *time.Location
	start, end time.Time
}

// times returns the firing times of the rules. It fails only for rules that rulesOf of
// this release did not make.
func (r Rules) times() (firingTimes, error) {
	s, err := cron.Parse(r.Cron)
	if err != nil {
		return firingTimes{}, fmt.Errorf("read schedule %q: %w", r.Cron, err)
	}
	zone, err := time.LoadLocation(r.Zone)
	if err != nil {
		return firingTimes{}, fmt.Errorf("read time zone %q: %w", r.Zone, err)
	}
	return firingTimes{cron: s, zone: zone, start: r.Start, end: r.End}, nil
}

// After returns the first firing time after at, in UTC, or zero if there is none.
func (t firingTimes) After(at time.Time) time.Time {
	if !t.start.IsZero() && at.Before(t.start) {
		at = t.start.Add(-time.Nanosecond)
	}
	next := t.cron.Next(at.In(t.zone))
	if next.IsZero() || !t.end.IsZero() && !next.Before(t.end) {
		return time.Time{}
	}
	return next.UTC()
}

// Next returns the next n firing times after at, or fewer if there are no more.
func (t firingTimes) Next(at time.Time, n int) []time.Time {
	var all []time.Time
	for at = t.After(at); !at.IsZero() && len(all) < n; at = t.After(at) {
		all = append(all, at)
	}
	return all
}

// Between returns up to n firing times from from on and before to, and reports whether
// there are more.
func (t firingTimes) Between(from, to time.Time, n int) (all []time.Time, more bool) {
	for at := t.After(from.Add(-time.Nanosecond)); !at.IsZero() && at.Before(to); at = t.After(at) {
		if len(all) == n {
			return all, true
		}
		all = append(all, at)
	}
	return all, false
}

// firings returns the firing times of a backfill. The error is *SpanError if the span
// is empty or has too many firings.
func (r Rules) firings(from, to time.Time) ([]time.Time, error) {
	if !from.Before(to) {
		return nil, &SpanError{fmt.Sprintf("%s is not before the end, %s", r.formatTime(from), r.formatTime(to)), "give an earlier time"}
	}
	times, err := r.times()
	if err != nil {
		return nil, err
	}
	all, more := times.Between(from, to, maxBackfill)
	if more {
		return nil, &SpanError{
			fmt.Sprintf("the schedule fires more than %d times from then on", maxBackfill),
			"backfill a shorter time, and then the next",
		}
	}
	return all, nil
}

// activeExecution is a run or a set of an earlier firing that has not finished.
type activeExecution struct {
	Execution

	Time     time.Time // firing time
	Reported bool      // an event has reported that it had not ended in time
	// Triggered reports that a user triggered it. It belongs to no firing, whatever
	// its time.
	Triggered bool
}

// state is the input of the decision about a schedule at a time.
type state struct {
	Rules  Rules
	Times  firingTimes
	Since  time.Time // firings up to this time were decided or do not belong to this schedule
	Now    time.Time
	Active []activeExecution
}

// Reasons why a firing has no run.
const (
	Missed  event.Reason = "Missed"  // the firing time passed while the platform was down
	Overlap event.Reason = "Overlap" // a run or a set of an earlier firing was active
	Refused event.Reason = "Refused" // the descriptor is no longer valid

	NotEnded event.Reason = "NotEnded" // the firing has a run or a set, which took too long
)

// firingResult is the decision about a firing, or about several consecutive firings.
type firingResult struct {
	Time    time.Time
	Last    time.Time    // last of several firings; zero for one
	Count   int          // number of firings
	Reason  event.Reason // reason why there is no run; empty if a run or a set is to be made
	Message string       // text for Reason
	Cancel  []Execution  // to cancel before this run or set is made
}

// decision is the plan for a schedule.
type decision struct {
	Results []firingResult    // in order of time
	Until   time.Time         // value of state.Since after the results are carried out
	Overdue []activeExecution // to report because they have not ended in time
	Wake    time.Time         // time of the next decision; zero for never

	blocked bool // a firing waits for the end of a run or a set
}

// isDue reports whether a firing is due now. If not, it returns the time when one will
// be.
func isDue(l state) (due bool, wake time.Time) {
	next := l.Times.After(l.Since)
	if next.IsZero() {
		return false, time.Time{}
	}
	at := next.Add(l.Rules.Delay)
	return !at.After(l.Now), at
}

// decide returns the plan for a schedule now. In the rules, a run is also a set of runs: a
// set is active until it has finished.
//
//   - A firing up to one minute late is on time.
//   - A later firing was missed. It is skipped if missed is "skip", if it is later than
//     the window, or, if missed is "latest", if a later firing is also due.
//   - "forbid": no run is made while a run of an earlier firing is active. If missed is
//     "all", firings wait in order for up to the window; otherwise they are skipped.
//   - "replace": the active runs are canceled and only the last due firing gets a run;
//     the firings before it are skipped.
//   - A run that is still active when the schedule fires again is reported once as not
//     ended in time.
func decide(l state) decision {
	decision := decision{Until: l.Since}
	due, skipped := l.dueFirings()
	if skipped.Count > 0 {
		decision.skip(skipped)
	}
	if len(due)+skipped.Count > 0 {
		decision.findOverdue(l.Active, due, skipped)
	}
	switch l.Rules.Concurrency {
	case descriptors.Forbid:
		decision.decideForbid(l, due)
	case descriptors.Replace:
		decision.decideReplace(l, due)
	default:
		decision.decideAllow(due)
	}
	if next := l.Times.After(decision.Until); !next.IsZero() && !decision.blocked {
		decision.Wake = next.Add(l.Rules.Delay)
	}
	return decision
}

// dueFirings returns the firings that may be made now, and the earlier ones that are
// skipped.
func (l state) dueFirings() (due []time.Time, skipped firingResult) {
	window := gracePeriod
	if l.Rules.Missed != descriptors.SkipMissed {
		window = max(window, l.Rules.Window)
	}
	late := func(at time.Time) time.Duration { return l.Now.Sub(at.Add(l.Rules.Delay)) }
	skip := func(at time.Time) {
		skipped.Count, skipped.Last = skipped.Count+1, at
		if skipped.Count == 1 {
			skipped.Time = at
		}
	}
	for at := l.Times.After(l.Since); !at.IsZero() && late(at) >= 0; at = l.Times.After(at) {
		if late(at) > window {
			skip(at)
			continue
		}
		latest := l.Rules.Missed == descriptors.LatestMissed && len(due) > 0 && late(due[0]) > gracePeriod
		if latest || len(due) == maxMissed {
			skip(due[0])
			due = due[1:]
		}
		due = append(due, at)
	}
	skipped.Reason, skipped.Message = l.skipReason(skipped)
	return due, skipped
}

// skipReason returns the reason for consecutive firings that were too late. A firing
// that waits for its turn becomes late although the platform is up.
func (l state) skipReason(skipped firingResult) (event.Reason, string) {
	late := l.Now.Sub(skipped.Time.Add(l.Rules.Delay)).Truncate(time.Second)
	serial := l.Rules.Concurrency == descriptors.Forbid && l.Rules.Missed == descriptors.AllMissed
	switch {
	case l.Rules.Missed == descriptors.SkipMissed:
		return Missed, fmt.Sprintf("the platform was away: looked at %s late, and schedule.missed is skip", late)
	case late <= l.Rules.Window && l.Rules.Missed == descriptors.LatestMissed:
		return Missed, fmt.Sprintf("the platform was away: looked at %s late, and a later firing was due too (schedule.missed is latest)",
			late)
	case late <= l.Rules.Window:
		return Missed, fmt.Sprintf("the platform was away: looked at %s late, when more than %d firings were due, of which the last are made", late, maxMissed)
	case serial && len(l.activeBefore(skipped.Time)) > 0:
		return Overlap, fmt.Sprintf("it waited for its turn longer than schedule.missed_window (%s): %s, and schedule.concurrency is forbid", l.Rules.Window, goesOn(l.activeBefore(skipped.Time)))
	case serial:
		return Missed, fmt.Sprintf("it is %s late, more than schedule.missed_window (%s): the platform was away, or runs of earlier firings went on, and schedule.concurrency is forbid", late, l.Rules.Window)
	}
	return Missed, fmt.Sprintf("the platform was away: looked at %s late, more than schedule.missed_window (%s)", late, l.Rules.Window)
}

// activeBefore returns the active executions that were due before a firing became too late.
func (l state) activeBefore(at time.Time) (all []activeExecution) {
	for _, g := range l.Active {
		if g.Time.Before(at.Add(l.Rules.Delay + l.Rules.Window)) {
			all = append(all, g)
		}
	}
	return all
}

func (p *decision) skip(f firingResult) {
	if f.Count == 1 {
		f.Last = time.Time{}
	}
	p.Results = append(p.Results, f)
	p.Until = cmp.Or(f.Last, f.Time)
}

// findOverdue adds the active executions whose firing is before the last of these firings,
// unless they were reported.
func (p *decision) findOverdue(active []activeExecution, due []time.Time, skipped firingResult) {
	last := skipped.Last
	if len(due) > 0 {
		last = due[len(due)-1]
	}
	for _, g := range active {
		if !g.Reported && g.Time.Before(last) {
			p.Overdue = append(p.Overdue, g)
		}
	}
}

func (p *decision) addRun(at time.Time, cancel []Execution) {
	p.Results = append(p.Results, firingResult{Time: at, Count: 1, Cancel: cancel})
	p.Until = at
}

func (p *decision) decideAllow(due []time.Time) {
	for _, at := range due[:min(len(due), maxPerPass)] {
		p.addRun(at, nil)
	}
}

// decideForbid makes a firing if no run is active.
func (p *decision) decideForbid(l state, due []time.Time) {
	free := len(l.Active) == 0
	for _, at := range due {
		switch {
		case free, l.hasRun(at):
			p.addRun(at, nil)
			free = false
		case l.Rules.Missed == descriptors.AllMissed:
			p.blocked = true
			return
		default:
			p.skip(firingResult{
				Time: at, Last: at, Count: 1, Reason: Overlap,
				Message: goesOn(l.Active) + ", and schedule.concurrency is forbid",
			})
		}
	}
}

// decideReplace makes the last due firing, and skips all firings before it.
func (p *decision) decideReplace(l state, due []time.Time) {
	if len(due) == 0 {
		return
	}
	if before := due[:len(due)-1]; len(before) > 0 {
		p.skip(firingResult{
			Time: before[0], Last: before[len(before)-1], Count: len(before), Reason: Overlap,
			Message: "a later firing was due too, and schedule.concurrency is replace",
		})
	}
	last := due[len(due)-1]
	var cancel []Execution
	for _, g := range l.Active {
		if g.Triggered || !g.Time.Equal(last) {
			cancel = append(cancel, g.Execution)
		}
	}
	p.addRun(last, cancel)
}

// hasRun reports whether a firing already has a run or a set, made by a gateway that
// crashed before it recorded that. Making it again changes nothing.
func (l state) hasRun(at time.Time) bool {
	return slices.ContainsFunc(l.Active, func(g activeExecution) bool { return !g.Triggered && g.Time.Equal(at) })
}

// goesOn names the first active execution, in words.
func goesOn(active []activeExecution) string {
	if len(active) == 0 {
		return "a run of an earlier firing went on"
	}
	first := active[0].Execution
	return fmt.Sprintf("a %s of an earlier firing went on (%s)", first.noun(), first.id())
}

// decideTrigger returns how the active executions affect a triggered one: with "forbid",
// one of them blocks it; with "replace", they are canceled.
func decideTrigger(r Rules, active []activeExecution) (blocking Execution, ends []Execution) {
	if len(active) == 0 || r.Concurrency == descriptors.Allow {
		return Execution{}, nil
	}
	if r.Concurrency == descriptors.Forbid {
		return active[0].Execution, nil
	}
	for _, g := range active {
		ends = append(ends, g.Execution)
	}
	return Execution{}, ends
}

// decideBackfill returns how many missing firings of a backfill may be made now, given
// the number of active runs and sets. It is one while none is active; if concurrency is
// "allow", it is some, until maxBackfillRuns are active.
func decideBackfill(r Rules, active int) int {
	if r.Concurrency != descriptors.Allow {
		return max(0, 1-active)
	}
	return max(0, min(maxPerPass, maxBackfillRuns-active))
}

// firingKey returns the key of a firing. It is the same for all versions of the
// schedule and in all time zones.
func firingKey(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// idOf returns the ID of an owner's schedule with that name. A schedule without a name
// has an ID derived from words, the digest of its first request.
func idOf(owner, name, words string) string {
	if name != "" {
		words = ""
	}
	return submit.DeriveID("schedule", owner, name, words)
}

// trimSets returns the entries of a log without the removable ones, of which the last
// stay, up to the history limit.
func trimSets(all []setEntry, removable map[string]bool, history int) []setEntry {
	over := 0
	for _, e := range all {
		if removable[e.Set] {
			over++
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(e setEntry) bool {
		if !removable[e.Set] {
			return false
		}
		over--
		return over >= history
	})
}

// trimRecords returns the newest records, up to the history limit, and all records of
// unfinished runs and sets.
func trimRecords(all []record, history int) []record {
	over := 0
	for _, r := range all {
		if !r.Open {
			over++
		}
	}
	return slices.DeleteFunc(all, func(r record) bool {
		if r.Open {
			return false
		}
		over--
		return over >= history
	})
}

// trimHistory returns the firings that have not finished, and the first of the others, up to
// the history limit.
func trimHistory(all []PastFiring, history int) []PastFiring {
	return slices.DeleteFunc(all, func(f PastFiring) bool {
		if f.Execution != (Execution{}) && f.Phase != event.PhaseFinished {
			return false
		}
		history--
		return history < 0
	})
}

// errFenced reports that another gateway fires now.
var errFenced = errors.New("another gateway fires schedules now")

// earlier returns the earlier of two times. Zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
