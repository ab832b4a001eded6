package benchstat

import (
	"errors"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// confidence is the level of the ranges behind the medians.
const confidence = 0.95

// measurements are the values behind a table.
type measurements struct {
	unit       string
	assumption benchmath.Assumption
	columns    []string
	rows       []measured
}

// measured are the values of one benchmark, by column; none where the column
// lacks the benchmark.
type measured struct {
	name   string
	values [][]float64
}

// table is what benchstat says about the measurements of one unit. The first
// column is the base of all comparisons.
type table struct {
	unit    string
	columns []string
	rows    []row
	means   []mean // one for each column
}

// row is one benchmark: an estimate for each column, nil where the column lacks it.
type row struct {
	name      string
	estimates []*estimate
}

// estimate is what one column says about one benchmark, with its comparison to
// the base where there is one.
type estimate struct {
	values     *benchmath.Sample
	summary    benchmath.Summary
	base       *estimate
	comparison benchmath.Comparison
}

// mean is the geometric mean of a column's centers, and of their ratios to the
// base. NaN stands for a mean that does not exist.
type mean struct {
	center, ratio float64
	warnings      []error
}

// decide computes a table. It sorts the values where they are.
func decide(m measurements) table {
	t := table{unit: m.unit, columns: m.columns}
	for _, r := range m.rows {
		t.rows = append(t.rows, row{name: r.name, estimates: compare(r.values, m.assumption)})
	}
	bases := t.column(0)
	t.means = []mean{meanOf(bases)}
	for i := range m.columns[1:] {
		t.means = append(t.means, meanToBase(t.column(i+1), len(bases)))
	}
	return t
}

// column returns the estimates that a column has.
func (t table) column(i int) (estimates []*estimate) {
	for _, r := range t.rows {
		if e := r.estimates[i]; e != nil {
			estimates = append(estimates, e)
		}
	}
	return estimates
}

// compare summarises the values of each column, and compares them with the first.
func compare(columns [][]float64, assumption benchmath.Assumption) []*estimate {
	estimates := make([]*estimate, len(columns))
	for i, values := range columns {
		if len(values) == 0 {
			continue
		}
		thresholds := benchmath.DefaultThresholds
		e := &estimate{values: benchmath.NewSample(values, &thresholds)}
		e.summary = assumption.Summary(e.values, confidence)
		if e.base = estimates[0]; e.base != nil {
			e.comparison = compareTwo(e.base.values, e.values, assumption)
		}
		estimates[i] = e
	}
	return estimates
}

// compareTwo compares two samples. The test of samples that may have any
// distribution does not end where one of them has a NaN, so that it is not made.
func compareTwo(base, s *benchmath.Sample, assumption benchmath.Assumption) benchmath.Comparison {
	exact := assumption == benchmath.AssumeExact
	if exact || !slices.ContainsFunc(slices.Concat(base.Values, s.Values), math.IsNaN) {
		return assumption.Compare(base, s)
	}
	return benchmath.Comparison{
		P: 1, N1: len(base.Values), N2: len(s.Values), Alpha: s.Thresholds.CompareAlpha,
		Warnings: []error{errors.New("samples with NaN are not compared")},
	}
}

// meanOf returns the mean of a column that has no base.
func meanOf(estimates []*estimate) mean {
	m := mean{center: geomean(centers(estimates)), ratio: math.NaN()}
	if math.IsNaN(m.center) {
		m.warnings = append(m.warnings, errors.New("summaries must be >0 to compute geomean"))
	}
	return m
}

// meanToBase returns the mean of a column, given the number of benchmarks of
// the base's column. A ratio to a base of zero leaves the column without a mean
// of its ratios.
func meanToBase(estimates []*estimate, bases int) mean {
	var ratios []float64
	compared, zero := 0, false
	for _, e := range estimates {
		if e.base == nil {
			continue
		}
		compared++
		switch center, base := e.summary.Center, e.base.summary.Center; {
		case center == base: // also where both are zero
			ratios = append(ratios, 1)
		case base == 0:
			zero = true
		default:
			ratios = append(ratios, center/base)
		}
	}
	m := meanOf(estimates)
	if compared != bases {
		differs := errors.New("benchmark set differs from baseline; geomeans may not be comparable")
		m.warnings = slices.Insert(m.warnings, 0, differs)
	}
	if zero {
		return m
	}
	if m.ratio = geomean(ratios); math.IsNaN(m.ratio) {
		m.warnings = append(m.warnings, errors.New("ratios must be >0 to compute geomean"))
	}
	return m
}

// centers returns the centers of the estimates.
func centers(estimates []*estimate) (all []float64) {
	for _, e := range estimates {
		all = append(all, e.summary.Center)
	}
	return all
}

// geomean returns the geometric mean of values, NaN where there are none or one
// is not positive. It adds up in the order of go-moremath's stats.GeoMean, so
// that the two agree to the last bit.
func geomean(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	log := 0.0
	for i, v := range values {
		if v <= 0 {
			return math.NaN()
		}
		log += (math.Log(v) - log) / float64(i+1)
	}
	return math.Exp(log)
}
