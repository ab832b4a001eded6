// Package cost computes what a run has cost, and the energy that its devices have used, from the record of the run and from its samples of
// power. It is pure: the same record, samples and prices always give the same.
package cost

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/price"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Input is a run that has ended.
type Input struct {
	Run    store.Run
	Prices price.Table       // of the settings
	Used   map[string]string // prices, by instance type, that an earlier computation for the run has used: they win over Prices
	Meter  *Meter            // its samples of power
	Nodes  map[string]string // of its pods, by UID
	Counts Counter           // its other samples
}

// Counter returns how many things the samples of a metric stand for, or why that is not known, for people.
type Counter func(metric string, how descriptors.Count) (n float64, reason string)

// Result is what a run has cost, and its energy.
type Result struct {
	Values  []store.Summary
	Unknown []store.UnknownMetric
	Notes   []string          // for people
	Prices  map[string]string // of the settings, that were used, by instance type
	Wanted  bool              // the descriptor or the settings ask for a cost: what is not known is worth a word
}

// quantity is money or energy, if it is known.
type quantity struct {
	metric, per string // names: of itself, and the beginning of those per something
	unit        string
	amount      float64
	reason      string // why it is not known; empty if it is
}

// Of computes the cost and the energy of a run. A quantity that is not known is in Unknown, and never 0.
func Of(in Input) Result {
	d, _ := (parser.Parser{Accepted: true}).Parse("", []byte(in.Run.Descriptor))
	r := Result{Wanted: len(in.Prices) > 0}
	if d != nil {
		r.Wanted = r.Wanted || d.Hardware.PricePerHour != "" || len(d.Cost.Per) > 0
	}
	money := r.money(in)
	energy := r.energy(in)
	for _, q := range []quantity{money, energy} {
		r.add(q)
	}
	if d == nil {
		return r
	}
	for _, name := range d.Cost.Per {
		n, reason := in.Counts(name, d.Cost.Count)
		r.add(money.dividedBy(name, n, reason))
		r.add(energy.dividedBy(name, n, reason))
	}
	return r
}

// add adds a quantity.
func (r *Result) add(q quantity) {
	if q.reason != "" {
		r.Unknown = append(r.Unknown, store.UnknownMetric{Metric: q.metric, Reason: q.reason})
		return
	}
	v := store.Float(q.amount)
	r.Values = append(r.Values, store.Summary{
		Metric: q.metric, Unit: q.unit, Min: v, Max: v, Median: v, P90: v, P95: v, P99: v, Mean: v,
		SD: store.Float(math.NaN()), First: v, Last: v,
		Direction: event.Lower,
	})
}

// dividedBy returns a quantity per thing; reason says why the number of things is not known.
func (q quantity) dividedBy(name string, n float64, reason string) quantity {
	out := quantity{metric: q.per + name, unit: q.unit, amount: q.amount / n}
	switch {
	case q.reason != "":
		out.reason = q.metric + " is not known"
	case reason != "":
		out.reason = reason
	case !(n > 0) || math.IsInf(n, 1): // NaN, too
		out.reason = fmt.Sprintf("%s is %v: cost and energy are divided by a number above 0", name, n)
	}
	return out
}

// money returns what the machines of all attempts have cost.
func (r *Result) money(in Input) quantity {
	q := quantity{metric: descriptors.CostAmount, per: descriptors.CostPer}
	var total price.Total
	for attempt := 1; attempt <= in.Run.Attempt; attempt++ {
		uses, known := in.Run.Machines[attempt]
		if !known {
			q.reason = fmt.Sprintf("the machines of attempt %d are not known", attempt)
			return q
		}
		for _, use := range uses {
			p, reason := r.priceOf(in, use)
			if reason == "" && !total.Add(p, use.Until.Sub(use.From)) {
				reason = fmt.Sprintf("the prices of its machines are in %s and in %s", total.Currency(), p.Currency())
			}
			if reason != "" {
				q.reason = reason
				return q
			}
		}
	}
	if q.unit = total.Currency(); q.unit == "" {
		q.reason = "no pod of the run was on a machine"
	}
	q.amount = total.Amount()
	return q
}

// priceOf returns the price of a machine: that of the descriptor, else that of its instance type; or why it is not known.
func (r *Result) priceOf(in Input, use event.MachineUse) (p price.Price, reason string) {
	if use.PricePerHour != "" {
		p, err := price.Parse(use.PricePerHour)
		if err != nil {
			return p, "hardware.price_per_hour of the descriptor cannot be read"
		}
		return p, ""
	}
	const remedy = "hardware.price_per_hour of the descriptor gives one"
	if use.InstanceType == "" {
		return p, fmt.Sprintf("the instance type of node %s is not known, so that it has no price (%s)", use.Node, remedy)
	}
	p, found := price.Table(in.Used).Of(use.InstanceType)
	if !found {
		p, found = in.Prices.Of(use.InstanceType)
	}
	if !found {
		return p, fmt.Sprintf("the platform's settings have no price of instance type %s (%s)", use.InstanceType, remedy)
	}
	if r.Prices == nil {
		r.Prices = map[string]string{}
	}
	r.Prices[use.InstanceType] = p.String()
	return p, ""
}

// energy returns the energy of the measured devices.
func (r *Result) energy(in Input) quantity {
	e := in.Meter.energy(in.Nodes)
	q := quantity{
		metric: descriptors.EnergyJoules, per: descriptors.EnergyPer, unit: descriptors.EnergyUnit,
		amount: e.joules, reason: e.reason,
	}
	if q.reason == "" {
		r.Notes = append(r.Notes, e.note())
	}
	return q
}

// Into returns summaries with the result in place of one of an earlier computation. A metric of the benchmark with the name of a computed
// one takes its place.
func (r Result) Into(all store.Summaries) store.Summaries {
	all.Summaries = slices.Clone(all.Summaries)
	for _, v := range r.Values {
		own := slices.ContainsFunc(all.Summaries,
			func(s store.Summary) bool { return s.Metric == v.Metric && s.Unit == v.Unit && len(s.Labels) == 0 })
		if !own {
			all.Summaries = append(all.Summaries, v)
		}
	}
	slices.SortStableFunc(all.Summaries, func(a, b store.Summary) int { return cmp.Compare(a.Metric, b.Metric) })
	all.Notes = slices.Concat(all.Notes, r.Notes)
	all.Unknown, all.Prices = r.Unknown, r.Prices
	return all
}
