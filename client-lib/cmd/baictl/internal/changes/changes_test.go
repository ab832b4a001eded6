package changes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/changes"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/points"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
	"github.com/benchmark-ai/bai/services/analyst/judge/otava"
)

// hourly returns a series with a row for each hour.
func hourly(name string, better points.Direction, values ...float64) *points.TimeSeries {
	s := &points.TimeSeries{Name: name, Better: better, Values: values}
	for i, v := range values {
		s.Times = append(s.Times, time.Date(2026, 3, 1, i, 0, 0, 0, time.UTC).UnixNano())
		if math.IsNaN(v) {
			s.Missing++
		}
	}
	return s
}

// levels returns n values around each level, in turn.
func levels(n int, all ...float64) []float64 {
	var values []float64
	for _, level := range all {
		for i := range n {
			values = append(values, level+0.01*float64(i*7%5))
		}
	}
	return values
}

// change is the change of the documentation.
func change(index int) changepoint.Change {
	return changepoint.Change{
		Index: index, Kind: changepoint.Step, Before: 101.25, After: 108, Shift: 6.75, ShiftInterval: judge.Interval{Low: 5, High: 8.5},
		Magnitude: 0.0666, MagnitudeInterval: judge.Interval{Low: 0.049, High: 0.083}, P: 3.1e-7, First: index - 1, Last: index + 2,
	}
}

func standing(all ...changepoint.Change) changes.Finding {
	f := changes.Finding{}
	for _, c := range all {
		f.Events = append(f.Events, changepoint.Detection{Change: c, Withdrawn: -1})
	}
	return f
}

