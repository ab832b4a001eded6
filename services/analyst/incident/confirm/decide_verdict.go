package confirm

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// moved is the share of the change by which the old edition, run now, has to be nearer to the
// new level for the environment to be what has changed.
const moved = 0.5

// Judge returns what the runs of a request say of an incident so far. Values are those of the
// statistic that the rule watches, by run; a run that is missing there has none yet, and NaN
// means that it will have none.
//
// After each pair, two tests look at the differences of all pairs, each of which errs with a
// probability of 5 % at most, over all of its looks: see positive. One asks whether the new
// edition differs in the direction of the incident. The other asks whether it differs by less
// than the points say: the end of the interval of the change that is nearer to 0, but half of the
// change and min_change at least. The verdict is, the first that applies:
//
//   - noise, if the editions differ, by less than min_change;
//   - confirmed, if they differ;
//   - environment, if they differ by less than the points say, and the old edition now has values
//     that are nearer to those of the new level than to those of the old one;
//   - noise, if they differ by less than the points say;
//   - insufficient, if neither test can find anything with the pairs that are left, if no further
//     run is submitted, or after the deadline.
func Judge(i incident.Incident, r Request, p Progress, values map[string]float64, now time.Time) incident.Confirmation {
	c := incident.Confirmation{ID: r.ID, Old: r.Old, New: r.New, Gaps: p.Gaps, Runs: runsOf(r, p, values)}
	pairs, waiting := pairsOf(c.Runs, values)
	planned := i.Rule.Confirm.Pairs
	pairs = pairs[:min(len(pairs), planned)]
	s := suspicionOf(i, pairs)
	shows, lacks := s.differences(pairs)
	found, absent := positive(shows, planned), positive(lacks, planned)
	estimate := s.direction * center(shows)
	switch {
	case found && s.share(estimate) < i.Rule.MinChange:
		c.Verdict, c.Why = incident.VerdictNoise,
			fmt.Sprintf("in %s the new edition is %s, which is less than min_change", counted(len(pairs)), s.text(estimate))
	case found:
		c.Verdict, c.Why = incident.VerdictConfirmed, fmt.Sprintf("in %s the new edition is %s", counted(len(pairs)), s.text(estimate))
	case absent && s.hasMoved(pairs):
		c.Verdict = incident.VerdictEnvironment
		c.Why = fmt.Sprintf("in %s the old edition, run now, has values like the new one: %s instead of %s", counted(len(pairs)),
			number(oldLevel(pairs), i.Unit), number(s.raw(s.before), i.Unit))
	case absent:
		c.Verdict, c.Why = incident.VerdictNoise,
			fmt.Sprintf("%s do not show it: the new edition is %s", counted(len(pairs)), s.text(estimate))
	case len(pairs) > 0 && !mayBecomePositive(shows, planned) && !mayBecomePositive(lacks, planned):
		c.Verdict, c.Why = incident.VerdictInsufficient,
			fmt.Sprintf("%s of %d tell neither that the editions differ nor that they do not", counted(len(pairs)), planned)
	case p.Done != "" && !waiting, !now.Before(r.Deadline):
		c.Verdict, c.Why = incident.VerdictInsufficient,
			fmt.Sprintf("%s of %d have values: %s", counted(len(pairs)), planned, cmp.Or(p.Done, "the deadline is over"))
	}
	return c
}

func counted(pairs int) string {
	if pairs == 1 {
		return "1 pair of runs"
	}
	return fmt.Sprintf("%d pairs of runs", pairs)
}

// runsOf returns the runs of a confirmation with their values.
func runsOf(r Request, p Progress, values map[string]float64) []incident.RunOfPair {
	var all []incident.RunOfPair
	for _, one := range p.Runs {
		run := incident.RunOfPair{Run: one.Run, Pair: one.Ordinal/2 + 1, Side: SideOf(r.ID, one.Ordinal), State: string(one.State)}
		if v, ok := values[one.Run]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			value := store.Float(v)
			run.Value = &value
		}
		all = append(all, run)
	}
	return all
}

// pair has the values of both runs of a pair.
type pair struct{ old, next float64 }

