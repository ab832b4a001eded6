package dataset

import (
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Stored is an object with its sources, and the runs that need it.
type Stored struct {
	store.Object

	Sources  []string // sources with this content, without secrets, in order
	Runs     []string // runs that wait for it, or have it and are unfinished, in order
	HasOwner bool     // it is code with an owner who sent it along with a run

	version int64
}

// inUse reports whether the object must stay, since a run needs it or is about to get
// it.
func (s Stored) inUse(now time.Time) bool {
	return len(s.Runs) > 0 || now.Sub(s.LastUsed) < evictionGrace
}

const (
	evictionGrace = 5 * time.Minute // time after its use in which an object is not evicted; meanwhile the run that gets it is stored
	orphan        = time.Hour       // age at which an object without a document will not get one any more
)

// MaxUnsized is the number of bytes after which a body of unknown size counts as
// endless.
const MaxUnsized = 1 << 30

// unreferenced reports whether the object is code that was sent along, has no owner any
// more, and is not the content of a data set.
func (s Stored) unreferenced() bool { return s.Uploaded && !s.HasOwner && len(s.Sources) == 0 }

// limits are the limits of the stored objects.
type limits struct {
	Size int64         // bytes of all objects; 0 means no limit
	Age  time.Duration // time since an object was used; 0 means no limit
}

// evictable returns the objects to evict at that time, least recently used first:
// objects beyond the limits, and code without an owner. Objects in use are never
// evicted.
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

// victims returns the objects to evict so that want bytes are free, least recently used
// first. It returns none if evicting everything would not be enough. If want is unknown
// (-1), it frees MaxUnsized bytes, or as many as it can; free is the number of free
// bytes now; unknown (-1) counts as 0.
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

// isOrphan reports whether an object is to be removed from the object store because it
// has no document.
func isOrphan(it store.BucketObject, known bool, now time.Time) bool {
	return !known && now.Sub(it.Modified) > orphan
}

// pinExpired reports whether a pin of a run is to be removed: the run has finished; or
// it does not exist (nil), no document refers to the pin, and the pin is so old that
// none will.
func pinExpired(p store.Pin, r *store.Run, referenced bool, now time.Time) bool {
	if r != nil {
		return r.Phase == event.PhaseFinished
	}
	return !referenced && now.Sub(p.At) > orphan
}

// endingExpired reports whether the outcome of a run's order is to be deleted, since
// the run finished so long ago that its events are no longer repeated. A run without a
// phase has not finished.
func endingExpired(r store.Run, keep time.Duration, now time.Time) bool {
	return r.Phase == event.PhaseFinished && now.Sub(r.Updated) > keep
}
