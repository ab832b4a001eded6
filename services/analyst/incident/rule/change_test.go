package rule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestAStepToTheWorseFiresOnceAndNamesItsVersion(t *testing.T) {
	w := watch(t, regression()).add(series(noisy(1, 1, [2]float64{100, 20}, [2]float64{92, 20})...)...)
	i := w.only()
	if i.State != incident.Firing || i.Silent || i.Direction != "down" || i.Cause != incident.CauseRegression {
		t.Errorf("%+v", i)
	}
	if i.FirstBad.Run != "run-0020" || i.LastGood.Run != "run-0019" || !near(float64(*i.Magnitude), -0.08, 0.01) {
		t.Errorf("%s after %s, %v", i.FirstBad.Run, i.LastGood.Run, *i.Magnitude)
	}
	if want := "rate of checksums fell by 7.94 % (7.22 % to 8.65 %), from 100.046 to 92.1048 MB/s, since version v20"; i.Message != want {
		t.Errorf("%s, want\n%s", i.Message, want)
	}
}

func TestAnImprovementIsNoRegressionButAChange(t *testing.T) {
	better := series(noisy(1, 1, [2]float64{100, 20}, [2]float64{108, 20})...)
	if w := watch(t, regression()).add(better...); len(w.all()) > 0 {
		t.Errorf("a regression: %v", w.became())
	}
	r := regression()
	r.When = incident.Change
	if i := watch(t, r.WithID()).add(better...).only(); i.State != incident.Firing || i.Direction != "up" {
		t.Errorf("%+v", i)
	}
}

func TestAChangeSmallerThanMinChangeOpensNothing(t *testing.T) {
	r := regression()
	r.MinChange = 0.1
	if w := watch(t, r.WithID()).add(series(noisy(1, 1, [2]float64{100, 20}, [2]float64{92, 20})...)...); len(w.all()) > 0 {
		t.Error(w.became())
	}
}

func TestFewStrayPointsNotifyNobody(t *testing.T) {
	for name, stray := range map[string][]float64{
		"one": {80}, "two": {80, 81}, "four in a row": {80, 81, 79, 80},
	} {
		t.Run(name, func(t *testing.T) {
			values := slices.Concat(noisy(2, 1, [2]float64{100, 20}), stray, noisy(3, 1, [2]float64{100, 20}))
			if w := watch(t, regression()).add(series(values...)...); notified(w.all()) > 0 {
				t.Error(w.became())
			}
		})
	}
}

func TestTheSecondPointOfASeriesOpensNothing(t *testing.T) {
	if w := watch(t, regression()).add(series(100, 10)...); len(w.all()) > 0 {
		t.Error(w.became())
	}
}

func TestOneLuckyRunResolvesNothingAndThreeDo(t *testing.T) {
	w := watch(t, regression()).add(series(noisy(1, 1, [2]float64{100, 20}, [2]float64{80, 12})...)...)
	if w.only().State != incident.Firing {
		t.Fatal(w.became())
	}
	w.add(point(32, 100))
	if w.only().State != incident.Firing {
		t.Errorf("after one good run: %v", w.became())
	}
	w.add(point(33, 101), point(34, 99.5))
	if i := w.only(); i.State != incident.Resolved || i.Became[len(i.Became)-1].Why != "3 points in a row are back at the earlier level" {
		t.Errorf("after three: %+v", i.Became)
	}
}

func TestAChangeBackResolves(t *testing.T) {
	w := watch(t, regression()).add(series(noisy(5, 2, [2]float64{100, 30}, [2]float64{95, 30}, [2]float64{100, 30})...)...)
	if i := w.only(); i.State != incident.Resolved || i.Became[len(i.Became)-1].Why != "the level has changed back" {
		t.Error(w.became(), i.Became)
	}
}

