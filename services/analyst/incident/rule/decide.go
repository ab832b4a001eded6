package rule

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/cause"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Numbers by which incidents are told.
const (
	// They say what is shown and never told: an episode that could be seen
	// without the newest points, or without those of the last days. Whoever looks at each point
	// as it comes has seen it then; who sees it now has got a backfill, an import, or a new
	// detector.
	oldPoints = 10
	oldAge    = 7 * 24 * time.Hour

	// An acknowledged incident grows so much before it fires again: by half.
	worse = 1.5

	// An incident keeps so many points for a picture.
	recent = 60

	// So many of the oldest of MaxPoints rows are too few to see a change at.
	edge = 20

	// So many of the newest points say whether a level of long ago is back.
	newestLevel = 20
)

// Watches reports whether the rule is about a series. A rule of Missing is about all series of its
// metric together, and one of Failed about none: see Input.Series.
func Watches(r incident.Rule, k store.SeriesKey) bool {
	return r.Namespace == k.Namespace && r.Task == k.Task && r.Metric == k.Metric
}

// Decide says what becomes of the incidents of a rule and a series.
//
// Regression and Change open an incident at a change that package changepoint finds, of at least
// MinChange, in the points, or in those without up to 5 of the newest: while a level comes back
// the detector sees neither change. The incident is suspected first, and fires if p is below 1e-4,
// or if two of these looks show it. It is dismissed if none does any more. It is resolved by a
// change after which at most a quarter of the shift, or MinChange, remains; by three consecutive
// points of which no more remains, if the shift is at least two standard deviations; or by 10
// points on other machines.
//
// A rule with Confirm asks for runs as soon as an incident is there, however sure it is: it is
// confirming until they give a verdict. Then it fires if they confirm it, or if they say that the
// environment has changed; it is dismissed for good if they say that it is noise; and if they do not
// tell, it is judged by the points alone, as that of a rule without Confirm. What is silent asks
// for no runs.
//
// Above, Below and Beyond fire with For consecutive values over the limit, by their intervals
// where they have one, and are resolved by three consecutive ones within it. Failed fires with For
// consecutive failures, and is resolved by as many successes. Missing fires when a value is
// overdue, once for each gap, and is resolved by the next value.
//
// An incident is silent if it is older than Rule.Since, or could be seen already without the
// newest 10 points or without those of the last 7 days. An acknowledged one fires again at the end
// of the acknowledgement, or if it is 1.5 times as large as when it was acknowledged, and larger
// by more than MinChange.
//
// The ID of an incident follows from rule, series and its first bad point at first sight. Later,
// an episode is the same incident if its range of points overlaps that of the incident, or if it
// is a change less than 5 points from it.
func Decide(in Input) Output {
	w := newDecision(in)
	switch {
	case in.Removed:
		w.endAll("the newest descriptor of the task does not have the alarm any more")
		return w.output(nil)
	case in.Rule.When == incident.Missing:
		w.missing()
		return w.output(nil)
	}
	notes := w.look()
	if w.find == nil {
		return w.output(notes)
	}
	w.match(w.find(w.rows))
	return w.output(notes)
}

// A decision is the state of one Decide.
type decision struct {
	in   Input
	rows []row
	find func(rows []row) []episode // the episodes of rows; nil if the rule cannot be judged

	was  []incident.Incident // as they are stored
	is   []incident.Incident // the same with what users said, and what follows
	used []bool              // incidents that are matched
	made []incident.Incident
}

// newDecision returns the decision about the incidents of the rule and the series.
func newDecision(in Input) *decision {
	w := &decision{in: in}
	for _, i := range in.Incidents {
		same := func(o incident.Incident) bool { return o.ID == i.ID }
		if i.Rule.ID != in.Rule.ID || i.Series.ID() != in.Series.ID() || slices.ContainsFunc(w.was, same) {
			continue
		}
		w.was = append(w.was, i)
		if a, ok := in.Acks[i.ID]; ok {
			i = incident.WithAck(i, a)
		}
		if c, ok := in.Confirmations[i.ID]; ok && i.State == incident.Confirming {
			i.Confirmation = &c
		}
		w.is = append(w.is, i)
	}
	w.used = make([]bool, len(w.is))
	return w
}

