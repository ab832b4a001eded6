package dataset

import (
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Stored is an object, where it came from, and the runs that need it.
type Stored struct {
	store.Object

	Sources  []string // whose content it is, without their secrets, in order
	Runs     []string // that wait for it, or have it and go on, in order
	HasOwner bool     // for an owner who sent it along with a run

	version int64
}

// inUse reports whether the object must stay: a run needs it, or is about to be
// given it.
func (s Stored) inUse(now time.Time) bool {
	return len(s.Runs) > 0 || now.Sub(s.LastUsed) < evictionGrace
}

const (
	evictionGrace = 5 * time.Minute // in which nothing is evicted that was used: a run that is given it is remembered meanwhile
	orphan        = time.Hour       // after which an object without a document will have none
)

// MaxUnsized is how much of a body of no known size may come before it counts as one
// that has no end.
const MaxUnsized = 1 << 30

// unreferenced reports whether the object is code that was sent along, has no owner
// any more, and is no data set's content.
func (s Stored) unreferenced() bool { return s.Uploaded && !s.HasOwner && len(s.Sources) == 0 }

// limits bound the objects that are kept.
type limits struct {
	Size int64         // bytes of all objects; 0 is no limit
	Age  time.Duration // since an object was used; 0 is no limit
}

// evictable returns the objects that must go at that time, those first that were
// not used for the longest time: those beyond the limits, and code without an
// owner. Objects in use stay, whatever the limits say.
func evictable(all []Stored, l limits, now time.Time) []Stored {
	total := int64(0)
	for _, s := range all {
		total += s.Size
	}
	byUse := slices.Clone(all)
	slices.SortFunc(byUse, func(a, b Stored) int {
		if c := a.LastUsed.Compare(b.LastUsed); c != 0 {
			return c
		}
		return strings.Compare(a.SHA256, b.SHA256)
	})
	var out []Stored
	for _, s := range byUse {
		tooOld := l.Age > 0 && now.Sub(s.LastUsed) > l.Age
		tooMuch := l.Size > 0 && total > l.Size
		if s.inUse(now) || !tooOld && !tooMuch && !s.unreferenced() {
			continue
		}
		total -= s.Size
		out = append(out, s)
	}
	return out
}

// victims returns the objects that must go at that time so that so many bytes
// are free, those first that were not used for the longest time; none where even
// all that may go would not do. Where it is not known how much is wanted (-1) some
// go: MaxUnsized bytes, if there are so many. Free is how much is free now, and is
// taken for nothing where it is not known (-1).
func victims(all []Stored, want, free int64, now time.Time) []Stored {
	total, idle := int64(0), int64(0)
	for _, s := range all {
		total += s.Size
		if !s.inUse(now) {
			idle += s.Size
		}
	}
	lacks := want - max(free, 0)
	if want < 0 {
		lacks = min(MaxUnsized-max(free, 0), idle)
	}
	if lacks <= 0 || lacks > idle {
		return nil
	}
	return evictable(all, limits{Size: max(total-lacks, 1)}, now)
}

// isOrphan reports whether an object of the object store may be removed for it has no
// document.
func isOrphan(it store.BucketObject, known bool, now time.Time) bool {
	return !known && now.Sub(it.Modified) > orphan
}

// pinExpired reports whether an object need not stay for a run any more: the run has
// ended; or there is no such run (nil), no document refers to it, and the pin is so
// old that none will.
func pinExpired(p store.Pin, r *store.Run, referenced bool, now time.Time) bool {
	if r != nil {
		return r.Phase == event.PhaseFinished
	}
	return !referenced && now.Sub(p.At) > orphan
}

// endingExpired reports whether the outcome of a run's order need not be remembered
// any more: the run ended so long ago that its events come with that. A run without a
// phase has not ended.
func endingExpired(r store.Run, keep time.Duration, now time.Time) bool {
	return r.Phase == event.PhaseFinished && now.Sub(r.Updated) > keep
}
