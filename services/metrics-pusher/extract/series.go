package extract

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// MaxSeries is how many different series of one run are stored, one for each metric and set of labels. The pods of the run share them.
const MaxSeries = pod.MaxSeries

// TooManySeries is the reason for dropped samples if a pod has more than most series, for the user.
func TooManySeries(most int) string {
	share := ""
	if most != MaxSeries {
		share = fmt.Sprintf(", %d of this pod,", most)
	}
	return fmt.Sprintf("%d series are kept of one run%s the first, one for each metric and set of labels: "+
		"what differs with each sample belongs into its value, or into @step, not into a name or label", MaxSeries, cmp.Or(share, ","))
}

// SeriesLimiter admits the samples of the first Max different series, which it knows by their digests. The zero value has no series and
// admits MaxSeries. Only one goroutine may use it.
type SeriesLimiter struct {
	Max int // number of admitted series; zero means MaxSeries

	admitted map[uint64]struct{}
	fresh    []uint64

	recentNames [4]string // of some that have no labels: most programs go on with these
	next        int       // of names
}

// TooMany is TooManySeries of these.
func (s *SeriesLimiter) TooMany() string { return TooManySeries(s.limit()) }

func (s *SeriesLimiter) limit() int { return cmp.Or(s.Max, MaxSeries) }

// Admit reports whether a sample is of an admitted series, or of a new one for which there is room.
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

// Add admits series of an earlier process.
func (s *SeriesLimiter) Add(ids ...uint64) {
	if s.admitted == nil {
		s.admitted = make(map[uint64]struct{})
	}
	for _, id := range ids {
		s.admitted[id] = struct{}{}
	}
}

// TakeAdmitted returns the series that were first admitted since its last call.
func (s *SeriesLimiter) TakeAdmitted() []uint64 {
	fresh := s.fresh
	s.fresh = nil
	return fresh
}

// digest returns the digest of a series, the same in every process and for every order of labels.
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

// mix spreads the differing bits of digests over all bits, so that sums of digests differ, too. It is the end of MurmurHash3.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
