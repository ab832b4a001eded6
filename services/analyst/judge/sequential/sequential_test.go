package sequential_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
	"github.com/benchmark-ai/bai/services/analyst/judge/sequential"
	"github.com/benchmark-ai/bai/services/internal/simtest"
)

func newComparer(tb testing.TB, minChange float64, series, pairs int) sequential.Comparer {
	tb.Helper()
	c, err := sequential.New(minChange, series, pairs)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// times returns n values around a level that differ by up to a hundredth.
func times(level float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = level * (1 + float64(i*7%5-2)/200)
	}
	return values
}

func TestAVerdictStandsOnceTheIntervalLeavesOutNoChange(t *testing.T) {
	t.Parallel()
	c := newComparer(t, 0.02, 1, 10)
	for name, test := range map[string]struct {
		direction   judge.Direction
		base, other []float64
		want        string
	}{
		"six pairs are too few for any verdict":        {judge.Higher, times(100, 6), times(90, 6), "unclear few_runs 1"},
		"seven pairs that agree are enough":            {judge.Higher, times(100, 7), times(90, 7), "worse -10.0"},
		"the direction says which side is better":      {judge.Lower, times(100, 7), times(90, 7), "better -10.0"},
		"without a direction it has changed":           {"", times(100, 7), times(90, 7), "changed -10.0"},
		"a change that does not matter is the same":    {judge.Higher, times(100, 7), times(99, 7), "same -1.0"},
		"a pair without a value does not count":        {judge.Higher, append(times(100, 6), math.NaN()), times(90, 7), "unclear few_runs 1"},
		"one pair of seven that disagrees leaves open": {judge.Higher, times(100, 7), append(times(90, 6), 140), "unclear noise"},
		"equal values are the same":                    {judge.Higher, []float64{5, 5, 5, 5, 5, 5, 5}, []float64{5, 5, 5, 5, 5, 5, 5}, "same +0.0"},
		"zeros have a difference in the unit":          {judge.Higher, make([]float64, 8), []float64{1, 2, 3, 4, 5, 6, 7, 8}, "better +450.0"},
		"negative values have one of the base":         {judge.Lower, times(-100, 8), times(-90, 8), "worse +10.0"},
		"one side that is infinite says nothing":       {judge.Higher, []float64{math.Inf(1)}, []float64{1}, "unclear few_runs 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.Compare(test.direction, test.base, test.other)
			text := string(got.Verdict)
			if got.Reason != "" {
				text += " " + string(got.Reason)
			}
			if got.LackingBase > 0 {
				text += " " + strconv.Itoa(got.LackingBase)
			}
			if got.Reason == "" {
				text += fmt.Sprintf(" %+.1f", 100*got.Change.Value)
			}
			if text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

func TestMoreSeriesNeedMorePairs(t *testing.T) {
	t.Parallel()
	for series, want := range map[int]int{1: 7, 2: 8, 10: 10, 100: 13} {
		if got := newComparer(t, 0, series, 15).Fewest(); got != want {
			t.Errorf("%d series need %d pairs, want %d", series, got, want)
		}
	}
	if got := newComparer(t, 0, 10, 9).Fewest(); got != 0 {
		t.Errorf("9 pairs decide on 10 series after %d", got)
	}
}

func TestPairsThatWereNotPlannedChangeNoVerdict(t *testing.T) {
	t.Parallel()
	few, many := newComparer(t, 0.02, 1, 8), newComparer(t, 0.02, 1, 14)
	r := rand.New(rand.NewPCG(20240607, 1))
	for range 200 {
		base, other := make([]float64, 8), make([]float64, 8)
		for i := range base {
			base[i], other[i] = 100+r.NormFloat64(), 101+r.NormFloat64()
		}
		if a, b := few.Compare(judge.Higher, base, other), many.Compare(judge.Higher, base, other); a.Verdict != b.Verdict || *a.Change != *b.Change {
			t.Fatalf("%v: planned for 8: %v, for 14: %v", other, a, b)
		}
	}
}

func TestNumbersThatAreOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for _, bad := range []struct {
		minChange     float64
		series, pairs int
	}{{-1, 1, 1}, {math.NaN(), 1, 1}, {0, 0, 1}, {0, 1, 0}, {0, 1, sequential.MaxPairs + 1}} {
		if _, err := sequential.New(bad.minChange, bad.series, bad.pairs); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

// A series of looks at pairs.
type looks struct {
	verdict compare.Verdict
	change  *judge.Estimate
	pairs   int
}

// simulate looks after each pair until the verdict stands, or all pairs are there.
func simulate(c sequential.Comparer, pairs int, pair func(n int) (old, other float64)) looks {
	var base, other []float64
	for n := range pairs {
		a, b := pair(n)
		base, other = append(base, a), append(other, b)
		if n+1 < c.Fewest() {
			continue // there is no verdict yet
		}
		got := c.Compare(judge.Higher, base, other)
		if got.Verdict != compare.Unclear || n == pairs-1 {
			return looks{verdict: got.Verdict, change: got.Change, pairs: n + 1}
		}
	}
	return looks{}
}

// noises draw deviations from a level, most of which are 1 in size.
func noises() map[string]func(*rand.Rand) float64 {
	return map[string]func(*rand.Rand) float64{
		"normal":    (*rand.Rand).NormFloat64,
		"skewed":    (*rand.Rand).ExpFloat64,
		"whole":     func(r *rand.Rand) float64 { return math.Round(r.NormFloat64()) },
		"two modes": func(r *rand.Rand) float64 { return r.NormFloat64() + 10*math.Floor(r.Float64()+0.2) },
	}
}

// equalSides draws pairs of equal sides, whose level drifts by so many standard deviations a run.
// Their order is old, new, new, old or new, old, old, new.
func equalSides(r *rand.Rand, noise func(*rand.Rand) float64, drift float64) func(n int) (old, other float64) {
	flip := 0
	return func(n int) (old, other float64) {
		first, second := 100+noise(r)+drift*float64(2*n), 100+noise(r)+drift*float64(2*n+1)
		if n%2 == 0 {
			flip = r.IntN(2)
		}
		if flip == n%2 {
			first, second = second, first
		}
		return first, second
	}
}

func TestEqualSidesSeldomDifferHoweverOftenSomebodyLooks(t *testing.T) {
	t.Parallel()
	all := simtest.Count(t, 2000)
	check := func(name string, noise func(*rand.Rand) float64, pairs int, drift float64) {
		r, c, wrong := rand.New(rand.NewPCG(20240607, 2)), newComparer(t, 0, 1, pairs), 0
		for range all {
			if got := simulate(c, pairs, equalSides(r, noise, drift)); got.verdict != compare.Unclear && got.verdict != compare.Same {
				wrong++
			}
		}
		t.Logf("%s, %d pairs, drift %v: %.4f", name, pairs, drift, float64(wrong)/float64(all))
		if float64(wrong) > 0.06*float64(all) {
			t.Errorf("%s, %d pairs, drift %v: %d of %d differ", name, pairs, drift, wrong, all)
		}
	}
	for name, noise := range noises() {
		check(name, noise, 10, 0)
		check(name, noise, 10, 0.2)
	}
	check("normal", (*rand.Rand).NormFloat64, 15, 0)
	check("normal", (*rand.Rand).NormFloat64, 15, 0.2)
}

func TestTheIntervalCoversTheChangeAlthoughItWasStoppedWhenNarrow(t *testing.T) {
	t.Parallel()
	all := simtest.Count(t, 2000)
	for _, change := range []float64{0, 0.002, 0.005, 0.01, 0.02} {
		r, c, covered, stopped, pairs := rand.New(rand.NewPCG(20240607, 3)), newComparer(t, 0.01, 1, 15), 0, 0, 0
		for range all {
			got := simulate(c, 15, func(int) (old, other float64) {
				return 100 * math.Exp(0.006*r.NormFloat64()), 100 * (1 + change) * math.Exp(0.006*r.NormFloat64())
			})
			if got.change.Interval.Low <= change && change <= got.change.Interval.High {
				covered++
			}
			if got.verdict != compare.Unclear {
				stopped++
			}
			pairs += got.pairs
		}
		t.Logf("%v: covered by %.4f, stopped %.4f, after %.1f pairs", change, float64(covered)/float64(all), float64(stopped)/float64(all), float64(pairs)/float64(all))
		if float64(covered) < 0.94*float64(all) {
			t.Errorf("a change of %v is covered by %d of %d", change, covered, all)
		}
	}
}

func TestLargeChangesAreFoundEarly(t *testing.T) {
	t.Parallel()
	all := simtest.Count(t, 2000)
	for _, test := range []struct {
		change float64 // in standard deviations of a run
		least  float64
	}{{1, 0.3}, {1.5, 0.63}, {2, 0.87}, {3, 0.99}} {
		r, c, found, pairs := rand.New(rand.NewPCG(20240607, 4)), newComparer(t, 0, 1, 10), 0, 0
		for range all {
			got := simulate(c, 10, func(int) (old, other float64) { return 100 + r.NormFloat64(), 100 - test.change + r.NormFloat64() })
			if got.verdict == compare.Worse {
				found++
			}
			pairs += got.pairs
		}
		t.Logf("%v: found %.4f, after %.1f pairs", test.change, float64(found)/float64(all), float64(pairs)/float64(all))
		if float64(found) < test.least*float64(all) {
			t.Errorf("a change of %v standard deviations is found in %d of %d", test.change, found, all)
		}
	}
}

func FuzzAnyValuesHaveAVerdict(f *testing.F) {
	f.Add(1.0, 2.0, 0.0, uint8(9))
	f.Add(-1.0, math.MaxFloat64, math.Inf(1), uint8(20))
	c, err := sequential.New(0.01, 1, 12)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b, step float64, n uint8) {
		var base, other []float64
		for i := range int(n) {
			base, other = append(base, a+step*float64(i)), append(other, b-step*float64(i*i))
		}
		got := c.Compare(judge.Higher, base, other)
		if got.Verdict == "" || got.Change != nil && (math.IsNaN(got.Change.Value) || got.Change.Interval.Low > got.Change.Interval.High) {
			t.Errorf("%v", got)
		}
	})
}