func TestARegressionThatComesBackAfterItWasResolvedIsAnotherIncident(t *testing.T) {
	w := watch(t, regression()).add(series(noisy(1, 1, [2]float64{100, 20}, [2]float64{80, 12}, [2]float64{100, 12}, [2]float64{80, 12})...)...)
	all := w.all()
	if len(all) != 2 || all[0].State != incident.Resolved || all[1].State != incident.Firing || all[1].FirstBad.Run != "run-0044" {
		t.Error(w.became())
	}
}

func TestOtherMachinesAreNoAlarmAndEndOneThatCannotBeFollowed(t *testing.T) {
	all := series(noisy(1, 1, [2]float64{100, 20}, [2]float64{50, 25})...)
	for i := range all[20:] {
		all[20+i].Machine = "m2"
	}
	if w := watch(t, regression()).add(all...); len(w.all()) > 0 {
		t.Error(w.became())
	}
	all = series(noisy(1, 1, [2]float64{100, 20}, [2]float64{92, 10}, [2]float64{50, 12})...)
	for i := range all[30:] {
		all[30+i].Machine = "m2"
	}
	w := watch(t, regression()).add(all[:39]...)
	if w.only().State != incident.Firing {
		t.Error(w.became())
	}
	if w.add(all[39:]...); w.only().State != incident.Resolved {
		t.Error(w.became())
	}
}

func TestOldChangesAreShownAndNobodyHearsOfThem(t *testing.T) {
	values := noisy(1, 1, [2]float64{100, 40}, [2]float64{92, 40})
	for name, tt := range map[string]struct {
		since time.Time
		now   time.Time
		bulk  int // points that come together, before the others come one by one
		want  int
	}{
		"as points come":                       {start, at(80), 40, 1},
		"a backfill":                           {start, at(80), 80, 0},
		"a rule that is newer than the change": {at(60), at(80), 40, 0},
		"points of more than a week ago":       {start, at(80).Add(8 * 24 * time.Hour), 80, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := regression()
			r.Since = tt.since
			w := watch(t, r)
			w.points = series(values[:tt.bulk]...)
			w.decide(tt.now)
			w.add(series(values...)[tt.bulk:]...)
			if i := w.only(); i.Silent != (tt.want == 0) || notified(w.all()) != tt.want {
				t.Error(w.became())
			}
		})
	}
}

func TestAWeeklyBenchmarkIsHeardOfAlthoughItsChangeIsWeeksOld(t *testing.T) {
	w := watch(t, regression())
	for i, v := range noisy(1, 1, [2]float64{100, 20}, [2]float64{90, 10}) {
		p := point(i, v)
		p.Time = start.Add(time.Duration(i) * 7 * 24 * time.Hour)
		w.add(p)
	}
	if notified(w.all()) != 1 {
		t.Error(w.became())
	}
}

func TestAnAckedIncidentIsQuietUntilItsEnd(t *testing.T) {
	w := watch(t, regression()).add(series(noisy(1, 1, [2]float64{100, 20}, [2]float64{92, 12})...)...)
	id := w.only().ID
	w.acks[id] = incident.Ack{By: "me", At: at(32), Reason: "known", Until: at(40)}
	w.decide(at(33))
	if w.only().State != incident.Acknowledged {
		t.Fatal(w.became())
	}
	w.add(point(33, 92), point(34, 92))
	if w.only().State != incident.Acknowledged {
		t.Fatal(w.became())
	}
	w.decide(at(41))
	if i := w.only(); i.State != incident.Firing || i.Became[len(i.Became)-1].Why != "the acknowledgement has ended" {
		t.Error(w.became())
	}
}

