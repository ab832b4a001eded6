package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// search is one search request.
type search struct {
	Size   int   `json:"size"`
	Query  any   `json:"query"`
	Sort   []any `json:"sort,omitempty"`
	After  []any `json:"search_after,omitempty"`
	Track  any   `json:"track_total_hits"` // true, false, or how far to count
	Source any   `json:"_source,omitempty"`

	run string // whose documents are meant, if they are one run's
}

// preference returns what has the server ask the same copy of each shard every time
// that one run's documents are meant: copies see what was written at times of
// their own, and who asks one after the other would see less than before.
func preference(run string) string { return "run-" + runID(run) }

// hit is one document found.
type hit struct {
	Source json.RawMessage   `json:"_source"`
	Sort   []json.RawMessage `json:"sort"`
}

// searchResult is the answer to a search.
type searchResult struct {
	Shards struct {
		Failed int `json:"failed"`
	} `json:"_shards"`
	TimedOut bool `json:"timed_out"`
	Hits     struct {
		Total struct {
			Value int64 `json:"value"`
		} `json:"total"`
		Hits []hit `json:"hits"`
	} `json:"hits"`
	Error  json.RawMessage `json:"error"`
	Status int             `json:"status"`
}

// partial says why not all of an answer is there: that is no answer.
func (f searchResult) partial() error {
	switch {
	case len(f.Error) > 0:
		return newError(f.Status, f.Error, f.Error)
	case f.TimedOut:
		return &Error{Status: http.StatusGatewayTimeout, Reason: "the search took too long"}
	case f.Shards.Failed > 0:
		return &Error{Status: http.StatusServiceUnavailable, Reason: fmt.Sprintf("%d shards did not answer", f.Shards.Failed)}
	}
	return nil
}

// searchFilterPath is what is left out of answers.
const searchFilterPath = "hits.total,hits.hits._source,hits.hits.sort,_shards.failed,timed_out,error,status"

// search asks one index, or a pattern of them. One that is not there has nothing.
func (s *Store) search(ctx context.Context, index string, q search) ([]hit, error) {
	if err := s.ensureSetup(ctx); err != nil {
		return nil, err
	}
	if q.Track == nil {
		q.Track = false
	}
	query := url.Values{"ignore_unavailable": {"true"}, "allow_partial_search_results": {"false"}, "filter_path": {searchFilterPath}}
	if q.run != "" {
		query.Set("preference", preference(q.run))
	}
	a, err := s.call(ctx, http.MethodPost, "/"+index+"/_search", query, q)
	if indexMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var got searchResult
	if err := json.Unmarshal(a.body, &got); err != nil {
		return nil, err
	}
	return got.Hits.Hits, got.partial()
}

// maxSearches is how many searches are asked in one request.
const maxSearches = 64

// searches asks one index many things at once, of a run unless that is empty, and
// returns the answers in order.
func (s *Store) searches(ctx context.Context, index, run string, qs []search) ([]searchResult, error) {
	var all []searchResult
	for len(qs) > 0 {
		n := min(len(qs), maxSearches)
		some, err := s.msearch(ctx, index, run, qs[:n])
		if err != nil {
			return nil, err
		}
		all, qs = append(all, some...), qs[n:]
	}
	return all, nil
}

func (s *Store) msearch(ctx context.Context, index, run string, qs []search) ([]searchResult, error) {
	if err := s.ensureSetup(ctx); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, q := range qs {
		if q.Track == nil {
			q.Track = false
		}
		b.WriteString(`{"ignore_unavailable":true,"allow_partial_search_results":false`)
		if run != "" {
			b.Write(appendString([]byte(`,"preference":`), preference(run)))
		}
		b.WriteString("}\n")
		if err := e.Encode(q); err != nil {
			return nil, err
		}
	}
	query := url.Values{"filter_path": {"responses." + msearchFilterPath()}}
	var all []searchResult
	err := retry(ctx, func() (bool, error) {
		a, err := s.sendRead(ctx, http.MethodPost, "/"+index+"/_msearch", query, typeNDJSON, b.Bytes())
		if err == nil && a.status != http.StatusOK {
			err = a.toError()
		}
		if err == nil {
			all, err = responses(a, len(qs))
		}
		e, ok := errors.AsType[*Error](err)
		return ok && transient(e.Status), err
	})
	return all, err
}

// responses reads the answers to n searches. One that is no whole answer is an
// error.
func responses(a response, n int) ([]searchResult, error) {
	var got struct {
		Responses []searchResult `json:"responses"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil {
		return nil, err
	}
	if len(got.Responses) != n {
		return nil, fmt.Errorf("elasticsearch answers %d of %d searches", len(got.Responses), n)
	}
	for _, f := range got.Responses {
		if err := f.partial(); err != nil && !indexMissing(err) {
			return nil, err
		}
	}
	return got.Responses, nil
}

// msearchFilterPath is trim for each of many answers.
func msearchFilterPath() string {
	return string(bytes.ReplaceAll([]byte(searchFilterPath), []byte(","), []byte(",responses.")))
}

// Queries.

type object = map[string]any

func term(field, value string) any { return object{"term": object{field: object{"value": value}}} }

func equal(field string, value int64) any {
	return object{"term": object{field: object{"value": value}}}
}

func terms[T any](field string, values []T) any { return object{"terms": object{field: values}} }

func compare(field, operator string, value any) any {
	return object{"range": object{field: object{operator: value}}}
}

func prefix(field, value string) any { return object{"prefix": object{field: object{"value": value}}} }

// allOf finds what meets every condition.
func allOf(conditions ...any) any {
	if len(conditions) == 0 {
		return object{"match_all": object{}}
	}
	return object{"bool": object{"filter": conditions}}
}

// anyOf finds what meets one condition.
func anyOf(conditions ...any) any {
	return object{"bool": object{"should": conditions, "minimum_should_match": 1}}
}

func asc(field string) any { return object{field: object{"order": "asc"}} }

func desc(field string) any { return object{field: object{"order": "desc"}} }
