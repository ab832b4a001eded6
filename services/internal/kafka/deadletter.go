package kafka

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
)

// Headers of a dead letter: the place of the original message, and the reason.
const (
	DeadTopic     = "dead_topic"
	DeadPartition = "dead_partition"
	DeadOffset    = "dead_offset"
	DeadReason    = "dead_reason"
	DeadCut       = "dead_cut"    // parts of the message that were cut, empty if none; letters of earlier versions lack it
	DeadForged    = "dead_forged" // present only if the message had not the token of its run, or not the required signature
)

// Bounds of a dead letter for a message that any client may have written.
const (
	maxDeadKey     = 1 << 10
	maxDeadHeader  = 256 // bytes of each
	maxReason      = 4 << 10
	minReasonBytes = 256 // if the brokers accept no more
)

// KnownHeaders returns the headers of a message that services use, except the token: each once, the first.
func KnownHeaders(m kafka.Message) map[string]string {
	out := make(map[string]string)
	for _, name := range []string{"ce_specversion", "ce_id", "ce_type", "ce_source", "ce_time", "traceparent"} {
		if i := slices.IndexFunc(m.Headers, func(h kafka.Header) bool { return h.Key == name }); i >= 0 {
			out[name] = string(m.Headers[i].Value)
		}
	}
	return out
}

// deadLetter returns m as a dead letter that fits into limits, for any m: its key and value, the headers that services use except the
// token, and the place of m. Parts that are too long are cut: the original message is still in its partition.
func deadLetter(m kafka.Message, reason error, limits sizes) kafka.Message {
	var truncated []string
	cut := func(part string, b []byte, n int) []byte {
		if len(b) <= n {
			return b
		}
		truncated = append(truncated, fmt.Sprintf("%s of %d bytes", part, len(b)))
		return b[:n]
	}
	letter := kafka.Message{Topic: event.TopicDead, Key: cut("key", m.Key, maxDeadKey)}
	headers := KnownHeaders(m)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		letter.Headers = append(letter.Headers, kafka.Header{Key: name, Value: cut("header "+name, []byte(headers[name]), maxDeadHeader)})
	}
	letter.Headers = append(letter.Headers,
		kafka.Header{Key: DeadTopic, Value: []byte(m.Topic)},
		kafka.Header{Key: DeadPartition, Value: []byte(strconv.Itoa(m.Partition))},
		kafka.Header{Key: DeadOffset, Value: []byte(strconv.FormatInt(m.Offset, 10))},
		kafka.Header{Key: DeadReason, Value: []byte(clip(reason.Error(), maxReason))},
	)
	if errors.Is(reason, access.ErrForged) || errors.Is(reason, errUnsigned) {
		letter.Headers = append(letter.Headers, kafka.Header{Key: DeadForged, Value: []byte("true")})
	}
	letter.Value = cut("value", m.Value, limits.message-weight(letter)-maxFrame) // there will be one header more
	letter.Headers = append(letter.Headers, kafka.Header{Key: DeadCut, Value: []byte(strings.Join(truncated, ", "))})
	return letter
}

// minimalDeadLetter returns the smallest form of a dead letter, for brokers with a lower limit than configured: the place of the message,
// and the reason. It is false if m is no dead letter, or cannot be smaller.
func minimalDeadLetter(m kafka.Message) (kafka.Message, bool) {
	if m.Topic != event.TopicDead || len(m.Value) == 0 {
		return m, false
	}
	truncated := cmp.Or(header(m, DeadCut), fmt.Sprintf("value of %d bytes", len(m.Value))) +
		", and all else, which is more than the brokers take"
	out := kafka.Message{Topic: m.Topic, Key: m.Key}
	for _, h := range m.Headers {
		switch h.Key {
		case DeadTopic, DeadPartition, DeadOffset, DeadForged:
		case DeadReason:
			h.Value = []byte(clip(string(h.Value), minReasonBytes))
		case DeadCut:
			h.Value = []byte(truncated)
		default:
			continue
		}
		out.Headers = append(out.Headers, h)
	}
	return out, true
}

// clip returns text, or its beginning of n bytes at most.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// Bounds of the texts that the end of a run repeats of an unreadable event.
const (
	maxRun        = 128
	maxNamed      = 256 // bytes of a name: a team's, an owner's, a set's
	maxBlameBytes = 1000
)

// poisonedRunEnd returns the event that ends the run of m, which cannot be handled for the given reason. It is false if the run can go on
// without m. A forged message does not end the run that it names. Every reader of m returns the same event. The event repeats the fields of
// m about its run if they have a plausible length.
func poisonedRunEnd(m kafka.Message, reason error) (event.Finished, bool) {
	if errors.Is(reason, errUnsigned) {
		return event.Finished{}, false
	}
	switch m.Topic {
	case event.TopicSubmitted, event.TopicCommands, event.TopicFetched, event.TopicLaunched, event.TopicRetried:
	default:
		return event.Finished{}, false
	}
	var partial struct{ event.Header }
	_ = json.Unmarshal(m.Value, &partial) // as much as can be read
	h, run := partial.Header, string(m.Key)
	if run == "" || len(run) > maxRun || (h.Run != "" && h.Run != run) {
		return event.Finished{}, false
	}
	h.Run, h.Schema, h.Attempt, h.PublishedAt = run, event.Major, max(h.Attempt, 1), time.Time{}
	h.ID = event.Derive("poisoned", m.Topic, strconv.Itoa(m.Partition), strconv.FormatInt(m.Offset, 10), run)
	h.Namespace, h.Owner = named(h.Namespace), named(h.Owner)
	h.Nodes = nil
	if l := h.Lineage; len(l.Set)+len(l.Cell)+len(l.Schedule)+len(l.RerunOf)+len(l.Confirms)+len(l.Compares) > 4*maxNamed {
		h.Lineage = event.Lineage{}
	}
	if h.Time.IsZero() {
		h.Time = m.Time.UTC()
	}
	return event.Finished{
		Header: h, Outcome: event.Failed, Class: event.ClassPlatform, Reason: event.PoisonedEvent,
		Message: fmt.Sprintf("an event of the run on %s could not be read: %s", m.Topic, clip(reason.Error(), maxBlameBytes)),
	}, true
}

// named returns a name, or "unknown" if it is empty or too long.
func named(name string) string {
	if name == "" || len(name) > maxNamed {
		return "unknown"
	}
	return name
}
