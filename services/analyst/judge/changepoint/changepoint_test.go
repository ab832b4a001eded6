package changepoint_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
)

func TestAStepIsFoundWithItsSizeAndPlace(t *testing.T) {
	t.Parallel()
	c := only(t, analyse(t, stepped(100, 1, 4, 60)))
	if c.Kind != changepoint.Step || c.Index < 59 || c.Index > 61 || c.First > 60 || c.Last < 60 {
		t.Errorf("%s at %d, between %d and %d: want a step at 60", c.Kind, c.Index, c.First, c.Last)
	}
	if c.ShiftInterval.Low > 4 || c.ShiftInterval.High < 4 || c.MagnitudeInterval.Low > 0.04 || c.MagnitudeInterval.High < 0.04 {
		t.Errorf("the shift lies in %v, the magnitude in %v: want 4 and 0.04 within", c.ShiftInterval, c.MagnitudeInterval)
	}
	if math.Abs(c.After-c.Before-c.Shift) > 1e-9 || math.Abs(c.After/c.Before-1-c.Magnitude) > 1e-9 {
		t.Errorf("the levels %v and %v do not agree with %v and %v", c.Before, c.After, c.Shift, c.Magnitude)
	}
	if c.P <= 0 || c.P > 1e-6 {
		t.Errorf("p is %v: want nearly none", c.P)
	}
}

func TestAStepThereAndBackIsTwo(t *testing.T) {
	t.Parallel()
	values := stepped(100, 2, 4, 40)
	for i := 60; i < 100; i++ {
		values[i] -= 4
	}
	if a := analyse(t, values); len(a.Changes) != 2 || a.Changes[0].Shift < 0 || a.Changes[1].Shift > 0 {
		t.Errorf("found %+v: want one up and one down", a.Changes)
	}
}

func TestARampIsOneDriftThatBeginsWhereItBegins(t *testing.T) {
	t.Parallel()
	values := noise(120, 3)
	for i := range values {
		values[i] += 12 * max(0, min(1, float64(i-50)/16))
	}
	c := only(t, analyse(t, values))
	if c.Kind != changepoint.Drift || c.Index < 48 || c.Index > 54 {
		t.Errorf("%s at %d: want a drift from 51", c.Kind, c.Index)
	}
}

func TestSpikesAreNoChange(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string][]int{"one": {50}, "a pair": {50, 51}, "four in a row": {50, 51, 52, 53}, "the last": {99}, "the last four": {96, 97, 98, 99}, "six in a row": {50, 51, 52, 53, 54, 55}} {
		values := noise(100, 4)
		for _, row := range rows {
			values[row] += 30
		}
		a := analyse(t, values)
		if len(a.Changes) != 0 {
			t.Errorf("%s: found %+v", name, a.Changes)
		}
		if len(a.Notes) == 0 || !strings.Contains(a.Notes[0], "spikes") {
			t.Errorf("%s: no note says that spikes do not count: %q", name, a.Notes)
		}
	}
}

func TestALargeStepAtTheEndIsSaidWithItsFifthRow(t *testing.T) {
	t.Parallel()
	for _, before := range []int{13, 20, 50, 200} {
		for _, by := range []float64{-100, -25, 25, 100} {
			values := stepped(before+4, 11, by, before)
			if a := analyse(t, values); len(a.Changes) != 0 {
				t.Errorf("%d rows, then four that are %v higher: found %+v", before, by, a.Changes)
			}
			values = stepped(before+5, 11, by, before)
			if c := only(t, analyse(t, values)); c.Index != before {
				t.Errorf("%d rows, then five that are %v higher: found at %d", before, by, c.Index)
			}
		}
	}
}

func TestRowsAtTheEndThatDifferFromEachOtherAreSpikes(t *testing.T) {
	t.Parallel()
	values := noise(60, 12)
	for i, by := range []float64{20, 90, 40, 70, 30, 110} {
		values[54+i] += by
	}
	if a := analyse(t, values); len(a.Changes) != 0 {
		t.Errorf("found %+v", a.Changes)
	}
}

