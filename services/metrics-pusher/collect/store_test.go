package collect_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// fakeStore stores shipped events, and fails the test if a line comes again with other content.
type fakeStore struct {
	tb     testing.TB
	refuse func(event.Event) error

	mu     sync.Mutex
	gate   chan struct{} // open unless the brokers are away
	ids    map[string]string
	events []event.Event
	text   map[string]map[int64]event.Line // by stream, by Seq
	values map[string]map[string]event.Sample
	ended  map[string]event.End // by stream and topic
}

func newStore(tb testing.TB) *fakeStore {
	tb.Helper()
	s := &fakeStore{
		tb: tb, gate: make(chan struct{}), ids: make(map[string]string), text: make(map[string]map[int64]event.Line),
		values: make(map[string]map[string]event.Sample), ended: make(map[string]event.End),
	}
	close(s.gate)
	return s
}

// block makes the brokers unavailable until the returned function is called.
func (s *fakeStore) block() (back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate = gate
	return func() { close(gate) }
}

// Publish implements collect.Publisher.
func (s *fakeStore) Publish(ctx context.Context, events ...event.Event) error {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-gate:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ev := range events {
		if s.refuse != nil {
			if err := s.refuse(ev); err != nil {
				return err
			}
		}
		s.save(ev)
	}
	return nil
}

func (s *fakeStore) save(ev event.Event) {
	m, err := event.Encode(ev)
	if err != nil {
		s.tb.Error(err)
	}
	if len(m.Value) > 1000<<10 {
		s.tb.Errorf("an event of %d bytes", len(m.Value))
	}
	switch ev := ev.(type) {
	case event.Logs:
		ev.Lines = slices.Clone(ev.Lines) // the collector reuses the memory for the next events
		s.events = append(s.events, ev)
		s.saveLines(ev.Stream.Kind, ev.Lines)
		s.finish(ev.Stream.Kind, event.TopicLogs, ev.End)
	case event.Metrics:
		ev.Samples = slices.Clone(ev.Samples)
		s.events = append(s.events, ev)
		s.saveSamples(ev.Stream.Kind, ev.Samples)
		s.finish(ev.Stream.Kind, event.TopicMetrics, ev.End)
	default:
		s.events = append(s.events, ev)
	}
}

func (s *fakeStore) saveLines(stream string, lines []event.Line) {
	if s.text[stream] == nil {
		s.text[stream] = make(map[int64]event.Line)
	}
	for i, l := range lines {
		if i > 0 && l.Seq <= lines[i-1].Seq {
			s.tb.Errorf("line %d after %d", l.Seq, lines[i-1].Seq)
		}
		if before, ok := s.text[stream][l.Seq]; ok && before != l {
			s.tb.Errorf("line %d is %+v, and was %+v", l.Seq, l, before)
		}
		s.text[stream][l.Seq] = l
	}
}

func (s *fakeStore) saveSamples(stream string, samples []event.Sample) {
	if s.values[stream] == nil {
		s.values[stream] = make(map[string]event.Sample)
	}
	for _, sample := range samples {
		s.values[stream][fmt.Sprint(sample.Seq, ".", sample.Sub)] = sample
	}
}

func (s *fakeStore) finish(stream, topic string, end *event.End) {
	if end == nil {
		return
	}
	if before, ok := s.ended[stream+topic]; ok && before != *end {
		s.tb.Errorf("%s of %s ended with %+v, and before with %+v", topic, stream, *end, before)
	}
	s.ended[stream+topic] = *end
}

// lines describes the lines of the output, in order.
func (s *fakeStore) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.SortedFunc(maps.Values(s.text["output"]), func(a, b event.Line) int { return cmp.Compare(a.Seq, b.Seq) })
	var lines []string
	for _, l := range all {
		text := fmt.Sprint(l.Seq, " ", l.Text)
		if l.Stderr {
			text += " err"
		}
		if l.Raw > 0 {
			text += fmt.Sprint(" raw ", l.Raw)
		}
		if l.Truncated {
			text += " cut"
		}
		if l.Unterminated {
			text += " open"
		}
		lines = append(lines, text)
	}
	return lines
}

// samples describes the samples, by stream and in order.
func (s *fakeStore) samples() []string {
	var out []string
	s.each(func(stream string, sample event.Sample) { out = append(out, stream+" "+describe(sample)) })
	return out
}

// each calls do for all samples, in the order of their numbers.
func (s *fakeStore) each(do func(stream string, sample event.Sample)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stream := range slices.Sorted(maps.Keys(s.values)) {
		all := slices.SortedFunc(maps.Values(s.values[stream]), func(a, b event.Sample) int {
			return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Sub, b.Sub))
		})
		for _, sample := range all {
			do(stream, sample)
		}
	}
}

func describe(s event.Sample) string {
	text := fmt.Sprint(s.Seq, ".", s.Sub, " ", s.Name, "=", s.Float())
	if s.Unit != "" {
		text += " " + s.Unit
	}
	if s.Direction != "" {
		text += " " + s.Direction
	}
	if s.Step != nil {
		text += fmt.Sprint(" step ", *s.Step)
	}
	if s.Time < 1e15 { // not of now
		text += fmt.Sprint(" at ", s.Time)
	}
	return text
}

// end returns how a source ended in a topic.
func (s *fakeStore) end(stream, topic string) event.End {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended[stream+topic]
}

// complete checks that every source has ended, and that all data that its end counts were stored.
func (s *fakeStore) complete(tb testing.TB) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stream := range []string{event.StreamOutput, event.StreamMetrics, event.StreamFIFO} {
		end, ok := s.ended[stream+event.TopicMetrics]
		if !ok || end.Count != int64(len(s.values[stream])) {
			tb.Errorf("samples of %s end with %+v (%v), %d are there", stream, end, ok, len(s.values[stream]))
		}
	}
	end, ok := s.ended[event.StreamOutput+event.TopicLogs]
	last := int64(-1)
	for seq := range s.text[event.StreamOutput] {
		last = max(last, seq)
	}
	if !ok || end.Count != int64(len(s.text[event.StreamOutput])) || end.Last != last {
		tb.Errorf("lines end with %+v (%v), %d are there, the last is %d", end, ok, len(s.text[event.StreamOutput]), last)
	}
}

// waitUntil polls cond until it returns true.
func (s *fakeStore) waitUntil(tb testing.TB, cond func() bool) {
	tb.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("waited 20 s in vain: lines %q, samples %q", s.lines(), s.samples())
		}
	}
}

// last returns the sequence number of the last sample of a stream.
func (s *fakeStore) last(stream string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := int64(-1)
	for _, sample := range s.values[stream] {
		last = max(last, sample.Seq)
	}
	return last
}
