package archive

import (
	"math"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// rowCounter compares the rows of each stream with the number in fileSources.
type rowCounter struct {
	run, file string
	remaining map[string]int64 // number of rows that are still missing, by stream
	finished  map[string]bool  // streams whose rows have ended
	current   string           // the stream being read
	rows      int
}

// newRowCounter returns a counter for the rows of one topic in a file.
func (b importedRun) newRowCounter(file, topic string) *rowCounter {
	t := &rowCounter{run: b.run.ID, file: file, remaining: make(map[string]int64), finished: make(map[string]bool)}
	for _, s := range b.sources {
		if s.Topic == topic {
			t.remaining[s.origin(b.run.ID).StreamID()] = s.Stored
		}
	}
	return t
}

// add counts row n, which is of stream o, and reports whether it is the stream's first.
func (t *rowCounter) add(n int, o store.Origin) (first bool, err error) {
	id := o.StreamID()
	t.rows = n
	switch {
	case t.remaining[id] == 0:
		return false, fault(t.file, n, "%s does not say that this source brought it", fileSources)
	case t.finished[id]:
		return false, fault(t.file, n, "those of its source come one after the other, and they were over")
	}
	t.remaining[id]--
	if id == t.current {
		return false, nil
	}
	t.finished[t.current], t.current = true, id
	return true, nil
}

// checkComplete returns a fault where rows are missing.
func (t *rowCounter) checkComplete() error {
	for _, remaining := range t.remaining {
		if remaining > 0 {
			return fault(t.file, t.rows+1, "ends early: %s says that a source brought %d more", fileSources, remaining)
		}
	}
	return nil
}

// checkSample returns the fault of a sample, or nil. Unless the sample is the first of
// its stream, before is the one that it follows.
func checkSample(n int, s, before sampleRow, first bool) error {
	special := s.Special == event.NaN || s.Special == event.PlusInf || s.Special == event.MinusInf
	switch {
	case s.Name == "" || s.Seq < 0 || s.Sub < 0:
		return fault(fileSamples, n, "name %.100q, seq %d, sub %d: a name and numbers from 0 are wanted", s.Name, s.Seq, s.Sub)
	case (s.Value == nil) != special || s.Value != nil && math.IsInf(*s.Value, 0):
		return fault(fileSamples, n, "the value is neither a number nor one of NaN, +Inf and -Inf")
	case !first && !follows(s.Sample, before.Sample):
		return fault(fileSamples, n, "it comes before the one before it, or is there twice")
	}
	return nil
}

// follows reports whether a sample comes after another of the same stream.
func follows(s, before event.Sample) bool {
	switch {
	case s.Seq != before.Seq:
		return s.Seq > before.Seq
	case s.Sub != before.Sub:
		return s.Sub > before.Sub
	}
	return s.Name > before.Name
}

// checkLine does the same as checkSample, for a line.
func checkLine(n int, l, before lineRow, first bool) error {
	if l.Seq < 0 || !first && l.Seq <= before.Seq {
		return fault(fileLines, n, "seq %d: it comes before the one before it, or is there twice", l.Seq)
	}
	return nil
}
