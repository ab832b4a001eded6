package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/cron"
	"github.com/benchmark-ai/bai/services/internal/event"
)

const (
	gracePeriod = time.Minute // how late a firing may be that still is on time: longer than a gateway that dies is waited for
	maxPerPass  = 10          // firings that are made at one look
	maxMissed   = 1000        // firings that were missed and are made up for

	maxBackfill     = 10_000 // firings of one backfill: nearly a minutely schedule's week
	backfillBatch   = 200    // of them that are looked at at one look
	maxBackfillRuns = 100    // runs of a schedule that go on where a backfill makes no more: the firing log has them all
)

// Rules are the part of a descriptor by which its schedule fires.
type Rules struct {
	Cron        string        `json:"cron"`
	Zone        string        `json:"zone"`
	Concurrency string        `json:"concurrency"`
	Missed      string        `json:"missed"`
	Window      time.Duration `json:"window"`
	Delay       time.Duration `json:"delay,omitempty"` // by which this schedule is late, always
	History     int           `json:"history"`
	Start       time.Time     `json:"start,omitzero"`
	End         time.Time     `json:"end,omitzero"`
}

// formatTime writes a time as clocks in the zone of the schedule show it.
func (r Rules) formatTime(at time.Time) string {
	zone, err := time.LoadLocation(r.Zone)
	if err != nil {
		zone = time.UTC
	}
	return at.In(zone).Format(time.RFC3339)
}

// rulesOf returns the rules of the schedule of that ID.
func rulesOf(id string, d *descriptors.Descriptor) Rules {
	r := Rules{
		Cron: d.Info.Scheduling, Zone: d.Info.Timezone, Concurrency: d.Schedule.Concurrency, Missed: d.Schedule.Missed,
		Window: d.Schedule.MissedWindow, History: d.Schedule.History, Delay: jitterDelay(id, d.Schedule.Jitter),
	}
	r.Start, r.End = d.Firing()
	return r
}

// jitterDelay is the part of a jitter that is a schedule's own, in whole seconds.
func jitterDelay(id string, jitter time.Duration) time.Duration {
	if jitter <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(id))
	seconds := binary.BigEndian.Uint64(sum[:8]) % uint64(jitter/time.Second+1)
	return time.Duration(seconds) * time.Second //nolint:gosec // no more than the jitter
}

// sameTimes reports whether two rules have the same times.
func (r Rules) sameTimes(o Rules) bool {
	return r.Cron == o.Cron && r.Zone == o.Zone && r.Start.Equal(o.Start) && r.End.Equal(o.End)
}

// firingTimes are the times at which a schedule fires.
type firingTimes struct {
	cron       cron.Schedule
	zone       *time.Location
	start, end time.Time
}

// times returns the times that rules say. It fails only for rules that were not
// made by rulesOf of this release.
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

// After returns the first time after t, in UTC; zero where there is none.
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

// Next returns the next n times after t, fewer where there are no more.
func (t firingTimes) Next(at time.Time, n int) []time.Time {
	var all []time.Time
	for at = t.After(at); !at.IsZero() && len(all) < n; at = t.After(at) {
		all = append(all, at)
	}
	return all
}

// Between returns the times from one time on and before another, and whether
// there are more than n, of which it returns the first.
func (t firingTimes) Between(from, to time.Time, n int) (all []time.Time, more bool) {
	for at := t.After(from.Add(-time.Nanosecond)); !at.IsZero() && at.Before(to); at = t.After(at) {
		if len(all) == n {
			return all, true
		}
		all = append(all, at)
	}
	return all, false
}

// firings returns the times at which a backfill of a span makes runs. The error is
// *SpanError where the span is empty, or has more of them than a backfill may have.
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
		return nil, &SpanError{fmt.Sprintf("the schedule fires more than %d times from then on", maxBackfill), "backfill a shorter time, and then the next"}
	}
	return all, nil
}

