package elastic

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/client"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
)

// termCounts is the answer to an aggregation by a field's terms.
type termCounts struct {
	Buckets []struct {
		Key   string `json:"key"`
		Count int64  `json:"doc_count"`
	} `json:"buckets"`
}

// Stats implements store.Counter.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	c, err := s.stats(ctx)
	return c, wrapError("count runs", err)
}

func (s *Store) stats(ctx context.Context) (c store.Stats, err error) {
	c = store.Stats{Phases: make(map[event.Phase]int64), Outcomes: make(map[event.Outcome]int64)}
	if err := s.schema.Ensure(ctx); err != nil {
		return c, err
	}
	by := func(field string) any { return client.Object{"terms": client.Object{"field": field, "size": 100}} } // more than there are
	a, err := s.client.Call(ctx, http.MethodPost, "/"+s.client.Index(schema.Runs)+"/_search",
		url.Values{"ignore_unavailable": {"true"}, "allow_partial_search_results": {"false"}}, client.Object{
			"size": 0, "track_total_hits": false, "aggs": client.Object{"phases": by("run.phase"), "outcomes": by("run.outcome")},
		})
	if client.IsMissing(err) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	var got struct {
		client.SearchResult
		Aggregations struct{ Phases, Outcomes termCounts } `json:"aggregations"`
	}
	if err := json.Unmarshal(a.Body, &got); err != nil {
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
	return c, got.Partial()
}
