package puller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// store is where objects lie: in a folder, or behind HTTP.
type store struct {
	dir    string // folder of a store on this machine
	url    string // or the other
	token  string // token for the store; empty if it needs none
	client *http.Client
}

// runPlaceholder stands for the run in the URL of an object store that requires the run's token.
const runPlaceholder = "{run}"

// openStore reads the URL of the object store.
func openStore(cfg pod.Pull) (store, error) {
	raw, named := strings.ReplaceAll(cfg.Store, runPlaceholder, url.PathEscape(cfg.Header.Run)), strings.Contains(cfg.Store, runPlaceholder)
	u, err := url.Parse(raw)
	if err != nil {
		return store{}, infraError("%q is not the URL of an object store", raw)
	}
	switch u.Scheme {
	case "file":
		return store{dir: u.Path}, nil
	case "http", "https":
		s := store{url: strings.TrimSuffix(raw, "/"), client: newClient()}
		if named {
			s.token = cfg.Token
		}
		return s, nil
	}
	return store{}, infraError("object store %q: a pod reads file, http and https", raw)
}

// newClient returns a client that drops the token on redirects: a store may redirect to a signed URL of an object.
func newClient() *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableCompression: true, ResponseHeaderTimeout: stallTimeout, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: workers,
	}
	return &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("it leads on more than %d times", maxRedirects)
		}
		next.Header.Del("Authorization")
		next.Header.Del("Referer")
		return nil
	}}
}

// local returns the path of an object on this machine's disk, "" if it does not exist.
func (s store) local(object string) string {
	if s.dir == "" {
		return ""
	}
	return filepath.Join(s.dir, filepath.FromSlash(object))
}

const (
	attempts      = 6                // in a row without progress
	stallTimeout  = 1 * time.Minute  // after which a silent request is repeated
	maxRetryPause = 10 * time.Second // between two attempts

	maxRedirects = 3
)

// download appends the rest of an object to f, with as many requests as that takes. Objects never change, so the rest of an object is
// always valid.
func (s store) download(ctx context.Context, object string, f *os.File, onBytes func(int64)) error {
	wait := control.Backoff{First: 100 * time.Millisecond, Max: maxRetryPause}
	for failures := 0; ; {
		n, err := s.downloadRest(ctx, object, f, onBytes)
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if n > 0 {
			failures = 0
			wait.Reset()
		}
		if final := new(pullError); errors.As(err, &final) {
			return final
		}
		if failures++; failures == attempts {
			return infraError("object store: %v; tried %d times", err, failures)
		}
		if !control.Sleep(ctx, wait.Next()) {
			return ctx.Err()
		}
	}
}

// downloadRest requests the missing part of f once, and returns how many bytes came.
func (s store) downloadRest(ctx context.Context, object string, f *os.File, onBytes func(int64)) (int64, error) {
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, infraError("write: %v", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(stallTimeout, func() { cancel(errStalled) })
	defer watch.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/"+object, http.NoBody)
	if err != nil {
		return 0, infraError("object store: %v", err)
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	if at > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", at))
	}
	answer, err := s.client.Do(req)
	if err != nil {
		return 0, cmp.Or(context.Cause(ctx), withoutURL(err))
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	switch code := answer.StatusCode; {
	case code == http.StatusPartialContent && strings.HasPrefix(answer.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(at, 10)+"-"):
	case code == http.StatusOK:
		if err := truncate(f); err != nil {
			return 0, err
		}
		onBytes(-at)
	case code == http.StatusRequestedRangeNotSatisfiable && at > 0:
		return 0, nil // the object has no more bytes; the digest decides whether f is complete
	case code >= http.StatusInternalServerError || code == http.StatusTooManyRequests:
		return 0, fmt.Errorf("it answers %s", answer.Status)
	default:
		return 0, infraError("object store: it answers %s", answer.Status)
	}
	n, err := appendTo(f, answer.Body, func(n int64) {
		watch.Reset(stallTimeout)
		onBytes(n)
	})
	if err != nil {
		err = cmp.Or(context.Cause(ctx), err)
	}
	return n, err
}

// withoutURL returns an error without its URL, which may grant access to a reader.
func withoutURL(err error) error {
	if long := new(url.Error); errors.As(err, &long) {
		return long.Err
	}
	return err
}

// errStalled means that an answer made no progress.
var errStalled = errors.New("nothing came for a minute")

// truncate makes f empty.
func truncate(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return infraError("write: %v", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return infraError("write: %v", err)
	}
	return nil
}

// appendTo appends the bytes of r to f. A failure of f is a *pullError.
func appendTo(f *os.File, r io.Reader, onBytes func(int64)) (n int64, err error) {
	buf := make([]byte, 1<<20)
	for {
		got, rerr := r.Read(buf)
		if _, err := f.Write(buf[:got]); err != nil {
			return n, infraError("write: %v", err)
		}
		n += int64(got)
		onBytes(int64(got))
		if errors.Is(rerr, io.EOF) {
			return n, nil
		}
		if rerr != nil {
			return n, rerr
		}
	}
}
