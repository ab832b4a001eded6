package cost_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/price"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise/cost"
)

const descriptor = `spec_version = "1.0"
info = { description = "images" }
hardware = { cpus = 1 }
env = { docker_image = "img:1" }
`

func at(second float64) time.Time {
	return time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC).Add(time.Duration(second * float64(time.Second)))
}

// use returns the use of a machine from a second to another one.
func use(node, instanceType string, from, until float64) event.MachineUse {
	return event.MachineUse{Node: node, InstanceType: instanceType, From: at(from), Until: at(until)}
}

// run returns a run of two attempts, with the machines of each.
func run(machines ...[]event.MachineUse) store.Run {
	r := store.Run{ID: "r", Descriptor: descriptor, Attempt: len(machines), Machines: map[int][]event.MachineUse{}}
	for i, uses := range machines {
		if uses != nil {
			r.Machines[i+1] = uses
		}
	}
	return r
}

// text returns values and unknown metrics as text.
func text(r cost.Result) string {
	var all []string
	for _, v := range r.Values {
		all = append(all, fmt.Sprintf("%s=%v %s", v.Metric, float64(v.Median), v.Unit))
	}
	for _, u := range r.Unknown {
		if u.Metric != descriptors.EnergyJoules {
			all = append(all, u.Metric+": "+u.Reason)
		}
	}
	return strings.Join(all, "\n")
}

