// Package wiring connects the packages of services for the programs that run them.
package wiring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/gateway/catalog"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Source reads descriptors with the guards of data sets. It implements catalog.Source.
type Source struct{ reader *source.Reader }

// NewSource returns a Source that reads the sources which the settings allow for data
// sets, with further limits: no folders, no files of the server, at most the maximum
// size of a descriptor, and not longer than a user waits.
func NewSource(s source.Settings, b bucket.Settings) (*Source, error) {
	buckets, err := bucket.New(b)
	if err != nil {
		return nil, err
	}
	s.Folders, s.MaxSize = nil, parser.MaxSize
	s.Attempts, s.Retry, s.Stall, s.Deadline = 3, 200*time.Millisecond, 10*time.Second, 20*time.Second
	r, err := source.New(s)
	if err != nil {
		return nil, err
	}
	r.ReadBuckets(source.OpenBuckets(buckets))
	return &Source{reader: r}, nil
}

// Close closes idle connections.
func (s *Source) Close() { s.reader.Close() }

// Read implements catalog.Source.
func (s *Source) Read(ctx context.Context, url string) ([]byte, error) {
	if source.IsFolder(url) {
		return nil, &catalog.SourceError{Message: fmt.Sprintf("source %s is a folder: name the file in it", source.Redact(url)), User: true}
	}
	var text bytes.Buffer
	_, err := s.reader.Get(ctx, source.Request{URL: url}, func(_ context.Context, _ int64, fill func(w io.Writer) error) error {
		text.Reset()
		return fill(&text)
	})
	why, ok := errors.AsType[*source.Error](err)
	switch {
	case ok && why.Reason == event.DataTooLarge:
		return nil, &catalog.SourceError{Message: fmt.Sprintf("source %s has more than the %d KiB that a descriptor has at most",
			source.Redact(url), parser.MaxSize>>10), User: true}
	case ok:
		return nil, &catalog.SourceError{Message: why.Message, User: why.Class == event.ClassUser}
	case err != nil:
		return nil, fmt.Errorf("read descriptor %s: %w", source.Redact(url), err)
	}
	return text.Bytes(), nil
}
