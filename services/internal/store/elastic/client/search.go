package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Search is one search request.
type Search struct {
	Size   int   `json:"size"`
	Query  any   `json:"query"`
	Sort   []any `json:"sort,omitempty"`
	After  []any `json:"search_after,omitempty"`
	Track  any   `json:"track_total_hits"` // true, false, or how far to count
	Source any   `json:"_source,omitempty"`

	// Preference selects the copy of each shard that is searched: the same for the same text. Empty means any.
	Preference string `json:"-"`
}

// Hit is one document found.
type Hit struct {
	Source json.RawMessage   `json:"_source"`
	Sort   []json.RawMessage `json:"sort"`
}

// SearchResult is the answer to a search.
type SearchResult struct {
	Shards struct {
		Failed int `json:"failed"`
	} `json:"_shards"`
	TimedOut bool `json:"timed_out"`
	Hits     struct {
		Total struct {
			Value int64 `json:"value"`
		} `json:"total"`
		Hits []Hit `json:"hits"`
	} `json:"hits"`
	Error  json.RawMessage `json:"error"`
	Status int             `json:"status"`
}

// Partial returns an error if the answer is incomplete.
func (f SearchResult) Partial() error {
	switch {
	case len(f.Error) > 0:
		return newError(f.Status, f.Error, f.Error)
	case f.TimedOut:
		return &responseError{Status: http.StatusGatewayTimeout, Reason: "the search took too long"}
	case f.Shards.Failed > 0:
		return &responseError{Status: http.StatusServiceUnavailable, Reason: fmt.Sprintf("%d shards did not answer", f.Shards.Failed)}
	}
	return nil
}

// searchFilterPath are the fields that answers contain.
const searchFilterPath = "hits.total,hits.hits._source,hits.hits.sort,_shards.failed,timed_out,error,status"

// Search searches one index, or a pattern of them. A missing index has no documents.
func (c *Client) Search(ctx context.Context, index string, q Search) ([]Hit, error) {
	if err := c.Prepare(ctx); err != nil {
		return nil, err
	}
	if q.Track == nil {
		q.Track = false
	}
	query := url.Values{"ignore_unavailable": {"true"}, "allow_partial_search_results": {"false"}, "filter_path": {searchFilterPath}}
	if q.Preference != "" {
		query.Set("preference", q.Preference)
	}
	a, err := c.Call(ctx, http.MethodPost, "/"+index+"/_search", query, q)
	if IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var got SearchResult
	if err := json.Unmarshal(a.Body, &got); err != nil {
		return nil, err
	}
	return got.Hits.Hits, got.Partial()
}

// MaxSearches is how many searches one request has.
const MaxSearches = 64

// Searches sends several searches of one index, and returns the answers in order. The preference applies to all of them; their own is
// ignored.
func (c *Client) Searches(ctx context.Context, index, preference string, qs []Search) ([]SearchResult, error) {
	var all []SearchResult
	for len(qs) > 0 {
		n := min(len(qs), MaxSearches)
		some, err := c.msearch(ctx, index, preference, qs[:n])
		if err != nil {
			return nil, err
		}
		all, qs = append(all, some...), qs[n:]
	}
	return all, nil
}

func (c *Client) msearch(ctx context.Context, index, preference string, qs []Search) ([]SearchResult, error) {
	if err := c.Prepare(ctx); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, q := range qs {
		if q.Track == nil {
			q.Track = false
		}
		b.WriteString(`{"ignore_unavailable":true,"allow_partial_search_results":false`)
		if preference != "" {
			fmt.Fprintf(&b, `,"preference":%q`, preference)
		}
		b.WriteString("}\n")
		if err := e.Encode(q); err != nil {
			return nil, err
		}
	}
	query := url.Values{"filter_path": {"responses." + msearchFilterPath()}}
	var all []SearchResult
	err := retry(ctx, func() (bool, error) {
		a, err := c.sendRead(ctx, http.MethodPost, "/"+index+"/_msearch", query, NDJSON, b.Bytes())
		if err == nil && a.Status != http.StatusOK {
			err = a.Err()
		}
		if err == nil {
			all, err = responses(a, len(qs))
		}
		e, ok := errors.AsType[*responseError](err)
		return ok && transient(e.Status), err
	})
	return all, err
}

// responses reads the answers to n searches. An incomplete answer is an error.
func responses(a Response, n int) ([]SearchResult, error) {
	var got struct {
		Responses []SearchResult `json:"responses"`
	}
	if err := json.Unmarshal(a.Body, &got); err != nil {
		return nil, err
	}
	if len(got.Responses) != n {
		return nil, fmt.Errorf("elasticsearch answers %d of %d searches", len(got.Responses), n)
	}
	for _, f := range got.Responses {
		if err := f.Partial(); err != nil && !IsMissing(err) {
			return nil, err
		}
	}
	return got.Responses, nil
}

// msearchFilterPath is trim for each of many answers.
func msearchFilterPath() string {
	return string(bytes.ReplaceAll([]byte(searchFilterPath), []byte(","), []byte(",responses.")))
}

// Object is an object of JSON.
type Object = map[string]any

// Term finds documents with a term in a field.
func Term(field, value string) any { return Object{"term": Object{field: Object{"value": value}}} }

// Equal finds documents with a number in a field.
func Equal(field string, value int64) any {
	return Object{"term": Object{field: Object{"value": value}}}
}

// Terms finds documents with one of some values in a field.
func Terms[T any](field string, values []T) any { return Object{"terms": Object{field: values}} }

// Exists finds documents that have a field.
func Exists(field string) any { return Object{"exists": Object{"field": field}} }

// Compare finds documents by a range: the operator is gt, gte, lt or lte.
func Compare(field, operator string, value any) any {
	return Object{"range": Object{field: Object{operator: value}}}
}

// Prefix finds documents by the start of a field.
func Prefix(field, value string) any { return Object{"prefix": Object{field: Object{"value": value}}} }

// AllOf finds documents that meet every condition.
func AllOf(conditions ...any) any {
	if len(conditions) == 0 {
		return Object{"match_all": Object{}}
	}
	return Object{"bool": Object{"filter": conditions}}
}

// AnyOf finds documents that meet one condition.
func AnyOf(conditions ...any) any {
	return Object{"bool": Object{"should": conditions, "minimum_should_match": 1}}
}

// Asc sorts by a field.
func Asc(field string) any { return Object{field: Object{"order": "asc"}} }

// Desc sorts by a field, the largest first.
func Desc(field string) any { return Object{field: Object{"order": "desc"}} }
