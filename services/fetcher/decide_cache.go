package fetcher

import (
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// CachedObject is an object, and what is known of it.
type CachedObject struct {
	store.Object

	Sources  []string // whose content it is, without their secrets, in order
	Runs     []string // that wait for it, or have it and go on, in order
	HasOwner bool     // for an owner who sent it along with a run

	version int64
}

// InUse reports whether the object must stay: a run needs it, or somebody is
// just about to be given it.
func (s CachedObject) InUse(now time.Time) bool {
	return len(s.Runs) > 0 || now.Sub(s.LastUsed) < evictionGrace
}

const (
	evictionGrace = 5 * time.Minute // in which nothing is evicted that was used: who gives it to a run then remembers that
	orphan        = time.Hour       // after which an object that nobody remembers is one that nobody will
)

// unreferenced reports whether the object is code that was sent along, which nobody
// keeps any more and which is no data set's content.
func (s CachedObject) unreferenced() bool { return s.Uploaded && !s.HasOwner && len(s.Sources) == 0 }

// Limits say what need not be kept.
type Limits struct {
	Size int64         // bytes of all objects; 0 is no limit
	Age  time.Duration // since an object was used; 0 is no limit
}

// Evict returns the objects that must go at that time, those first that were
// not used for the longest time: those beyond the limits, and code that nobody
// keeps. What is needed stays, whatever the limits say.
func Evict(all []CachedObject, l Limits, now time.Time) []CachedObject {
	total := int64(0)
	for _, s := range all {
		total += s.Size
	}
	byUse := slices.Clone(all)
	slices.SortFunc(byUse, func(a, b CachedObject) int {
		if c := a.LastUsed.Compare(b.LastUsed); c != 0 {
			return c
		}
		return strings.Compare(a.SHA256, b.SHA256)
	})
	var victims []CachedObject
	for _, s := range byUse {
		tooOld := l.Age > 0 && now.Sub(s.LastUsed) > l.Age
		tooMuch := l.Size > 0 && total > l.Size
		if s.InUse(now) || !tooOld && !tooMuch && !s.unreferenced() {
			continue
		}
		total -= s.Size
		victims = append(victims, s)
	}
	return victims
}

// MakeRoom returns the objects that must go at that time so that so many bytes
// are free, those first that were not used for the longest time; none where even
// all that may go would not do. Where nobody knows how much is wanted (-1) some
// go: as much as endless, if there is so much. Free is what is free now; where
// nobody knows (-1) nothing is.
func MakeRoom(all []CachedObject, want, free int64, now time.Time) []CachedObject {
	total, idle := int64(0), int64(0)
	for _, s := range all {
		total += s.Size
		if !s.InUse(now) {
			idle += s.Size
		}
	}
	lacks := want - max(free, 0)
	if want < 0 {
		lacks = min(maxUnsizedBytes-max(free, 0), idle)
	}
	if lacks <= 0 || lacks > idle {
		return nil
	}
	return Evict(all, Limits{Size: max(total-lacks, 1)}, now)
}

// IsOrphan reports whether a file of the object store is one that nobody
// remembers, given the keys of all objects.
func IsOrphan(it store.BucketObject, keys map[string]bool, now time.Time) bool {
	return !keys[it.Key] && now.Sub(it.Modified) > orphan
}

// PinExpired reports whether an object need not stay for a run any more: the run is
// over; or nobody knows of it, nothing of it is left to be said, and it was asked
// for so long ago that nobody will.
func PinExpired(p store.Pin, r *store.Run, referenced bool, now time.Time) bool {
	if r != nil {
		return r.Phase == event.PhaseFinished
	}
	return !referenced && now.Sub(p.At) > orphan
}

// EndingExpired reports whether the end of a run's order need not be remembered any
// more: the run has been over for so long that whoever hears of it again knows.
// A run that nobody knows yet is not.
func EndingExpired(r store.Run, keep time.Duration, now time.Time) bool {
	return r.Phase == event.PhaseFinished && now.Sub(r.Updated) > keep
}
