package rule

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
	"github.com/benchmark-ai/bai/services/points"
)

// Numbers by which changes are judged.
const (
	// A change whose p is below sureP needs no further point.
	sureP = 1e-4

	// A shift has to have at least so many standard deviations for single points to
	// tell which level they belong to. A point of one level is by chance within a quarter of the
	// shift of the other one, or beyond it, with a probability of 0.067, and three in a row are with
	// one of 0.0003.
	sharp = 2

	// So many points without the newest ones are looked at, one after the other: the detector needs
	// as many to see that a level came back.
	lookBack = changepoint.MinSide

	// A share of the shift may remain when the level is back.
	returned = 0.25

	// It makes the median of absolute deviations a standard deviation.
	normal = 1.4826
)

// changes finds the episodes of Regression and Change.
type changes struct {
	rule      incident.Rule
	direction judge.Direction
	detector  changepoint.Detector
}

func newChanges(in Input) (changes, []string) {
	c := changes{rule: in.Rule, direction: directionOf(in)}
	c.detector, _ = changepoint.New(judge.Settings{}) // the default is valid
	if in.Rule.When == incident.Regression && c.direction == "" {
		return c, []string{`the metric has no direction: add direction = "higher" or "lower" to its entry of [[output.metrics]]`}
	}
	return c, nil
}

// concerns reports whether a change of that direction is one for the rule.
func (c changes) concerns(rises bool) bool {
	switch {
	case c.rule.When == incident.Change:
		return true
	case c.direction == "":
		return false
	}
	return rises == (c.direction == judge.Lower)
}

// episodes finds the changes of rows, and how far each one still is there.
func (c changes) episodes(rows []row) []episode {
	var all []episode
	stretches := stretchesOf(rows)
	for i, s := range stretches {
		some := c.ofStretch(rows, s)
		if i+1 < len(stretches) {
			moved(some, stretches[i+1], len(rows))
		}
		all = append(all, some...)
	}
	return all
}

// moved ends episodes that still go on at the end of a stretch, once there are enough points on
// other machines: no test is made between the two.
func moved(all []episode, next points.Span, rows int) {
	at := next.First + changepoint.MinPoints - 1
	if at >= rows {
		return
	}
	for i := range all {
		if all[i].end < 0 {
			all[i].end = at
			all[i].why = fmt.Sprintf("%d points are from other machines, with which the earlier level cannot be compared",
				changepoint.MinPoints)
		}
	}
}

// A look is a change, and what the detector found with it.
type look struct {
	found   []changepoint.Change
	index   int // of the change in found
	rows    int // that the detector saw
	times   int // how many looks had it
	certain bool
}

func (l look) change() changepoint.Change { return l.found[l.index] }

// ofStretch finds the episodes of rows on equal machines.
func (c changes) ofStretch(rows []row, s points.Span) []episode {
	all := values(rows[s.First : s.Last+1])
	var episodes []episode
	for _, l := range c.looks(all) {
		for _, e := range c.follow(all, l) {
			e.sure = l.certain || l.times > 1
			e.shift(s.First)
			episodes = append(episodes, e)
		}
	}
	slices.SortStableFunc(episodes, func(a, b episode) int { return cmp.Compare(a.bad, b.bad) })
	return episodes
}

// looks finds the changes of values, and of values without the newest ones: while a level is
// about to come back, the detector sees neither that it changed nor that it came back. So what is
// found does not depend on when somebody looked.
func (c changes) looks(all []float64) []look {
	var looks []look
	for rows := len(all); rows >= changepoint.MinPoints && rows >= len(all)-lookBack; rows-- {
		found := c.detector.Analyse(all[:rows]).Changes
		for i, change := range found {
			if !c.concerns(change.Shift > 0) {
				continue
			}
			known := slices.IndexFunc(looks, func(l look) bool { return same(l.change(), change) })
			if known < 0 {
				known = len(looks)
				looks = append(looks, look{found: found, index: i, rows: rows})
			}
			looks[known].times++
			looks[known].certain = looks[known].certain || change.P < sureP
		}
	}
	return looks
}

// same reports whether two changes are one: no two changes lie as near to each other.
func same(a, b changepoint.Change) bool {
	near := a.Index-b.Index < changepoint.MinSide && b.Index-a.Index < changepoint.MinSide
	return (a.Shift > 0) == (b.Shift > 0) && (near || a.First <= b.Last && b.First <= a.Last)
}

