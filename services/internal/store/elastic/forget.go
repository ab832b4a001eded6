package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Forget removes what belongs to the months that were over at a time: their
// indices, whole, and the documents of their runs that have finished. It returns
// the names of the indices. What belongs to runs whose IDs have no time stays.
func (s *Store) Forget(ctx context.Context, before time.Time) ([]string, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	month := time.Date(before.UTC().Year(), before.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	for n := page; n == page; { // until fewer than a page were there
		var err error
		if n, err = s.forgetRuns(ctx, month); err != nil {
			return nil, fmt.Errorf("forget runs before %s: %w", month.Format(time.DateOnly), err)
		}
	}
	var forgotten []string
	for _, i := range Indices() {
		if !i.ByMonth {
			continue
		}
		names, err := s.forgetMonths(ctx, i, month)
		forgotten = append(forgotten, names...)
		if err != nil {
			return forgotten, err
		}
	}
	return forgotten, nil
}

// forgetMonths removes the indices of a kind that are of months before one.
func (s *Store) forgetMonths(ctx context.Context, i Index, month time.Time) (forgotten []string, err error) {
	versions, err := s.indexVersions(ctx, i)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		name = strings.TrimPrefix(name, "index ")
		of, err := time.Parse("2006.01", strings.TrimPrefix(name, s.index(i.Name)+"-"))
		if err != nil || !of.Before(month) {
			continue // of runs without a time, or too new
		}
		if _, err := s.call(ctx, http.MethodDelete, "/"+name, nil, nil, http.StatusNotFound); err != nil {
			return forgotten, fmt.Errorf("forget index %s: %w", name, err)
		}
		forgotten = append(forgotten, name)
	}
	return forgotten, nil
}

// forgetRuns removes a page of finished runs that were submitted before a time,
// and returns how many there were.
func (s *Store) forgetRuns(ctx context.Context, before time.Time) (int, error) {
	if _, err := s.call(ctx, http.MethodPost, "/"+s.index(indexRuns)+"/_refresh", nil, nil); err != nil {
		return 0, err
	}
	hits, err := s.search(ctx, s.index(indexRuns), search{
		Size: page, Sort: []any{asc("find.created")}, Source: []string{"doc.id"},
		Query: allOf(term("run.phase", string(event.PhaseFinished)), compare("find.created", "lt", nanos(before))),
	})
	if err != nil || len(hits) == 0 {
		return 0, err
	}
	var b bytes.Buffer
	for _, h := range hits {
		var d runDoc
		if err := json.Unmarshal(h.Source, &d); err != nil {
			return 0, err
		}
		fmt.Fprintf(&b, `{"delete":{"_id":%q}}`+"\n", runID(d.Doc.ID))
	}
	a, err := s.send(ctx, http.MethodPost, "/"+s.index(indexRuns)+"/_bulk", url.Values{"filter_path": {"errors"}}, typeNDJSON, b.Bytes())
	if err == nil && (a.status != http.StatusOK || bytes.Contains(a.body, []byte(`"errors":true`))) {
		err = a.as()
	}
	return len(hits), err
}
