package confirm

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"time"
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
// place, as far as MaxRuns allows.
func Decide(r Request, p Progress, now time.Time) Next {
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
	next := 0
	if n := len(p.Runs); n > 0 {
		last := p.Runs[n-1]
		next = last.Ordinal + 1
		if last.State == Failed && next%2 == 1 {
			next++
		}
	}
	switch begins := next%2 == 0; {
	case begins && p.pairs() >= r.Pairs:
		none.Done = fmt.Sprintf("all %d pairs are there", r.Pairs)
		return none
	case begins && len(p.Runs)+2 > r.MaxRuns, len(p.Runs)+1 > r.MaxRuns:
		none.Done = fmt.Sprintf("no pair is left of max_runs = %d", r.MaxRuns)
		return none
	}
	return Next{Ordinal: next}
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
	r.Pairs, r.MaxRuns = max(r.Pairs, o.Pairs), max(r.MaxRuns, o.MaxRuns)
	return r
}

// Without returns the request without an incident that needs no runs any more.
func (r Request) Without(id string) Request {
	r.Incidents = slices.DeleteFunc(slices.Clone(r.Incidents), func(o string) bool { return o == id })
	return r
}