// shift moves the rows of an episode.
func (e *episode) shift(by int) {
	e.first, e.bad, e.last, e.newest = e.first+by, e.bad+by, e.last+by, e.newest+by
	if e.end >= 0 {
		e.end += by
	}
}

// follow returns the episodes of a change: one, and others where the level comes back for some
// points only.
func (c changes) follow(all []float64, l look) []episode {
	found, i, change := l.found, l.index, l.change()
	e := open(change.Index)
	e.kind, e.first, e.last, e.newest = string(change.Kind), change.First, change.Last, len(all)-1
	e.change(change.Before, change.After)
	e.interval, e.p = change.MagnitudeInterval, change.P
	e.small = c.isSmall(change)
	stop := c.levelBack(found, i)
	if stop >= 0 {
		e.end, e.newest = stop, max(stop-1, e.bad)
		e.why = "the level has changed back"
	}
	next := len(all)
	if i+1 < len(found) {
		next = found[i+1].Index
	}
	if !isSharp(all[:l.rows], found, i) {
		return []episode{e}
	}
	return e.split(all, stop, next)
}

// isSmall reports whether a change is smaller than the rule asks for. That of a level of 0 is not.
func (c changes) isSmall(change changepoint.Change) bool {
	return !math.IsNaN(change.Magnitude) && math.Abs(change.Magnitude) < c.rule.MinChange
}

// levelBack returns the row of the first later change after which the level is back, or -1.
func (c changes) levelBack(found []changepoint.Change, i int) int {
	shift := found[i].After - found[i].Before
	remains := max(c.rule.MinChange*math.Abs(found[i].Before), returned*math.Abs(shift))
	for _, later := range found[i+1:] {
		if (later.After-found[i].Before)*math.Copysign(1, shift) <= remains {
			return later.Index
		}
	}
	return -1
}

// split returns the episodes of a change whose points can be told from those before it: points in
// a row that are good end one, and points in a row that are bad begin another one, as long as the
// detector sees no other change there.
func (e episode) split(all []float64, stop, next int) []episode {
	l := levels{e.before, e.after}
	of := func(i int) phase { return l.phaseOf(all[i]) }
	to := len(all)
	if stop >= 0 {
		to = min(stop+back, to)
	}
	found := scans(e.bad, to, 1, back, of)
	if len(found) == 0 || found[0].end < 0 {
		return []episode{e}
	}
	whole := e
	e.end, e.newest, e.why = found[0].end, found[0].newest, backAgain()
	episodes := []episode{e}
	for _, s := range scans(e.end+1, min(to, next), back, back, of) {
		again := whole
		again.first, again.bad, again.last, again.newest = s.begin, s.begin, s.begin, s.newest
		if s.end >= 0 {
			again.end, again.why = s.end, backAgain()
		}
		episodes = append(episodes, again)
	}
	return episodes
}

func backAgain() string { return fmt.Sprintf("%d points in a row are back at the earlier level", back) }

// isSharp reports whether single points tell on which side of a change they belong.
func isSharp(all []float64, found []changepoint.Change, i int) bool {
	from, to := 0, len(all)
	if i > 0 {
		from = found[i-1].Index
	}
	if i+1 < len(found) {
		to = found[i+1].Index
	}
	change := found[i]
	return levels{change.Before, change.After}.sharp(all[from:change.Index], all[change.Index:to])
}

// levels are those before and after a change.
type levels struct{ before, after float64 }

// phaseOf returns which level a value belongs to: the one before it is good.
func (l levels) phaseOf(v float64) phase {
	remains := (v - l.before) / (l.after - l.before)
	switch {
	case math.IsInf(v, 0) || math.IsNaN(remains):
	case remains <= returned:
		return good
	case remains >= 1-returned:
		return bad
	}
	return neither
}

// sharp reports whether single points tell which level they belong to, by the spread of points
// around either level.
func (l levels) sharp(before, after []float64) bool {
	var deviations []float64
	for level, some := range map[float64][]float64{l.before: before, l.after: after} {
		for _, v := range some {
			if !math.IsInf(v, 0) {
				deviations = append(deviations, math.Abs(v-level))
			}
		}
	}
	return len(deviations) > 0 && math.Abs(l.after-l.before) >= sharp*normal*medianOf(deviations)
}
