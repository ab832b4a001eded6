// Package sequential compares two sides by pairs of runs, and may be asked after each pair
// whether the verdict stands. It is pure: the same values always give the same answer.
//
// # Method
//
// The differences of pairs are judged by their signed ranks (Wilcoxon, 1945). If the sides are
// equal, the random order within pairs makes each sign as likely as the other one, and the
// place of a further difference among the sizes of those before it is any with the same
// probability. So the probabilities of all orders of signs are known after each pair, and the
// sums of ranks that are rejected there spend what is left of 5 % (alpha spending; Lan and
// DeMets, 1983). The interval of the change has the changes that no look rejects. All of them
// cover it together with 95 %, so that the last one does whenever somebody stops looking. The
// page docs/statistics.md has the formulas.
//
// # Assumptions
//
// Both runs of a pair run one after the other, in a random order. Pairs are independent of
// each other, and a change shifts all values alike.
package sequential

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
)

// MaxPairs is the largest number of pairs that are looked at. What a look may spend does not
// depend on how many pairs are planned, so that pairs may be added later.
const MaxPairs = 20

// signedRanks is the test of a Comparer.
const signedRanks compare.Test = "signed_ranks"

// level is the probability with which a Comparer errs at most, over all looks and all series.
const level = 0.05

// A Comparer compares the pairs of some series, which share its level. Its methods may be
// called concurrently.
type Comparer struct {
	judge     judge.Judge
	minChange float64
	level     float64 // of each series
	critical  []int   // by the number of pairs: the largest sum of ranks that is rejected, and -1 for none
}

// New returns a Comparer of so many series that looks at pairs at most. The smallest change that
// matters is that of compare.Settings. The error is that of their Validate, or names a number
// that is out of its range: there is at least one series, and there are 1 to MaxPairs pairs.
func New(minChange float64, series, pairs int) (Comparer, error) {
	switch {
	case series < 1:
		return Comparer{}, fmt.Errorf("number of series is %d: want at least 1", series)
	case pairs < 1 || pairs > MaxPairs:
		return Comparer{}, fmt.Errorf("number of pairs is %d: want at least 1, and at most %d", pairs, MaxPairs)
	}
	if err := (compare.Settings{MinChange: minChange}).Validate(); err != nil {
		return Comparer{}, err
	}
	j, err := judge.New(judge.Settings{})
	each := level / float64(series)
	return Comparer{judge: j, minChange: minChange, level: each, critical: criticals(each/2, pairs)}, err
}

// Fewest returns the number of pairs after which there may be a verdict, and 0 if there is none
// with as many pairs as the Comparer looks at.
func (c Comparer) Fewest() int {
	return max(0, slices.IndexFunc(c.critical, func(sum int) bool { return sum >= 0 }))
}

// Compare says how the other side differs from the base, by the pairs so far: both sides have
// the value of each pair at the same index. A pair with a value that is NaN or infinite, and
// pairs beyond those that the Comparer looks at, do not count. The Test is "signed_ranks", which
// has no P: it is NaN. A verdict that is not compare.Unclear stands: who asks again with further pairs,
// such as those that another series needs, may get another one, and errs more often than the level.
func (c Comparer) Compare(direction judge.Direction, base, other []float64) compare.Comparison {
	base, other = c.finite(base, other)
	out := compare.Comparison{
		Verdict: compare.Unclear, Reason: compare.FewRuns, P: math.NaN(), AdjustedP: math.NaN(),
		Base: compare.Side{Summary: c.judge.Summarise(base)}, Other: compare.Side{Summary: c.judge.Summarise(other)},
	}
	n := len(base)
	if c.critical[n] < 0 {
		lacking := slices.IndexFunc(c.critical[n:], func(sum int) bool { return sum >= 0 })
		out.LackingBase, out.LackingOther = max(lacking, 0), max(lacking, 0)
		return out
	}
	out.Test, out.Reason, out.Scale = signedRanks, compare.Noise, judge.ScaleOf(out.Base.Median, base, other)
	from, to := out.Scale.Numbers(base), out.Scale.Numbers(other)
	differences := make([]float64, n)
	for i := range differences {
		differences[i] = to[i] - from[i]
	}
	change := out.Scale.Estimate(c.estimate(differences))
	out.Change = &change
	if verdict := c.verdict(direction, change, out.Scale.Kind); verdict != compare.Unclear {
		out.Verdict, out.Reason = verdict, ""
	}
	return out
}

// finite returns the pairs that count.
func (c Comparer) finite(base, other []float64) (from, to []float64) {
	for i := range min(len(base), len(other)) {
		if isFinite(base[i]) && isFinite(other[i]) && len(from) < len(c.critical)-1 {
			from, to = append(from, base[i]), append(to, other[i])
		}
	}
	return from, to
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// estimate returns the median of the means of all pairs of differences, each with itself, too
// (Hodges and Lehmann, 1963), and the interval that has those that the test does not reject.
func (c Comparer) estimate(differences []float64) judge.Estimate {
	means := make([]float64, 0, len(differences)*(len(differences)+1)/2)
	for i, a := range differences {
		for _, b := range differences[i:] {
			means = append(means, a/2+b/2)
		}
	}
	slices.Sort(means)
	n, out := len(means), c.critical[len(differences)]
	return judge.Estimate{
		Value:    means[(n-1)/2]/2 + means[n/2]/2,
		Interval: judge.Interval{Low: means[out], High: means[n-1-out], Level: 1 - c.level},
	}
}

// verdict returns what an interval says.
func (c Comparer) verdict(d judge.Direction, change judge.Estimate, kind judge.ScaleKind) compare.Verdict {
	at, most := change.Interval, c.minChange
	if kind == judge.Absolute {
		most = 0 // it has another unit
	}
	switch {
	case -most <= at.Low && at.High <= most:
		return compare.Same
	case at.Low <= 0 && 0 <= at.High:
		return compare.Unclear
	case d != judge.Higher && d != judge.Lower:
		return compare.Changed
	case (d == judge.Higher) == (at.Low > 0):
		return compare.Better
	}
	return compare.Worse
}
