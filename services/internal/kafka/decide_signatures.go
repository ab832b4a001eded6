package kafka

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// SignedTopics returns the topics of the services' decisions, in the order of the flow. No pod writes to them.
func SignedTopics() []string {
	return []string{
		event.TopicSubmitted, event.TopicCommands, event.TopicFetched, event.TopicLaunched, event.TopicRetried, event.TopicFinished,
	}
}

// SignaturePolicy sets the offsets from which messages of SignedTopics need a signature: by topic, for each partition. A partition behind
// the last listed one was added later, and needs signatures from its first message on. A topic that is not listed may have messages without
// a signature.
type SignaturePolicy struct {
	Topics map[string][]int64 `json:"topics"`
}

// RequiresSignature reports whether the message at an offset needs a signature.
func (s SignaturePolicy) RequiresSignature(topic string, partition int, offset int64) bool {
	from := s.RequiredFrom(topic, partition)
	return from >= 0 && offset >= from
}

// UnsignedTopics returns the SignedTopics that need no signatures.
func (s SignaturePolicy) UnsignedTopics() []string {
	return slices.DeleteFunc(SignedTopics(), func(topic string) bool {
		_, ok := s.Topics[topic]
		return ok
	})
}

// OffsetRange is which offsets a partition has: from First on, before End.
type OffsetRange struct{ First, End int64 }

// Require returns s with signatures required for all future messages of topics, given the ranges of their partitions. It never requires
// less than s. If a partition has no earlier messages, signatures are required from offset 0 on, so that a topic that is created anew has
// no offsets without signatures.
func (s SignaturePolicy) Require(ranges map[string][]OffsetRange) SignaturePolicy {
	next := s.copy()
	for topic, extents := range ranges {
		from, listed := next.Topics[topic]
		if from == nil {
			from = []int64{} // a topic that does not exist yet needs signatures from the first message on
		}
		for i, e := range extents {
			switch {
			case i < len(from):
				from[i] = min(from[i], e.End)
			case listed:
				from = append(from, 0)
			default:
				from = append(from, e.End)
			}
			if from[i] <= e.First {
				from[i] = 0
			}
		}
		next.Topics[topic] = from
	}
	return next
}

// RequireAll returns s with signatures required for all messages of topics that were just created.
func (s SignaturePolicy) RequireAll(topics ...string) SignaturePolicy {
	next := s.copy()
	for _, topic := range topics {
		if slices.Contains(SignedTopics(), topic) {
			next.Topics[topic] = []int64{}
		}
	}
	return next
}

func (s SignaturePolicy) copy() SignaturePolicy {
	next := SignaturePolicy{Topics: make(map[string][]int64, len(s.Topics))}
	for topic, from := range s.Topics {
		next.Topics[topic] = slices.Clone(from)
	}
	return next
}

// signatureOf returns the signature of a message under a key. The parts are the topic, the key, the value and other signed fields, each
// with its length.
func signatureOf(key []byte, parts ...[]byte) string {
	mac := hmac.New(sha256.New, key)
	for _, part := range append([][]byte{[]byte("bai seal 1")}, parts...) {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write(part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// RequiredFrom returns the offset from which messages of a partition need a signature, -1 if none does.
func (s SignaturePolicy) RequiredFrom(topic string, partition int) int64 {
	from, ok := s.Topics[topic]
	switch {
	case !ok:
		return -1
	case partition < len(from):
		return from[partition]
	}
	return 0
}
