package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Media types of requests.
const (
	typeJSON = "application/json"
	NDJSON   = "application/x-ndjson"
)

// Response is the answer to one request.
type Response struct {
	Status int // of HTTP
	Body   []byte
}

// Decode reads the answer as JSON.
func (a Response) Decode(into any) error {
	d := json.NewDecoder(bytes.NewReader(a.Body))
	d.UseNumber()
	return d.Decode(into)
}

// Err is an error of the server's.
func (a Response) Err() error {
	var envelope struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(a.Body, &envelope) // a text that is no JSON is shown unchanged
	return newError(a.Status, envelope.Error, a.Body)
}

// responseError is a refusal by the server of a whole request or of one item.
type responseError struct {
	Status int    // of HTTP
	Kind   string // the server's type of the error
	Reason string // the server's message
}

// permanent reports whether the fault is the document's, so that the server never accepts it. A server with too many shards, or with a
// closed index, answers 400 too, which an operator can repair.
func (e *responseError) permanent() bool {
	if e.Status != http.StatusBadRequest {
		return e.Status == http.StatusRequestEntityTooLarge
	}
	switch e.Kind {
	case "document_parsing_exception", "mapper_parsing_exception", "strict_dynamic_mapping_exception",
		"parsing_exception", "x_content_parse_exception",
		"illegal_argument_exception", "action_request_validation_exception":
		return true
	}
	return false
}

// Error implements error.
func (e *responseError) Error() string {
	text := fmt.Sprintf("Elasticsearch answers %d: %s", e.Status, e.Reason)
	switch e.Status {
	case http.StatusUnauthorized:
		text += ": mend elasticsearch.username and password_file, or api_key_file"
	case http.StatusForbidden:
		text += ": give the user the rights that docs/data-model.md lists, or free disk space where an index was made read-only"
	}
	return text
}

// newError reads the server's message for an error. If there is none, the message is the whole answer.
func newError(status int, b json.RawMessage, body []byte) *responseError {
	var e struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
		Cause  struct {
			Reason string `json:"reason"`
		} `json:"caused_by"`
	}
	if json.Unmarshal(b, &e) != nil || e.Type == "" {
		return &responseError{Status: status, Reason: fmt.Sprintf("%.300s", body)}
	}
	text := e.Type + ": " + e.Reason
	if e.Cause.Reason != "" && !strings.Contains(text, e.Cause.Reason) {
		text += ": " + e.Cause.Reason
	}
	return &responseError{Status: status, Kind: e.Type, Reason: fmt.Sprintf("%.1000s", text)}
}

// Call sends a JSON request. Only statuses that are expected are no error.
func (c *Client) Call(ctx context.Context, method, path string, query url.Values, body any, fine ...int) (Response, error) {
	var b []byte
	switch v := body.(type) {
	case nil:
	case []byte:
		b = v
	default:
		var err error
		if b, err = json.Marshal(v); err != nil {
			return Response{}, fmt.Errorf("%w: %w", store.ErrRefused, err)
		}
	}
	once := c.Send
	if method == http.MethodGet || strings.HasSuffix(path, "/_search") || strings.HasSuffix(path, "/_mget") {
		once = c.sendRead
	}
	a, err := once(ctx, method, path, query, typeJSON, b)
	if err != nil {
		return a, err
	}
	if slices.Contains(append(fine, http.StatusOK, http.StatusCreated), a.Status) {
		return a, nil
	}
	return a, a.Err()
}

// sendRead sends a request that changes nothing, with retries while a shard is being created or moved.
func (c *Client) sendRead(ctx context.Context, method, path string, query url.Values, kind string, body []byte) (a Response, err error) {
	err = retry(ctx, func() (bool, error) {
		a, err = c.Send(ctx, method, path, query, kind, body)
		return transient(a.Status), err
	})
	return a, err
}

// retry repeats do a few times while again is true, with growing pauses.
func retry(ctx context.Context, do func() (again bool, err error)) error {
	for wait := firstWait / 2; ; wait *= 2 {
		again, err := do()
		if !again || wait > firstWait<<4 {
			return err
		}
		if !control.Sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}

// transient reports whether a status means that the server cannot answer now.
func transient(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == http.StatusBadGateway ||
		status == http.StatusGatewayTimeout
}

// Send sends a request once and returns the whole answer. After an error it is unknown whether the server has carried it out.
func (c *Client) Send(ctx context.Context, method, path string, query url.Values, kind string, body []byte) (a Response, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Settings.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.URL.RawQuery = query.Encode()
	if len(body) > 0 {
		req.Header.Set("Content-Type", kind)
	} else {
		req.Body, req.GetBody = nil, nil
	}
	resp, err := c.base.Perform(req)
	if err != nil {
		return a, c.unreachable(ctx, err)
	}
	a.Status = resp.StatusCode
	a.Body, err = io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return a, c.unreachable(ctx, err)
	}
	return a, nil
}

// unreachable returns the error that the server cannot be reached, or that the context has ended.
func (c *Client) unreachable(ctx context.Context, err error) error {
	return fmt.Errorf("ask Elasticsearch at %s: %w", strings.Join(c.Settings.Addresses, ", "), errors.Join(ctx.Err(), err))
}

// Index returns the name of an index, with its partition if there is one.
func (c *Client) Index(name string, partition ...string) string {
	return strings.Join(append([]string{c.Settings.Prefix, name}, partition...), "-")
}

// IsMissing reports whether an error means that an index does not exist yet: the first write creates it.
func IsMissing(err error) bool {
	e, ok := errors.AsType[*responseError](err)
	return ok && e.Status == http.StatusNotFound
}
