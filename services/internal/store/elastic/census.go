package elastic

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// counted is the answer to an aggregation by a field's words.
type counted struct {
	Buckets []struct {
		Key   string `json:"key"`
		Count int64  `json:"doc_count"`
	} `json:"buckets"`
}

// Census implements store.Counter.
func (s *Store) Census(ctx context.Context) (store.Census, error) {
	c, err := s.census(ctx)
	return c, explain("count runs", err)
}

func (s *Store) census(ctx context.Context) (c store.Census, err error) {
	c = store.Census{Phases: make(map[event.Phase]int64), Outcomes: make(map[event.Outcome]int64)}
	if err := s.ready(ctx); err != nil {
		return c, err
	}
	by := func(field string) any { return object{"terms": object{"field": field, "size": 100}} } // a dozen, and some of a version to come
	a, err := s.call(ctx, http.MethodPost, "/"+s.index(indexRuns)+"/_search", url.Values{"ignore_unavailable": {"true"}, "allow_partial_search_results": {"false"}}, object{
		"size": 0, "track_total_hits": false, "aggs": object{"phases": by("run.phase"), "outcomes": by("run.outcome")},
	})
	if missing(err) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	var got struct {
		found
		Aggregations struct{ Phases, Outcomes counted } `json:"aggregations"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil {
		return c, err
	}
	for _, b := range got.Aggregations.Phases.Buckets {
		c.Phases[event.Phase(b.Key)] = b.Count
	}
	for _, b := range got.Aggregations.Outcomes.Buckets {
		if b.Key != "" {
			c.Outcomes[event.Outcome(b.Key)] = b.Count
		}
	}
	return c, got.partial()
}
