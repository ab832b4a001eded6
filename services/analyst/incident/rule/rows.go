package rule

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/units"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// A row is a point, or a run, as a rule sees it.
type row struct {
	incident.Point

	run       *store.PointRun
	low, high float64 // the interval of Value; Value itself without one
	failed    bool    // of Failed
	reason    string
}

// position orders rows.
type position struct {
	time time.Time
	run  string
}

func (r row) position() position { return position{r.Time, r.Run} }

func positionOf(p *incident.Point) position { return position{p.Time, p.Run} }

func (p position) compare(o position) int {
	return cmp.Or(p.time.Compare(o.time), strings.Compare(p.run, o.run))
}

// fewestSamples is how many samples a run has at least whose percentile is judged: above it
// lie 5 of them.
func fewestSamples(s incident.Statistic) int64 {
	switch s {
	case incident.P90:
		return 50
	case incident.P95:
		return 100
	case incident.P99:
		return 500
	case incident.Median, incident.Mean, incident.Min, incident.Max, incident.Last:
	}
	return 0
}

// valueOf returns the statistic of a summary.
func valueOf(s *store.Summary, of incident.Statistic) float64 {
	switch of {
	case incident.Mean:
		return float64(s.Mean)
	case incident.Min:
		return float64(s.Min)
	case incident.Max:
		return float64(s.Max)
	case incident.P90:
		return float64(s.P90)
	case incident.P95:
		return float64(s.P95)
	case incident.P99:
		return float64(s.P99)
	case incident.Last:
		return float64(s.Last)
	case incident.Median:
	}
	return float64(s.Median)
}

// Value returns the statistic of a run's samples in a series, as a rule judges it: NaN if a percentile
// needs more samples.
func Value(s store.Summary, of incident.Statistic) float64 {
	if s.N < fewestSamples(of) {
		return math.NaN()
	}
	return valueOf(&s, of)
}

// HasValue reports whether a run's samples in a series have a statistic: samples that are all NaN have none. Whether they are enough to
// judge it is another question.
func HasValue(s store.Summary, of incident.Statistic) bool { return !math.IsNaN(valueOf(&s, of)) }

// rowsOf returns the points that count, in order, each run once, and says which do not.
func rowsOf(in Input) (rows []row, notes []string) {
	incomplete, few := 0, 0
	all := newestPoints(in.Points)
	for i := range all {
		p := &all[i]
		v := valueOf(&p.Summary, in.Rule.Statistic)
		switch {
		case p.Excluded != "" || math.IsNaN(v):
		case !p.Complete:
			incomplete++
		case p.N < fewestSamples(in.Rule.Statistic):
			few++
		default:
			rows = append(rows, rowOf(p, v, in.Rule.Statistic))
		}
	}
	if incomplete > 0 {
		notes = append(notes, fmt.Sprintf("%s not judged: samples are missing", counted(incomplete, "point is", "points are")))
	}
	if few > 0 {
		notes = append(notes, fmt.Sprintf("%s not judged: a %s needs %d samples", counted(few, "point is", "points are"), in.Rule.Statistic,
			fewestSamples(in.Rule.Statistic)))
	}
	return rows, notes
}

// newestPoints returns the newest points in order, each run once. They are not copied if they are so already, as those of a store are.
func newestPoints(all []store.Point) []store.Point {
	if !inOrder(all) {
		all = slices.Clone(all)
		slices.SortStableFunc(all, func(a, b store.Point) int {
			return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Run, b.Run))
		})
		all = slices.CompactFunc(all, func(a, b store.Point) bool { return a.Run == b.Run && a.Time.Equal(b.Time) })
	}
	return all[max(0, len(all)-MaxPoints):]
}

// inOrder reports whether each point is later than the one before it.
func inOrder(all []store.Point) bool {
	for i := 1; i < len(all); i++ {
		a, b := &all[i-1], &all[i]
		if c := a.Time.Compare(b.Time); c > 0 || c == 0 && a.Run >= b.Run {
			return false
		}
	}
	return true
}

func rowOf(p *store.Point, v float64, s incident.Statistic) row {
	r := row{Point: incident.Point{Run: p.Run, Time: p.Time, Version: p.Version, Value: bounded(v)}, run: &p.PointRun, low: v, high: v}
	if p.Interval != nil && (s == incident.Median || s == "") {
		r.low, r.high = min(v, float64(p.Interval.Low)), max(v, float64(p.Interval.High))
	}
	return r
}

// bounded returns v, which is not NaN, or the largest number for an infinite one, which JSON does not have.
func bounded(v float64) float64 { return max(-math.MaxFloat64, min(math.MaxFloat64, v)) }

// runRows returns the runs in order, each once.
func runRows(in Input) []row {
	var rows []row
	for _, r := range in.Runs {
		p := &store.PointRun{Run: r.Run, Time: r.Time, Version: r.Version}
		rows = append(rows, row{
			Point: incident.Point{Run: r.Run, Time: r.Time, Version: r.Version}, run: p,
			failed: r.Failed, reason: r.Reason,
		})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return a.position().compare(b.position()) })
	rows = slices.CompactFunc(rows, func(a, b row) bool { return a.Run == b.Run })
	return rows[max(0, len(rows)-MaxPoints):]
}

// values returns the values of rows. Those without a finite one are infinite.
func values(rows []row) []float64 {
	all := make([]float64, len(rows))
	for i, r := range rows {
		all[i] = r.Value
		if math.Abs(r.Value) == math.MaxFloat64 {
			all[i] = math.Inf(1)
		}
	}
	return all
}

// stretchesOf splits rows where the machine changes.
func stretchesOf(rows []row) []points.Span {
	machines := make([]string, len(rows))
	for i, r := range rows {
		machines[i] = r.run.Machine
	}
	return points.Spans(machines)
}

// directionOf returns the direction of the newest point that has one, else that of a metric of
// the platform.
func directionOf(in Input) judge.Direction {
	sorted := newestPoints(in.Points)
	for _, p := range slices.Backward(sorted) {
		if d := judge.Direction(p.Direction); d == judge.Higher || d == judge.Lower {
			return d
		}
	}
	return judge.Direction(descriptors.PlatformDirection(in.Rule.Metric))
}

// limitIn returns the limit of a rule in the unit of a series.
func limitIn(r incident.Rule, unit string) (limit float64, ok bool) {
	if r.Unit == "" || r.Unit == unit {
		return r.Limit, true
	}
	if !units.Convertible(r.Unit, unit) {
		return 0, false
	}
	limit, _ = units.Convert(r.Limit, r.Unit, unit)
	return limit, true
}

// medianOf returns the median of values; they must not be none.
func medianOf(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	a, b := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
	return a/2 + b/2
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
