package kafka

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// SignedTopics are the topics by which services tell each other what was decided, in the
// order of the flow. No pod writes to them.
func SignedTopics() []string {
	return []string{
		event.TopicSubmitted, event.TopicCommands, event.TopicFetched, event.TopicLaunched, event.TopicRetried, event.TopicFinished,
	}
}

// SignaturePolicy says from which offsets on messages of Sealed topics must have a seal: by
// topic, for each partition. A partition behind the last that is named was added
// later, and its messages must from the first on. A topic that is not named may have
// messages without a seal.
type SignaturePolicy struct {
	Topics map[string][]int64 `json:"topics"`
}

// RequiresSignature says whether the message at an offset must have a seal.
func (s SignaturePolicy) RequiresSignature(topic string, partition int, offset int64) bool {
	from := s.RequiredFrom(topic, partition)
	return from >= 0 && offset >= from
}

// UnsignedTopics returns the Sealed topics of which nothing must have a seal.
func (s SignaturePolicy) UnsignedTopics() []string {
	return slices.DeleteFunc(SignedTopics(), func(topic string) bool {
		_, ok := s.Topics[topic]
		return ok
	})
}

// OffsetRange is which offsets a partition has: from First on, before End.
type OffsetRange struct{ First, End int64 }

// Require returns s with seals demanded of whatever comes to topics from now on,
// given the partitions of each. It never demands less than s. Where a partition
// keeps nothing from before, seals are demanded of all of it, so that nobody who
// makes the topic anew finds offsets without.
func (s SignaturePolicy) Require(ranges map[string][]OffsetRange) SignaturePolicy {
	next := s.copy()
	for topic, extents := range ranges {
		from, listed := next.Topics[topic]
		if from == nil {
			from = []int64{} // of a topic that is not there yet all must have seals
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

// RequireAll returns s with seals demanded of all that comes to topics that were just made.
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

// signatureOf returns the seal of a message under a key. Of parts, which are the topic,
// the key, the value and whatever else is vouched for, each counts with its length.
func signatureOf(key []byte, parts ...[]byte) string {
	mac := hmac.New(sha256.New, key)
	for _, part := range append([][]byte{[]byte("bai seal 1")}, parts...) {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write(part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// RequiredFrom returns from which offset on messages of a partition must have a seal, -1
// where none must.
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
