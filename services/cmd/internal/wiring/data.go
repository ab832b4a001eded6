package wiring

import (
	"context"
	"errors"
	"strings"

	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/fetcher/source"
	"github.com/benchmark-ai/bai/services/gateway/data"
)

// Stock shows and changes what a fetcher keeps. It implements data.Stock and
// data.Prefetcher.
type Stock struct{ stock *fetcher.Stock }

// NewStock returns a Stock of what a fetcher with these settings and deps keeps.
func NewStock(s fetcher.Settings, d fetcher.Deps) (*Stock, error) {
	stock, err := fetcher.NewStock(s, d)
	if err != nil {
		return nil, err
	}
	return &Stock{stock: stock}, nil
}

// List implements data.Stock.
func (s *Stock) List(ctx context.Context) ([]data.Stored, error) {
	all, err := s.stock.List(ctx)
	if err != nil {
		return nil, err
	}
	stored := make([]data.Stored, 0, len(all))
	for _, o := range all {
		stored = append(stored, data.Stored{SHA256: o.SHA256, Size: o.Size, Sources: o.Sources, Runs: o.Runs, Created: o.Created, Used: o.Used})
	}
	return stored, nil
}

// Verify implements data.Stock.
func (s *Stock) Verify(ctx context.Context, sha256 string, read func(done, total int64)) (bool, error) {
	return s.stock.Verify(ctx, sha256, read)
}

// Evict implements data.Stock.
func (s *Stock) Evict(ctx context.Context, sha256 string) error {
	err := s.stock.Evict(ctx, sha256)
	if errors.Is(err, fetcher.ErrNeeded) {
		return &data.NeededError{Message: strings.TrimPrefix(err.Error(), "evict "+sha256+": ")}
	}
	return err
}

// Prefetch implements data.Prefetcher.
func (s *Stock) Prefetch(ctx context.Context, from data.Source) (string, error) {
	name, err := s.stock.Prefetch(ctx, fetcher.Source{URL: from.URL, MD5: from.MD5, SHA256: from.SHA256})
	if refused := new(source.Error); errors.As(err, &refused) {
		return "", &data.RefusedError{Message: refused.Message}
	}
	return name, err
}

// Prefetched implements data.Prefetcher.
func (s *Stock) Prefetched(ctx context.Context, name string) (data.Prefetch, error) {
	e, waits, err := s.stock.Prefetched(ctx, name)
	if e == nil || err != nil {
		return data.Prefetch{Message: waits}, err
	}
	p := data.Prefetch{Over: true}
	if e.Finished != nil {
		p.Reason, p.Message = string(e.Finished.Reason), e.Finished.Message
		return p, nil
	}
	for _, d := range e.Data { // there is one
		p.SHA256, p.Size, p.Revision = d.SHA256, d.Size, d.Revision
	}
	return p, nil
}
