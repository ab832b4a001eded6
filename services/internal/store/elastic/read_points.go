package elastic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/cursor"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/client"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/names"
)

// Points implements store.PointReader: by two requests, unless documents that are no points any more are among those of a page.
func (s *pointStore) Points(ctx context.Context, q store.PointQuery, limit int) ([]store.Point, error) {
	if err := positive(limit); err != nil {
		return nil, err
	}
	points, err := s.points(ctx, q, limit)
	return points, wrapError(fmt.Sprintf("read points of metric %q of task %q", q.Series.Metric, q.Series.Task), err)
}

func (s *pointStore) points(ctx context.Context, q store.PointQuery, limit int) (points []store.Point, err error) {
	for more := true; more && len(points) < limit; {
		size := min(limit-len(points), page)
		found, err := s.searchSeries(ctx, q, size)
		if err != nil {
			return nil, err
		}
		heads, err := s.heads(ctx, runsOf(found))
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			if h, ok := heads[r.Run]; ok && h.Revision == r.Revision {
				points = append(points, store.Point{PointRun: h.PointRun, Summary: r.value()})
			}
			q.After = store.PointPosition{Time: r.Time, Run: r.Run}
		}
		more = len(found) == size
	}
	return points, nil
}

// searchSeries returns up to size points of a series after a position.
func (s *pointStore) searchSeries(ctx context.Context, q store.PointQuery, size int) ([]pointRecord, error) {
	order, after := client.Desc, []any(nil)
	if q.Oldest {
		order = client.Asc
	}
	if q.After.Run != "" {
		after = []any{names.Nanos(q.After.Time), names.Term(q.After.Run)}
	}
	return s.search(ctx, size, pointConditions(q), after, order("find.time"), order("run.id"))
}

// pointConditions returns the query for the points that q selects.
func pointConditions(q store.PointQuery) any {
	conditions := []any{client.Term("find.series", q.Series.ID())}
	if !q.Since.IsZero() {
		conditions = append(conditions, client.Compare("find.time", "gte", names.Nanos(q.Since)))
	}
	if !q.Until.IsZero() {
		conditions = append(conditions, client.Compare("find.time", "lt", names.Nanos(q.Until)))
	}
	return client.AllOf(conditions...)
}

// runsOf returns the runs of points, each once.
func runsOf(records []pointRecord) []string {
	runs := make([]string, 0, len(records))
	for _, r := range records {
		runs = append(runs, r.Run)
	}
	slices.Sort(runs)
	return slices.Compact(runs)
}

// RunPoints implements store.PointReader: by two requests, and another one for each 10,000 points. A run whose points are not all visible
// yet is missing.
func (s *pointStore) RunPoints(ctx context.Context, runs, metrics []string) ([]store.RunPoints, error) {
	if err := store.ValidatePointRuns(runs); err != nil {
		return nil, err
	}
	all, err := s.runPoints(ctx, runs, metrics)
	return all, wrapError(fmt.Sprintf("read the points of %d runs", len(runs)), err)
}

func (s *pointStore) runPoints(ctx context.Context, runs, metrics []string) (all []store.RunPoints, err error) {
	runs = slices.Compact(slices.Sorted(slices.Values(runs)))
	heads, err := s.heads(ctx, runs)
	if err != nil {
		return nil, err
	}
	values, err := s.values(ctx, heads, metrics)
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		h, ok := heads[run]
		if !ok || len(values[run]) != h.count(metrics) {
			continue
		}
		all = append(all, store.RunPoints{PointRun: h.PointRun, Revision: h.Revision, Points: values[run]})
	}
	return all, nil
}

// values reads the points of runs, by run and in their order.
func (s *pointStore) values(ctx context.Context, heads map[string]pointHead, metrics []string) (map[string][]store.Summary, error) {
	var ids []string
	for run, h := range heads {
		if h.count(metrics) > 0 {
			ids = append(ids, names.Term(run))
		}
	}
	all := make(map[string][]store.Summary)
	if len(ids) == 0 {
		return all, nil
	}
	conditions := []any{client.Terms("run.id", ids)}
	if len(metrics) > 0 {
		conditions = append(conditions, client.Terms("metric.name", terms(metrics)))
	}
	var records []pointRecord
	for after, more := []any(nil), true; more; {
		found, err := s.search(ctx, page, client.AllOf(conditions...), after, client.Asc("run.id"), client.Asc("find.ordinal"))
		if err != nil {
			return nil, err
		}
		records, more = append(records, found...), len(found) == page
		if more {
			last := found[len(found)-1]
			after = []any{names.Term(last.Run), last.Ordinal}
		}
	}
	for _, r := range records {
		if r.Revision == heads[r.Run].Revision {
			all[r.Run] = append(all[r.Run], r.value())
		}
	}
	return all, nil
}

