package judge_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// Simulations have fixed seeds: 2,000 sets, or as many as BAI_SIMULATIONS says.

func TestTheIntervalOfTheMedianCoversIt(t *testing.T) {
	j := newJudge(t)
	for name, d := range distributions() {
		for _, n := range []int{6, 10, 25} {
			r, covered := seeded(10), 0
			for range sets(t) {
				if at := j.Summarise(d.values(r, n)).Interval; at.Low <= d.median && d.median <= at.High {
					covered++
				}
			}
			share(t, "covered, "+name, covered, sets(t), 0.94, 1)
		}
	}
}

func TestCellsThatDifferOnlyWithinNoiseAreATie(t *testing.T) {
	j := newJudge(t)
	for name, d := range distributions() {
		for _, n := range []int{4, 5, 10} {
			r, ties := seeded(11), 0
			for range sets(t) {
				if j.Compare(judge.Higher, d.values(r, n), d.values(r, n)).Verdict == judge.Tie {
					ties++
				}
			}
			share(t, "ties, "+name, ties, sets(t), 0.94, 1)
		}
	}
}

func TestTiedValuesAndUnequalSidesKeepTheLevel(t *testing.T) {
	j := newJudge(t)
	for _, unit := range []float64{0.25, 1, 2} {
		r, ties := seeded(12), 0
		for range sets(t) {
			x, y := rounded(normal(r, 5, 0), unit), rounded(normal(r, 9, 0), unit)
			if j.Compare(judge.Lower, x, y).Verdict == judge.Tie {
				ties++
			}
		}
		share(t, "ties", ties, sets(t), 0.94, 1)
	}
}

func TestCells3StandardDeviationsApartAreToldApart(t *testing.T) {
	r, j, better := seeded(13), newJudge(t), 0
	for range sets(t) {
		if j.Compare(judge.Higher, normal(r, 5, 0), normal(r, 5, 3)).Verdict == judge.Better {
			better++
		}
	}
	share(t, "better", better, sets(t), 0.9, 1)
}

func TestTheIntervalOfTheShiftCoversIt(t *testing.T) {
	j := newJudge(t)
	for _, unit := range []float64{0, 0.25, 1} {
		for _, n := range []int{4, 5, 10} {
			r, covered := seeded(14), 0
			for range sets(t) {
				x, y := rounded(normal(r, n, 0), unit), rounded(normal(r, n+2, 2), unit)
				if at := j.Compare(judge.Higher, x, y).Shift.Interval; at.Low <= 2 && 2 <= at.High {
					covered++
				}
			}
			share(t, "covered", covered, sets(t), 0.94, 1)
		}
	}
}

func TestTheBestCellIsAmongTheBest(t *testing.T) {
	r, j, missing, alone, apart := seeded(15), newJudge(t), 0, 0, 0
	for range sets(t) {
		equal, err := j.Rank(judge.Lower, [][]float64{normal(r, 8, 0), normal(r, 8, 0), normal(r, 8, 0), normal(r, 8, 0), normal(r, 8, 0)})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(equal.Cells, func(c judge.RankedCell) bool { return !c.Best }) {
			missing++
		}
		unequal, err := j.Rank(judge.Lower, [][]float64{normal(r, 8, 4), normal(r, 8, 0), normal(r, 8, 4), normal(r, 8, 8), normal(r, 8, 8)})
		if err != nil {
			t.Fatal(err)
		}
		if unequal.Cells[0].Index == 1 {
			alone++
		}
		if !slices.ContainsFunc(unequal.Cells[1:], func(c judge.RankedCell) bool { return c.Best }) {
			apart++
		}
	}
	share(t, "of equal cells one is not among the best", missing, sets(t), 0, 0.06)
	share(t, "the best is the first", alone, sets(t), 0.99, 1)
	share(t, "the best is alone", apart, sets(t), 0.9, 1)
}

// alternate returns the repetitions of two cells that have the same distribution on a machine
// that becomes slower by 3 standard deviations in between.
func alternate(r *rand.Rand, n int, isA func(i int) bool) (a, b []float64) {
	for i := range 2 * n {
		v := r.NormFloat64() + 3*float64(i)/float64(2*n-1)
		if isA(i) {
			a = append(a, v)
		} else {
			b = append(b, v)
		}
	}
	return a, b
}

