package summarise

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise/cost"
)

// Bounds of one run's summaries.
const (
	maxSeries  = 1000
	maxText    = 400 << 10 // bytes of names, units and labels
	maxSamples = 64 << 20  // numbers that are held in memory to be sorted: 512 MiB
)

// withEnd returns the run with the end in ev: the projection of the end may be slower than this service.
func withEnd(r store.Run, ev event.Finished) store.Run {
	r.Phase, r.Attempt = event.PhaseFinished, max(r.Attempt, ev.Attempt)
	r.Collectors = slices.Clone(r.Collectors)
	for _, pod := range ev.Collectors {
		if !slices.Contains(r.Collectors, pod) {
			r.Collectors = append(r.Collectors, pod)
		}
	}
	return r
}

// accumulator gathers the samples of a run.
type accumulator struct {
	attempt    int
	read       int64 // samples, of all attempts
	series     []*seriesValues
	byKey      map[string]*seriesValues
	valueCount int64 // values
	text       int
	skipped    map[string]int64 // samples that are not summarised, by why
	partial    map[string]bool  // by the name of a metric that has series: it has samples that are not summarised, too
	closed     bool             // the run has more series: no further one is summarised
	labels     labelTexts
	meter      cost.Meter
}

// seriesValues are the samples of one metric, with one unit and one set of labels.
type seriesValues struct {
	sample      event.Sample // one of them, for its name, unit and labels
	values      []float64
	notNumbers  int64
	first, last timedValue
}

// timedValue is a value and its time.
type timedValue struct {
	time  int64
	value float64
}

func newAccumulator(attempt int) *accumulator {
	return &accumulator{
		attempt: attempt, byKey: make(map[string]*seriesValues), skipped: make(map[string]int64), partial: make(map[string]bool),
	}
}

// add adds samples, in the order of the store.
func (t *accumulator) add(samples []store.Sample) {
	t.read += int64(len(samples))
	for i := range samples {
		t.meter.Add(&samples[i])
		if s := &samples[i]; s.Origin.Attempt == t.attempt {
			t.addSample(&s.Sample)
		}
	}
}

func (t *accumulator) addSample(s *event.Sample) {
	of := t.seriesOf(s)
	if of == nil {
		return
	}
	if of.sample.Direction == "" {
		of.sample.Direction = s.Direction
	}
	v := s.Float()
	if math.IsNaN(v) {
		of.notNumbers++
		return
	}
	if t.valueCount == maxSamples {
		t.skip(s.Name, fmt.Sprintf("a run's first %d samples are summarised", maxSamples))
		return
	}
	if len(of.values) == 0 || s.Time < of.first.time {
		of.first = timedValue{s.Time, v}
	}
	if len(of.values) == 0 || s.Time >= of.last.time {
		of.last = timedValue{s.Time, v}
	}
	of.values = append(of.values, v)
	t.valueCount++
}

// seriesOf returns the series of a sample, nil if there are too many.
func (t *accumulator) seriesOf(s *event.Sample) *seriesValues {
	if n := len(t.series); n == 1 && len(s.Labels) == 0 && len(t.series[0].sample.Labels) == 0 &&
		t.series[0].sample.Name == s.Name && t.series[0].sample.Unit == s.Unit {
		return t.series[0]
	}
	key := fmt.Sprintf("%q%q", s.Name, s.Unit) + t.labels.of(s.Labels)
	if of, ok := t.byKey[key]; ok {
		return of
	}
	if t.closed = t.closed || len(t.series) == maxSeries || t.text+len(key) > maxText; t.closed {
		t.skip(s.Name, fmt.Sprintf("the first %d series of a run are summarised (one for each metric, unit and set of labels; %d KiB of names)",
			maxSeries, maxText>>10))
		return nil
	}
	of := &seriesValues{sample: *s}
	t.series, t.byKey[key], t.text = append(t.series, of), of, t.text+len(key)
	if !t.partial[s.Name] {
		t.partial[s.Name] = false // it has a series
	}
	return of
}

// skip notes that a sample is not summarised. Names are held of those metrics alone that have a series, of which there are not too many.
func (t *accumulator) skip(metric, why string) {
	t.skipped[why]++
	if _, ok := t.partial[metric]; ok {
		t.partial[metric] = true
	}
}

// labelTexts writes labels as texts, the same for the same labels.
type labelTexts struct {
	last map[string]string
	text string
}

func (l *labelTexts) of(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	if maps.Equal(labels, l.last) {
		return l.text
	}
	text, err := json.Marshal(labels) // sorted
	if err != nil {
		return "" // cannot be: they are texts
	}
	l.last, l.text = labels, string(text)
	return l.text
}

// summaries returns the summaries of the samples, by metric, unit and labels.
func (t *accumulator) summaries(run string, complete bool) store.Summaries {
	all := store.Summaries{
		Run: run, Attempt: t.attempt, Complete: complete, Samples: t.valueCount, Method: method,
		Summaries: []store.Summary{},
	}
	var labels labelTexts
	slices.SortFunc(t.series, func(a, b *seriesValues) int {
		return cmp.Or(cmp.Compare(a.sample.Name, b.sample.Name), cmp.Compare(a.sample.Unit, b.sample.Unit),
			cmp.Compare(labels.of(a.sample.Labels), labels.of(b.sample.Labels)))
	})
	for _, of := range t.series {
		s := summary(of.values)
		s.Metric, s.Unit, s.Labels, s.NotNumbers = of.sample.Name, of.sample.Unit, of.sample.Labels, of.notNumbers
		s.Direction = of.sample.Direction
		if s.N > 0 {
			s.First, s.Last = store.Float(of.first.value), store.Float(of.last.value)
		}
		all.Samples += of.notNumbers
		all.Summaries = append(all.Summaries, s)
	}
	for _, why := range slices.Sorted(maps.Keys(t.skipped)) {
		all.Notes = append(all.Notes, fmt.Sprintf("%s not summarised: %s", samples(t.skipped[why]), why))
	}
	return all
}

// samples is a number of samples: "1 sample", "2 samples".
func samples(n int64) string {
	if n == 1 {
		return "1 sample"
	}
	return fmt.Sprintf("%d samples", n)
}
