package admin

import (
	"context"

	"github.com/benchmark-ai/bai/services/internal/kafka"
)

// Sampled is how many of the newest messages of a partition are checked.
const Sampled = 100

// Partition is the state of a partition, and the offset from which its messages need a signature.
type Partition struct {
	Topic        string
	Partition    int
	Range        kafka.OffsetRange
	RequiredFrom int64 // -1 if none does
	Unsigned     int   // among the newest Sampled messages; -1 if this process cannot verify signatures
}

// InspectSignatures returns the partitions of all topics with signatures, in order, for a policy.
func InspectSignatures(ctx context.Context, s kafka.Settings, seals kafka.SignaturePolicy) ([]Partition, error) {
	inspector, err := kafka.NewVerifier(s)
	if err != nil {
		return nil, err
	}
	have, err := kafka.OffsetRanges(ctx, s, kafka.SignedTopics()...)
	if err != nil {
		return nil, err
	}
	var out []Partition
	for _, topic := range kafka.SignedTopics() {
		for i, e := range have[topic] {
			p := Partition{Topic: topic, Partition: i, Range: e, RequiredFrom: seals.RequiredFrom(topic, i), Unsigned: -1}
			if inspector.HasKey() {
				if p.Unsigned, err = countUnsigned(ctx, s, inspector, p); err != nil {
					return nil, err
				}
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// countUnsigned counts the newest messages of a partition that have no seal.
func countUnsigned(ctx context.Context, s kafka.Settings, inspector kafka.Verifier, p Partition) (n int, err error) {
	if p.Range.First == p.Range.End {
		return 0, nil
	}
	for m, err := range kafka.Scan(ctx, s, p.Topic, p.Partition, max(p.Range.First, p.Range.End-Sampled)) {
		if err != nil {
			return 0, err
		}
		if !inspector.Verify(m) {
			n++
		}
	}
	return n, nil
}
