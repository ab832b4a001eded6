package wiring

import (
	"context"
	"errors"
	"strings"

	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/fetcher/source"
	"github.com/benchmark-ai/bai/services/gateway/data"
)

// DatasetCache shows and changes what a fetcher keeps. It implements data.Stock and
// data.Prefetcher.
type DatasetCache struct{ cache *fetcher.DatasetCache }

// NewDatasetCache returns a Stock of what a fetcher with these settings and deps keeps.
func NewDatasetCache(s fetcher.Settings, d fetcher.Deps) (*DatasetCache, error) {
	stock, err := fetcher.NewDatasetCache(s, d)
	if err != nil {
		return nil, err
	}
	return &DatasetCache{cache: stock}, nil
}

// List implements data.Stock.
func (s *DatasetCache) List(ctx context.Context) ([]data.Dataset, error) {
	all, err := s.cache.List(ctx)
	if err != nil {
		return nil, err
	}
	stored := make([]data.Dataset, 0, len(all))
	for _, o := range all {
		stored = append(stored, data.Dataset{SHA256: o.SHA256, Size: o.Size, Sources: o.Sources, Runs: o.Runs, Created: o.Created, Used: o.LastUsed})
	}
	return stored, nil
}

// Verify implements data.Stock.
func (s *DatasetCache) Verify(ctx context.Context, sha256 string, read func(done, total int64)) (bool, error) {
	return s.cache.Verify(ctx, sha256, read)
}

// Evict implements data.Stock.
func (s *DatasetCache) Evict(ctx context.Context, sha256 string) error {
	err := s.cache.Evict(ctx, sha256)
	if errors.Is(err, fetcher.ErrNeeded) {
		return &data.InUseError{Message: strings.TrimPrefix(err.Error(), "evict "+sha256+": ")}
	}
	return err
}

// Prefetch implements data.Prefetcher.
func (s *DatasetCache) Prefetch(ctx context.Context, from data.Source) (string, error) {
	name, err := s.cache.Prefetch(ctx, fetcher.Source{URL: from.URL, MD5: from.MD5, SHA256: from.SHA256})
	if refused := new(source.Error); errors.As(err, &refused) {
		return "", &data.InvalidSourceError{Message: refused.Message}
	}
	return name, err
}

// PrefetchStatus implements data.Prefetcher.
func (s *DatasetCache) PrefetchStatus(ctx context.Context, name string) (data.Prefetch, error) {
	e, waits, err := s.cache.PrefetchResult(ctx, name)
	if e == nil || err != nil {
		return data.Prefetch{Message: waits}, err
	}
	p := data.Prefetch{Done: true}
	if e.Finished != nil {
		p.Reason, p.Message = string(e.Finished.Reason), e.Finished.Message
		return p, nil
	}
	for _, d := range e.Data { // there is one
		p.SHA256, p.Size, p.Revision = d.SHA256, d.Size, d.Revision
	}
	return p, nil
}