// activeRun is a run of an earlier firing that is not over.
type activeRun struct {
	Run      string
	Time     time.Time // that was fired for
	Reported bool      // that it had not ended in time
	// Triggered reports that a user asked for the run beside the schedule's times: it is
	// no firing's run, whatever its time.
	Triggered bool
}

// state is the input of the decision about a schedule at a time.
type state struct {
	Rules  Rules
	Times  firingTimes
	Since  time.Time // firings up to it were decided, or are none of this schedule's
	Now    time.Time
	Active []activeRun
}

// Reasons why a firing has no run.
const (
	Missed  event.Reason = "Missed"  // its time passed while the platform was away
	Overlap event.Reason = "Overlap" // a run of an earlier firing went on
	Refused event.Reason = "Refused" // the descriptor cannot be run any more

	NotEnded event.Reason = "NotEnded" // there is one, which went on for too long
)

// firingResult is the decision about a firing, or about several in a row.
type firingResult struct {
	Time    time.Time
	Last    time.Time    // of several; zero for one
	Count   int          // how many they are
	Reason  event.Reason // why there is no run; empty where one is to be made
	Message string       // the same in words
	Cancel  []string     // runs that are to end, for which this one is made
}

// decision is the plan for a schedule.
type decision struct {
	Results []firingResult // in order
	Until   time.Time      // the value of state.Since once they are carried out
	Overdue []activeRun    // runs to report because they have not ended in time
	Wake    time.Time      // when there is more to do by itself; zero for never

	blocked bool // a firing waits for the end of a run
}

// isDue reports whether a schedule fires now: else there is nothing to decide but
// when.
func isDue(l state) (due bool, wake time.Time) {
	next := l.Times.After(l.Since)
	if next.IsZero() {
		return false, time.Time{}
	}
	at := next.Add(l.Rules.Delay)
	return !at.After(l.Now), at
}

// decide returns the plan for a schedule now.
//
//   - A firing whose time came within the last minute is on time.
//   - A firing that is later was missed. It is lost where missed is skip, where
//     it is later than the window, and, where missed is latest, where another
//     firing follows that is due too.
//   - forbid: while a run of an earlier firing goes on none is made. Where missed
//     is all, firings wait for their turn, in order, for as long as the window is;
//     else they are lost.
//   - replace: the runs that go on are canceled, and the last firing that is due
//     is made; those before it are lost.
//   - A run that goes on when the schedule fires again is reported, once, as not
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

// dueFirings returns the firings that may be made now, and those before them that were
// missed for good.
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

// skipReason returns the reason for firings in a row that were too late. A firing that
// waits for its turn grows late while the platform is there.
func (l state) skipReason(skipped firingResult) (event.Reason, string) {
	late := l.Now.Sub(skipped.Time.Add(l.Rules.Delay)).Truncate(time.Second)
	serial := l.Rules.Concurrency == descriptors.Forbid && l.Rules.Missed == descriptors.AllMissed
	switch {
	case l.Rules.Missed == descriptors.SkipMissed:
		return Missed, fmt.Sprintf("the platform was away: looked at %s late, and schedule.missed is skip", late)
	case late <= l.Rules.Window && l.Rules.Missed == descriptors.LatestMissed:
		return Missed, fmt.Sprintf("the platform was away: looked at %s late, and a later firing was due too (schedule.missed is latest)", late)
	case late <= l.Rules.Window:
		return Missed, fmt.Sprintf("the platform was away: looked at %s late, when more than %d firings were due, of which the last are made", late, maxMissed)
	case serial && len(l.activeBefore(skipped.Time)) > 0:
		return Overlap, fmt.Sprintf("it waited for its turn longer than schedule.missed_window (%s): a run of an earlier firing went on%s, and schedule.concurrency is forbid", l.Rules.Window, firstRun(l.activeBefore(skipped.Time)))
	case serial:
		return Missed, fmt.Sprintf("it is %s late, more than schedule.missed_window (%s): the platform was away, or runs of earlier firings went on, and schedule.concurrency is forbid", late, l.Rules.Window)
	}
	return Missed, fmt.Sprintf("the platform was away: looked at %s late, more than schedule.missed_window (%s)", late, l.Rules.Window)
}

