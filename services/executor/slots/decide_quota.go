package slots

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Quota limits how many runs may hold a slot at a time.
type Quota struct {
	Slots    int            // runs on the default engine
	Engines  map[string]int // runs on each other engine, by its key; an engine that is not there takes none
	PerUser  int            // runs of one owner; zero means no limit
	PerLabel map[string]int // "label=value": runs with that label and value; "label": runs with the same value of that label
}

// Prefixes of limits in QuotaKeys.
const (
	quotaUser  = "user "
	quotaLabel = "label "
)

// quotaKeys returns the limits that apply to a run, one per line.
func (r Quota) quotaKeys(run event.Fetched) string {
	var all []string
	if r.PerUser > 0 {
		all = append(all, quotaUser+run.Owner)
	}
	for _, name := range slices.Sorted(maps.Keys(run.Labels)) {
		if pair := name + "=" + run.Labels[name]; r.labelLimit(pair) > 0 {
			all = append(all, quotaLabel+pair)
		}
	}
	return strings.Join(all, "\n")
}

// labelLimit returns the limit for runs with a label and value, or zero for no limit.
func (r Quota) labelLimit(pair string) int {
	name, _, _ := strings.Cut(pair, "=")
	return cmp.Or(r.PerLabel[pair], r.PerLabel[name])
}

// limit returns the number of runs that a limit allows, or zero for any number.
func (r Quota) limit(key string) int {
	if pair, ok := strings.CutPrefix(key, quotaLabel); ok {
		return r.labelLimit(pair)
	}
	return r.PerUser
}

// newAllocation returns the allocation of a queued attempt.
func (r Quota) newAllocation(p Item) Allocation {
	return Allocation{
		AttemptKey: p.AttemptKey(), QueueKey: p.Key, Pods: p.Pods, QuotaKeys: r.quotaKeys(p.Run),
		Pool: p.Pool.key(), Engine: r.engine(p.Engine),
	}
}

// engine returns the key of the engine whose slots an attempt takes. An engine that is
// not in the settings any more counts as the default one, which ends its runs.
func (r Quota) engine(key string) string {
	if _, ok := r.Engines[key]; ok {
		return key
	}
	return ""
}

// slots returns the number of slots of an engine.
func (r Quota) slots(engine string) int {
	if n, ok := r.Engines[engine]; ok {
		return n
	}
	return r.Slots
}

// mayBlock reports whether an attempt may have to wait though a slot is free: for another
// engine, or because of a limit.
func (r Quota) mayBlock() bool { return r.PerUser > 0 || len(r.PerLabel) > 0 || len(r.Engines) > 0 }

// engines returns the keys of all engines.
func (r Quota) engines() []string { return append(slices.Sorted(maps.Keys(r.Engines)), "") }

// quotaUsage counts the attempts with slots.
type quotaUsage struct {
	quota    Quota
	byEngine map[string]int // number of attempts by engine, also by those that are not in the settings any more
	byKey    map[string]int // number of attempts by limit
}

// maxSuspended is how many suspended attempts take no slot, so that the table stays
// small.
const maxSuspended = 1000

// usage counts the attempts that take a slot.
func (r Quota) usage(entries []Allocation) quotaUsage {
	t, suspended := quotaUsage{quota: r, byEngine: make(map[string]int), byKey: make(map[string]int)}, 0
	for _, e := range entries {
		if e.suspended() {
			suspended++
		}
		if !e.suspended() || suspended > maxSuspended {
			t.add(e)
		}
	}
	return t
}

// free returns the number of free slots of all engines.
func (t *quotaUsage) free() int {
	n := 0
	for _, engine := range t.quota.engines() {
		n += max(0, t.quota.slots(engine)-t.byEngine[engine])
	}
	return n
}

func (t *quotaUsage) add(e Allocation) {
	t.byEngine[e.Engine]++
	for key := range strings.Lines(e.QuotaKeys) {
		t.byKey[strings.TrimSuffix(key, "\n")]++
	}
}

// full reports whether an engine has no free slot.
func (t *quotaUsage) full(engine string) bool { return t.byEngine[engine] >= t.quota.slots(engine) }

// allFull reports whether no engine has a free slot.
func (t *quotaUsage) allFull() bool { return t.free() == 0 }

// exceededLimit returns the limit that blocks an attempt even if a slot is free, or "".
func (t *quotaUsage) exceededLimit(e Allocation) string {
	for key := range strings.Lines(e.QuotaKeys) {
		key = strings.TrimSuffix(key, "\n")
		limit := t.quota.limit(key)
		if limit == 0 || t.byKey[key] < limit {
			continue
		}
		if owner, ok := strings.CutPrefix(key, quotaUser); ok {
			return fmt.Sprintf("%s has %d runs under way, the limit of a user", owner, t.byKey[key])
		}
		return fmt.Sprintf("%d runs with label %s are under way, the limit of that label", t.byKey[key],
			strings.TrimPrefix(key, quotaLabel))
	}
	return ""
}

// blockedReasons returns the limit that blocks an attempt, or that it is held back, for
// each such attempt in the queue.
func blockedReasons(l Table, queue []Item, r Quota) map[AttemptKey]string {
	t, heads, all := r.usage(l.Allocations), l.heads(), make(map[AttemptKey]string)
	for _, p := range queue {
		e := r.newAllocation(p)
		if why := t.exceededLimit(e); why != "" {
			all[p.AttemptKey()] = why
		} else if heads.holdBack(e) {
			all[p.AttemptKey()] = "a run before it waits for nodes that this one could take"
		}
	}
	return all
}

// head is an attempt that waits for nodes.
type head struct{ engine, pool string }

// heads are the attempts at the head of the queue that wait for nodes of other runs, and
// those that these hold back, each pool once.
type heads []head

// heads returns the attempts with a slot that wait for nodes.
func (l Table) heads() heads {
	var all heads
	for _, e := range l.Allocations {
		if e.Wait == event.NodesInUse && !e.Terminating {
			all = append(all, head{e.Engine, e.Pool})
		}
	}
	return all
}

// holdBack reports whether an attempt could take the nodes of one before it that waits
// for them. Then it waits too, and holds back others in turn.
func (h *heads) holdBack(e Allocation) bool {
	if !slices.ContainsFunc(*h, func(other head) bool { return other.engine == e.Engine && overlap(other.pool, e.Pool) }) {
		return false
	}
	if own := (head{e.Engine, e.Pool}); !slices.Contains(*h, own) {
		*h = append(*h, own)
	}
	return true
}

// overlap reports whether a node may be of the pools with both keys.
func overlap(a, b string) bool {
	labels := make(map[string]string)
	for line := range strings.SplitSeq(a, "\n") {
		name, value, _ := strings.Cut(line, "=")
		labels[name] = value
	}
	for line := range strings.SplitSeq(b, "\n") {
		name, value, _ := strings.Cut(line, "=")
		if other, ok := labels[name]; ok && other != value {
			return false
		}
	}
	return true
}
