package schedule

import (
	"slices"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/gateway/submit"
)

// maxKeys is the number of requests whose keys a schedule stores.
const maxKeys = 32

// desiredSchedule is the schedule that a request asks for.
type desiredSchedule struct {
	id, name, owner, key, digest string

	repeated   bool // the key already belongs to this schedule
	edition    edition
	descriptor *descriptors.Descriptor
}

// apply returns the schedule that replaces an old one, and reports whether they differ
// only in their keys.
func (w desiredSchedule) apply(old Schedule, now time.Time) (s Schedule, same bool) {
	s = old
	exists := old.ID != "" && old.Deleted.IsZero()
	same = exists && old.Digest == w.digest
	if w.key != "" {
		s.Keys = append(slices.Clone(s.Keys), w.key)
		s.Keys = s.Keys[max(0, len(s.Keys)-maxKeys):]
	}
	if same {
		return s, true
	}
	d := w.descriptor
	s.ID, s.Name, s.Namespace, s.Owner = w.id, w.name, w.edition.Namespace, w.owner
	s.Version, s.Digest, s.Script, s.Updated = old.Version+1, w.digest, w.edition.Script, now
	s.Rules, s.Description, s.File, s.Labels = rulesOf(w.id, d), d.Info.Description, w.edition.File, submit.MergeLabels(d, w.edition.Labels)
	if !exists {
		s.Created, s.Deleted, s.Paused, s.PausedBy = now, time.Time{}, false, ""
	}
	if d.Schedule.Suspend != nil && s.Paused != *d.Schedule.Suspend {
		s.Paused, s.PausedBy, s.From = *d.Schedule.Suspend, "", now
	}
	if !exists || !s.Rules.sameTimes(old.Rules) {
		s.From = now
	}
	return s, false
}