// pairsOf returns the pairs of which both runs have a value, in order, up to the first one whose
// values are to come. Waiting reports whether there is such a pair.
func pairsOf(runs []incident.RunOfPair, values map[string]float64) (pairs []pair, waiting bool) {
	for i := 1; i < len(runs); i++ {
		a, b := runs[i-1], runs[i]
		if a.Side == incident.SideNew {
			a, b = b, a
		}
		switch {
		case a.Pair != b.Pair || a.State == string(Failed) || b.State == string(Failed):
		case awaited(a, values) || awaited(b, values):
			return pairs, true
		case a.Value != nil && b.Value != nil:
			pairs = append(pairs, pair{float64(*a.Value), float64(*b.Value)})
		}
	}
	return pairs, false
}

// awaited reports whether the value of a run is to come.
func awaited(r incident.RunOfPair, values map[string]float64) bool {
	_, known := values[r.Run]
	return r.State == string(Running) || !known
}

// suspicion is what the points say, on the scale on which pairs are compared: that of logarithms
// if all values are above 0, else that of the values.
type suspicion struct {
	logarithms    bool
	direction     float64 // 1 if the values of the new edition are larger, else -1
	before, after float64
	atLeast       float64 // how large the difference is at least, by the points; above 0
	unit          string
}

func suspicionOf(i incident.Incident, pairs []pair) suspicion {
	s := suspicion{logarithms: i.Before > 0 && i.After > 0, direction: 1, unit: i.Unit}
	for _, p := range pairs {
		s.logarithms = s.logarithms && p.old > 0 && p.next > 0
	}
	before := i.Before
	if i.Kind == "" && i.LastGood != nil { // of a limit, Before is the limit
		before = i.LastGood.Value
		s.logarithms = s.logarithms && before > 0
	}
	if i.Direction == "down" {
		s.direction = -1
	}
	s.before, s.after = s.scaled(before), s.scaled(i.After)
	whole := math.Abs(s.after - s.before)
	s.atLeast = whole / 2
	for _, share := range []float64{float64(i.Interval[0]), float64(i.Interval[1]), s.direction * i.Rule.MinChange} {
		if end := s.direction * s.ofShare(share, before); end > s.atLeast && end < whole {
			s.atLeast = end
		}
	}
	return s
}

// scaled returns a value on the scale.
func (s suspicion) scaled(v float64) float64 {
	if s.logarithms {
		return math.Log(v)
	}
	return v
}

// raw returns the value that is one on the scale.
func (s suspicion) raw(v float64) float64 {
	if s.logarithms {
		return math.Exp(v)
	}
	return v
}

// ofShare returns how far a value that is a share larger than one before is from that.
func (s suspicion) ofShare(share, before float64) float64 {
	if s.logarithms {
		return math.Log1p(share)
	}
	return share * math.Abs(before)
}

// differences returns how much the new edition differs in the direction of the incident, and how
// much it lacks of what the points say, by pair.
func (s suspicion) differences(pairs []pair) (shows, lacks []float64) {
	for _, p := range pairs {
		d := s.direction * (s.scaled(p.next) - s.scaled(p.old))
		shows, lacks = append(shows, d), append(lacks, s.atLeast-d)
	}
	return shows, lacks
}

// hasMoved reports whether the old edition has values that are nearer to the new level.
func (s suspicion) hasMoved(pairs []pair) bool {
	return s.direction*(s.scaled(oldLevel(pairs))-s.before) >= moved*math.Abs(s.after-s.before)
}

// oldLevel returns the center of the values of the old edition.
func oldLevel(pairs []pair) float64 {
	var all []float64
	for _, p := range pairs {
		all = append(all, p.old)
	}
	return center(all)
}

// share returns the size of a difference as a share of the level before. Where that is 0, or
// values are not above 0, it is infinite: no share can be asked for.
func (s suspicion) share(difference float64) float64 {
	switch {
	case s.logarithms:
		return math.Abs(math.Expm1(difference))
	case s.before == 0:
		return math.Inf(1)
	}
	return math.Abs(difference / s.before)
}

// text returns a difference in words.
func (s suspicion) text(difference float64) string {
	way := "higher"
	if difference < 0 {
		way = "lower"
	}
	size := s.share(difference)
	if math.IsInf(size, 0) || math.IsNaN(size) {
		return way + " by " + number(math.Abs(difference), s.unit)
	}
	return way + " by " + strconv.FormatFloat(100*size, 'g', 3, 64) + " %"
}

func number(v float64, unit string) string {
	return strings.TrimSpace(strconv.FormatFloat(v, 'g', 5, 64) + " " + unit)
}
