package extract

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// MaxSeries is how many different series are kept of one run, one for each metric
// and set of labels. Its pods share them.
const MaxSeries = pod.MaxSeries

// TooManySeries says why samples are dropped that are of none of the series that are
// kept of a pod, of which so many are, for the user to read.
func TooManySeries(most int) string {
	share := ""
	if most != MaxSeries {
		share = fmt.Sprintf(", %d of this pod,", most)
	}
	return fmt.Sprintf("%d series are kept of one run%s the first, one for each metric and set of labels: "+
		"what differs with each sample belongs into its value, or into @step, not into a name or label", MaxSeries, cmp.Or(share, ","))
}

// SeriesLimiter are the series that were met, by digests: the first ones. The zero value
// knows none, and keeps MaxSeries. It is of one goroutine.
type SeriesLimiter struct {
	Max int // that are kept; zero means MaxSeries

	admitted map[uint64]struct{}
	fresh    []uint64

	recentNames [4]string // of some that have no labels: most programs go on with these
	next        int       // of names
}

// TooMany is TooManySeries of these.
func (s *SeriesLimiter) TooMany() string { return TooManySeries(s.limit()) }

func (s *SeriesLimiter) limit() int { return cmp.Or(s.Max, MaxSeries) }

// Admit reports whether a sample is of a series that is kept: of one that was
// met, or of a new one where there is room.
func (s *SeriesLimiter) Admit(sample *event.Sample) bool {
	plain := len(sample.Labels) == 0 && sample.Name != ""
	if plain && slices.Contains(s.recentNames[:], sample.Name) {
		return true
	}
	id := digest(sample)
	if _, ok := s.admitted[id]; !ok {
		if len(s.admitted) >= s.limit() {
			return false
		}
		s.Add(id)
		s.fresh = append(s.fresh, id)
	}
	if plain {
		s.recentNames[s.next], s.next = sample.Name, (s.next+1)%len(s.recentNames)
	}
	return true
}

// Add has it know series that were met before.
func (s *SeriesLimiter) Add(ids ...uint64) {
	if s.admitted == nil {
		s.admitted = make(map[uint64]struct{})
	}
	for _, id := range ids {
		s.admitted[id] = struct{}{}
	}
}

// TakeAdmitted returns those that were admitted first since it was asked last.
func (s *SeriesLimiter) TakeAdmitted() []uint64 {
	fresh := s.fresh
	s.fresh = nil
	return fresh
}

// digest is that of a series, the same in every process. The order of labels does
// not matter to it.
func digest(sample *event.Sample) uint64 {
	id := fnv(offset, sample.Name)
	for k, v := range sample.Labels {
		id += mix(fnv(fnv(offset, k)*prime, v)) // the factor is between them, as a byte would be
	}
	return id
}

// Those of FNV-1a.
const (
	offset = 14695981039346656037
	prime  = 1099511628211
)

func fnv(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime
	}
	return h
}

// mix spreads what differs between digests over all bits, so that sums of them
// differ, too. It is the end of MurmurHash3.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