// look takes the rows, and what finds episodes in them.
func (w *decision) look() (notes []string) {
	if w.in.Rule.When == incident.Failed {
		w.rows, w.find = runRows(w.in), failures{count: max(1, w.in.Rule.For)}.episodes
		return nil
	}
	w.rows, notes = rowsOf(w.in)
	if w.in.Rule.When == incident.Regression || w.in.Rule.When == incident.Change {
		c, why := newChanges(w.in)
		if why == nil {
			w.find = c.episodes
		}
		return append(notes, why...)
	}
	l, why := newLimits(w.in)
	if why != nil {
		return append(notes, why...)
	}
	w.find = l.episodes
	if w.in.Rule.When == incident.Beyond {
		kept, others := onBaseline(w.in, w.rows)
		if w.rows = kept; others > 0 {
			notes = append(notes, fmt.Sprintf("%s not judged: the machines are not those of baseline %s",
				counted(others, "point is", "points are"), w.in.Rule.Baseline))
		}
	}
	return notes
}

// output returns the incidents that are new or have changed.
func (w *decision) output(notes []string) Output {
	out := Output{Notes: notes}
	for i, is := range w.is {
		is.Updated = w.was[i].Updated
		if !equal(is, w.was[i]) {
			is.Updated = w.in.Now
			out.Incidents = append(out.Incidents, is)
		}
	}
	out.Incidents = append(out.Incidents, w.made...)
	return out
}

// equal reports whether two incidents are the same. NaN is equal to NaN.
func equal(a, b incident.Incident) bool {
	for _, i := range []*incident.Incident{&a, &b} {
		for _, f := range []*store.Float{&i.P, &i.Interval[0], &i.Interval[1]} {
			if math.IsNaN(float64(*f)) {
				*f = store.Float(math.MaxFloat64)
			}
		}
	}
	return reflect.DeepEqual(a, b)
}

// endAll ends all incidents that are open.
func (w *decision) endAll(why string) {
	for i := range w.is {
		if !w.is[i].State.Over() {
			w.is[i] = w.is[i].With(w.transition(incident.Resolved, why))
		}
	}
}

func (w *decision) transition(s incident.State, why string) incident.Transition {
	return incident.Transition{State: s, At: w.in.Now, Why: why}
}

// match brings episodes and incidents together.
func (w *decision) match(found []episode) {
	for _, e := range found {
		i := w.incidentOf(e)
		switch {
		case i >= 0:
			w.used[i] = true
			w.is[i] = w.advance(w.is[i], e)
		case !e.small:
			w.open(e)
		}
	}
	for i := range w.is {
		if !w.used[i] && !w.is[i].State.Over() {
			w.is[i] = w.unmatched(w.is[i])
		}
	}
}

// incidentOf returns the incident of an episode, or -1: one that begins with the same point, else
// an open one, else the one that was opened last; else an open one whose range is so near that
// no two changes could lie there.
func (w *decision) incidentOf(e episode) int {
	best, rank := -1, 0
	id := w.idOf(e)
	for i, is := range w.is {
		if w.used[i] {
			continue
		}
		r := 0
		switch {
		case is.ID == id:
			r = 4
		case w.touches(is, e) && !is.State.Over():
			r = 3
		case w.touches(is, e):
			r = 2
		case w.isNear(is, e) && !is.State.Over():
			r = 1
		}
		if r > rank || r == rank && r > 0 && is.Opened.After(w.is[best].Opened) {
			best, rank = i, r
		}
	}
	return best
}

// isNear reports whether a change lies within the fewest points on a side of one from an incident.
func (w *decision) isNear(i incident.Incident, e episode) bool {
	if e.kind == "" || i.FirstBad == nil || (i.Direction == up) != e.up {
		return false
	}
	was := w.row(i.FirstBad)
	return was > e.bad-changepoint.MinSide && was < e.bad+changepoint.MinSide
}

// row returns the first row that is not before a point.
func (w *decision) row(p *incident.Point) int {
	n, _ := slices.BinarySearchFunc(w.rows, positionOf(p), func(r row, at position) int { return r.position().compare(at) })
	return n
}

// idOf returns the ID of an incident that begins with an episode.
func (w *decision) idOf(e episode) string {
	at := w.rows[e.bad]
	return incident.ID("incident", w.in.Rule.ID, w.in.Series.ID(), at.Time.UTC().Format(time.RFC3339Nano), at.Run)
}

// touches reports whether an episode may be that of an incident: their ranges overlap, or the
// incident began before the oldest row, and the episode at it.
func (w *decision) touches(i incident.Incident, e episode) bool {
	if i.First == nil || i.Last == nil || (i.Direction == up) != e.up {
		return false
	}
	first, last := positionOf(i.First), positionOf(i.Last)
	if last.compare(w.rows[0].position()) < 0 {
		return e.first == 0
	}
	return first.compare(w.rows[w.until(e)].position()) <= 0 && w.rows[e.first].position().compare(last) <= 0
}

