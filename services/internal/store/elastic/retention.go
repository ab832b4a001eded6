package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/client"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/names"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
)

// Expired are the records of months that are over.
type Expired struct {
	Indices    []string // of those months
	Runs       int64    // that were submitted before and have finished
	Unfinished []string // runs that were submitted before and have not finished, some of them
}

// Expired returns the records that DeleteExpired would remove. Records of runs whose IDs have no time are not among them.
func (s *Store) Expired(ctx context.Context, before time.Time) (p Expired, err error) {
	if err := s.schema.Ensure(ctx); err != nil {
		return p, err
	}
	month := monthOf(before)
	if _, err := s.client.Call(ctx, http.MethodPost, "/"+s.client.Index(schema.Runs)+"/_refresh", nil, nil); err != nil {
		return p, err
	}
	old, over := client.Compare("find.created", "lt", names.Nanos(month)), client.Term("run.phase", string(event.PhaseFinished))
	got, err := s.client.Searches(ctx, s.client.Index(schema.Runs), "", []client.Search{
		{Query: client.AllOf(old, over), Track: true},
		{
			Query: client.Object{"bool": client.Object{"filter": []any{old}, "must_not": []any{over}}}, Size: 10,
			Sort: []any{client.Asc("find.created")}, Source: []string{"doc.id"},
		},
	})
	if err != nil {
		return p, err
	}
	p.Runs = got[0].Hits.Total.Value
	for _, h := range got[1].Hits.Hits {
		var d runDoc
		if err := json.Unmarshal(h.Source, &d); err != nil {
			return p, err
		}
		p.Unfinished = append(p.Unfinished, d.Doc.ID)
	}
	for _, i := range schema.Indices() {
		names, err := s.months(ctx, i, month)
		if err != nil {
			return p, err
		}
		p.Indices = append(p.Indices, names...)
	}
	return p, nil
}

// ErrUnfinished means that records to be deleted belong to runs that have not finished.
var ErrUnfinished = errors.New("has not finished: cancel it, or wait for its end")

// DeleteExpired removes the records of the months that were over at a time: their indices, whole, and the documents of their runs. It
// returns the names of the indices. It marks the runs as forgotten before: their submissions stay. If one of these runs has not finished,
// it removes nothing and returns ErrUnfinished. Records of runs whose IDs have no time stay.
func (s *Store) DeleteExpired(ctx context.Context, before time.Time) ([]string, error) {
	expired, err := s.Expired(ctx, before)
	if err != nil {
		return nil, err
	}
	if len(expired.Unfinished) > 0 {
		return nil, fmt.Errorf("forget what is before %s: run %s, submitted then, %w", monthOf(before).Format("2006-01"),
			expired.Unfinished[0], ErrUnfinished)
	}
	if err := store.MarkForgotten(ctx, s, monthOf(before)); err != nil {
		return nil, fmt.Errorf("mark the runs before %s as forgotten: %w", monthOf(before).Format("2006-01"), err)
	}
	for n := page; n == page; { // until a page is not full
		if n, err = s.deleteRuns(ctx, monthOf(before)); err != nil {
			return nil, fmt.Errorf("forget runs before %s: %w", monthOf(before).Format("2006-01"), err)
		}
	}
	var deleted []string
	for _, name := range expired.Indices {
		if _, err := s.client.Call(ctx, http.MethodDelete, "/"+name, nil, nil, http.StatusNotFound); err != nil {
			return deleted, fmt.Errorf("forget index %s: %w", name, err)
		}
		deleted = append(deleted, name)
	}
	return deleted, nil
}

// monthOf returns when the month of a time begins.
func monthOf(t time.Time) time.Time {
	return time.Date(t.UTC().Year(), t.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
}

// months returns the indices of a kind that are of months before one, in order.
func (s *Store) months(ctx context.Context, i schema.Index, month time.Time) (names []string, err error) {
	if !i.ByMonth {
		return nil, nil
	}
	versions, err := s.schema.IndexVersions(ctx, i)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		of, err := time.Parse("2006.01", strings.TrimPrefix(name, s.client.Index(i.Name)+"-"))
		if err == nil && of.Before(month) { // else the run has no time, or is too new
			names = append(names, name)
		}
	}
	return names, nil
}

// deleteRuns removes a page of finished runs that were submitted before a time,
// and returns how many there were.
func (s *Store) deleteRuns(ctx context.Context, before time.Time) (int, error) {
	if _, err := s.client.Call(ctx, http.MethodPost, "/"+s.client.Index(schema.Runs)+"/_refresh", nil, nil); err != nil {
		return 0, err
	}
	hits, err := s.client.Search(ctx, s.client.Index(schema.Runs), client.Search{
		Size: page, Sort: []any{client.Asc("find.created")}, Source: []string{"doc.id"},
		Query: client.AllOf(client.Term("run.phase", string(event.PhaseFinished)),
			client.Compare("find.created", "lt", names.Nanos(before))),
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
		fmt.Fprintf(&b, `{"delete":{"_id":%q}}`+"\n", names.Run(d.Doc.ID))
	}
	a, err := s.client.Send(ctx, http.MethodPost, "/"+s.client.Index(schema.Runs)+"/_bulk",
		url.Values{"filter_path": {"errors"}}, client.NDJSON, b.Bytes())
	if err == nil && (a.Status != http.StatusOK || bytes.Contains(a.Body, []byte(`"errors":true`))) {
		err = a.Err()
	}
	return len(hits), err
}
