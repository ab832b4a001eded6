package source

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/egress"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// newClient returns a client that follows only the redirects that g allows. It uses no
// proxy, since a proxy would hide the address that is connected to.
func newClient(g guard, dialer *net.Dialer, perHost int) *http.Client {
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // the stored bytes are needed
		TLSHandshakeTimeout:    30 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		MaxIdleConnsPerHost:    perHost, // keeps a connection for each concurrent request
		IdleConnTimeout:        30 * time.Second,
	}
	return &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		visited := make([]*url.URL, len(via))
		for i, v := range via {
			visited[i] = v.URL
		}
		if why := g.redirect(next.URL, visited); why != nil {
			return why
		}
		next.Header.Del("Referer") // it would reveal the URL with its tokens
		return nil
	}}
}

// download is the download of one source, with as many responses as that takes.
type download struct {
	reader  *Reader
	host    *host
	req     Request
	name    string // name of the source, without secrets
	noSplit bool   // do not split the rest into parts

	body         *body
	size         int64 // of the whole content; -1 if unknown
	validators   Validators
	acceptRanges string      // the header Accept-Ranges
	offset       int64       // bytes that the sink has taken since its last call
	maxOffset    int64       // maximum of offset so far
	buf          []byte      // buffer for the body
	failures     int         // consecutive failures without data
	blameClass   event.Class // class of the last failure
}

func (d *download) run(ctx context.Context, put Sink) (Result, error) {
	unchanged, err := d.begin(ctx)
	if err != nil || unchanged {
		return Result{Validators: d.req.Previous, Unchanged: unchanged}, err
	}
	for {
		d.offset = 0
		if limit := d.reader.settings.MaxSize; d.size > limit {
			return Result{}, tooLarge(d.name, limit)
		}
		err := put(ctx, d.size, func(w io.Writer) error { return d.copy(ctx, w) })
		if errors.Is(err, errRestart) {
			continue // the open body is a new one
		}
		return Result{Validators: d.validators}, err
	}
}

func (d *download) close() {
	if d.body != nil {
		d.body.close()
		d.body = nil
	}
}

// begin opens the body at its beginning, with as many requests as that takes. It
// reports whether the content is unchanged.
func (d *download) begin(ctx context.Context) (unchanged bool, err error) {
	for {
		header := make(http.Header)
		set(header, "If-None-Match", d.req.Previous.ETag)
		set(header, "If-Modified-Since", d.req.Previous.Modified)
		answer, err := d.request(ctx, header)
		if err != nil {
			return false, err
		}
		if answer.status == http.StatusNotModified && d.req.Previous != (Validators{}) {
			d.close()
			return true, nil
		}
		if ok, err := d.acceptResponse(ctx, answer); ok || err != nil {
			return false, err
		}
	}
}

// acceptResponse takes a response as the body from its beginning, and reports whether
// it could. If another try may succeed, it waits before it returns.
func (d *download) acceptResponse(ctx context.Context, a response) (ok bool, err error) {
	statusText := fmt.Sprintf("%d %s", a.status, http.StatusText(a.status))
	v := classifyStatus(d.name, a.status, statusText, a.header.Get("Retry-After"), time.Now())
	if v.usable {
		d.size, d.acceptRanges = a.size, a.header.Get("Accept-Ranges")
		d.validators = Validators{ETag: a.header.Get("ETag"), Modified: a.header.Get("Last-Modified")}
		return true, nil
	}
	d.close()
	if v.fatal != nil {
		return false, v.fatal
	}
	d.blameClass = event.ClassInfra
	return false, d.waitRetry(ctx, v.reason, v.wait)
}

// copy writes the body to w. If the body is cut, copy continues with the rest, or
// returns errRestart once a new body is open at its beginning.
func (d *download) copy(ctx context.Context, w io.Writer) error {
	for {
		why, err := d.pump(ctx, w)
		if err != nil || why == "" {
			return err
		}
		d.close()
		if err := d.waitRetry(ctx, why, 0); err != nil {
			return err
		}
		if err := d.resume(ctx); err != nil {
			return err
		}
	}
}

// pumped is the number of bytes read at once, enough that they are summed while others
// are written.
const pumped = 512 << 10

// pump writes the open body to w until it ends; why is the reason if the body was cut.
func (d *download) pump(ctx context.Context, w io.Writer) (why string, err error) {
	if d.buf == nil {
		d.buf = make([]byte, pumped)
	}
	for {
		n, rerr := d.body.read(ctx, d.buf)
		if d.offset+int64(n) > d.reader.settings.MaxSize {
			return "", tooLarge(d.name, d.reader.settings.MaxSize)
		}
		if _, err := w.Write(d.buf[:n]); err != nil {
			return "", err
		}
		if d.offset += int64(n); d.offset > d.maxOffset {
			d.maxOffset, d.failures = d.offset, 0
		}
		d.req.OnProgress(d.offset, d.size)
		switch {
		case errors.Is(rerr, io.EOF):
			return "", nil
		case rerr != nil:
			return d.explain(ctx, rerr)
		case d.shouldSplit():
			d.close()
			d.buf = nil // each part has its own buffer
			return d.parallel(ctx, w)
		}
	}
}

