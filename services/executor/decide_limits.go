package executor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Rules are how many runs may hold a slot at a time.
type Rules struct {
	Slots    int            // all of them
	PerUser  int            // those of one owner; zero means no limit
	PerLabel map[string]int // "label=value": those that have it; "label": those of one value
}

// Prefixes of the limits that a run counts under.
const (
	shareUser  = "user "
	shareLabel = "label "
)

// shares names the limits that a run counts under, one a line.
func (r Rules) shares(run event.Fetched) string {
	var all []string
	if r.PerUser > 0 {
		all = append(all, shareUser+run.Owner)
	}
	for _, name := range slices.Sorted(maps.Keys(run.Labels)) {
		if pair := name + "=" + run.Labels[name]; r.labelLimit(pair) > 0 {
			all = append(all, shareLabel+pair)
		}
	}
	return strings.Join(all, "\n")
}

// labelLimit is that of the runs with a label of a value, zero for none.
func (r Rules) labelLimit(pair string) int {
	name, _, _ := strings.Cut(pair, "=")
	return cmp.Or(r.PerLabel[pair], r.PerLabel[name])
}

// limit is how many runs may count under a limit, zero for any number.
func (r Rules) limit(share string) int {
	if pair, ok := strings.CutPrefix(share, shareLabel); ok {
		return r.labelLimit(pair)
	}
	return r.PerUser
}

// entry is the place in the ledger that somebody in the queue is given.
func (r Rules) entry(p Place) Entry {
	return Entry{Holder: p.holder(), Queue: p.Key, Pods: p.Pods, Shares: r.shares(p.Run)}
}

// tally counts who holds slots.
type tally struct {
	rules Rules
	all   int
	by    map[string]int // by limit
}

func (r Rules) tally(entries []Entry) tally {
	t := tally{rules: r, by: make(map[string]int)}
	for _, e := range entries {
		t.add(e)
	}
	return t
}

func (t *tally) add(e Entry) {
	t.all++
	for share := range strings.Lines(e.Shares) {
		t.by[strings.TrimSuffix(share, "\n")]++
	}
}

func (t *tally) full() bool { return t.all >= t.rules.Slots }

// barred says which limit keeps somebody from being given a slot, though there
// may be one; empty for none.
func (t *tally) barred(e Entry) string {
	for share := range strings.Lines(e.Shares) {
		share = strings.TrimSuffix(share, "\n")
		limit := t.rules.limit(share)
		if limit == 0 || t.by[share] < limit {
			continue
		}
		if owner, ok := strings.CutPrefix(share, shareUser); ok {
			return fmt.Sprintf("%s has %d runs under way, the limit of a user", owner, t.by[share])
		}
		return fmt.Sprintf("%d runs with label %s are under way, the limit of that label", t.by[share], strings.TrimPrefix(share, shareLabel))
	}
	return ""
}

// Barred says, of those in the queue whom a limit of their own keeps waiting,
// which one that is.
func Barred(l Ledger, queue []Place, r Rules) map[Holder]string {
	t, all := r.tally(l.Entries), make(map[Holder]string)
	for _, p := range queue {
		if why := t.barred(r.entry(p)); why != "" {
			all[p.holder()] = why
		}
	}
	return all
}