func TestTheCostOfARunIsThatOfTheMachinesOfAllAttempts(t *testing.T) {
	prices := price.Table{"p3.2xlarge": "3.06 USD", "m5.large": "0.096 USD", "free": "0 USD", "eu": "1 EUR"}
	priced := use("a", "p3.2xlarge", 0, 1800)
	priced.PricePerHour = "1 EUR"
	for name, tt := range map[string]struct {
		run  store.Run
		want string
	}{
		"one machine for half an hour": {run([]event.MachineUse{use("a", "p3.2xlarge", 0, 1800)}), "cost.amount=1.53 USD"},
		"two machines, each for its own time": {
			run([]event.MachineUse{use("a", "p3.2xlarge", 0, 1800), use("b", "p3.2xlarge", 600, 1800)}), "cost.amount=2.55 USD",
		},
		"a retry is paid for, too": {
			run([]event.MachineUse{use("a", "p3.2xlarge", 0, 600)}, []event.MachineUse{use("b", "p3.2xlarge", 700, 2500)}), "cost.amount=2.04 USD",
		},
		"machines of two types": {
			run([]event.MachineUse{use("a", "p3.2xlarge", 0, 3600), use("b", "m5.large", 0, 3600)}), "cost.amount=3.156 USD",
		},
		"a tenth of a second":            {run([]event.MachineUse{use("a", "p3.2xlarge", 0, 0.1)}), "cost.amount=8.5e-05 USD"},
		"an attempt without a machine":   {run([]event.MachineUse{}, []event.MachineUse{use("a", "m5.large", 0, 3600)}), "cost.amount=0.096 USD"},
		"a machine that costs nothing":   {run([]event.MachineUse{use("a", "free", 0, 3600)}), "cost.amount=0 USD"},
		"the descriptor's price wins":    {run([]event.MachineUse{priced}), "cost.amount=0.5 EUR"},
		"prices in two currencies":       {run([]event.MachineUse{use("a", "eu", 0, 60), use("b", "m5.large", 0, 60)}), "cost.amount: the prices of its machines are in EUR and in USD"},
		"a type without a price":         {run([]event.MachineUse{use("a", "x9.huge", 0, 60)}), "cost.amount: the platform's settings have no price of instance type x9.huge (hardware.price_per_hour of the descriptor gives one)"},
		"a node of unknown type":         {run([]event.MachineUse{use("a", "", 0, 60)}), "cost.amount: the instance type of node a is not known, so that it has no price (hardware.price_per_hour of the descriptor gives one)"},
		"an attempt of unknown machines": {run(nil, []event.MachineUse{use("a", "m5.large", 0, 3600)}), "cost.amount: the machines of attempt 1 are not known"},
		"no pod was ever on a machine":   {run([]event.MachineUse{}), "cost.amount: no pod of the run was on a machine"},
	} {
		t.Run(name, func(t *testing.T) {
			got := cost.Of(cost.Input{Run: tt.run, Prices: prices, Meter: &cost.Meter{}})
			if diff := cmp.Diff(tt.want, text(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPriceThatChangesLaterChangesNoCostOfThePast(t *testing.T) {
	in := cost.Input{Run: run([]event.MachineUse{use("a", "m5.large", 0, 3600)}), Prices: price.Table{"m5.large": "0.096 USD"}, Meter: &cost.Meter{}}
	first := cost.Of(in)
	in.Prices, in.Used = price.Table{"m5.large": "5 USD"}, first.Prices
	if diff := cmp.Diff("cost.amount=0.096 USD", text(cost.Of(in))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in.Used = nil
	if diff := cmp.Diff("cost.amount=5 USD", text(cost.Of(in))); diff != "" {
		t.Errorf("without an earlier one (-want +got):\n%s", diff)
	}
}

func TestCostAndEnergyAreDividedByTheWork(t *testing.T) {
	in := cost.Input{
		Run: run([]event.MachineUse{use("a", "m5.large", 0, 3600)}), Prices: price.Table{"m5.large": "0.096 USD"}, Meter: &cost.Meter{},
		Counts: func(metric string, how descriptors.Count) (float64, string) {
			switch {
			case how != descriptors.SumOfSamples:
				t.Errorf("counts by %s", how)
			case metric == "images":
				return 1000, ""
			case metric == "none":
				return 0, ""
			}
			return 0, "the run has no values of " + metric
		},
	}
	in.Run.Descriptor += "cost = { per = [\"images\", \"tokens\", \"none\"], count = \"sum\" }\n"
	for second := range 11 {
		in.Meter.Add(sample("system.gpu.power", "W", 1, "p", map[string]string{"gpu": "0"}, float64(second), 250))
	}
	want := `cost.amount=0.096 USD
energy.joules=2500 J
cost.per.images=9.6e-05 USD
energy.per.images=2.5 J
cost.per.tokens: the run has no values of tokens
energy.per.tokens: the run has no values of tokens
cost.per.none: none is 0: cost and energy are divided by a number above 0
energy.per.none: none is 0: cost and energy are divided by a number above 0`
	if diff := cmp.Diff(want, text(cost.Of(in))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in.Prices, in.Meter = nil, &cost.Meter{}
	got := cost.Of(in)
	if len(got.Values) > 0 || len(got.Unknown) != 8 || got.Unknown[2].Reason != "cost.amount is not known" || got.Unknown[3].Reason != "energy.joules is not known" {
		t.Errorf("without price and power: %+v", got)
	}
}

func TestAMetricOfTheBenchmarkTakesThePlaceOfAComputedOne(t *testing.T) {
	got := cost.Of(cost.Input{Run: run([]event.MachineUse{use("a", "m5.large", 0, 3600)}), Prices: price.Table{"m5.large": "0.096 USD"}, Meter: &cost.Meter{}})
	own := store.Summaries{Summaries: []store.Summary{{Metric: "b"}, {Metric: "cost.amount", Unit: "USD", Median: 7}, {Metric: "cost.amount", Unit: "EUR", Median: 8}}}
	if all := got.Into(own); len(all.Summaries) != 3 || len(own.Summaries) != 3 {
		t.Errorf("%+v", all.Summaries)
	}
	all := got.Into(store.Summaries{Summaries: []store.Summary{{Metric: "b"}, {Metric: "d"}}})
	if len(all.Summaries) != 3 || all.Summaries[1].Metric != "cost.amount" || all.Summaries[1].Direction != "lower" || all.Prices["m5.large"] != "0.096 USD" {
		t.Errorf("%+v", all)
	}
}

func TestWhatIsNotKnownIsWorthAWordWhereACostIsAskedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		descriptor string
		prices     price.Table
		want       bool
	}{
		"nothing asks for it":  {descriptor, nil, false},
		"the settings do":      {descriptor, price.Table{"a": "1 USD"}, true},
		"the descriptor does":  {strings.Replace(descriptor, "cpus = 1", `cpus = 1, price_per_hour = "1 USD"`, 1), nil, true},
		"so does a cost per":   {descriptor + "cost = { per = [\"images\"] }\n", nil, true},
		"not a broken file":    {"?", nil, false},
		"the settings, anyway": {"?", price.Table{"a": "1 USD"}, true},
	} {
		r := run([]event.MachineUse{})
		r.Descriptor = tt.descriptor
		got := cost.Of(cost.Input{Run: r, Prices: tt.prices, Meter: &cost.Meter{}, Counts: func(string, descriptors.Count) (float64, string) { return 0, "none" }})
		if got.Wanted != tt.want {
			t.Errorf("%s: %t", name, got.Wanted)
		}
	}
}
