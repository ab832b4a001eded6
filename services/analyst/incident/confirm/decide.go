package confirm

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/benchmark-ai/bai/descriptors/price"
)

// coin returns a random bit that follows from an ID and a number.
func coin(id string, n int) bool {
	sum := sha256.Sum256([]byte(id + " " + strconv.Itoa(n)))
	return sum[0]&1 == 0
}

// Next is what the gateway is to do for a request.
type Next struct {
	Ordinal int    // of the run to submit; -1 for none
	Done    string // why no further run is submitted; empty as long as one may be
	Close   bool   // cancel the run that goes on, and delete both documents
}

// Decide returns the next run of a request. Both of a pair run one after the other, and pairs do:
// there is one run at a time. A pair of which a run failed is given up, and another one takes its
// place, as far as MaxRuns allows. Where the cost of the runs is known, none is submitted that would
// pass MaxCost.
func Decide(r Request, p Progress, costs Costs, now time.Time) Next {
	none := Next{Ordinal: -1}
	switch {
	case len(r.Incidents) == 0:
		return Next{Ordinal: -1, Close: true}
	case p.Done != "":
		return Next{Ordinal: -1, Done: p.Done}
	case len(p.Runs) > 0 && p.Runs[len(p.Runs)-1].State == Running:
		return none
	case !now.Before(r.Deadline):
		none.Done = "the deadline is over"
		return none
	}
	next := p.next()
	switch begins := next%2 == 0; {
	case begins && p.pairs() >= r.Pairs:
		none.Done = fmt.Sprintf("all %d pairs are there", r.Pairs)
		return none
	case begins && len(p.Runs)+2 > r.MaxRuns, len(p.Runs)+1 > r.MaxRuns:
		none.Done = fmt.Sprintf("no pair is left of max_runs = %d", r.MaxRuns)
		return none
	}
	if b, limited := budgetOf(r, costs); limited {
		if none.Done = b.pass(p, next); none.Done != "" {
			return none
		}
	}
	return Next{Ordinal: next}
}

// next returns the ordinal of the run behind those that were submitted.
func (p Progress) next() int {
	if len(p.Runs) == 0 {
		return 0
	}
	last := p.Runs[len(p.Runs)-1]
	next := last.Ordinal + 1
	if last.State == Failed && next%2 == 1 {
		next++
	}
	return next
}

// Nodes are where the run with an ordinal is to be, as far as the cluster can: both of a pair on the
// same nodes, and each pair on nodes that no earlier run and no suspected one was on. Suspected are
// those of the first run of the new edition.
func (p Progress) Nodes(ordinal int, suspected []string) (on, notOn []string) {
	if n := len(p.Runs); ordinal%2 == 1 && n > 0 {
		return p.Runs[n-1].Nodes, nil
	}
	notOn = slices.Clone(suspected)
	for _, r := range p.Runs {
		notOn = append(notOn, r.Nodes...)
	}
	slices.Sort(notOn)
	return nil, slices.Compact(notOn)
}

// pairs returns how many pairs have two runs that succeeded.
func (p Progress) pairs() int {
	n := 0
	for i, r := range p.Runs {
		if i > 0 && r.Ordinal%2 == 1 && r.State == Succeeded && p.Runs[i-1].Ordinal == r.Ordinal-1 && p.Runs[i-1].State == Succeeded {
			n++
		}
	}
	return n
}

// With returns the request with an incident that waits for it, too. The one with the most pairs
// decides how many there are.
func (r Request) With(o Request) Request {
	if len(r.Incidents) == 0 { // its runs are asked for again
		r.Deadline = o.Deadline
	}
	r.Incidents = slices.Concat(r.Incidents, o.Incidents)
	slices.Sort(r.Incidents)
	r.Incidents = slices.Compact(r.Incidents)
	r.Pairs, r.MaxRuns, r.MaxCost = max(r.Pairs, o.Pairs), max(r.MaxRuns, o.MaxRuns), larger(r.MaxCost, o.MaxCost)
	return r
}

// larger returns the larger of two limits of cost, of which an empty one is none. Of two currencies the first one stays.
func larger(a, b string) string {
	x, errX := price.Parse(a)
	y, errY := price.Parse(b)
	switch {
	case errX != nil || errY != nil:
		return ""
	case x.Currency() != y.Currency() || !x.Less(y):
		return a
	}
	return b
}

// Without returns the request without an incident that needs no runs any more.
func (r Request) Without(id string) Request {
	r.Incidents = slices.DeleteFunc(slices.Clone(r.Incidents), func(o string) bool { return o == id })
	return r
}