func terms(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = names.Term(text)
	}
	return all
}

// seriesBuckets is the answer to an aggregation of points by their series.
type seriesBuckets struct {
	client.SearchResult

	Aggregations struct {
		Series struct {
			Buckets []seriesBucket `json:"buckets"`
		} `json:"series"`
	} `json:"aggregations"`
}

// seriesBucket is a series with its newest point.
type seriesBucket struct {
	Key    json.RawMessage `json:"key"`
	Count  int64           `json:"doc_count"`
	Newest struct {
		Hits struct {
			Hits []struct {
				Source struct {
					Doc pointRecord `json:"doc"`
				} `json:"_source"`
			} `json:"hits"`
		} `json:"hits"`
	} `json:"newest"`
}

func (b seriesBucket) series() store.Series {
	s := store.Series{Points: b.Count}
	for _, h := range b.Newest.Hits.Hits {
		s.SeriesKey, s.Newest, s.Direction = h.Source.Doc.SeriesKey, h.Source.Doc.Time, h.Source.Doc.Value.Direction
	}
	return s
}

// Series implements store.PointReader, by one request.
func (s *pointStore) Series(ctx context.Context, q store.SeriesQuery, token string, limit int) ([]store.Series, string, error) {
	if err := positive(limit); err != nil {
		return nil, "", err
	}
	purpose, err := cursorScope(s.client.Settings.Prefix, "series", q)
	if err != nil {
		return nil, "", fmt.Errorf("list series: %w: %w", store.ErrRefused, err)
	}
	var after json.RawMessage
	if token != "" {
		if after, err = cursor.Decode(purpose, token); err != nil {
			return nil, "", err
		}
	}
	buckets, err := s.buckets(ctx, q, after, limit+1)
	if err != nil {
		return nil, "", wrapError("list series", err)
	}
	var all []store.Series
	for _, b := range buckets[:min(limit, len(buckets))] {
		all = append(all, b.series())
	}
	if len(buckets) <= limit {
		return all, "", nil
	}
	return all, cursor.Encode(purpose, buckets[limit-1].Key), nil
}

// buckets returns up to size series after a key.
func (s *pointStore) buckets(ctx context.Context, q store.SeriesQuery, after json.RawMessage, size int) ([]seriesBucket, error) {
	if err := s.client.Prepare(ctx); err != nil {
		return nil, err
	}
	by := func(name, field string) any {
		return client.Object{name: client.Object{"terms": client.Object{"field": field, "missing_bucket": true}}}
	}
	composite := client.Object{"size": size, "sources": []any{
		by("namespace", "run.namespace"), by("task", "run.task"), by("metric", "metric.name"), by("series", "find.series"),
	}}
	if after != nil {
		composite["after"] = after
	}
	newest := client.Object{"top_hits": client.Object{
		"size": 1, "_source": []string{"doc"},
		"sort": []any{client.Desc("find.time"), client.Desc("run.id")},
	}}
	a, err := s.client.Call(ctx, http.MethodPost, "/"+s.pointIndex()+"/_search",
		url.Values{"ignore_unavailable": {"true"}, "allow_partial_search_results": {"false"}}, client.Object{
			"size": 0, "track_total_hits": false, "query": seriesConditions(q),
			"aggs": client.Object{"series": client.Object{"composite": composite, "aggs": client.Object{"newest": newest}}},
		})
	if client.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var got seriesBuckets
	if err := json.Unmarshal(a.Body, &got); err != nil {
		return nil, err
	}
	return got.Aggregations.Series.Buckets, got.Partial()
}

// seriesConditions returns the query for the points of the series that q selects.
func seriesConditions(q store.SeriesQuery) any {
	conditions := []any{client.Exists("find.series")}
	if q.Namespace != "" {
		conditions = append(conditions, client.Term("run.namespace", names.Term(q.Namespace)))
	}
	if q.Task != "" {
		conditions = append(conditions, client.Term("run.task", names.Term(q.Task)))
	}
	if q.MetricPrefix != "" {
		conditions = append(conditions, client.Prefix("metric.name", q.MetricPrefix))
	}
	return client.AllOf(conditions...)
}
