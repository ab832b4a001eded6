package kafka

import (
	"cmp"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
)

// MaxValue is the greatest size of an event in its JSON form by default: the default limit of brokers, 1 MiB and a little, without room for
// key, headers and frame.
const MaxValue = 1000 << 10

// Room of a message beside its value, and the part of it for the frame of a batch.
const (
	maxOverhead = minMessageBytes - MaxValue
	maxFrame    = 1 << 10
)

// sizes are the bounds of published messages.
type sizes struct {
	value   int // bytes of an event in its JSON form
	message int // bytes of a whole message, as weight counts them
}

// sizes returns the bounds that follow from the topics' limit.
func (s TopicSettings) sizes() sizes {
	most := cmp.Or(s.MaxMessage, minMessageBytes)
	return sizes{value: most - maxOverhead, message: most - maxFrame}
}

// check refuses an event that leaves no room for the other parts of its message.
func (s sizes) check(m kafka.Message, kind string) error {
	if len(m.Value) > s.value {
		return fmt.Errorf("%w: event of type %s has %d bytes, %d at most", event.ErrPoison, kind, len(m.Value), s.value)
	}
	return s.fit(m)
}

// fit refuses a message that no topic accepts.
func (s sizes) fit(m kafka.Message) error {
	if n := weight(m); n > s.message {
		return fmt.Errorf("%w: a message to %s has %d bytes with its key and headers, %d at most", event.ErrPoison, m.Topic, n, s.message)
	}
	return nil
}

// toEvent returns the event that a Kafka message carries.
func toEvent(m kafka.Message) event.Message {
	at, _ := time.Parse(time.RFC3339Nano, header(m, "ce_time")) // for other readers; ours is in the value
	return event.Message{
		Topic: m.Topic, Key: string(m.Key), ID: header(m, "ce_id"), Type: header(m, "ce_type"),
		Time: at, PublishedAt: m.Time, Value: m.Value,
	}
}

// encode returns the Kafka messages that carry events, in the form of
// CloudEvents. The traces of their causes go on in them.
func (b *Bus) encode(events []event.Event, source string, parents parentTraces) ([]kafka.Message, error) {
	msgs := make([]kafka.Message, 0, len(events))
	for _, ev := range events {
		m, err := event.Encode(ev)
		if err != nil {
			return nil, err
		}
		headers := []kafka.Header{
			{Key: "ce_specversion", Value: []byte("1.0")},
			{Key: "ce_id", Value: []byte(m.ID)},
			{Key: "ce_type", Value: []byte(m.Type)},
			{Key: "ce_source", Value: []byte(source)},
			{Key: "ce_time", Value: []byte(m.Time.Format(time.RFC3339Nano))},
			{Key: "traceparent", Value: []byte(parents.parentOf(m.Key))},
		}
		if token := b.credentials.For(m.Key); token != "" {
			headers = append(headers, kafka.Header{Key: access.TokenHeader, Value: []byte(token)})
		}
		out := b.signer.sign(kafka.Message{Topic: m.Topic, Key: []byte(m.Key), Value: m.Value, Headers: headers})
		if err := b.sizes.check(out, m.Type); err != nil {
			return nil, err
		}
		msgs = append(msgs, out)
	}
	return msgs, nil
}

// header returns the value of the first header of that name, empty if there is none.
func header(m kafka.Message, key string) string {
	for _, h := range m.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}