func TestASlowTrendIsNoChangeAndIsNoted(t *testing.T) {
	t.Parallel()
	values := noise(200, 5)
	for i := range values {
		values[i] += 0.03 * float64(i)
	}
	a := analyse(t, values)
	if len(a.Changes) != 0 || !slices.Contains(a.Notes, "a slow trend explains the values better than steps do") {
		t.Errorf("found %+v with the notes %q", a.Changes, a.Notes)
	}
}

func TestTooFewPointsSayNothingAndWhy(t *testing.T) {
	t.Parallel()
	for _, values := range [][]float64{nil, {1}, {1, 1, 1, 1, 9, 9, 9, 9, 9}, {math.NaN(), 1, math.Inf(1), 2}} {
		a := analyse(t, values)
		if len(a.Changes) != 0 || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "at least 10") {
			t.Errorf("%v: %+v", values, a)
		}
	}
}

func TestFiveOnASideAreNeeded(t *testing.T) {
	t.Parallel()
	for _, values := range [][]float64{steps(16, 4), steps(16, 12)} {
		for _, c := range analyse(t, values).Changes {
			if c.Index < changepoint.MinSide || c.Index > len(values)-changepoint.MinSide {
				t.Errorf("%v: a change at %d", values, c.Index)
			}
		}
	}
}

func TestRowsWithoutAValueAreCountedInIndices(t *testing.T) {
	t.Parallel()
	values := stepped(100, 6, 5, 60)
	for _, i := range []int{3, 20, 21, 22, 80} {
		values[i] = math.NaN()
	}
	values[30] = math.Inf(-1)
	a := analyse(t, values)
	if c := only(t, a); c.Index < 59 || c.Index > 61 {
		t.Errorf("found at %d: want 60", c.Index)
	}
	if a.Points != 94 || a.Missing != 6 {
		t.Errorf("%d points, %d missing: want 94 and 6", a.Points, a.Missing)
	}
}

func TestOddSeriesHaveFiniteAnswers(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]float64{
		"constant":         steps(50, 50),
		"zeros":            make([]float64, 50),
		"one step":         steps(50, 25),
		"negative":         negative(stepped(60, 7, 5, 30)),
		"huge":             scaled(stepped(60, 7, 5, 30), 1e304),
		"tiny":             scaled(stepped(60, 7, 5, 30), 1e-300),
		"from zero":        shifted(steps(50, 25), -1),
		"largest numbers":  {math.MaxFloat64, -math.MaxFloat64, 1, 2, 3, 4, math.MaxFloat64, -math.MaxFloat64, 5, 6, 7, 8, 9, 10},
		"one spike of 300": spiked(noise(60, 8), 30, 1e300),
	} {
		a := analyse(t, values)
		for _, c := range a.Changes {
			if math.IsNaN(c.P) || c.P <= 0 || c.P > 1 || math.IsNaN(c.Before) || math.IsNaN(c.After) {
				t.Errorf("%s: %+v", name, c)
			}
		}
		switch name {
		case "one step", "negative", "huge", "tiny", "from zero":
			only(t, a)
		case "constant", "zeros", "one spike of 300":
			if len(a.Changes) > 0 {
				t.Errorf("%s: found %+v", name, a.Changes)
			}
		}
	}
	if c := only(t, analyse(t, shifted(steps(50, 25), -1))); !math.IsNaN(c.Magnitude) || c.Shift != 1 {
		t.Errorf("from zero: the magnitude is %v, the shift %v: want none, and 1", c.Magnitude, c.Shift)
	}
}

func TestChangesDoNotDependOnTheUnit(t *testing.T) {
	t.Parallel()
	values := stepped(300, 9, 2, 100, 220)
	want := indices(analyse(t, values))
	if len(want) != 2 {
		t.Fatalf("found %v: want two", want)
	}
	if got := indices(analyse(t, scaled(values, 1024))); !slices.Equal(got, want) {
		t.Errorf("in another unit %v, in the first %v", got, want)
	}
}

func TestALongSeriesIsAnalysedInWindows(t *testing.T) {
	t.Parallel()
	rows := []int{100, 374, 499, 640, 900, 1250, 1400}
	got := indices(analyse(t, stepped(1500, 10, 4, rows...)))
	if !slices.EqualFunc(got, rows, func(a, b int) bool { return max(a-b, b-a) <= 1 }) {
		t.Errorf("found %v: want %v", got, rows)
	}
}

