package confirm_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/confirm"
)

// dollars are the costs of runs.
func dollars(runs map[string]float64) confirm.Costs {
	all := confirm.Costs{}
	for run, amount := range runs {
		all[run] = confirm.Money{Amount: amount, Currency: "USD"}
	}
	return all
}

func TestNoRunIsSubmittedThatWouldPassMaxCost(t *testing.T) {
	euros := confirm.Costs{"old": {Amount: 9, Currency: "EUR"}, "new": {Amount: 9, Currency: "EUR"}}
	for name, tt := range map[string]struct {
		states string
		limit  string
		costs  confirm.Costs
		want   confirm.Next
	}{
		"both of the pair are allowed":      {"ss", "8 USD", dollars(map[string]float64{"old": 2, "new": 2}), confirm.Next{Ordinal: 2}},
		"one of the pair is allowed":        {"ss", "7 USD", dollars(map[string]float64{"old": 2, "new": 2}), confirm.Next{Ordinal: -1, Done: "a further pair costs about 4 USD, the runs before it about 4 USD, and max_cost is 7 USD"}},
		"the other one became too much":     {"s", "7 USD", dollars(map[string]float64{"old": 2, "new": 2, "run0": 6}), confirm.Next{Ordinal: -1, Done: "a further run costs about 2 USD, the runs before it about 6 USD, and max_cost is 7 USD"}},
		"the runs were cheaper than before": {"ss", "7 USD", dollars(map[string]float64{"old": 2, "new": 2, "run0": 1, "run1": 1}), confirm.Next{Ordinal: 2}},
		"runs that fail cost, too":          {"f.", "5 USD", dollars(map[string]float64{"old": 2, "new": 2}), confirm.Next{Ordinal: -1, Done: "a further pair costs about 4 USD, the runs before it about 2 USD, and max_cost is 5 USD"}},
		"not even the first pair":           {"", "3 USD", dollars(map[string]float64{"new": 2}), confirm.Next{Ordinal: -1, Done: "a further pair costs about 4 USD, the runs before it about 0 USD, and max_cost is 3 USD"}},
		"no cost is known":                  {"ss", "1 USD", nil, confirm.Next{Ordinal: 2}},
		"a cost in another currency":        {"ss", "1 USD", euros, confirm.Next{Ordinal: 2}},
		"no limit":                          {"ss", "", dollars(map[string]float64{"old": 1000}), confirm.Next{Ordinal: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			r := request()
			r.MaxCost = tt.limit
			if diff := cmp.Diff(tt.want, confirm.Decide(r, ran(tt.states), tt.costs, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALimitOfCostThatCannotBeKeptSaysSo(t *testing.T) {
	r := request()
	r.MaxCost = "20 USD"
	want := "the cost of the runs is not known in USD: max_cost = 20 USD is not kept, and max_runs = 12 is"
	if got := confirm.UnknownCost(r, nil); got != want {
		t.Errorf("%q", got)
	}
	if got := confirm.UnknownCost(r, dollars(map[string]float64{"new": 1})); got != "" {
		t.Errorf("with a known cost %q", got)
	}
	if got := confirm.UnknownCost(request(), nil); got != "" {
		t.Errorf("without a limit %q", got)
	}
}

func TestIncidentsThatShareRunsHaveTheLargestOfTheirLimits(t *testing.T) {
	with := func(cost string) confirm.Request {
		i := incident.Incident{ID: cost, Rule: incident.Rule{Confirm: &incident.Confirm{Pairs: 5, MaxRuns: 15, MaxCost: cost, Deadline: time.Hour}}}
		i.Confirmation = &incident.Confirmation{Old: "old", New: "new"}
		return confirm.New(i, now)
	}
	for pair, want := range map[[2]string]string{
		{"5 USD", "9 USD"}: "9 USD", {"9 USD", "5 USD"}: "9 USD", {"5 USD", ""}: "", {"", "5 USD"}: "", {"5 USD", "9 EUR"}: "5 USD",
	} {
		if got := with(pair[0]).With(with(pair[1])).MaxCost; got != want {
			t.Errorf("%q and %q: %q", pair[0], pair[1], got)
		}
	}
}

func TestBothOfAPairAreOnOneNodeAndTheNextPairIsOnAnother(t *testing.T) {
	p := ran("ssss")
	for n := range p.Runs {
		p.Runs[n].Nodes = []string{fmt.Sprint("node-", n/2)}
	}
	suspected := []string{"node-9"}
	for name, tt := range map[string]struct {
		p         confirm.Progress
		ordinal   int
		on, notOn []string
	}{
		"the first run":                 {confirm.Progress{}, 0, nil, suspected},
		"the second run":                {confirm.Progress{Runs: p.Runs[:1]}, 1, []string{"node-0"}, nil},
		"the first run of another pair": {confirm.Progress{Runs: p.Runs[:4]}, 4, nil, []string{"node-0", "node-1", "node-9"}},
		"the second run of it":          {confirm.Progress{Runs: p.Runs[:3]}, 3, []string{"node-1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			on, notOn := tt.p.Nodes(tt.ordinal, suspected)
			if diff := cmp.Diff([][]string{tt.on, tt.notOn}, [][]string{on, notOn}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