// resume opens the rest of the body. It returns errRestart once a body is open at its
// beginning instead.
func (d *download) resume(ctx context.Context) error {
	unchanged := resumable(d.validators, d.acceptRanges)
	if unchanged == "" || d.offset == 0 {
		return d.restart(ctx)
	}
	for {
		header := make(http.Header)
		header.Set("Range", fmt.Sprintf("bytes=%d-", d.offset))
		header.Set("If-Range", unchanged)
		answer, err := d.request(ctx, header)
		if err != nil {
			return err
		}
		switch answer.status {
		case http.StatusPartialContent:
			if continues(answer.header.Get("Content-Range"), d.offset, d.size, d.size) {
				return nil
			}
			d.close()
			return d.restart(ctx)
		case http.StatusRequestedRangeNotSatisfiable:
			d.close()
			return d.restart(ctx)
		}
		switch ok, err := d.acceptResponse(ctx, answer); {
		case err != nil:
			return err
		case ok:
			return errRestart
		}
	}
}

// restart opens a body at its beginning and returns errRestart.
func (d *download) restart(ctx context.Context) error {
	d.req.Previous = Validators{}
	if _, err := d.begin(ctx); err != nil {
		return err
	}
	return errRestart
}

// response is a response without its body.
type response struct {
	status int
	header http.Header
	size   int64 // -1 if unknown
}

// request sends requests until there is a response, whose body stays open.
func (d *download) request(ctx context.Context, header http.Header) (response, error) {
	header.Set("Accept-Encoding", "identity")
	header.Set("User-Agent", "benchmark-ai")
	for {
		a, err := d.requestOnce(ctx, header)
		if err == nil {
			return a, nil
		}
		why, fatal := d.explain(ctx, err)
		d.close()
		if fatal != nil {
			return response{}, fatal
		}
		if err := d.waitRetry(ctx, why, 0); err != nil {
			return response{}, err
		}
	}
}

// requestOnce sends one request.
func (d *download) requestOnce(ctx context.Context, header http.Header) (response, error) {
	ctx, b, err := newBody(ctx, d.host, d.reader.settings.Stall)
	if err != nil {
		return response{}, err
	}
	d.body = b
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.req.URL, http.NoBody)
	if err != nil {
		return response{}, refused("source %s is not a URL that can be asked", d.name)
	}
	req.Header = header.Clone()
	a, err := d.reader.client.Do(req) //nolint:bodyclose // d.close closes it
	if err != nil {
		return response{}, err
	}
	d.body.attach(a.Body)
	return response{a.StatusCode, a.Header, a.ContentLength}, nil
}

// waitRetry waits after a failure, for at least the time least, or returns an error if
// this was the last try.
func (d *download) waitRetry(ctx context.Context, why string, least time.Duration) error {
	if d.failures++; d.failures >= d.reader.settings.Attempts {
		return failed(cmp.Or(d.blameClass, event.ClassInfra), "source %s cannot be read: %s; tried %d times", d.name, why, d.failures)
	}
	wait := max(least, backoff(d.reader.settings.Retry, d.failures, rand.Float64())) //nolint:gosec // jitter is no secret
	d.req.OnWait(fmt.Sprintf("%s, retrying in %s (try %d of %d)", why, max(wait, time.Second).Round(time.Second),
		d.failures+1, d.reader.settings.Attempts))
	if control.Sleep(ctx, wait) {
		return nil
	}
	_, err := d.explain(ctx, ctx.Err())
	return err
}

// explain returns the reason why a request or body failed, or an error if another try
// would not help.
func (d *download) explain(ctx context.Context, cause error) (why string, err error) {
	d.blameClass = event.ClassInfra
	if own, ok := errors.AsType[*Error](cause); ok {
		return "", own
	}
	if bad, ok := errors.AsType[*egress.AddrError](cause); ok {
		return "", refusedAddr(d.name, bad.Addr)
	}
	switch end := context.Cause(ctx); {
	case errors.Is(end, errDeadline):
		return "", failed(event.ClassInfra, "source %s is not read within %s%s", d.name, d.reader.settings.Deadline, d.progress())
	case end != nil:
		return "", end
	case d.body != nil && d.body.stalled.Load():
		return fmt.Sprintf("stalled: less than 1 KiB in %s%s", d.reader.settings.Stall, d.progress()), nil
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](cause); ok {
		return "", failed(event.ClassUser, "source %s: its certificate is not trusted: %v", d.name, bad.Err)
	}
	if bad, ok := errors.AsType[*net.DNSError](cause); ok && bad.IsNotFound {
		d.blameClass = event.ClassUser
		return fmt.Sprintf("host %q not found", bad.Name), nil
	}
	if errors.Is(cause, io.ErrUnexpectedEOF) {
		return "cut" + d.progress(), nil
	}
	if bad, ok := errors.AsType[*url.Error](cause); ok {
		cause = bad.Err // without the URL and its secrets
	}
	return cause.Error(), nil
}

// progress returns how far the download has come, as text.
func (d *download) progress() string {
	if d.size < 0 {
		return fmt.Sprintf(", after %d bytes", d.offset)
	}
	return fmt.Sprintf(", after %d of %d bytes", d.offset, d.size)
}

func set(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}
