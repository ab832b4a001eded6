package otava_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/analyst/judge/otava"
)

// find returns the changes of a series, and fails the test if there is an error.
func find(tb testing.TB, values []float64, o otava.Options) []otava.Change {
	tb.Helper()
	changes, err := otava.Find(values, o)
	if err != nil {
		tb.Fatal(err)
	}
	return changes
}

// indices returns the rows of changes.
func indices(changes []otava.Change) []int {
	rows := []int{}
	for _, c := range changes {
		rows = append(rows, c.Index)
	}
	return rows
}

// read decodes a golden file.
func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func TestTheRowsAreThoseOfOtava(t *testing.T) {
	t.Parallel()
	var settings []struct {
		P, Magnitude float64
		Window       int
		Indices      [][]int
	}
	read(t, "indices.json", &settings)
	for _, s := range settings {
		o := otava.Options{P: s.P, Window: s.Window, MinMagnitude: s.Magnitude}
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			t.Parallel()
			for seed, want := range s.Indices {
				if diff := cmp.Diff(want, indices(find(t, randomSeries(uint64(seed)), o))); diff != "" { //nolint:gosec // seeds are small
					t.Errorf("series %d (-want +got):\n%s", seed, diff)
				}
			}
		})
	}
}

func TestTheMeansAreThoseOfOtavaAndPIsAlmost(t *testing.T) {
	t.Parallel()
	var series [][][4]float64
	read(t, "changes.json", &series)
	for seed, rows := range series {
		want := []otava.Change{}
		for _, r := range rows {
			want = append(want, otava.Change{Index: int(r[0]), Before: r[1], After: r[2], P: r[3]})
		}
		got := find(t, randomSeries(uint64(seed)), otava.Options{}) //nolint:gosec // seeds are small
		for i := range min(len(got), len(want)) {
			if got[i].Before != want[i].Before || got[i].After != want[i].After {
				t.Errorf("series %d: %+v has other means than %+v", seed, got[i], want[i])
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApprox(1e-11, 0)); diff != "" {
			t.Errorf("series %d (-want +got):\n%s", seed, diff)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	tests := map[string]struct {
		values []float64
		want   []int
	}{
		"no row has no change":                 {nil, []int{}},
		"one row has no change":                {[]float64{1}, []int{}},
		"two rows are too few":                 {[]float64{1, 100}, []int{}},
		"equal rows have no change":            {[]float64{7, 7, 7, 7, 7, 7, 7, 7}, []int{}},
		"rows without a result have no change": {[]float64{nan, inf, nan, -inf}, []int{}},
		"a step without noise is a change":     {[]float64{1, 1, 1, 5, 5, 5}, []int{3}},
		"a step from 0 is a change":            {[]float64{0, 0, 0, 5, 5, 5}, []int{3}},
		"rows without a result are counted":    {[]float64{nan, 1, 1, 1, inf, 5, -inf, 5, 5}, []int{5}},
		"the first rows have the first result": {[]float64{nan, nan, nan, 1, 5, 5, 5, 5}, []int{4}},
		"a level that comes back hides both":   {[]float64{1, 1, 1, 1, 5, 5, 5, 5, 1, 1, 1, 1}, []int{}},
		"the largest numbers do not differ":    {[]float64{-1e308, -1e308, -1e308, 1e308, 1e308, 1e308}, []int{}},
		"the smallest numbers may differ":      {[]float64{5e-324, 5e-324, 5e-324, 5e-323, 5e-323, 5e-323}, []int{3}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(tt.values)
			if diff := cmp.Diff(tt.want, indices(find(t, tt.values, otava.Options{}))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tt.values, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("the values were changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAChangeHasTheMeansOfBothSides(t *testing.T) {
	t.Parallel()
	want := []otava.Change{{Index: 4, Before: 1.5, After: 5.5, P: 2.8537762592375906e-05}}
	got := find(t, []float64{1, 2, 1, 2, 5, 6, 5, 6}, otava.Options{P: 0.01})
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestZeroValuesAreOtavasDefaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		values := randomSeries(seed)
		want := find(t, values, otava.Options{P: 0.001, Window: 50})
		if diff := cmp.Diff(want, find(t, values, otava.Options{}), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("series %d (-want +got):\n%s", seed, diff)
		}
	}
}

func TestAMagnitudeThatIsNotAboveTheLimitIsNoChange(t *testing.T) {
	t.Parallel()
	values := []float64{100, 100, 100, 100, 125, 125, 125, 125} // 25% up, and 20% down
	for limit, want := range map[float64][]int{0: {4}, 0.24: {4}, 0.25: {}, 0.3: {}} {
		if diff := cmp.Diff(want, indices(find(t, values, otava.Options{MinMagnitude: limit}))); diff != "" {
			t.Errorf("limit %v (-want +got):\n%s", limit, diff)
		}
	}
}

// changed returns a series with each value changed.
func changed(values []float64, change func(float64) float64) []float64 {
	values = slices.Clone(values)
	for i, v := range values {
		values[i] = change(v)
	}
	return values
}

func TestTheUnitAndTheSignDoNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		if kind := seed % 10; kind >= 6 && kind <= 8 {
			continue // numbers at the ends of the range are rounded in another way
		}
		values := randomSeries(seed)
		want := indices(find(t, values, otava.Options{P: 0.01}))
		for name, change := range map[string]func(float64) float64{
			"4096 times": func(v float64) float64 { return v * 4096 },
			"negative":   func(v float64) float64 { return 0 - v },
		} {
			if diff := cmp.Diff(want, indices(find(t, changed(values, change), otava.Options{P: 0.01}))); diff != "" {
				t.Errorf("series %d, %s (-want +got):\n%s", seed, name, diff)
			}
		}
	}
}

func TestALateRowDoesNotMatterToTheWindowsBeforeIt(t *testing.T) {
	t.Parallel()
	values := noisy(1, 10_000)
	want := indices(find(t, values[:9_000], otava.Options{P: 1e-5}))
	got := indices(find(t, values, otava.Options{P: 1e-5}))
	if diff := cmp.Diff(want[:80], got[:80]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOptionsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	tests := map[string]struct {
		o    otava.Options
		want string
	}{
		"a negative p":         {otava.Options{P: -0.1}, "p is -0.1: want more than 0, and at most 1"},
		"a p above 1":          {otava.Options{P: 1.1}, "p is 1.1: want more than 0, and at most 1"},
		"a p of NaN":           {otava.Options{P: nan}, "p is NaN: want more than 0, and at most 1"},
		"a window of one row":  {otava.Options{Window: 1}, "window is 1: want at least 2 rows"},
		"a negative window":    {otava.Options{Window: -50}, "window is -50: want at least 2 rows"},
		"a negative magnitude": {otava.Options{MinMagnitude: -1}, "min magnitude is -1: want a number of at least 0"},
		"a magnitude of NaN":   {otava.Options{MinMagnitude: nan}, "min magnitude is NaN: want a number of at least 0"},
		"an endless magnitude": {otava.Options{MinMagnitude: inf}, "min magnitude is +Inf: want a number of at least 0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := otava.Find(nil, tt.o); err == nil || err.Error() != tt.want {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