func TestTheAnswerAsJSON(t *testing.T) {
	zero := changepoint.Change{
		Index: 2, Kind: changepoint.Drift, Before: 0, After: -3, Shift: -3, ShiftInterval: judge.Interval{Low: -4, High: -2},
		Magnitude: math.NaN(), MagnitudeInterval: judge.Interval{Low: math.NaN(), High: math.NaN()}, P: 0.25, First: 2, Last: 3,
	}
	overflow := change(2)
	overflow.After, overflow.Magnitude, overflow.Shift = math.Inf(1), math.Inf(1), math.Inf(1)
	withoutEnds := change(2)
	withoutEnds.MagnitudeInterval = judge.Interval{Low: math.Inf(-1), High: 1}
	replayed := changes.Finding{Events: []changepoint.Detection{
		{Change: change(3), Seen: 4, Withdrawn: -1}, {Change: change(2), Seen: 5, Withdrawn: 6},
	}}
	series := hourly("<s>", points.Lower, 1, math.NaN(), 2, 3)
	head := `{"series":"<s>","points":3,"missing":1,"notes":[],"changes":[`
	const documented = `{"index":2,"time":"2026-03-01T02:00:00Z","kind":"step","direction":"up","verdict":"regression",` +
		`"before":101.25,"after":108,"magnitude":0.0666,"interval":[0.049,0.083],"level":0.95,"p":3.1e-7,"range":[1,4]`
	third := strings.NewReplacer(`"index":2`, `"index":3`, "T02", "T03", "[1,4]", "[2,5]").Replace(documented)
	for name, tt := range map[string]struct {
		finding changes.Finding
		level   float64
		replay  bool
		want    string
	}{
		"a series without a change has empty lists": {changes.Finding{}, 0.95, false, head + `]}`},
		"notes are in the answer": {
			changes.Finding{Notes: []string{"a few rows"}},
			0.95, false,
			strings.Replace(head, "[]", `["a few rows"]`, 1) + `]}`,
		},
		"a change": {standing(change(2)), 0.95, false, head + documented + `}]}`},
		"a level of 0 has a difference in place of the magnitude": {
			standing(zero), 0.95, false,
			head + `{"index":2,"time":"2026-03-01T02:00:00Z","kind":"drift","direction":"down","verdict":"improvement","before":0,"after":-3,` +
				`"magnitude":null,"interval":null,"shift":-3,"shift_interval":[-4,-2],"level":0.95,"p":0.25,"range":[2,3]}]}`,
		},
		"an interval without ends is null": {
			standing(withoutEnds), 0.95, false,
			head + strings.Replace(documented, "[0.049,0.083]", "null", 1) + `}]}`,
		},
		"numbers that overflow are null": {
			standing(overflow), 0.95, false,
			head + strings.NewReplacer(`108,`, `null,`, "0.0666", "null", `[0.049,0.083]`, `null,"shift":null,"shift_interval":[5,8.5]`).
				Replace(documented) + `}]}`,
		},
		"a method without intervals has no level": {standing(change(2)), 0, false, head + strings.Replace(documented, "0.95", "null", 1) + `}]}`},
		"a replay has the rows, in order of the changes' rows": {
			replayed, 0.95, true,
			head + documented + `,"seen":5,"withdrawn":6},` + third + `,"seen":4,"withdrawn":null}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			e := json.NewEncoder(&got)
			e.SetEscapeHTML(false)
			if err := e.Encode(changes.Report(series, tt.finding, tt.level, tt.replay)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want+"\n", got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheVerdictFollowsTheDirectionOfTheSeries(t *testing.T) {
	down := change(1)
	down.After, down.Shift, down.Magnitude = 90, -11.25, -0.1111
	fromBelow := changepoint.Change{Index: 1, Before: -2, After: -1, Magnitude: -0.5}
	for name, tt := range map[string]struct {
		better points.Direction
		change changepoint.Change
		want   string
	}{
		"up, and higher is better":        {points.Higher, change(1), "up improvement"},
		"down, and higher is better":      {points.Higher, down, "down regression"},
		"up, and lower is better":         {points.Lower, change(1), "up regression"},
		"down, and lower is better":       {points.Lower, down, "down improvement"},
		"up, and nothing says better":     {points.Unknown, change(1), "up change"},
		"down, and nothing says better":   {points.Unknown, down, "down change"},
		"up from a level that is below 0": {points.Higher, fromBelow, "up improvement"},
	} {
		t.Run(name, func(t *testing.T) {
			r := changes.Report(hourly("s", tt.better, 1, 2, 3), standing(tt.change), 0.95, false)
			if got := r.Changes[0].Direction + " " + r.Changes[0].Verdict; got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestOnlyRegressionsThatStandCount(t *testing.T) {
	events := changes.Finding{Events: []changepoint.Detection{
		{Change: change(1), Seen: 2, Withdrawn: 3}, {Change: change(2), Seen: 3, Withdrawn: -1}, {Change: change(3), Seen: 3, Withdrawn: -1},
	}}
	all := []changes.SeriesReport{
		changes.Report(hourly("two stand", points.Lower, 1, 2, 3, 4), events, 0.95, true),
		changes.Report(hourly("better", points.Higher, 1, 2, 3, 4), events, 0.95, true),
		changes.Report(hourly("unknown", points.Unknown, 1, 2, 3, 4), events, 0.95, true),
		changes.Report(hourly("withdrawn", points.Lower, 1, 2, 3, 4), changes.Finding{Events: events.Events[:1]}, 0.95, true),
	}
	if n, series := changes.Regressions(all); n != 2 || series != 1 {
		t.Errorf("%d regressions in %d series", n, series)
	}
	if got, want := changes.Summary(all, "row"), "4 series, 16 rows, 6 changes (2 regressions, 2 improvements), 4 withdrawn"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOneNoteOfManySeriesIsOneLine(t *testing.T) {
	var all []changes.SeriesReport
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		notes := []string{"fewer than 10 points"}
		if name == "b" {
			notes = append(notes, "the rows depend on each other")
		}
		all = append(all, changes.SeriesReport{Series: name, Notes: notes})
	}
	want := []string{"a, b, c, 2 more: fewer than 10 points", "b: the rows depend on each other"}
	if diff := cmp.Diff(want, changes.Notes(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheTableFits80Columns(t *testing.T) {
	sizes := []float64{0.0666, -0.5, 0.00666, -0.0005, 12.5, -1e-9, 1e9}
	var f changes.Finding
	for i, size := range sizes {
		c := change(i)
		c.Magnitude, c.MagnitudeInterval = size, judge.Interval{Low: size - 0.01, High: size + 0.01}
		f.Events = append(f.Events, changepoint.Detection{Change: c, Seen: i + 1, Withdrawn: i%2 - 1})
	}
	zero := change(7)
	zero.Before, zero.Magnitude = 0, math.NaN()
	f.Events = append(f.Events, changepoint.Detection{Change: zero, Seen: 8, Withdrawn: -1})
	all := []changes.SeriesReport{changes.Report(hourly("throughput\x1b", points.Higher, levels(8, 1)...), f, 0.95, false)}
	want := `
SERIES       ROW  DATE        VERDICT      BEFORE  AFTER  CHANGE
throughput�    0  2026-03-01  improvement  101.25    108  +6.7 % [+5.7, +7.7]
throughput�    1  2026-03-01  improvement  101.25    108  -50.0 % [-51.0, -49.0]
throughput�    2  2026-03-01  improvement  101.25    108  +0.67 % [-0.33, +1.67]
throughput�    3  2026-03-01  improvement  101.25    108  -0.050 % [-1.050, +0.950]
throughput�    4  2026-03-01  improvement  101.25    108  +1250 % [+1249, +1251]
throughput�    5  2026-03-01  improvement  101.25    108  -0.000 % [-1.000, +1.000]
throughput�    6  2026-03-01  improvement  101.25    108  +1e+11 % [+1e+11, +1e+11]
throughput�    7  2026-03-01  improvement       0    108  +6.75 [+5, +8.5]
`
	if diff := cmp.Diff(want, "\n"+changes.Table(all, false, false).Render(0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAReplayEndsWithTheAnswerForTheWholeSeries(t *testing.T) {
	for name, values := range map[string][]float64{
		"no rows":            nil,
		"no values":          {math.NaN(), math.NaN(), math.NaN()},
		"no change":          levels(60, 100),
		"a step":             levels(30, 100, 110),
		"there and back":     levels(25, 100, 110, 100),
		"a step up from 0":   levels(30, 0, 5),
		"rows without value": slices.Insert(levels(30, 100, 110), 10, math.NaN(), math.NaN()),
	} {
		for _, method := range bothMethods(t, otava.Options{}) {
			t.Run(name+", "+method.Name, func(t *testing.T) {
				whole, replayed := answers(t, method, hourly("s", points.Lower, values...))
				replayed.Changes = slices.DeleteFunc(replayed.Changes, func(c changes.Change) bool { return !c.Stands() })
				for i := range replayed.Changes {
					replayed.Changes[i].Lifetime = nil
				}
				if diff := cmp.Diff(whole, replayed); diff != "" {
					t.Errorf("(-whole +replayed):\n%s", diff)
				}
			})
		}
	}
}

// bothMethods returns the platform's method and Otava's.
func bothMethods(t *testing.T, o otava.Options) []changes.Method {
	t.Helper()
	segments, err := changes.Segments(0.95)
	if err != nil {
		t.Fatal(err)
	}
	other, err := changes.Otava(o)
	if err != nil {
		t.Fatal(err)
	}
	return []changes.Method{segments, other}
}

// answers returns a method's answer for a whole series, and that of a replay.
func answers(t *testing.T, method changes.Method, s *points.TimeSeries) (whole, replayed changes.SeriesReport) {
	t.Helper()
	found, err := method.Find(s.Values)
	if err != nil {
		t.Fatal(err)
	}
	again, err := method.Replay(t.Context(), s.Values)
	if err != nil {
		t.Fatal(err)
	}
	return changes.Report(s, found, method.Level, false), changes.Report(s, again, method.Level, true)
}

func TestAReplayOfOtavaListsChangesThatItTookBack(t *testing.T) {
	method := bothMethods(t, otava.Options{P: 0.5})[1] // a limit that chance reaches
	_, replayed := answers(t, method, hourly("s", points.Lower, levels(20, 100, 101)...))
	stands, withdrawn := 0, 0
	for _, c := range replayed.Changes {
		switch {
		case c.Stands():
			stands++
		case *c.Withdrawn > c.Seen && c.Seen >= c.Index:
			withdrawn++
		default:
			t.Errorf("change of row %d: %+v", c.Index, c.Lifetime)
		}
	}
	if stands == 0 || withdrawn == 0 {
		t.Errorf("%d stand, %d were withdrawn", stands, withdrawn)
	}
}

func TestASettingThatIsOutOfItsRangeIsNamed(t *testing.T) {
	for want, o := range map[string]otava.Options{
		"p is 2: want more than 0, and at most 1":          {P: 2},
		"window is 1: want at least 2 rows":                {Window: 1},
		"min magnitude is -1: want a number of at least 0": {MinMagnitude: -1},
	} {
		if _, err := changes.Otava(o); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := changes.Segments(1); fmt.Sprint(err) != "confidence is 1: want at least 0.5, and less than 1" {
		t.Error(err)
	}
}

func TestAReplayEndsWithItsContext(t *testing.T) {
	over := errors.New("time is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	for _, method := range bothMethods(t, otava.Options{}) {
		if _, err := method.Replay(ctx, levels(30, 1, 2)); !errors.Is(err, over) {
			t.Errorf("%s: %v", method.Name, err)
		}
	}
}
