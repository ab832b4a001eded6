package confirm

import (
	"fmt"
	"strconv"
	"time"

	"github.com/benchmark-ai/bai/descriptors/price"
	"github.com/benchmark-ai/bai/services/analyst/incident"
)

// Money is an amount in a currency.
type Money struct {
	Amount   float64
	Currency string
}

// Costs are what is known of the cost of runs, by run: those that are repeated, and those that
// repeat them.
type Costs map[string]Money

// budget is the limit of a request, with what its runs cost. The estimate for a run is its own
// cost, else that of the run that it repeats, else that of the other edition.
type budget struct {
	request Request
	limit   Money
	costs   Costs
}

// budgetOf returns the budget of a request; ok is false if it has none.
func budgetOf(r Request, costs Costs) (b budget, ok bool) {
	p, err := price.Parse(r.MaxCost)
	if err != nil {
		return budget{}, false
	}
	var one price.Total
	one.Add(p, time.Hour)
	return budget{request: r, limit: Money{one.Amount(), one.Currency()}, costs: costs}, true
}

// known reports whether estimates can be made, in the currency of the limit.
func (b budget) known() bool { return b.of(b.request.Old) || b.of(b.request.New) }

func (b budget) of(run string) bool {
	m, ok := b.costs[run]
	return ok && m.Currency == b.limit.Currency
}

// side returns the estimate for a run of an edition.
func (b budget) side(s incident.Side) float64 {
	own, other := b.request.New, b.request.Old
	if s == incident.SideOld {
		own, other = other, own
	}
	if b.of(own) {
		return b.costs[own].Amount
	}
	return b.costs[other].Amount
}

// spent returns what the runs that were submitted cost.
func (b budget) spent(p Progress) (sum float64) {
	for _, r := range p.Runs {
		if b.of(r.Run) {
			sum += b.costs[r.Run].Amount
			continue
		}
		sum += b.side(SideOf(b.request.ID, r.Ordinal))
	}
	return sum
}

// pass returns why the run with an ordinal is not submitted, or "" if the budget allows it. The
// first run of a pair is submitted only if both are allowed.
func (b budget) pass(p Progress, ordinal int) string {
	if !b.known() {
		return ""
	}
	spent, next := b.spent(p), b.side(SideOf(b.request.ID, ordinal))
	what := "run"
	if ordinal%2 == 0 {
		next, what = next+b.side(SideOf(b.request.ID, ordinal+1)), "pair"
	}
	if spent+next <= b.limit.Amount {
		return ""
	}
	return fmt.Sprintf("a further %s costs about %s, the runs before it about %s, and max_cost is %s", what, b.text(next),
		b.text(spent), b.request.MaxCost)
}

func (b budget) text(amount float64) string {
	return strconv.FormatFloat(amount, 'g', 3, 64) + " " + b.limit.Currency
}

// UnknownCost returns why the limit of what the runs of a request cost cannot be kept, or "" if it
// can be, or if there is none.
func UnknownCost(r Request, costs Costs) string {
	b, limited := budgetOf(r, costs)
	if !limited || b.known() {
		return ""
	}
	return fmt.Sprintf("the cost of the runs is not known in %s: max_cost = %s is not kept, and max_runs = %d is",
		b.limit.Currency, r.MaxCost, r.MaxRuns)
}
