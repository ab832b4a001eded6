package kafka

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Meter is told what goes through a process. It is called by several goroutines,
// and often.
type Meter interface {
	// RecordHandled says that events of a topic were handled, or tried to, in a time.
	RecordHandled(group, topic string, events int, took time.Duration, err error)
	// RecordPublished says that events were published to a topic, dead letters among them.
	RecordPublished(topic string, events int)
	// RecordRetry says that something failed that is tried again.
	RecordRetry(name, step string)
	// RecordLag says how many events of each partition that this process reads are not
	// handled yet. Of partitions that it does not name nothing is known any more.
	RecordLag(group, topic string, behind map[int]int64)
}

// refusalMeter is a Meter that is told of messages which were written by somebody who
// may not speak for their run, and were not handled.
type refusalMeter interface{ RecordRefused(group, topic string) }

// Span is a piece of work on one run that is to be seen in its trace.
type Span struct {
	Name   string // fetcher handles bai.submitted
	Run    string
	Parent string // W3C traceparent of what it follows from
	Root   bool   // it is the first of its run, and has the ID that Parent names
	Topic  string // that is heard or said
	Group  string // of consumers; empty for who publishes
	Events int
}

// Tracer is told of work on runs.
type Tracer interface {
	// Begin begins a span. It returns the traceparent of what follows from it, and
	// what ends it.
	Begin(s Span) (traceparent string, end func(error))
}

// noopMeter is a Meter and Tracer that keep nothing.
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

// RootTrace returns the traceparent of a run's first span. Every event of a run
// that follows from no other carries it, so that a run has one trace.
func RootTrace(run string) string {
	trace, span := sha256.Sum256([]byte("trace "+run)), sha256.Sum256([]byte("root "+run))
	return fmt.Sprintf("00-%x-%x-01", trace[:16], span[:8])
}

// parentTraces are the traceparents of what follows from messages, by run.
type parentTraces map[string]string

// maxTrace is how many bytes a traceparent has at most: those of today have 55,
// and what a message carries goes on in the answers.
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

// parentOf returns the traceparent of what is said of a run.
func (t parentTraces) parentOf(run string) string {
	if parent := t[run]; parent != "" {
		return parent
	}
	return RootTrace(run)
}

// startSpans begins a span for each run among ms, and returns the traces of what
// follows from them.
func (c *consumer) startSpans(ms []kafka.Message) (parentTraces, func(error)) {
	parents, ends := parentTracesOf(ms), []func(error){}
	counts := make(map[string]int, 1)
	for _, m := range ms {
		counts[string(m.Key)]++
	}
	for run, n := range counts {
		next, end := c.bus.settings.Tracer.Begin(Span{
			Name: c.group + " handles " + c.step.Topic, Run: run, Parent: parents.parentOf(run), Topic: c.step.Topic, Group: c.group, Events: n,
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
			Name: b.settings.Source + " says " + topic, Run: run, Parent: RootTrace(run), Root: topic == event.TopicSubmitted, Topic: topic, Events: 1,
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