// until returns the last row of the range of an episode. Without a change, that is where it was
// seen last: the first bad point of such an incident may be a later one when points come late.
func (w *decision) until(e episode) int {
	if e.kind == "" {
		return max(e.last, e.newest)
	}
	return e.last
}

// open opens an incident for an episode, unless it is over and was never to be told.
func (w *decision) open(e episode) {
	id := w.idOf(e)
	silent := w.isOld(e)
	exists := slices.ContainsFunc(w.is, func(i incident.Incident) bool { return i.ID == id })
	if exists || e.end >= 0 && (silent || !e.sure) {
		return
	}
	i := incident.Incident{ID: id, Series: w.in.Series, Silent: silent, Opened: w.in.Now}
	i = w.facts(i, e)
	i.Worst = i.Size()
	if e.end >= 0 && i.Rule.Confirm != nil { // it passed before runs could confirm it
		return
	}
	i = w.begin(i, e)
	if e.end >= 0 {
		i = i.With(w.transition(incident.Resolved, e.why))
	}
	i.Updated = w.in.Now
	w.made = append(w.made, i)
}

// begin brings an incident into its first state.
func (w *decision) begin(i incident.Incident, e episode) incident.Incident {
	if w.asksForRuns(i, e) {
		i.Confirmation = &incident.Confirmation{Old: w.rows[e.first-1].Run, New: w.rows[e.last].Run}
		return i.With(w.transition(incident.Confirming, "runs of both editions have to show it"))
	}
	if e.sure {
		return i.With(w.transition(incident.Firing, i.Message))
	}
	return i.With(w.transition(incident.Suspected, "one more point has to show it"))
}

// isOld reports whether an episode could be seen long ago.
func (w *decision) isOld(e episode) bool {
	at := w.rows[e.last]
	if at.Time.Before(w.in.Rule.Since) {
		return true
	}
	before := w.in.Now.Add(-oldAge)
	aged, _ := slices.BinarySearchFunc(w.rows, before, func(r row, t time.Time) int { return r.Time.Compare(t) })
	for _, n := range []int{len(w.rows) - oldPoints, aged} {
		if n > e.last && slices.ContainsFunc(w.find(w.rows[:n]), func(o episode) bool {
			return o.up == e.up && !o.small && o.first <= w.until(e) && e.first <= w.until(o)
		}) {
			return true
		}
	}
	return false
}

// advance returns an incident after its episode was seen again.
func (w *decision) advance(i incident.Incident, e episode) incident.Incident {
	over := i.State.Over()
	switch {
	case over && (!passed(i) || e.end >= 0 || e.small):
		return i
	case e.small && (i.State == incident.Suspected || w.negligible(e)):
		return i.With(w.transition(incident.Dismissed, "the change is smaller than min_change"))
	}
	i = w.facts(i, e)
	switch {
	case e.end >= 0 && (i.State == incident.Suspected || i.State == incident.Confirming):
		return i.With(w.transition(incident.Dismissed, e.why))
	case e.end >= 0:
		return i.With(w.transition(incident.Resolved, e.why))
	case over:
		return w.returns(i, e)
	}
	return w.still(i, e)
}

// returns returns an incident that was over and goes on: acknowledged, if it was and still is.
func (w *decision) returns(i incident.Incident, e episode) incident.Incident {
	if a := i.Acked; a != nil && (a.Until.IsZero() || w.in.Now.Before(a.Until)) {
		return i.With(w.transition(incident.Acknowledged, "it is there again, and was acknowledged"))
	}
	i.Worst = i.Size()
	return w.begin(i, e)
}

// still returns an incident that goes on.
func (w *decision) still(i incident.Incident, e episode) incident.Incident {
	switch i.State {
	case incident.Suspected:
		if e.sure || w.asksForRuns(i, e) {
			i.Worst = i.Size()
			return w.begin(i, e)
		}
	case incident.Confirming:
		return w.confirmed(i, e)
	case incident.Firing:
		i.Worst = max(i.Worst, i.Size())
	case incident.Acknowledged:
		return w.again(i)
	case incident.Resolved, incident.Dismissed:
	}
	return i
}

