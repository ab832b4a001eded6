package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Version is the place of a document that was read, for compare-and-set.
type Version struct {
	Seq  int64
	Term int64
}

func (p Version) query() url.Values {
	return url.Values{"if_seq_no": {strconv.FormatInt(p.Seq, 10)}, "if_primary_term": {strconv.FormatInt(p.Term, 10)}}
}

// Get reads the last written version of one document, or returns store.ErrNotFound.
func (c *Client) Get(ctx context.Context, index, id string, into any) (Version, error) {
	a, err := c.Call(ctx, http.MethodGet, "/"+index+"/_doc/"+url.PathEscape(id), nil, nil, http.StatusNotFound)
	if err != nil {
		return Version{}, err
	}
	var got struct {
		Found  bool            `json:"found"`
		Seq    int64           `json:"_seq_no"`
		Term   int64           `json:"_primary_term"`
		Source json.RawMessage `json:"_source"`
	}
	if err := json.Unmarshal(a.Body, &got); err != nil {
		return Version{}, err
	}
	if !got.Found {
		return Version{}, store.ErrNotFound
	}
	return Version{got.Seq, got.Term}, json.Unmarshal(got.Source, into)
}

// MultiGet reads the last written versions of some documents. The answers are in order; those of missing documents are nil.
func (c *Client) MultiGet(ctx context.Context, index string, ids []string) ([]json.RawMessage, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	query := url.Values{"filter_path": {"docs.found,docs._source,docs.error"}}
	a, err := c.Call(ctx, http.MethodPost, "/"+index+"/_mget", query, map[string]any{"ids": ids})
	if err != nil {
		return nil, err
	}
	var got struct {
		Docs []struct {
			Source json.RawMessage `json:"_source"`
			Error  json.RawMessage `json:"error"`
		} `json:"docs"`
	}
	if err := json.Unmarshal(a.Body, &got); err != nil {
		return nil, err
	}
	if len(got.Docs) != len(ids) {
		return nil, fmt.Errorf("elasticsearch answers for %d of %d documents", len(got.Docs), len(ids))
	}
	all := make([]json.RawMessage, len(ids))
	for i, d := range got.Docs {
		if len(d.Error) > 0 {
			return nil, newError(http.StatusServiceUnavailable, d.Error, d.Error)
		}
		all[i] = d.Source
	}
	return all, nil
}

// Create writes a document, or returns store.ErrExists.
func (c *Client) Create(ctx context.Context, index, id string, body any) error {
	a, err := c.Call(ctx, http.MethodPut, "/"+index+"/_create/"+url.PathEscape(id), nil, body, http.StatusConflict)
	if err == nil && a.Status == http.StatusConflict {
		return store.ErrExists
	}
	return asRefused(err)
}

// Replace writes a document in place of version at, or returns store.ErrConflict.
func (c *Client) Replace(ctx context.Context, index, id string, at Version, body any) error {
	a, err := c.Call(ctx, http.MethodPut, "/"+index+"/_doc/"+url.PathEscape(id), at.query(), body, http.StatusConflict)
	if err == nil && a.Status == http.StatusConflict {
		return store.ErrConflict
	}
	return asRefused(err)
}

// PutVersion writes a document as a version that its writer counts, unless a later one is there.
func (c *Client) PutVersion(ctx context.Context, index, id string, version int64, body any) error {
	query := url.Values{"version": {strconv.FormatInt(version, 10)}, "version_type": {"external_gte"}}
	_, err := c.Call(ctx, http.MethodPut, "/"+index+"/_doc/"+url.PathEscape(id), query, body, http.StatusConflict)
	return asRefused(err)
}

// Remove removes a document, whatever its version. One that does not exist is no error.
func (c *Client) Remove(ctx context.Context, index, id string) error {
	_, err := c.Call(ctx, http.MethodDelete, "/"+index+"/_doc/"+url.PathEscape(id), nil, nil, http.StatusNotFound)
	return err
}

// asRefused turns the server's refusal of a document itself into store.ErrRefused.
func asRefused(err error) error {
	if e, ok := errors.AsType[*responseError](err); ok && e.permanent() {
		return fmt.Errorf("%w: %w", store.ErrRefused, err)
	}
	return err
}

// Delete removes version at of a document, and reports whether the document is gone; else it has changed.
func (c *Client) Delete(ctx context.Context, index, id string, at Version) (done bool, err error) {
	a, err := c.Call(ctx, http.MethodDelete, "/"+index+"/_doc/"+id, at.query(), nil, http.StatusConflict, http.StatusNotFound)
	return err == nil && a.Status != http.StatusConflict, err
}
