package rule

import (
	"fmt"
	"math"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// limits finds the episodes of Above, Below and Beyond.
type limits struct {
	limit float64 // in the unit of the series
	base  float64 // Before of incidents: the limit itself, or the median of the baseline
	above bool    // values above the limit are bad
	count int     // consecutive rows
}

// newLimits returns what a rule asks for, or a note that says why it cannot be judged.
func newLimits(in Input) (limits, []string) {
	l := limits{above: in.Rule.When == incident.Above, count: max(1, in.Rule.For)}
	if in.Rule.When != incident.Beyond {
		limit, ok := limitIn(in.Rule, in.Series.Unit)
		if !ok {
			return l, []string{fmt.Sprintf("the limit is in %s, which cannot be converted to %s, the unit of the metric",
				in.Rule.Unit, orNone(in.Series.Unit))}
		}
		l.limit, l.base = limit, limit
		return l, nil
	}
	direction := directionOf(in)
	if direction == "" {
		return l, []string{`the metric has no direction: add direction = "higher" or "lower" to its entry of [[output.metrics]]`}
	}
	var base []float64
	for _, p := range newestPoints(in.Baseline) {
		if v := valueOf(&p.Summary, in.Rule.Statistic); !math.IsNaN(v) && !math.IsInf(v, 0) && p.N >= fewestSamples(in.Rule.Statistic) {
			base = append(base, v)
		}
	}
	if len(base) == 0 {
		return l, []string{fmt.Sprintf("baseline %s has no value of the metric (baictl baseline set %s RUN)",
			in.Rule.Baseline, in.Rule.Baseline)}
	}
	l.base, l.above = medianOf(base), direction == judge.Lower
	by := in.Rule.Limit * math.Abs(l.base)
	if l.limit = l.base + by; !l.above {
		l.limit = l.base - by
	}
	return l, nil
}

func orNone(unit string) string {
	if unit == "" {
		return "no unit"
	}
	return unit
}

// phaseOf returns on which side of the limit a row is. If the limit is inside the interval of a
// value that is over it, neither is sure.
func (l limits) phaseOf(r row) phase {
	sure := r.low
	if !l.above {
		sure = r.high
	}
	switch {
	case l.over(sure):
		return bad
	case l.over(r.Value):
		return neither
	}
	return good
}

func (l limits) over(v float64) bool {
	if l.above {
		return v > l.limit
	}
	return v < l.limit
}

func (l limits) episodes(rows []row) []episode {
	of := func(i int) phase { return l.phaseOf(rows[i]) }
	var all []episode
	for _, s := range scans(0, len(rows), l.count, back, of) {
		e := open(s.begin)
		e.newest, e.end = s.newest, s.end
		e.change(l.base, l.newestOver(rows, s))
		e.up = l.above
		if e.end >= 0 {
			e.why = fmt.Sprintf("%d values in a row are within the limit", back)
		}
		all = append(all, e)
	}
	return all
}

// newestOver returns the median of the newest values of a scan that are over the limit.
func (l limits) newestOver(rows []row, s scan) float64 {
	var newest []float64
	for i := s.newest; i >= s.begin && len(newest) < back; i-- {
		if l.phaseOf(rows[i]) == bad {
			newest = append(newest, rows[i].Value)
		}
	}
	return medianOf(newest)
}

// onBaseline returns the rows that ran on a machine of the baseline, or on one that is not known,
// and how many others there are.
func onBaseline(in Input, rows []row) (kept []row, others int) {
	machines := map[string]bool{}
	for _, p := range in.Baseline {
		machines[p.Machine] = true
	}
	for _, r := range rows {
		if r.run.Machine == "" || machines[""] || machines[r.run.Machine] {
			kept = append(kept, r)
		} else {
			others++
		}
	}
	return kept, others
}

// failures finds the episodes of Failed: they end with as many consecutive runs that succeed as
// began them that failed.
type failures struct{ count int }

func (f failures) episodes(rows []row) []episode {
	of := func(i int) phase {
		if rows[i].failed {
			return bad
		}
		return good
	}
	var all []episode
	for _, s := range scans(0, len(rows), f.count, f.count, of) {
		e := open(s.begin)
		e.newest, e.end = s.newest, s.end
		if e.end >= 0 {
			e.why = fmt.Sprintf("%s succeeded", counted(f.count, "run has", "runs in a row have"))
		}
		all = append(all, e)
	}
	return all
}
