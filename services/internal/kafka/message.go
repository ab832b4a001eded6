package kafka

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Headers of a dead letter: where it lay, and why it is here.
const (
	DeadTopic     = "dead_topic"
	DeadPartition = "dead_partition"
	DeadOffset    = "dead_offset"
	DeadReason    = "dead_reason"
)

// MaxValue is the most bytes that an event may have in its JSON form, below
// what brokers take by default, 1 MiB, with room for headers.
const MaxValue = 1000 << 10

// maxReason bounds what a dead letter says about itself.
const maxReason = 4 << 10

// read returns the event that a Kafka message carries.
func read(m kafka.Message) event.Message {
	at, _ := time.Parse(time.RFC3339Nano, header(m, "ce_time")) // for other readers; ours is in the value
	return event.Message{
		Topic: m.Topic, Key: string(m.Key), ID: header(m, "ce_id"), Type: header(m, "ce_type"),
		Time: at, Said: m.Time, Value: m.Value,
	}
}

// write returns the Kafka messages that carry events, in the form of
// CloudEvents. The traces of their causes go on in them.
func (b *Bus) write(events []event.Event, source string, after traces) ([]kafka.Message, error) {
	msgs := make([]kafka.Message, 0, len(events))
	for _, ev := range events {
		m, err := event.Encode(ev)
		if err != nil {
			return nil, err
		}
		if len(m.Value) > MaxValue {
			return nil, fmt.Errorf("%w: event of type %s has %d bytes, %d at most", event.ErrPoison, m.Type, len(m.Value), MaxValue)
		}
		headers := []kafka.Header{
			{Key: "ce_specversion", Value: []byte("1.0")},
			{Key: "ce_id", Value: []byte(m.ID)},
			{Key: "ce_type", Value: []byte(m.Type)},
			{Key: "ce_source", Value: []byte(source)},
			{Key: "ce_time", Value: []byte(m.Time.Format(time.RFC3339Nano))},
			{Key: "traceparent", Value: []byte(after.of(m.Key))},
		}
		if token := b.seal.of(m.Key); token != "" {
			headers = append(headers, kafka.Header{Key: tokenHeader, Value: []byte(token)})
		}
		msgs = append(msgs, kafka.Message{Topic: m.Topic, Key: []byte(m.Key), Value: m.Value, Headers: headers})
	}
	return msgs, nil
}

// deadLetter returns m as a dead letter: the message as it came, with its
// headers but the token, and four more. A value too long for one is cut short:
// the whole still lies where the headers say.
func deadLetter(m kafka.Message, reason error) kafka.Message {
	headers := slices.DeleteFunc(slices.Clone(m.Headers), func(h kafka.Header) bool { return h.Key == tokenHeader })
	why := reason.Error()
	return kafka.Message{
		Topic: event.TopicDead,
		Key:   m.Key,
		Value: m.Value[:min(len(m.Value), MaxDead)],
		Headers: append(headers,
			kafka.Header{Key: DeadTopic, Value: []byte(m.Topic)},
			kafka.Header{Key: DeadPartition, Value: []byte(strconv.Itoa(m.Partition))},
			kafka.Header{Key: DeadOffset, Value: []byte(strconv.FormatInt(m.Offset, 10))},
			kafka.Header{Key: DeadReason, Value: []byte(why[:min(len(why), maxReason)])},
		),
	}
}

// poisoned returns the event that ends the run of m, which nobody can handle
// for that reason, and whether m is such that its run cannot go on without it.
// Every reader of m says the same.
func poisoned(m kafka.Message, reason error) (event.Finished, bool) {
	switch m.Topic {
	case event.TopicSubmitted, event.TopicCommands, event.TopicFetched, event.TopicLaunched, event.TopicRetried:
	default:
		return event.Finished{}, false
	}
	var told struct{ event.Header }
	_ = json.Unmarshal(m.Value, &told) // as much as can be read
	h, run := told.Header, string(m.Key)
	if run == "" || len(run) > 128 || (h.Run != "" && h.Run != run) {
		return event.Finished{}, false
	}
	h.Run, h.Schema, h.Attempt, h.Said = run, event.Major, max(h.Attempt, 1), time.Time{}
	h.ID = event.Derive("poisoned", m.Topic, strconv.Itoa(m.Partition), strconv.FormatInt(m.Offset, 10), run)
	if h.Namespace == "" {
		h.Namespace = "unknown"
	}
	if h.Owner == "" {
		h.Owner = "unknown"
	}
	if h.Time.IsZero() {
		h.Time = m.Time.UTC()
	}
	why := reason.Error()
	return event.Finished{
		Header: h, Outcome: event.Failed, Class: event.ClassPlatform, Reason: event.PoisonedEvent,
		Message: fmt.Sprintf("an event of the run on %s could not be read: %s", m.Topic, why[:min(len(why), 1000)]),
	}, true
}

// header returns the value of the first header of that name, or nothing.
func header(m kafka.Message, key string) string {
	for _, h := range m.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}
