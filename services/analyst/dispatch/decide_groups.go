package dispatch

import (
	"cmp"
	"maps"
	"slices"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
)

// groupOf returns what the notices of the same incidents, and those of the ends of the same set, have in common.
func groupOf(d notice.Delivery) string {
	n := d.Notice
	if n.Group == "" && len(n.Ends) == 1 {
		return n.Namespace + "/end/" + n.Ends[0].ID
	}
	return n.Namespace + "/" + cmp.Or(n.Group, n.ID)
}

// isEnd reports whether a notice says that its incidents are over.
func isEnd(n notice.Notice) bool {
	return n.Became == incident.Resolved || n.Became == incident.Dismissed
}

// history is what is known of the notices of a receiver.
type history struct {
	groups  map[string][]notice.Delivery // the oldest first; tests and digests belong to none
	digests map[string]notice.Status     // by ID
}

// history returns the notices by group.
func (o observation) history() history {
	h := history{map[string][]notice.Delivery{}, map[string]notice.Status{}}
	for _, d := range byAge(o.deliveries) {
		switch {
		case isDigest(d):
			h.digests[d.Notice.ID] = d.Status
		case !d.Notice.Test:
			h.groups[groupOf(d)] = append(h.groups[groupOf(d)], d)
		}
	}
	return h
}

// statusOf returns what became of a notice, or of the digest that has it: Sent if that is not known any more, as it ended long ago.
func (h history) statusOf(d notice.Delivery) notice.Status {
	if d.Status != notice.Summed {
		return d.Status
	}
	return cmp.Or(h.digests[d.Digest], notice.Sent)
}

// unheard reports whether the receiver has heard nothing of a beginning that has an end: of the notices of the group between this and the
// end before it that the receiver has heard of, none has reached it. One that waits counts as one that has.
func (h history) unheard(end notice.Delivery) bool {
	begins, heard := false, false
	for _, d := range h.groups[groupOf(end)] {
		if d.Notice.ID == end.Notice.ID {
			break
		}
		status := h.statusOf(d)
		reaches := status == notice.Sent || status == notice.Waiting
		switch {
		case isEnd(d.Notice) && reaches:
			begins, heard = false, false
		case !isEnd(d.Notice):
			begins, heard = true, heard || reaches
		}
	}
	return begins && !heard
}

// open returns the notices that a group fires, of those that were sent since its last end.
func (h history) open(group string) (open []notice.Delivery) {
	for _, d := range h.groups[group] {
		switch {
		case isEnd(d.Notice):
			open = nil
		case d.Notice.Became == incident.Firing && h.statusOf(d) == notice.Sent:
			open = append(open, d)
		}
	}
	return open
}

// together returns the newest of some notices of a group, with the incidents of all of them, each once.
func together(all []notice.Delivery) notice.Delivery {
	newest := all[len(all)-1]
	newest.Notice.Incidents = slices.Clone(newest.Notice.Incidents)
	for _, d := range slices.Backward(all) {
		for _, i := range d.Notice.Incidents {
			if !slices.ContainsFunc(newest.Notice.Incidents, func(is incident.Incident) bool { return is.ID == i.ID }) {
				newest.Notice.Incidents = append(newest.Notice.Incidents, i)
			}
		}
	}
	return newest
}

// partsOf returns a notice, or those that it sums up.
func (o observation) partsOf(d notice.Delivery) (parts []notice.Delivery) {
	if !isDigest(d) {
		return []notice.Delivery{d}
	}
	for _, part := range o.deliveries {
		if slices.Contains(d.Notice.Digest, part.Notice.ID) {
			parts = append(parts, part)
		}
	}
	return parts
}

// firstOfGroups returns, by group, the ID of the notice that goes before all others that wait: the earliest one, or the digest that has it.
func (o observation) firstOfGroups(waiting []notice.Delivery) map[string]string {
	carriers, parts := map[string]string{}, []notice.Delivery(nil)
	for _, d := range waiting {
		for _, part := range o.partsOf(d) {
			carriers[part.Notice.ID] = d.Notice.ID
			parts = append(parts, part)
		}
	}
	first := map[string]string{}
	for _, part := range byAge(parts) {
		if _, ok := first[groupOf(part)]; !ok {
			first[groupOf(part)] = carriers[part.Notice.ID]
		}
	}
	return first
}

// old returns the notices whose documents are deleted: those that ended long ago, and are not sent again. One that is later than another of
// its group stays as long as that one: it may say that this one has ended.
func (o observation) old() (old []notice.Delivery) {
	h := o.history()
	for _, key := range slices.Sorted(maps.Keys(h.groups)) {
		stays := func(d notice.Delivery) bool { return !o.ended(d) }
		if o.rules.Repeat > 0 {
			open := h.open(key)
			stays = func(d notice.Delivery) bool { return !o.ended(d) || slices.ContainsFunc(open, is(d)) }
		}
		group := h.groups[key]
		if at := slices.IndexFunc(group, stays); at >= 0 {
			group = group[:at]
		}
		old = append(old, group...)
	}
	for _, d := range o.deliveries {
		if (d.Notice.Test || isDigest(d)) && o.ended(d) {
			old = append(old, d)
		}
	}
	return old
}

// ended reports whether a notice ended long ago.
func (o observation) ended(d notice.Delivery) bool {
	return d.Status != notice.Waiting && o.now.Sub(d.At) > keepFor
}

// is returns whether a delivery is that of the same notice as another.
func is(one notice.Delivery) func(notice.Delivery) bool {
	return func(d notice.Delivery) bool { return d.Notice.ID == one.Notice.ID }
}
