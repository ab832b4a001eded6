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
	Slots    int            // all runs
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
	return Allocation{AttemptKey: p.AttemptKey(), QueueKey: p.Key, Pods: p.Pods, QuotaKeys: r.quotaKeys(p.Run)}
}

// quotaUsage counts the attempts with slots.
type quotaUsage struct {
	quota Quota
	total int
	byKey map[string]int // number of attempts by limit
}

func (r Quota) usage(entries []Allocation) quotaUsage {
	t := quotaUsage{quota: r, byKey: make(map[string]int)}
	for _, e := range entries {
		t.add(e)
	}
	return t
}

func (t *quotaUsage) add(e Allocation) {
	t.total++
	for key := range strings.Lines(e.QuotaKeys) {
		t.byKey[strings.TrimSuffix(key, "\n")]++
	}
}

func (t *quotaUsage) full() bool { return t.total >= t.quota.Slots }

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
		return fmt.Sprintf("%d runs with label %s are under way, the limit of that label", t.byKey[key], strings.TrimPrefix(key, quotaLabel))
	}
	return ""
}

// blockedByQuota returns the limit that blocks an attempt, for each blocked attempt in
// the queue.
func blockedByQuota(l Table, queue []Item, r Quota) map[AttemptKey]string {
	t, all := r.usage(l.Allocations), make(map[AttemptKey]string)
	for _, p := range queue {
		if why := t.exceededLimit(r.newAllocation(p)); why != "" {
			all[p.AttemptKey()] = why
		}
	}
	return all
}