func TestWhatAReplayDoesNotTakeBackIsTheAnalysis(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		values := stepped(530, seed, 1.5, 150, 300, 515)
		values[10], values[200] = math.NaN(), math.Inf(1)
		r := detector(t).Replay()
		for _, v := range values {
			r.Add(v)
		}
		detections, got := r.Detections()
		want := analyse(t, values)
		var standing []int
		for _, d := range detections {
			if d.Withdrawn < 0 {
				standing = append(standing, d.Index)
			} else if d.Withdrawn < d.Seen {
				t.Errorf("taken back in row %d, before row %d", d.Withdrawn, d.Seen)
			}
			if d.Seen < d.Index {
				t.Errorf("row %d is said with row %d, which is before it", d.Index, d.Seen)
			}
		}
		slices.Sort(standing)
		if !slices.Equal(standing, indices(want)) || !slices.Equal(indices(got), indices(want)) || got.Missing != want.Missing {
			t.Errorf("seed %d: the replay has %v, the analysis %v", seed, standing, indices(want))
		}
	}
}

func TestAStepIsSaidWithinEightPoints(t *testing.T) {
	t.Parallel()
	late := 0
	const series = 40
	for seed := range uint64(series) {
		if len(analyse(t, stepped(68, 100+seed, 3, 60)).Changes) == 0 {
			late++
		}
	}
	if late > series/2 {
		t.Errorf("%d of %d steps of 3 sd were not said with 8 points", late, series)
	}
}

func TestSettingsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []float64{-1, 0.4, 1, math.NaN()} {
		if _, err := changepoint.New(judge.Settings{Confidence: c}); err == nil || !strings.Contains(err.Error(), "confidence is") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestAHigherConfidenceGivesWiderIntervals(t *testing.T) {
	t.Parallel()
	values := stepped(100, 1, 4, 60)
	d, err := changepoint.New(judge.Settings{Confidence: 0.99})
	if err != nil {
		t.Fatal(err)
	}
	wide, normal := only(t, d.Analyse(values)).ShiftInterval, only(t, analyse(t, values)).ShiftInterval
	if wide.Low >= normal.Low || wide.High <= normal.High {
		t.Errorf("%v for 99 %%, %v for 95 %%", wide, normal)
	}
}

func FuzzAnalyse(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 200, 200, 200, 200, 200, 200}, 1.0)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 1e300)
	f.Fuzz(func(t *testing.T, data []byte, unit float64) {
		values := make([]float64, min(600, len(data)))
		for i := range values {
			if values[i] = float64(data[i]) * unit; data[i] == 255 {
				values[i] = math.NaN()
			}
		}
		before := -1
		for _, c := range analyse(t, values).Changes {
			if c.Index <= before || c.Index >= len(values) || c.First > c.Index || c.Last < c.Index || math.IsNaN(c.P) {
				t.Fatalf("%+v after row %d", c, before)
			}
			before = c.Index
		}
	})
}

func analyse(t *testing.T, values []float64) changepoint.Analysis {
	t.Helper()
	return detector(t).Analyse(values)
}

func only(t *testing.T, a changepoint.Analysis) changepoint.Change {
	t.Helper()
	if len(a.Changes) != 1 {
		t.Fatalf("found %+v: want one change", a.Changes)
	}
	return a.Changes[0]
}

func indices(a changepoint.Analysis) (all []int) {
	for _, c := range a.Changes {
		all = append(all, c.Index)
	}
	return all
}

// steps is 1, and 2 from a row on.
func steps(n, row int) []float64 {
	values := make([]float64, n)
	for i := range values {
		if values[i] = 1; i >= row {
			values[i] = 2
		}
	}
	return values
}

func negative(values []float64) []float64 { return scaled(values, -1) }

func scaled(values []float64, by float64) []float64 {
	out := slices.Clone(values)
	for i := range out {
		out[i] *= by
	}
	return out
}

func shifted(values []float64, by float64) []float64 {
	out := slices.Clone(values)
	for i := range out {
		out[i] += by
	}
	return out
}

func spiked(values []float64, row int, v float64) []float64 {
	out := slices.Clone(values)
	out[row] = v
	return out
}