func TestToInterleaveCellsCancelsALinearDrift(t *testing.T) {
	const n = 10
	orders := map[string]struct {
		isA         func(i int) bool
		least, most float64
	}{
		"one cell after the other, and they seem to differ": {func(i int) bool { return i < n }, 0.8, 1},
		"interleaved, they are a tie":                       {func(i int) bool { return i%2 == 0 }, 0, 0.06},
		"interleaved in pairs, they are a tie":              {func(i int) bool { return i%4 == 0 || i%4 == 3 }, 0, 0.06},
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			r, j, different := seeded(16), newJudge(t), 0
			for range sets(t) {
				a, b := alternate(r, n, order.isA)
				if j.Compare("", a, b).Verdict == judge.Different {
					different++
				}
			}
			share(t, "different", different, sets(t), order.least, order.most)
		})
	}
}

// fixedHalfWidth returns the relative half width that the interval of Summarise with n
// repetitions has at most, in a share of sets.
func fixedHalfWidth(tb testing.TB, d distribution, n int, share float64) float64 {
	tb.Helper()
	r, j := seeded(17), newJudge(tb)
	widths := make([]float64, 2000)
	for i := range widths {
		widths[i] = relativeHalfWidth(j.Summarise(d.values(r, n)))
	}
	slices.Sort(widths)
	return widths[int(share*float64(len(widths)))]
}

func relativeHalfWidth(s judge.Summary) float64 {
	return (s.Interval.High - s.Interval.Low) / 2 / math.Abs(s.Median)
}

// sequence are the results of sets that a rule stopped.
type sequence struct {
	covered     int // sets whose last interval covers the median
	would, does int // sets in which half of max would do, and those of them that the rule stopped before max
	before      int // sets that the rule stopped before max
	repetitions int // of all sets
}

// simulate decides after each repetition of all sets.
func simulate(t *testing.T, d distribution, when judge.StopWhen) (all sequence) {
	t.Helper()
	r, j, rule := seeded(18), newJudge(t), newStopping(t, when)
	for range sets(t) {
		values := d.values(r, when.Max)
		n, decision := 0, judge.StopDecision{Reason: judge.GoOn}
		for decision.Reason == judge.GoOn {
			n++
			decision = rule.Decide(values[:n])
		}
		all.repetitions += n
		if at := decision.Summary.Interval; at.Low <= d.median && d.median <= at.High {
			all.covered++
		}
		would := relativeHalfWidth(j.Summarise(values[:when.Max/2])) <= when.HalfWidth
		if would {
			all.would++
		}
		if n < when.Max {
			all.before++
			if would {
				all.does++
			}
		}
	}
	return all
}

func TestARuleToStopCoversTheMedianAndStopsBeforeMaxWhereHalfOfItWouldDo(t *testing.T) {
	ranges := [][2]int{{5, 20}, {6, 50}}
	if sets(t) > 2000 {
		ranges = append(ranges, [2]int{5, 30}, [2]int{10, 40}, [2]int{10, 100}, [2]int{5, 200})
	}
	for name, d := range distributions() {
		for _, minMax := range ranges {
			for _, quantile := range []float64{0.5, 0.9} {
				when := judge.StopWhen{HalfWidth: fixedHalfWidth(t, d, minMax[1]/2, quantile), Min: minMax[0], Max: minMax[1]}
				all := simulate(t, d, when)
				t.Logf("%s, %d to %d, ±%.3f, which half of max keeps in %.1f of all: %.1f repetitions",
					name, when.Min, when.Max, when.HalfWidth, quantile, float64(all.repetitions)/float64(sets(t)))
				share(t, "covered", all.covered, sets(t), 0.94, 1)
				share(t, "stopped before max, of those for which half would do", all.does, all.would, 0.9, 1)
				if quantile == 0.9 {
					share(t, "stopped before max", all.before, sets(t), 0.9, 1)
				}
			}
		}
	}
}

// An interval that was made for one look covers less if it is looked at until it is narrow.
func TestToLookAtAnIntervalUntilItIsNarrowLosesItsLevel(t *testing.T) {
	d, j := distributions()["lognormal"], newJudge(t)
	r, covered := seeded(19), 0
	for range sets(t) {
		values := d.values(r, 50)
		n := 6
		for n < 50 && relativeHalfWidth(j.Summarise(values[:n])) > 0.15 {
			n++
		}
		if at := j.Summarise(values[:n]).Interval; at.Low <= d.median && d.median <= at.High {
			covered++
		}
	}
	share(t, "covered", covered, sets(t), 0.8, 0.935)
}
