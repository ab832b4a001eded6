package elastic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/client"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/document"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/names"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
)

// pointStore implements store.Points.
//
// A document of KindPoints for each run says which revision its points have. It is written before the points, by compare-and-set, and a
// reader takes only points of its revision: so a run has the points of one revision, whoever writes at the same time and is killed when.
type pointStore struct {
	client *client.Client
	docs   *docStore
	runs   *runStore
}

// pointHead is the value of a document of KindPoints.
type pointHead struct {
	store.PointRun

	Revision int64          `json:"revision"`
	Digest   string         `json:"digest"`            // of the documents of the revision
	Written  int            `json:"written"`           // documents of points that any revision may have written
	Metrics  map[string]int `json:"metrics,omitempty"` // number of points of each metric
}

// newPointHead returns the head of points.
func newPointHead(p store.RunPoints) (pointHead, error) {
	text, err := json.Marshal([]any{p.Time, p.Excluded, p.Points})
	if err != nil {
		return pointHead{}, fmt.Errorf("%w: %w", store.ErrRefused, err)
	}
	sum := sha256.Sum256(text)
	h := pointHead{
		PointRun: p.PointRun, Revision: p.Revision, Digest: hex.EncodeToString(sum[:16]), Written: len(p.Points),
		Metrics: make(map[string]int),
	}
	for _, v := range p.Points {
		h.Metrics[v.Metric]++
	}
	return h, nil
}

// count returns the number of points of some metrics, of all without any.
func (h pointHead) count(metrics []string) (n int) {
	if len(metrics) == 0 {
		for _, points := range h.Metrics {
			n += points
		}
		return n
	}
	seen := make(map[string]bool)
	for _, m := range metrics {
		if !seen[m] {
			n += h.Metrics[m]
		}
		seen[m] = true
	}
	return n
}

// PutPoints implements store.Points. It makes the same number of requests for any run, but for one whose points exceed the size of a bulk
// request.
func (s *pointStore) PutPoints(ctx context.Context, p store.RunPoints) error {
	if err := p.Validate(); err != nil {
		return err
	}
	return wrapError(fmt.Sprintf("write points of run %q", p.Run), s.putPoints(ctx, p))
}

func (s *pointStore) putPoints(ctx context.Context, p store.RunPoints) error {
	h, err := newPointHead(p)
	if err != nil {
		return err
	}
	for {
		is, version, found, err := store.Find[pointHead](ctx, s.docs, store.KindPoints, p.Run)
		if err != nil || found && (is.Revision > h.Revision || is.Revision == h.Revision && is.Digest != h.Digest) {
			return err
		}
		h.Written = max(is.Written, len(p.Points))
		switch {
		case !found:
			err = store.Create(ctx, s.docs, store.KindPoints, p.Run, h)
		case is.Revision < h.Revision:
			_, err = store.Replace(ctx, s.docs, store.KindPoints, p.Run, version, h)
		}
		if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
			continue // another writer was faster
		}
		if err != nil {
			return err
		}
		return s.writePoints(ctx, p, h.Written)
	}
}

// writePoints writes the documents of points, and deletes those of earlier revisions that have no successor. Documents of later revisions
// stay.
func (s *pointStore) writePoints(ctx context.Context, p store.RunPoints, written int) error {
	r, err := s.runs.Run(ctx, p.Run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	environment, _, _, err := store.Find[store.RunEnvironment](ctx, s.docs, store.KindEnvironment, p.Run)
	if err != nil {
		return err
	}
	b := pointBulk{run: p.Run, version: externalVersion(p.Revision)}
	for n := range written {
		if n >= len(p.Points) {
			b.delete(n)
			continue
		}
		doc, err := json.Marshal(newResultDoc(p, n, r, environment.Attempt(r.Attempt)))
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrRefused, err)
		}
		b.index(n, doc)
	}
	refused, err := s.client.Bulk(ctx, s.client.Index(schema.Results, names.Partition(p.Run)), b.body, b.items)
	return errors.Join(append(refused, err)...)
}

// externalVersion returns the version of the documents of a revision. Programs before version 5 of the mappings gave the documents of a
// revision its own number.
func externalVersion(revision int64) int64 { return 2*revision + 1 }

// pointBulk is the body of a bulk request about the points of a run.
type pointBulk struct {
	run     string
	version int64
	body    []byte
	items   []int
}

// action begins the action for the nth point.
func (b *pointBulk) action(name string, n int) {
	b.items = append(b.items, len(b.body))
	b.body = document.AppendString(append(b.body, `{"`+name+`":{"_id":`...), names.Digest(b.run, strconv.Itoa(n)))
	b.body = strconv.AppendInt(append(b.body, `,"version_type":"external_gte","version":`...), b.version, 10)
	b.body = append(b.body, "}}\n"...)
}

func (b *pointBulk) delete(n int) { b.action("delete", n) }

func (b *pointBulk) index(n int, doc []byte) {
	b.action("index", n)
	b.body = append(append(b.body, doc...), '\n')
}

// heads reads the heads of runs, by run. Runs without points are missing.
func (s *pointStore) heads(ctx context.Context, runs []string) (map[string]pointHead, error) {
	if err := s.docs.schema.Ensure(ctx); err != nil {
		return nil, err
	}
	ids := make([]string, len(runs))
	for i, run := range runs {
		ids[i] = names.Doc(store.KindPoints, run)
	}
	docs, err := s.client.MultiGet(ctx, s.client.Index(schema.Docs), ids)
	if err != nil {
		return nil, err
	}
	all := make(map[string]pointHead, len(runs))
	for i, raw := range docs {
		if raw == nil {
			continue
		}
		var k docRecord
		if err := json.Unmarshal(raw, &k); err != nil {
			return nil, err
		}
		if all[runs[i]], err = store.Decode[pointHead](k.doc()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// pointIndex matches the indices of the points of all runs.
func (s *pointStore) pointIndex() string { return s.client.Index(schema.Results, "*") }

// search returns up to size points that a search finds.
func (s *pointStore) search(ctx context.Context, size int, query any, after []any, sort ...any) ([]pointRecord, error) {
	hits, err := s.client.Search(ctx, s.pointIndex(),
		client.Search{Size: size, Query: query, Sort: sort, After: after, Source: []string{"doc"}})
	if err != nil {
		return nil, err
	}
	records := make([]pointRecord, len(hits))
	for i, h := range hits {
		var d struct {
			Doc pointRecord `json:"doc"`
		}
		if err := json.Unmarshal(h.Source, &d); err != nil {
			return nil, err
		}
		records[i] = d.Doc
	}
	return records, nil
}
