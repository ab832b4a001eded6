package cause_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/cause"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestEachVerdictOfRunsGivesAClassWhateverDiffers(t *testing.T) {
	const regression, method, environment, noise, insufficient = incident.CauseRegression, incident.CauseMethod, incident.CauseEnvironment, incident.CauseNoise, incident.CauseInsufficient
	table := map[incident.Verdict]map[incident.Cause]incident.Cause{
		"":                           {regression: regression, method: method, environment: environment, insufficient: insufficient},
		incident.VerdictConfirmed:    {regression: regression, method: method, environment: regression, insufficient: regression},
		incident.VerdictNoise:        {regression: noise, method: noise, environment: noise, insufficient: noise},
		incident.VerdictEnvironment:  {regression: environment, method: environment, environment: environment, insufficient: environment},
		incident.VerdictInsufficient: {regression: insufficient, method: insufficient, environment: insufficient, insufficient: insufficient},
	}
	for verdict, classes := range table {
		for of, want := range classes {
			got, _ := cause.Confirmed(of, nil, &incident.Confirmation{Verdict: verdict})
			if got != want {
				t.Errorf("%q of %s: %s, want %s", verdict, of, got, want)
			}
			if got, _ := cause.Confirmed(of, nil, nil); got != of {
				t.Errorf("%s without runs: %s", of, got)
			}
		}
	}
}

func TestTheReasonsHaveWhatRunsSayAndHowToRepeatThem(t *testing.T) {
	of, reasons := cause.Of(store.PointRun{Version: "1"}, store.PointRun{Version: "2"})
	before := len(reasons)
	_, got := cause.Confirmed(of, reasons, &incident.Confirmation{
		Old: "old", New: "new", Verdict: incident.VerdictNoise, Why: "they are equal", Runs: []incident.RunOfPair{{}}, Gaps: []string{"a tag"},
	})
	want := []string{"the version changed from 1 to 2", "they are equal", "both again: baictl rerun old && baictl rerun new", "not repeated as it was: a tag"}
	if diff := cmp.Diff(want, got); diff != "" || len(reasons) != before {
		t.Error(diff)
	}
}
