// Package post sends requests to one address over HTTP, for sinks, destinations and receivers. It reads their secrets from files, and tells
// a refusal from a failure that passes.
package post

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Settings say where a place is, and who speaks to it. Secrets lie in files,
// which are read again for each request, so that they can be renewed in place.
type Settings struct {
	URL          string `toml:"url"`           // http:// or https://, without a password
	Username     string `toml:"username"`      // for basic authentication
	PasswordFile string `toml:"password_file"` // file with that user's password
	TokenFile    string `toml:"token_file"`    // file with a bearer token, instead of a user
	// PEM file of the authorities that the place's certificate is checked with; empty means the system's
	CAFile  string        `toml:"ca_file"`
	Timeout time.Duration `toml:"timeout"` // of one request; zero means 30 s
}

// Validate names every setting at fault, below the table called name.
func (s Settings) Validate(name string) error {
	var errs []error
	if u, err := url.Parse(s.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		errs = append(errs, fmt.Errorf("%s.url: want a URL such as https://example.com/receive", name))
	} else if u.User != nil {
		errs = append(errs, fmt.Errorf("%s.url: a URL must not hold a password: use username and password_file", name))
	}
	if (s.Username == "") != (s.PasswordFile == "") {
		errs = append(errs, fmt.Errorf("%s: username and password_file go together", name))
	}
	if s.Username != "" && s.TokenFile != "" {
		errs = append(errs, fmt.Errorf("%s: username or token_file, not both", name))
	}
	if s.Timeout < 0 {
		errs = append(errs, fmt.Errorf("%s.timeout: must not be negative", name))
	}
	return errors.Join(errs...)
}

// Client posts to one place. Several goroutines may use it.
type Client struct {
	settings Settings
	http     *http.Client
}

// New returns a Client. It reads the certificate authorities, and does not wait for the place.
func New(s Settings) (*Client, error) {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("http.DefaultTransport was replaced")
	}
	t = t.Clone()
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the authorities of %s: %w", s.URL, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the authorities of %s: %s holds no certificate in PEM", s.URL, s.CAFile)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &Client{settings: s, http: &http.Client{
		Transport: t, Timeout: cmp.Or(s.Timeout, 30*time.Second),
		// the body is for the configured place only
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close closes the idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// PermanentError means that the place will never take the posted body.
type PermanentError struct {
	Status int
	Text   string
}

// Error implements error.
func (e *PermanentError) Error() string {
	return fmt.Sprintf("it answers %d %s: %s", e.Status, http.StatusText(e.Status), e.Text)
}

// TemporaryError means that the place answered, and may take the same body later, or once an operator has removed the cause.
type TemporaryError struct {
	Status int
	Text   string
	After  time.Duration // as the place's Retry-After says; zero without one
}

// Error implements error.
func (e *TemporaryError) Error() string {
	return fmt.Sprintf("it answers %d %s: %s", e.Status, http.StatusText(e.Status), e.Text)
}

// ErrUnanswered means that a request was sent, and that no answer came: the place may have handled it.
var ErrUnanswered = errors.New("no answer came")

// Request is what Send sends.
type Request struct {
	Method  string // empty means POST
	URL     string // empty means that of the settings; it is in no error
	Body    []byte
	Headers map[string]string
	Limit   int64 // bytes of the answer that are read; zero means 1,000
}

// Post posts body. It returns a *PermanentError if the place will never take body; an operator may be able to remove the cause of any other
// error.
func (c *Client) Post(ctx context.Context, body []byte, headers map[string]string) error {
	_, err := c.Send(ctx, Request{Body: body, Headers: headers})
	if away, ok := errors.AsType[*TemporaryError](err); ok {
		return fmt.Errorf("%s answers %d %s: %s", c.settings.URL, away.Status, http.StatusText(away.Status), away.Text)
	}
	return err
}

// Send sends a request once, and returns the first bytes of an answer that means success. The error is a *PermanentError if the place
// will never take the body, a *TemporaryError after any other answer, and wraps ErrUnanswered if the place may have handled the request
// although no answer came.
func (c *Client) Send(ctx context.Context, r Request) (answer string, err error) {
	var sent atomic.Bool // the transport sets it, maybe still after Do has returned because ctx ended
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodPost), cmp.Or(r.URL, c.settings.URL), bytes.NewReader(r.Body))
	if err != nil {
		return "", withoutURL(err)
	}
	req.Header.Set("User-Agent", "benchmark-ai")
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	if err := c.authorize(req); err != nil {
		return "", err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if err = withoutURL(err); sent.Load() {
			err = fmt.Errorf("%w: %w", ErrUnanswered, err)
		}
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, cmp.Or(r.Limit, 1000)))
	if err = errors.Join(err, resp.Body.Close()); err != nil && resp.StatusCode/100 != 2 {
		return "", fmt.Errorf("read the answer, of status %d: %w", resp.StatusCode, err)
	}
	return verdict(resp, strings.TrimSpace(string(text)))
}

// verdict returns what an answer means.
func verdict(resp *http.Response, text string) (answer string, err error) {
	switch {
	case resp.StatusCode/100 == 2:
		return text, nil
	case permanent(resp.StatusCode):
		return "", &PermanentError{Status: resp.StatusCode, Text: text}
	}
	err = &TemporaryError{Status: resp.StatusCode, Text: text, After: retryAfter(resp.Header)}
	// those are a proxy's: the server behind it may have handled the request
	if resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusGatewayTimeout {
		err = fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	return "", err
}

// maxRetryAfter is the longest wait that a place can ask for.
const maxRetryAfter = time.Hour

// retryAfter returns the wait that an answer asks for, in seconds or as a time, or by the end of a limit of requests that is used up.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if reset, errReset := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64); text == "" && errReset == nil &&
		h.Get("X-Ratelimit-Remaining") == "0" {
		at, err = time.Unix(reset, 0), nil
	}
	now, errNow := http.ParseTime(h.Get("Date"))
	if err != nil || errNow != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// withoutURL returns an error of net/http without the URL, which may be secret.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// ErrTooLong means that an answer is longer than it may be.
var ErrTooLong = errors.New("the answer is too long")

// Call sends a request to a path below the URL, with a body of JSON, and returns the status and the whole answer. The error is
// ErrTooLong if the answer has more than limit bytes. It follows no redirect.
func (c *Client) Call(ctx context.Context, method, path string, body []byte, limit int64) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.settings.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("User-Agent", "benchmark-ai")
	req.Header.Set("Content-Type", "application/json")
	if err := c.authorize(req); err != nil {
		return 0, nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	answer, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return 0, nil, fmt.Errorf("read what %s answers: %w", c.settings.URL, err)
	}
	if int64(len(answer)) > limit {
		return 0, nil, fmt.Errorf("%w: %s answers more than %d bytes", ErrTooLong, c.settings.URL, limit)
	}
	return resp.StatusCode, answer, nil
}

// permanent reports whether a status means that the same request never succeeds. An operator can repair missing permissions and a wrong
// address.
func permanent(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusProxyAuthRequired,
		http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status/100 == 4
}

// authorize adds the credentials.
func (c *Client) authorize(req *http.Request) error {
	switch {
	case c.settings.TokenFile != "":
		token, err := Secret(c.settings.TokenFile)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+token)
	case c.settings.Username != "":
		password, err := Secret(c.settings.PasswordFile)
		if err != nil {
			return err
		}
		req.SetBasicAuth(c.settings.Username, password)
	}
	return nil
}

// Secret returns the content of a file, without line feeds around it.
func Secret(path string) (string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator says where
	if err != nil {
		return "", fmt.Errorf("read a secret: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
