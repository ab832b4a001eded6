package kafka

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Meter counts the events of a process. Several goroutines call it, and often.
type Meter interface {
	// RecordHandled counts events of a topic that were handled, or failed with err, in the time took.
	RecordHandled(group, topic string, events int, took time.Duration, err error)
	// RecordPublished counts events that were published to a topic, with dead letters.
	RecordPublished(topic string, events int)
	// RecordRetry counts a failure that is retried.
	RecordRetry(name, step string)
	// RecordLag sets how many events of each partition of this process are not handled yet. The lag of other partitions is unknown from
	// then on.
	RecordLag(group, topic string, behind map[int]int64)
}

// refusalMeter is a Meter that also counts refused messages, whose writers may not write for their runs.
type refusalMeter interface{ RecordRefused(group, topic string) }

// Span is a piece of work on one run in its trace.
type Span struct {
	Name   string // fetcher handles bai.submitted
	Run    string
	Parent string // W3C traceparent of the span that it follows from
	Root   bool   // it is the first of its run, and has the ID in Parent
	Topic  string // topic of the handled or published events
	Group  string // of consumers; empty for a publisher
	Events int
}

// Tracer records spans.
type Tracer interface {
	// Begin begins a span. It returns the traceparent for the spans that follow from it, and a function that ends the span.
	Begin(s Span) (traceparent string, end func(error))
}

// noopMeter is a Meter and Tracer that records nothing.
type noopMeter struct{}

// RecordHandled implements Meter.
func (noopMeter) RecordHandled(string, string, int, time.Duration, error) {}

// RecordPublished implements Meter.
func (noopMeter) RecordPublished(string, int) {}

// RecordRetry implements Meter.
func (noopMeter) RecordRetry(string, string) {}

// RecordLag implements Meter.
func (noopMeter) RecordLag(string, string, map[int]int64) {}

// Begin implements Tracer.
func (noopMeter) Begin(s Span) (string, func(error)) { return s.Parent, func(error) {} }

// RootTrace returns the traceparent of a run's first span. Every event of a run that follows from no other one has it, so that a run has
// one trace.
func RootTrace(run string) string {
	trace, span := sha256.Sum256([]byte("trace "+run)), sha256.Sum256([]byte("root "+run))
	return fmt.Sprintf("00-%x-%x-01", trace[:16], span[:8])
}

// parentTraces are the traceparents for events that follow from messages, by run.
type parentTraces map[string]string

// maxTrace is the greatest length of a traceparent in bytes: today they have 55. The answers to a message carry its traceparent.
const maxTrace = 128

// parentTracesOf returns the traces of messages: of several of one run, the last's.
func parentTracesOf(ms []kafka.Message) parentTraces {
	t := make(parentTraces, 1)
	for _, m := range ms {
		if parent := header(m, "traceparent"); parent != "" && len(parent) <= maxTrace {
			t[string(m.Key)] = parent
		}
	}
	return t
}

// parentOf returns the traceparent for an event of a run.
func (t parentTraces) parentOf(run string) string {
	if parent := t[run]; parent != "" {
		return parent
	}
	return RootTrace(run)
}

// startSpans begins a span for each run among ms, and returns the traceparents for the events that follow from them.
func (c *consumer) startSpans(ms []kafka.Message) (parentTraces, func(error)) {
	parents, ends := parentTracesOf(ms), []func(error){}
	counts := make(map[string]int, 1)
	for _, m := range ms {
		counts[string(m.Key)]++
	}
	for run, n := range counts {
		next, end := c.bus.settings.Tracer.Begin(Span{
			Name: c.group + " handles " + c.step.Topic, Run: run, Parent: parents.parentOf(run),
			Topic: c.step.Topic, Group: c.group, Events: n,
		})
		parents[run] = next
		ends = append(ends, end)
	}
	return parents, func(err error) {
		for _, end := range ends {
			end(err)
		}
	}
}

// startPublishSpans begins a span for each run that events are published for.
func (b *Bus) startPublishSpans(events []event.Event) (parentTraces, func(error)) {
	parents, ends := make(parentTraces, 1), []func(error){}
	for _, ev := range events {
		run, topic := ev.Head().Run, ev.Topic()
		if parents[run] != "" {
			continue
		}
		next, end := b.settings.Tracer.Begin(Span{
			Name: b.settings.Source + " says " + topic, Run: run, Parent: RootTrace(run),
			Root: topic == event.TopicSubmitted, Topic: topic, Events: 1,
		})
		parents[run] = next
		ends = append(ends, end)
	}
	return parents, func(err error) {
		for _, end := range ends {
			end(err)
		}
	}
}
