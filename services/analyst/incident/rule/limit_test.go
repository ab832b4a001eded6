package rule_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestALimitFiresWithConsecutiveValuesAndIsResolvedByThreeWithinIt(t *testing.T) {
	for name, tt := range map[string]struct {
		values []float64
		want   []string
	}{
		"within":                    {[]float64{99, 100, 99}, nil},
		"once":                      {[]float64{99, 101, 99, 101, 99}, nil},
		"twice in a row":            {[]float64{99, 101, 102}, []string{"run-0001 firing"}},
		"at first":                  {[]float64{101, 102}, []string{"run-0000 firing"}},
		"a value within it":         {[]float64{101, 102, 99, 101}, []string{"run-0000 firing"}},
		"two within it":             {[]float64{101, 102, 99, 99, 101}, []string{"run-0000 firing"}},
		"three within it":           {[]float64{101, 102, 99, 99, 99}, []string{"run-0000 firing resolved"}},
		"again":                     {[]float64{101, 102, 99, 99, 99, 101, 101}, []string{"run-0000 firing resolved", "run-0005 firing"}},
		"a value that is no number": {[]float64{101, 102, nan(), 99, 99, 99}, []string{"run-0000 firing resolved"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, watch(t, above()).add(series(tt.values...)...).became()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALimitInsideTheIntervalOfARunIsNeitherCrossedNorKept(t *testing.T) {
	uncertain := func(i int) store.Point {
		p := point(i, 101)
		p.Interval = &store.Interval{Low: 99, High: 103}
		return p
	}
	if w := watch(t, above()).add(uncertain(0), uncertain(1), uncertain(2)); len(w.all()) > 0 {
		t.Errorf("opened: %v", w.became())
	}
	w := watch(t, above()).add(point(0, 105), point(1, 105), point(2, 99), point(3, 99), uncertain(4), point(5, 99), point(6, 99))
	if diff := cmp.Diff([]string{"run-0000 firing"}, w.became()); diff != "" {
		t.Error(diff)
	}
}

func TestALimitHasTheUnitOfTheSeries(t *testing.T) {
	r := above()
	r.Unit, r.Limit = "GB/s", 0.1
	w := watch(t, r.WithID()).add(series(99, 104, 106)...)
	if i := w.only(); i.Message != "rate of checksums is above the limit of 100 MB/s: 105 MB/s, since version v1" || i.Direction != "up" {
		t.Errorf("%+v", i)
	}
	r.Unit = "ms"
	w = watch(t, r.WithID())
	w.points = series(99, 104, 106)
	if diff := cmp.Diff([]string{"the limit is in ms, which cannot be converted to MB/s, the unit of the metric"}, w.decide(at(5)).Notes); diff != "" {
		t.Error(diff)
	}
}

func TestAPercentileIsJudgedOnlyWithEnoughSamples(t *testing.T) {
	r := above()
	r.Statistic = incident.P99
	w := watch(t, r.WithID())
	w.points = series(104, 105)
	for i := range w.points {
		w.points[i].N = 499
	}
	if diff := cmp.Diff([]string{"2 points are not judged: a p99 needs 500 samples"}, w.decide(at(5)).Notes); diff != "" || len(w.all()) > 0 {
		t.Error(diff, w.became())
	}
	w.points[0].N, w.points[1].N = 500, 500
	if w.decide(at(5)); w.only().State != incident.Firing {
		t.Error(w.became())
	}
}

func TestIncompletePointsAreNotJudged(t *testing.T) {
	w := watch(t, above())
	w.points = series(104, 105)
	w.points[1].Complete = false
	if diff := cmp.Diff([]string{"1 point is not judged: samples are missing"}, w.decide(at(5)).Notes); diff != "" || len(w.all()) > 0 {
		t.Error(diff, w.became())
	}
}

func TestBeyondIsWorseThanTheMedianOfTheBaselineByTheLimit(t *testing.T) {
	r := above()
	r.When, r.Limit, r.Baseline = incident.Beyond, 0.05, "main"
	w := watch(t, r.WithID())
	w.edit = func(in *rule.Input) { in.Baseline = series(98, 100, 102) }
	w.add(series(110, 96, 95.5, 94, 93)...)
	i := w.only()
	if want := "rate of checksums is beyond baseline main by 6.5 %: 93.5 MB/s instead of 100 MB/s, since version v3"; i.Message != want || i.Direction != "down" {
		t.Errorf("%s", i.Message)
	}
	w.edit = func(in *rule.Input) { in.Baseline = nil }
	if diff := cmp.Diff([]string{"baseline main has no value of the metric (baictl baseline set main RUN)"}, w.decide(at(9)).Notes); diff != "" {
		t.Error(diff)
	}
}

func TestOtherMachinesThanThoseOfTheBaselineAreNotJudged(t *testing.T) {
	r := above()
	r.When, r.Limit, r.Baseline = incident.Beyond, 0.05, "main"
	w := watch(t, r.WithID())
	w.edit = func(in *rule.Input) { in.Baseline = series(100) }
	w.points = series(50, 50)
	w.points[0].Machine, w.points[1].Machine = "m2", "m2"
	if diff := cmp.Diff([]string{"2 points are not judged: the machines are not those of baseline main"}, w.decide(at(9)).Notes); diff != "" || len(w.all()) > 0 {
		t.Error(diff, w.became())
	}
}

func TestAnAckedLimitFiresAgainWhenItIsClearlyWorse(t *testing.T) {
	w := watch(t, above()).add(series(110, 110)...)
	w.acks[w.only().ID] = incident.Ack{By: "me", At: at(1).Add(1), Reason: "known"}
	w.add(point(2, 112), point(3, 113), point(4, 112))
	if w.only().State != incident.Acknowledged {
		t.Fatal(w.became())
	}
	w.add(point(5, 120), point(6, 121))
	i := w.only()
	if i.State != incident.Firing || i.Became[len(i.Became)-1].Why != "it is clearly worse: 20 %, and 10 % when it was acknowledged" {
		t.Errorf("%+v", i.Became)
	}
}

func TestFailedFiresWithRunsThatFailInARowAndIsResolvedByAsManyThatSucceed(t *testing.T) {
	r := incident.Rule{Namespace: "perf", Task: task, When: incident.Failed, For: 2, Since: start}.WithID()
	runs := func(pattern string) []rule.EndedRun {
		var all []rule.EndedRun
		for i, c := range pattern {
			all = append(all, rule.EndedRun{Run: point(i, 0).Run, Time: at(i), Failed: c == 'x', Reason: "OutOfMemory"})
		}
		return all
	}
	for pattern, want := range map[string][]string{
		"...": nil, ".x.": nil, "xx": {"run-0000 firing"}, "xx.": {"run-0000 firing"}, "xx..": {"run-0000 firing resolved"},
		"xx..x": {"run-0000 firing resolved"}, "xx.x..": {"run-0000 firing resolved"}, "..xx..xx": {"run-0002 firing resolved", "run-0006 firing"},
	} {
		t.Run(pattern, func(t *testing.T) {
			w := watch(t, r)
			for n := range runs(pattern) {
				w.edit = func(in *rule.Input) { in.Runs = runs(pattern)[:n+1] }
				w.decide(at(n))
			}
			if diff := cmp.Diff(want, w.became()); diff != "" {
				t.Error(diff)
			}
			if all := w.all(); len(all) > 0 && all[0].Message != "2 runs in a row of checksums failed: OutOfMemory" && pattern == "xx" {
				t.Error(all[0].Message)
			}
		})
	}
}

func TestInfiniteValuesAreOverALimitAndCanBeStored(t *testing.T) {
	w := watch(t, above()).add(series(inf(), inf())...)
	if w.only().State != incident.Firing {
		t.Error(w.became())
	}
}

func TestALimitThatWasCrossedLongAgoNotifiesNobody(t *testing.T) {
	w := watch(t, above())
	w.points = series(slices.Repeat([]float64{120}, 40)...)
	w.decide(at(40))
	if diff := cmp.Diff([]string{"run-0000 firing (silent)"}, w.became()); diff != "" {
		t.Error(diff)
	}
}

func TestRunsThatFailedLongAgoAreOver(t *testing.T) {
	r := incident.Rule{Namespace: "perf", Task: task, When: incident.Failed, For: 1, Since: start}.WithID()
	w := watch(t, r)
	w.edit = func(in *rule.Input) { in.Runs = []rule.EndedRun{{Run: "run-0000", Time: at(0), Failed: true}} }
	w.decide(at(1))
	w.edit = func(in *rule.Input) {
		in.Runs = []rule.EndedRun{{Run: "run-0001", Time: at(1)}, {Run: "run-0002", Time: at(2)}}
	}
	w.decide(at(3))
	if i := w.only(); i.State != incident.Resolved || i.Direction != "" {
		t.Errorf("%+v", i)
	}
}
