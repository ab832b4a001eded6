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
	// Heard says that events of a topic were handled, or tried to, in a time.
	Heard(group, topic string, events int, took time.Duration, err error)
	// Said says that events were published to a topic, dead letters among them.
	Said(topic string, events int)
	// Waits says that something failed that is tried again.
	Waits(name, step string)
	// Lags says how many events of each partition that this process reads are not
	// handled yet. Of partitions that it does not name nothing is known any more.
	Lags(group, topic string, behind map[int]int64)
}

// RefusalMeter is a Meter that is told of messages which were written by somebody who
// may not speak for their run, and were not handled.
type RefusalMeter interface{ Refused(group, topic string) }

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

// quiet is a Meter and Tracer that keep nothing.
type quiet struct{}

// Heard implements Meter.
func (quiet) Heard(string, string, int, time.Duration, error) {}

// Said implements Meter.
func (quiet) Said(string, int) {}

// Waits implements Meter.
func (quiet) Waits(string, string) {}

// Lags implements Meter.
func (quiet) Lags(string, string, map[int]int64) {}

// Begin implements Tracer.
func (quiet) Begin(s Span) (string, func(error)) { return s.Parent, func(error) {} }

// RootTrace returns the traceparent of a run's first span. Every event of a run
// that follows from no other carries it, so that a run has one trace.
func RootTrace(run string) string {
	trace, span := sha256.Sum256([]byte("trace "+run)), sha256.Sum256([]byte("root "+run))
	return fmt.Sprintf("00-%x-%x-01", trace[:16], span[:8])
}

// traces are the traceparents of what follows from messages, by run.
type traces map[string]string

// maxTrace is how many bytes a traceparent has at most: those of today have 55,
// and what a message carries goes on in the answers.
const maxTrace = 128

// causes returns the traces of messages: of several of one run, the last's.
func causes(ms []kafka.Message) traces {
	t := make(traces, 1)
	for _, m := range ms {
		if parent := header(m, "traceparent"); parent != "" && len(parent) <= maxTrace {
			t[string(m.Key)] = parent
		}
	}
	return t
}

// of returns the traceparent of what is said of a run.
func (t traces) of(run string) string {
	if parent := t[run]; parent != "" {
		return parent
	}
	return RootTrace(run)
}

// begin begins a span for each run among ms, and returns the traces of what
// follows from them.
func (c *consumer) begin(ms []kafka.Message) (traces, func(error)) {
	after, ends := causes(ms), []func(error){}
	counts := make(map[string]int, 1)
	for _, m := range ms {
		counts[string(m.Key)]++
	}
	for run, n := range counts {
		next, end := c.bus.settings.Tracer.Begin(Span{
			Name: c.group + " handles " + c.step.Topic, Run: run, Parent: after.of(run), Topic: c.step.Topic, Group: c.group, Events: n,
		})
		after[run] = next
		ends = append(ends, end)
	}
	return after, func(err error) {
		for _, end := range ends {
			end(err)
		}
	}
}

// saying begins a span for each run that events are published for.
func (b *Bus) saying(events []event.Event) (traces, func(error)) {
	after, ends := make(traces, 1), []func(error){}
	for _, ev := range events {
		run, topic := ev.Head().Run, ev.Topic()
		if after[run] != "" {
			continue
		}
		next, end := b.settings.Tracer.Begin(Span{
			Name: b.settings.Source + " says " + topic, Run: run, Parent: RootTrace(run), Root: topic == event.TopicSubmitted, Topic: topic, Events: 1,
		})
		after[run] = next
		ends = append(ends, end)
	}
	return after, func(err error) {
		for _, end := range ends {
			end(err)
		}
	}
}
