package rule_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
)

// confirming is the rule of a regression that runs confirm.
func confirming() incident.Rule {
	r := regression()
	r.Confirm = &incident.Confirm{Pairs: 5, MaxRuns: 15, Deadline: time.Hour}
	return r.WithID()
}

// answer is what runs say of an incident.
func answer(i incident.Incident, v incident.Verdict) incident.Confirmation {
	return incident.Confirmation{ID: "request", Old: i.Confirmation.Old, New: i.Confirmation.New, Verdict: v, Why: "the runs say " + string(v)}
}

// judged decides once more, with what runs say of the only incident.
func (w *watcher) judged(v incident.Verdict) incident.Incident {
	w.t.Helper()
	in := w.input(w.points[len(w.points)-1].Time.Add(time.Minute))
	i := w.only()
	in.Confirmations = map[string]incident.Confirmation{i.ID: answer(i, v)}
	for _, next := range rule.Decide(in).Incidents {
		w.incidents[next.ID] = stored(w.t, next)
	}
	return w.only()
}

func TestRunsConfirmAnIncidentBeforeItFires(t *testing.T) {
	fell := noisy(3, 1, [2]float64{100, 30}, [2]float64{92, 8})
	for name, tt := range map[string]struct {
		verdict incident.Verdict
		state   incident.State
		cause   incident.Cause
	}{
		"confirmed":   {incident.VerdictConfirmed, incident.Firing, incident.CauseRegression},
		"noise":       {incident.VerdictNoise, incident.Dismissed, incident.CauseNoise},
		"environment": {incident.VerdictEnvironment, incident.Firing, incident.CauseEnvironment},
		"no verdict":  {"", incident.Confirming, incident.CauseRegression},
		"the runs do not tell, and the points do": {incident.VerdictInsufficient, incident.Firing, incident.CauseInsufficient},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t, confirming())
			w.add(series(fell...)...)
			before := w.only()
			if before.State != incident.Confirming || before.Confirmation == nil || before.Confirmation.Old >= before.Confirmation.New || notified(w.all()) > 0 {
				t.Fatalf("%s: %+v", before.State, before.Confirmation)
			}
			i := w.judged(tt.verdict)
			if i.State != tt.state || i.Cause != tt.cause {
				t.Errorf("%s, cause %s: %v", i.State, i.Cause, i.Reasons)
			}
			if diff := cmp.Diff(i, w.judged(tt.verdict)); diff != "" {
				t.Errorf("once more: %s", diff)
			}
		})
	}
}

func TestTheRunsThatAreRepeatedLieSurelyOnEitherSideOfTheChange(t *testing.T) {
	w := watch(t, confirming())
	w.add(series(noisy(5, 1, [2]float64{100, 30}, [2]float64{97, 8})...)...)
	for _, i := range w.all() {
		if i.Confirmation == nil || i.Confirmation.Old >= i.First.Run || i.Confirmation.New != i.Last.Run {
			t.Errorf("range from %s to %s, repeated %+v", i.First.Run, i.Last.Run, i.Confirmation)
		}
	}
}

func TestNoiseIsDismissedForGood(t *testing.T) {
	w := watch(t, confirming())
	values := noisy(3, 1, [2]float64{100, 30}, [2]float64{92, 20})
	w.add(series(values[:38]...)...)
	w.judged(incident.VerdictNoise)
	w.add(series(values...)[38:]...)
	if i := w.only(); i.State != incident.Dismissed {
		t.Errorf("%s", i.State)
	}
}

func TestAnIncidentThatRunsConfirmedIsNotConfirmedAgain(t *testing.T) {
	w := watch(t, confirming())
	values := noisy(3, 1, [2]float64{100, 30}, [2]float64{92, 20})
	w.add(series(values[:38]...)...)
	w.judged(incident.VerdictConfirmed)
	w.add(series(values...)[38:]...)
	i := w.only()
	if diff := cmp.Diff([]string{i.FirstBad.Run + " confirming firing"}, w.became()); diff != "" || i.Confirmation.Verdict != incident.VerdictConfirmed {
		t.Errorf("%s: %+v", diff, i.Confirmation)
	}
}

func TestAChangeThatGoesAwayWhileRunsConfirmItIsDismissed(t *testing.T) {
	w := watch(t, confirming())
	w.add(series(noisy(3, 1, [2]float64{100, 30}, [2]float64{92, 6}, [2]float64{100, 12})...)...)
	for _, i := range w.all() {
		if i.State != incident.Dismissed {
			t.Errorf("%s: %v", i.State, i.Became)
		}
	}
}

func TestWhatIsSilentAsksForNoRuns(t *testing.T) {
	r := confirming()
	r.Since = at(40)
	w := watch(t, r)
	w.add(series(noisy(3, 1, [2]float64{100, 20}, [2]float64{92, 22})...)...)
	for _, i := range w.all() {
		if i.Confirmation != nil || !i.Silent {
			t.Errorf("silent %t: %+v", i.Silent, i.Confirmation)
		}
	}
}

func TestALimitIsConfirmedByTheRunBeforeItWasCrossed(t *testing.T) {
	r := above()
	r.Confirm = &incident.Confirm{Pairs: 5, MaxRuns: 15, Deadline: time.Hour}
	w := watch(t, r)
	w.add(series(90, 91, 92, 110, 111)...)
	i := w.only()
	if i.State != incident.Confirming || i.Confirmation.Old != "run-0002" || i.Confirmation.New != "run-0003" {
		t.Errorf("%s: %+v", i.State, i.Confirmation)
	}
}

func TestAnAlarmThatAsksForNoRunsAnyMoreIsJudgedByThePoints(t *testing.T) {
	w := watch(t, confirming())
	values := noisy(3, 1, [2]float64{100, 30}, [2]float64{92, 9})
	w.add(series(values[:38]...)...)
	w.rule = regression()
	w.add(series(values...)[38:]...)
	if i := w.only(); i.State != incident.Firing {
		t.Errorf("%s", i.State)
	}
}
