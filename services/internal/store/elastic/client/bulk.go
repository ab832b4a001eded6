package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Pauses between attempts to write documents for which the server had no room. Callers retry with longer pauses, and log them.
const (
	firstWait = 100 * time.Millisecond
	attempts  = 6
)

// Bulk creates documents in an index, each once, and returns those that the server refused for good. Other refusals are retried a few
// times, in order. After an error some documents may be missing.
func (c *Client) Bulk(ctx context.Context, index string, body []byte, items []int) (refused []error, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	weight := min(int64(len(body)), int64(c.Settings.Writers)*int64(c.Settings.BulkBytes))
	if err := c.inFlight.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	defer c.inFlight.Release(weight)
	for wait := firstWait; ; wait *= 2 {
		var outcome bulkOutcome
		outcome, err = c.attempt(ctx, index, body, items)
		refused = append(refused, outcome.refused...)
		if err != nil || len(outcome.retryable) == 0 {
			return refused, err
		}
		if wait >= firstWait<<(attempts-1) {
			return refused, fmt.Errorf("write %d of %d documents to %s: %w", len(outcome.retryable), len(items), index, outcome.cause)
		}
		body, items = pick(body, items, outcome.retryable)
		if !control.Sleep(ctx, wait) {
			return refused, ctx.Err()
		}
	}
}

// pick returns those documents of a request that are named.
func pick(body []byte, items, names []int) (some []byte, at []int) {
	for _, n := range names {
		end := len(body)
		if n+1 < len(items) {
			end = items[n+1]
		}
		at, some = append(at, len(some)), append(some, body[items[n]:end]...)
	}
	return some, at
}

// bulkOutcome is the server's answer for the documents of one request.
type bulkOutcome struct {
	refused   []error // for ever
	retryable []int   // now, by number
	cause     error   // the first of these
}

// attempt sends documents once.
func (c *Client) attempt(ctx context.Context, index string, body []byte, items []int) (v bulkOutcome, err error) {
	query := url.Values{"filter_path": {"errors,items.*.status,items.*._id,items.*.error.type,items.*.error.reason,items.*.error.caused_by.reason"}}
	if len(items) > 1 { // the IDs of all would be much to read
		query = url.Values{"filter_path": {"errors,items.*.status"}}
	}
	a, err := c.Send(ctx, http.MethodPost, "/"+index+"/_bulk", query, NDJSON, body)
	switch {
	case err != nil:
		return v, err
	case a.Status == http.StatusTooManyRequests:
		return bulkOutcome{retryable: every(items), cause: a.Err()}, nil
	case a.Status == http.StatusRequestEntityTooLarge && len(items) > 1:
		return c.sendHalves(ctx, index, body, items)
	case a.Status != http.StatusOK:
		err := asRefused(a.Err())
		if len(items) == 1 && errors.Is(err, store.ErrRefused) {
			return bulkOutcome{refused: []error{err}}, nil
		}
		return v, a.Err()
	}
	return c.readResults(ctx, index, body, items, a)
}

func every(items []int) []int {
	all := make([]int, len(items))
	for i := range all {
		all[i] = i
	}
	return all
}

// sendHalves sends a request that is too large as two requests.
func (c *Client) sendHalves(ctx context.Context, index string, body []byte, items []int) (v bulkOutcome, err error) {
	names, half := every(items), len(items)/2
	for _, some := range [][]int{names[:half], names[half:]} {
		b, at := pick(body, items, some)
		got, err := c.attempt(ctx, index, b, at)
		if err != nil {
			return v, err
		}
		for i, n := range got.retryable {
			got.retryable[i] = some[n]
		}
		v.add(got)
	}
	return v, nil
}

// bulkResult is the server's answer for one document.
type bulkResult struct {
	ID     string          `json:"_id"`
	Status int             `json:"status"`
	Error  json.RawMessage `json:"error"`
}

// bulkItem is the server's answer for one action.
type bulkItem struct {
	Create bulkResult  `json:"create"`
	Index  *bulkResult `json:"index"`
	Delete *bulkResult `json:"delete"`
}

func (i bulkItem) result() bulkResult {
	switch {
	case i.Index != nil:
		return *i.Index
	case i.Delete != nil && i.Delete.Status == http.StatusNotFound:
		return bulkResult{Status: http.StatusOK} // there is nothing to delete
	case i.Delete != nil:
		return *i.Delete
	}
	return i.Create
}

// Err is the error of a document.
func (s bulkResult) Err() *responseError { return newError(s.Status, s.Error, s.Error) }

// ok reports whether the server has the document. A conflict is as good: the document, or a newer one, existed already.
func (s bulkResult) ok() bool {
	return s.Status == http.StatusCreated || s.Status == http.StatusOK || s.Status == http.StatusConflict
}

// readResults reads the server's answer for each document.
func (c *Client) readResults(ctx context.Context, index string, body []byte, items []int, a Response) (v bulkOutcome, err error) {
	var got struct {
		Items []bulkItem `json:"items"`
	}
	if err := json.Unmarshal(a.Body, &got); err != nil {
		return v, fmt.Errorf("read the answer to a bulk request: %w", err)
	}
	if len(got.Items) != len(items) {
		return v, fmt.Errorf("elasticsearch answers for %d of %d documents", len(got.Items), len(items))
	}
	for i, item := range got.Items {
		result := item.result()
		if result.ok() {
			continue
		}
		one := bulkOutcome{retryable: []int{i}, cause: result.Err()}
		if result.Status == http.StatusBadRequest || result.Status == http.StatusRequestEntityTooLarge {
			if one, err = c.explainRefusal(ctx, index, body, items, i, result); err != nil {
				return v, err
			}
		}
		v.add(one)
	}
	return v, nil
}

// add adds the outcome for other documents.
func (v *bulkOutcome) add(w bulkOutcome) {
	v.refused, v.retryable = append(v.refused, w.refused...), append(v.retryable, w.retryable...)
	if v.cause == nil {
		v.cause = w.cause
	}
}

// explainRefusal returns why a document is refused. In a request with several documents the server does not explain, so the document is
// sent again alone. A fault that is not the document's is an error, because all documents have it.
func (c *Client) explainRefusal(
	ctx context.Context, index string, body []byte, items []int, i int, result bulkResult,
) (v bulkOutcome, err error) {
	if len(items) > 1 {
		b, at := pick(body, items, []int{i})
		v, err = c.attempt(ctx, index, b, at)
		if len(v.retryable) > 0 {
			v.retryable = []int{i}
		}
		return v, err
	}
	e := result.Err()
	if !e.permanent() {
		return v, e
	}
	return bulkOutcome{refused: []error{fmt.Errorf("%w: document %s: %w", store.ErrRefused, result.ID, e)}}, nil
}
