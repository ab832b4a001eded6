package admin

import (
	"context"

	"github.com/benchmark-ai/bai/services/internal/kafka"
)

// Sampled is how many of the newest messages of a partition are looked at.
const Sampled = 100

// Partition is what a partition has, and from where on its messages must have a seal.
type Partition struct {
	Topic     string
	Partition int
	Extent    kafka.Extent
	From      int64 // -1 where nothing must
	Unsealed  int   // of the newest Sampled messages; -1 where nobody here can tell
}

// LookAtSeals returns the partitions of all topics whose messages have seals, in
// order, given what is noted.
func LookAtSeals(ctx context.Context, s kafka.Settings, seals kafka.Seals) ([]Partition, error) {
	inspector, err := kafka.NewInspector(s)
	if err != nil {
		return nil, err
	}
	have, err := kafka.Extents(ctx, s, kafka.Sealed()...)
	if err != nil {
		return nil, err
	}
	var out []Partition
	for _, topic := range kafka.Sealed() {
		for i, e := range have[topic] {
			p := Partition{Topic: topic, Partition: i, Extent: e, From: seals.From(topic, i), Unsealed: -1}
			if inspector.Knows() {
				if p.Unsealed, err = unsealed(ctx, s, inspector, p); err != nil {
					return nil, err
				}
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// unsealed counts the newest messages of a partition that have no seal.
func unsealed(ctx context.Context, s kafka.Settings, inspector kafka.Inspector, p Partition) (n int, err error) {
	if p.Extent.First == p.Extent.End {
		return 0, nil
	}
	for m, err := range kafka.Scan(ctx, s, p.Topic, p.Partition, max(p.Extent.First, p.Extent.End-Sampled)) {
		if err != nil {
			return 0, err
		}
		if !inspector.Right(m) {
			n++
		}
	}
	return n, nil
}