func TestAStepFurtherDownAfterAnAckedOneIsAnIncidentOfItsOwn(t *testing.T) {
	w := watch(t, regression()).add(series(noisy(1, 1, [2]float64{100, 20}, [2]float64{92, 12})...)...)
	w.acks[w.only().ID] = incident.Ack{By: "me", At: at(32), Reason: "known"}
	for i, v := range noisy(2, 1, [2]float64{80, 12}) {
		w.add(point(32+i, v))
	}
	if diff := cmp.Diff([]string{"run-0020 firing acknowledged", "run-0032 firing"}, w.became()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnAckedIncidentThatGoesAwayIsResolved(t *testing.T) {
	w := watch(t, regression()).add(series(noisy(1, 1, [2]float64{100, 20}, [2]float64{80, 12})...)...)
	w.acks[w.only().ID] = incident.Ack{By: "me", At: at(32), Until: at(400)}
	w.add(point(33, 100), point(34, 101), point(35, 99))
	if w.only().State != incident.Resolved {
		t.Error(w.became())
	}
}

func TestAcceptEndsAnIncidentAndWrongDismissesItForEver(t *testing.T) {
	for name, tt := range map[string]struct {
		ack  incident.Ack
		want incident.State
	}{
		"accept": {incident.Ack{By: "me", At: at(32), Accept: true}, incident.Resolved},
		"wrong":  {incident.Ack{By: "me", At: at(32), Wrong: true}, incident.Dismissed},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t, regression()).add(series(noisy(1, 1, [2]float64{100, 20}, [2]float64{92, 12})...)...)
			w.acks[w.only().ID] = tt.ack
			for i, v := range noisy(9, 1, [2]float64{92, 40}) {
				w.add(point(40+i, v))
			}
			if w.only().State != tt.want {
				t.Error(w.became())
			}
		})
	}
}

func TestARuleThatIsGoneEndsItsIncidentsWithASentence(t *testing.T) {
	w := watch(t, regression()).add(series(noisy(1, 1, [2]float64{100, 20}, [2]float64{92, 12})...)...)
	w.edit = func(in *rule.Input) { in.Removed = true }
	w.decide(at(50))
	if i := w.only(); i.State != incident.Resolved || i.Became[len(i.Became)-1].Why != "the newest descriptor of the task does not have the alarm any more" {
		t.Errorf("%+v", i.Became)
	}
}

func TestARegressionOfAMetricWithoutADirectionIsNoted(t *testing.T) {
	w := watch(t, regression())
	w.points = series(noisy(1, 1, [2]float64{100, 20}, [2]float64{92, 12})...)
	for i := range w.points {
		w.points[i].Direction = ""
	}
	out := w.decide(at(40))
	if diff := cmp.Diff([]string{`the metric has no direction: add direction = "higher" or "lower" to its entry of [[output.metrics]]`}, out.Notes); diff != "" || len(w.all()) > 0 {
		t.Error(diff, w.became())
	}
}

func TestAnOpenIncidentOutlivesThePointsItBeganWith(t *testing.T) {
	w := watch(t, regression()).add(series(noisy(1, 1, [2]float64{100, 20}, [2]float64{92, 12})...)...)
	id := w.only().ID
	values := noisy(4, 1, [2]float64{92, 520})
	for i, v := range values {
		w.points = append(w.points, point(32+i, v))
		if i%40 == 0 {
			w.decide(at(32 + i))
		}
	}
	w.decide(at(600))
	if i := w.only(); i.ID != id || i.State != incident.Firing {
		t.Fatal(w.became())
	}
	w.add(point(600, 100), point(601, 100))
	if w.incidents[id].State != incident.Firing {
		t.Fatal(w.became())
	}
	for i, v := range noisy(5, 1, [2]float64{100, 25}) {
		w.add(point(610+i, v))
	}
	if w.incidents[id].State != incident.Resolved {
		t.Error(w.became())
	}
}

func TestIncidentsOfOthersAreLeftAlone(t *testing.T) {
	w := watch(t, regression()).add(series(noisy(1, 1, [2]float64{100, 20}, [2]float64{92, 12})...)...)
	other := w.only()
	other.Rule.ID = "another"
	out := rule.Decide(rule.Input{Rule: w.rule, Series: key(), Points: []store.Point{}, Incidents: []incident.Incident{other}, Now: at(50)})
	if len(out.Incidents) > 0 {
		t.Errorf("%+v", out.Incidents)
	}
}