// again returns an acknowledged incident, which fires if it is time, or if it is clearly worse.
func (w *decision) again(i incident.Incident) incident.Incident {
	why := ""
	switch a := i.Acked; {
	case a != nil && !a.Until.IsZero() && !w.in.Now.Before(a.Until):
		why = "the acknowledgement has ended"
	case i.Size() >= worse*i.Worst && i.Size()-i.Worst > w.in.Rule.MinChange && i.Size() > i.Worst:
		why = fmt.Sprintf("it is clearly worse: %s, and %s when it was acknowledged", percent(i.Size()), percent(i.Worst))
	}
	if why == "" {
		return i
	}
	i.Worst = i.Size()
	return i.With(w.transition(incident.Firing, why))
}

// passed reports whether an incident ended by what the points say, and not by what a user or runs
// said: it goes on if later points say something else.
func passed(i incident.Incident) bool {
	return i.State.Over() && (i.Acked == nil || !i.Acked.Wrong && !i.Acked.Accept) && verdictOf(i) != incident.VerdictNoise
}

// negligible reports whether a change is less than half of what the rule asks for: an incident
// that was told does not end because its change is estimated as a little smaller.
func (w *decision) negligible(e episode) bool {
	return math.Abs(e.magnitude) < w.in.Rule.MinChange/2
}

// unmatched returns an open incident whose episode is not found.
func (w *decision) unmatched(i incident.Incident) incident.Incident {
	if len(w.rows) == 0 || i.FirstBad == nil {
		return i
	}
	if i.Kind == "" {
		if positionOf(i.FirstBad).compare(w.rows[0].position()) < 0 {
			return i.With(w.transition(incident.Resolved,
				fmt.Sprintf("none of the newest %s shows it any more", counted(len(w.rows), "run", "runs"))))
		}
		return i.With(w.transition(incident.Dismissed, "earlier points came, and with them it is none"))
	}
	first := w.row(i.FirstBad)
	if first == 0 || len(w.rows) >= MaxPoints-edge && first < edge {
		return w.carried(i)
	}
	return i.With(w.transition(incident.Dismissed,
		fmt.Sprintf("with %s the change is not there any more", counted(len(w.rows), "point", "points"))))
}

// carried returns an incident whose change lies before the oldest rows: it ends if the newest
// points are back.
func (w *decision) carried(i incident.Incident) incident.Incident {
	tail := values(w.rows[max(0, len(w.rows)-newestLevel):])
	shift := i.After - i.Before
	remains := max(w.in.Rule.MinChange*math.Abs(i.Before), returned*math.Abs(shift))
	if len(tail) == newestLevel && (medianOf(tail)-i.Before)*math.Copysign(1, shift) <= remains {
		return i.With(w.transition(incident.Resolved, fmt.Sprintf("the newest %d points are back at the earlier level", newestLevel)))
	}
	return w.still(i, episode{})
}

// facts returns an incident with what its episode says.
func (w *decision) facts(i incident.Incident, e episode) incident.Incident {
	i.Rule, i.Unit = w.in.Rule, w.in.Series.Unit
	i.Kind, i.Direction, i.Before, i.After = e.kind, direction(e.up), e.before, e.after
	if w.in.Rule.When == incident.Failed {
		i.Direction = ""
	}
	if i.Magnitude = nil; !math.IsNaN(e.magnitude) {
		m := store.Float(e.magnitude)
		i.Magnitude = &m
	}
	i.Interval = [2]store.Float{store.Float(e.interval.Low), store.Float(e.interval.High)}
	i.P = store.Float(e.p)
	i.FirstBad, i.First, i.Last = w.point(e.bad), w.point(e.first), w.point(w.until(e))
	i.LastGood = w.point(e.bad - 1)
	i.Recent = nil
	for _, r := range w.rows[max(0, len(w.rows)-recent):] {
		i.Recent = append(i.Recent, r.Point)
	}
	if e.first > 0 {
		i.Cause, i.Reasons = cause.Of(*w.rows[e.first-1].run, *w.rows[e.last].run)
	} else {
		i.Cause, i.Reasons = incident.CauseInsufficient, []string{"there is no point before it"}
	}
	i.Cause, i.Reasons = cause.Confirmed(i.Cause, i.Reasons, i.Confirmation)
	i.Message = w.message(i, e)
	return i
}

func (w *decision) point(n int) *incident.Point {
	if n < 0 || n >= len(w.rows) {
		return nil
	}
	p := w.rows[n].Point
	return &p
}

// Directions of incidents.
const (
	up   = "up"
	down = "down"
)

func direction(isUp bool) string {
	if isUp {
		return up
	}
	return down
}
