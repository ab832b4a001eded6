package storetest

import (
	"context"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// PrivateLeases is a store whose leases are invisible to processes with another suffix: all of
// them lead.
type PrivateLeases struct {
	*Memory

	Suffix string
}

func (s PrivateLeases) key(kind store.Kind, key string) string {
	if kind == store.KindLease {
		return key + s.Suffix
	}
	return key
}

// Doc implements store.Getter.
func (s PrivateLeases) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	return s.Memory.Doc(ctx, kind, s.key(kind, key))
}

// CreateDoc implements store.DocWriter.
func (s PrivateLeases) CreateDoc(ctx context.Context, d store.Doc) error {
	d.Key = s.key(d.Kind, d.Key)
	return s.Memory.CreateDoc(ctx, d)
}

// ReplaceDoc implements store.DocWriter.
func (s PrivateLeases) ReplaceDoc(ctx context.Context, d store.Doc) (int64, error) {
	d.Key = s.key(d.Kind, d.Key)
	return s.Memory.ReplaceDoc(ctx, d)
}
