package elastic

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/client"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/document"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/names"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
	"github.com/benchmark-ai/bai/services/internal/store/notifier"
)

// streamStore implements store.Streams and store.Notifier.
type streamStore struct {
	client   *client.Client
	schema   *schema.Schema
	notifier *notifier.Notifier
	written  writtenStreams
}

// AppendSamples implements store.Streams.
func (s *streamStore) AppendSamples(ctx context.Context, batches []store.Samples) error {
	work := make([]batch, len(batches))
	for i, b := range batches {
		if err := b.Validate(); err != nil {
			return err
		}
		work[i] = batch{
			topic: event.TopicMetrics, origin: b.Origin, end: b.End, n: len(b.Samples),
			put: func(buf []byte, e *document.Encoder, n int) ([]byte, error) {
				return e.Sample(buf, &b.Samples[n])
			},
		}
	}
	return wrapError("append samples", s.append(ctx, s.client.Settings.Prefix+"-"+schema.Metrics, work))
}

// AppendLines implements store.Streams.
func (s *streamStore) AppendLines(ctx context.Context, batches []store.Lines) error {
	work := make([]batch, len(batches))
	for i, b := range batches {
		if err := b.Validate(); err != nil {
			return err
		}
		work[i] = batch{
			topic: event.TopicLogs, origin: b.Origin, end: b.End, n: len(b.Lines),
			put: func(buf []byte, e *document.Encoder, n int) ([]byte, error) {
				return e.Line(buf, &b.Lines[n])
			},
		}
	}
	return wrapError("append lines", s.append(ctx, s.client.Settings.Prefix+"-"+schema.Logs, work))
}

// batch is samples or lines of one source.
type batch struct {
	topic  string
	origin store.Origin
	end    *event.End
	n      int
	put    func(buf []byte, e *document.Encoder, n int) ([]byte, error) // writes the nth
}

// append stores batches: one writer stores those of one source, in order. It goes on after refused documents, so that no others are lost
// with them.
func (s *streamStore) append(ctx context.Context, index string, batches []batch) error {
	if err := s.schema.Ensure(ctx); err != nil {
		return err
	}
	lanes := make([][]batch, s.client.Settings.Writers)
	runs := make(map[string]bool)
	for _, b := range batches {
		if b.n == 0 && b.end == nil {
			continue
		}
		n := streamHash(b.origin.StreamID()) % uint64(len(lanes))
		lanes[n] = append(lanes[n], b)
		runs[b.origin.Run] = true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(lanes))
	var wg sync.WaitGroup
	for i, lane := range lanes {
		if len(lane) == 0 {
			continue
		}
		wg.Go(func() {
			if errs[i] = s.writeLane(ctx, index, lane); errs[i] != nil && !errors.Is(errs[i], store.ErrRefused) {
				cancel() // the store is away: no use in going on
			}
		})
	}
	wg.Wait()
	for run := range runs {
		s.notifier.Notify(run)
	}
	return mostSevere(errs)
}

// mostSevere returns the most severe error: that the store cannot be reached, then canceled writers, then refused documents.
func mostSevere(errs []error) error {
	var refusals, ends []error
	for _, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, store.ErrRefused):
			refusals = append(refusals, err)
		case errors.Is(err, context.Canceled):
			ends = append(ends, err)
		default:
			return err
		}
	}
	if len(ends) > 0 {
		return ends[0]
	}
	return errors.Join(refusals...)
}

// writeLane stores batches one after the other.
func (s *streamStore) writeLane(ctx context.Context, index string, batches []batch) error {
	w := &writer{store: s}
	var refusals []error
	for _, b := range batches {
		refused, err := w.batch(ctx, index, b)
		refusals = append(refusals, refused...)
		if err != nil {
			return err
		}
	}
	refused, err := w.flush(ctx)
	if err != nil {
		return err
	}
	return errors.Join(append(refusals, refused...)...)
}

// writer collects documents of one index and writes them when there are enough.
type writer struct {
	store       *streamStore
	index       string // with its partition
	body        []byte
	items       []int    // where each document's action begins
	streamIDs   []string // of sources whose documents are written with them
	streamBody  []byte   // documents about sources
	streamItems []int
	streamIndex string // the index of sources
}

// batch adds a batch. It returns the documents that the server refused, or the error that ends the write.
func (w *writer) batch(ctx context.Context, index string, b batch) (refused []error, err error) {
	month := names.Partition(b.origin.Run)
	if at := index + "-" + month; w.index != at {
		if refused, err = w.flush(ctx); err != nil {
			return refused, err
		}
		w.index, w.streamIndex = at, w.store.client.Index(schema.Sources, month)
	}
	if err := w.addStream(b); err != nil {
		return refused, err
	}
	e := document.New(b.origin)
	for n := range b.n {
		at := len(w.body)
		body, err := b.put(w.body, e, n)
		if err != nil {
			refused = append(refused, fmt.Errorf("%w: number %d of run %q: %w", store.ErrRefused, n, b.origin.Run, err))
			continue
		}
		w.body, w.items = body, append(w.items, at)
		if len(w.body) < w.store.client.Settings.BulkBytes {
			continue
		}
		some, err := w.flush(ctx)
		refused = append(refused, some...)
		if err != nil {
			return refused, err
		}
	}
	return refused, nil
}

// addStream adds the documents about a source.
func (w *writer) addStream(b batch) error {
	for _, end := range []*event.End{nil, b.end} {
		if end == nil && b.end != nil && b.n == 0 {
			continue // the document with its end covers it
		}
		at := len(w.streamBody)
		side, id, err := document.AppendStream(w.streamBody, b.origin, b.topic, end)
		if err != nil {
			return fmt.Errorf("%w: source of run %q: %w", store.ErrRefused, b.origin.Run, err)
		}
		if w.store.written.has(w.streamIndex + id) {
			continue
		}
		w.streamBody, w.streamItems, w.streamIDs = side, append(w.streamItems, at), append(w.streamIDs, w.streamIndex+id)
		if b.end == nil {
			break
		}
	}
	return nil
}

// flush writes the collected documents, and returns those that the server refused. It writes the documents about sources last: a reader
// that sees one may read the source.
func (w *writer) flush(ctx context.Context) (refused []error, err error) {
	refused, err = w.store.client.Bulk(ctx, w.index, w.body, w.items)
	if err != nil {
		return refused, err
	}
	some, err := w.store.client.Bulk(ctx, w.streamIndex, w.streamBody, w.streamItems)
	refused = append(refused, some...)
	if err != nil {
		return refused, err
	}
	w.store.written.add(w.streamIDs)
	w.body, w.items, w.streamBody, w.streamItems, w.streamIDs = w.body[:0], w.items[:0], w.streamBody[:0],
		w.streamItems[:0], w.streamIDs[:0]
	return refused, nil
}

// Changed implements store.Notifier. Lists and searches show a write after the next refresh, a moment later.
func (s *streamStore) Changed(run string) <-chan struct{} { return s.notifier.Subscribe(run) }