// activeBefore are the runs that go on and began before it was too late for a firing.
func (l state) activeBefore(at time.Time) (all []activeRun) {
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

// findOverdue finds the runs that have not ended when the first of these firings was
// due that came after theirs.
func (p *decision) findOverdue(active []activeRun, due []time.Time, skipped firingResult) {
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

func (p *decision) addRun(at time.Time, cancel []string) {
	p.Results = append(p.Results, firingResult{Time: at, Count: 1, Cancel: cancel})
	p.Until = at
}

func (p *decision) decideAllow(due []time.Time) {
	for _, at := range due[:min(len(due), maxPerPass)] {
		p.addRun(at, nil)
	}
}

// decideForbid makes a firing where no run goes on.
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
			p.skip(firingResult{Time: at, Last: at, Count: 1, Reason: Overlap, Message: "a run of an earlier firing went on" + firstRun(l.Active) + ", and schedule.concurrency is forbid"})
		}
	}
}

// decideReplace makes the last firing in place of all before it.
func (p *decision) decideReplace(l state, due []time.Time) {
	if len(due) == 0 {
		return
	}
	if before := due[:len(due)-1]; len(before) > 0 {
		p.skip(firingResult{Time: before[0], Last: before[len(before)-1], Count: len(before), Reason: Overlap, Message: "a later firing was due too, and schedule.concurrency is replace"})
	}
	last := due[len(due)-1]
	var cancel []string
	for _, g := range l.Active {
		if g.Triggered || !g.Time.Equal(last) {
			cancel = append(cancel, g.Run)
		}
	}
	p.addRun(last, cancel)
}

// hasRun reports whether the run of a firing is there already, by a gateway that
// died before it could say so: it is made again, which changes nothing.
func (l state) hasRun(at time.Time) bool {
	return slices.ContainsFunc(l.Active, func(g activeRun) bool { return !g.Triggered && g.Time.Equal(at) })
}

// firstRun names the first of the runs that go on.
func firstRun(active []activeRun) string {
	if len(active) == 0 {
		return ""
	}
	return " (" + active[0].Run + ")"
}

// decideTrigger returns the runs that go on and block or are ended by another that is
// asked for beside the times: forbid lets one block it, replace ends them.
func decideTrigger(r Rules, active []activeRun) (blocking string, ends []string) {
	if len(active) == 0 || r.Concurrency == descriptors.Allow {
		return "", nil
	}
	if r.Concurrency == descriptors.Forbid {
		return active[0].Run, nil
	}
	for _, g := range active {
		ends = append(ends, g.Run)
	}
	return "", ends
}

// decideBackfill returns how many of the missing firings of a backfill may be made
// now, given how many runs go on: one where none does, or, where runs may go on
// side by side, some, as long as that is no crowd.
func decideBackfill(r Rules, active int) int {
	if r.Concurrency != descriptors.Allow {
		return max(0, 1-active)
	}
	return max(0, min(maxPerPass, maxBackfillRuns-active))
}

// firingKey returns the key of a firing, which is the same for every version of the
// schedule, and for every clock.
func firingKey(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// idOf returns the ID of the schedule of an owner that has a name, or, without
// one, that was first asked for in these words.
func idOf(owner, name, words string) string {
	if name != "" {
		words = ""
	}
	sum := sha256.Sum256([]byte(event.Derive("schedule", owner, name, words)))
	var id ulid.ULID
	copy(id[:], sum[:])
	return strings.ToLower(id.String())
}

// trimRecords returns as many of the last records as a history has, and those whose
// runs are not over.
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

// errFenced reports that another gateway fires now.
var errFenced = errors.New("another gateway fires schedules now")

// earlier returns the earlier of two times, where zero is never.
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
