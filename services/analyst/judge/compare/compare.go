// Package compare says whether runs differ from others of the same benchmark, metric by
// metric. It is pure: the same values always give the same answer.
//
// # Method
//
// The run is the unit of replication: a run of a hundred samples is one value. Enough runs
// are compared as judge.Compare compares cells, on logarithms, so that a change is a ratio
// whose interval has the ratios that the same test does not reject. Fewer runs are compared
// by the spread between the runs of a history, as a prediction is. Without a history they
// show nothing, and the comparison says how many runs are lacking. The page
// docs/statistics.md has the formulas, their sources and their limits.
//
// # Assumptions
//
// Runs are independent of each other. Those of a side have one distribution; those of a
// history have the spread of both sides, and may have another level.
package compare

import (
	"fmt"
	"math"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/power"
)

// FewestHistory is how many runs on one level have at least to be known, for their spread to
// stand for that of single runs.
const FewestHistory = power.FewestValues

// Settings are the settings of a Comparer. The zero value works.
type Settings struct {
	// Confidence is that of intervals, as that of judge.Settings. The level of tests is 1 -
	// Confidence.
	Confidence float64

	// MinChange is the largest change that does not matter: 0.02 is 2 %. It is at least 0
	// and less than 1. With 0, every change matters.
	MinChange float64
}

// Validate returns an error that names a setting that is out of its range.
func (s Settings) Validate() error {
	if math.IsNaN(s.MinChange) || s.MinChange < 0 || s.MinChange >= 1 {
		return fmt.Errorf("min change is %v: want at least 0, and less than 1", s.MinChange)
	}
	return judge.Settings{Confidence: s.Confidence}.Validate()
}

// A Point is one run's value of a metric.
type Point struct {
	// Value is the median of the run's samples, in the unit of the metric. A point whose Value
	// is NaN or infinite does not count.
	Value float64

	// Samples is their number. It is added up, and weighs nothing.
	Samples int

	// StandardError is that of Value by the spread of the samples of this run, in the unit
	// of the metric. 0, NaN and infinity mean that it is not known. It counts only where a
	// run is compared by a history whose spread is smaller.
	StandardError float64
}

// A Metric is what is compared.
type Metric struct {
	Direction judge.Direction

	// Base and Other are the old and the new side.
	Base, Other []Point

	// History has the values of runs of the same series that lie on one level, in order of
	// time. Runs of Base and Other are none of them. It may be empty.
	History []float64
}

// A Verdict is the result of a comparison.
type Verdict string

// The verdicts.
const (
	// Better and Worse: the other side differs from the base, to this side by the direction.
	Better Verdict = "better"
	Worse  Verdict = "worse"

	// Changed: the sides differ, and the metric has no direction.
	Changed Verdict = "changed"

	// Same: the whole interval of the change is at most MinChange, or all values of enough
	// runs are equal.
	Same Verdict = "same"

	// Unclear: none of the others can be said, for the Reason.
	Unclear Verdict = "unclear"
)

// A Reason is why a comparison is Unclear.
type Reason string

// The reasons.
const (
	// FewRuns: the runs are too few for any verdict, and there is no history that is long
	// enough. LackingBase, LackingOther and LackingHistory have what is lacking.
	FewRuns Reason = "few_runs"

	// Noise: the change may be none, and may be one that matters.
	Noise Reason = "noise"

	// ManyMetrics: alone the metric would have changed. Of so many, one may by chance.
	ManyMetrics Reason = "many_metrics"
)

// A Test is how P and Change were computed.
type Test string

// The tests.
const (
	MannWhitney Test = "mann_whitney" // of the runs of both sides
	Prediction  Test = "prediction"   // by the spread of a history, with Student's distribution
)

// A Side is one side of a comparison.
type Side struct {
	judge.Summary
	Samples int // of the runs that count
}

// A Comparison says how the other side of a metric differs from the base.
type Comparison struct {
	Verdict Verdict
	Reason  Reason // empty unless Unclear

	Base, Other Side

	// Test is empty if there is none, because of FewRuns. Then P and AdjustedP are 1, and
	// Change is nil.
	Test Test

	// P is the probability of sides that differ as much or more, if they have one
	// distribution. AdjustedP is the least false discovery rate with which this metric is
	// among those that changed (Y. Benjamini and Y. Hochberg, Journal of the Royal
	// Statistical Society B 57, 1995).
	P, AdjustedP float64

	// Change is how much larger the values of the other side are, on the Scale: of a Ratio,
	// 0.02 is 2 % more.
	Change *judge.Estimate
	Scale  judge.Scale

	// History is the number of values that the spread of a Prediction comes from, and
	// Autocorrelation that of the history. Both are 0 with another test.
	History         int
	Autocorrelation float64

	// LackingBase and LackingOther are the numbers of runs, and LackingHistory that of
	// values of the history, without which there is no test: the runs or the history are
	// needed. All are 0 if there is one.
	LackingBase, LackingOther int
	LackingHistory            int

	// Needed is the number of runs on each side that find a change of Shows with a
	// probability of 80 %, if the verdict is Unclear. It is more than the present ones have
	// on the smaller side. Shows is MinChange; where the present runs would find that, or
	// without a MinChange, it is the size of the change that decides: that of the observed
	// one, or its distance from MinChange. Both are 0 where the noise is not known, and where
	// more than power.MaxRuns are needed.
	Needed int
	Shows  float64
}

// A Comparer compares with one confidence and one smallest change. Its methods may be called
// concurrently.
type Comparer struct {
	judge     judge.Judge
	planner   power.Planner
	level     float64 // of tests
	minChange float64
}

// New returns a Comparer with settings, or the error of their Validate.
func New(s Settings) (Comparer, error) {
	if err := s.Validate(); err != nil {
		return Comparer{}, err
	}
	if s.Confidence == 0 {
		s.Confidence = 0.95
	}
	j, err := judge.New(judge.Settings{Confidence: s.Confidence})
	if err != nil {
		return Comparer{}, err
	}
	p, err := power.New(power.Settings{Confidence: s.Confidence})
	return Comparer{judge: j, planner: p, level: 1 - s.Confidence, minChange: s.MinChange}, err
}

// Compare compares metrics, which are judged together: the more of them there are, the
// clearer a change has to be. The answers are in the order of the metrics.
//
// Where both sides have enough runs, 4 with a confidence of 0.95, the Test is MannWhitney.
// Else it is Prediction, if the history or one of the sides has FewestHistory values.
func (c Comparer) Compare(metrics ...Metric) []Comparison {
	all := make([]analysis, len(metrics))
	for i, m := range metrics {
		all[i] = c.analyse(m)
	}
	adjust(all)
	answers := make([]Comparison, len(metrics))
	for i := range all {
		c.decide(&all[i])
		answers[i] = all[i].Comparison
	}
	return answers
}
