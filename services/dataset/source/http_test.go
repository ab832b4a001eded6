package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/event"
)

var quick = source.Settings{Networks: []string{"loopback"}, Retry: time.Millisecond, Stall: 5 * time.Second, MaxSize: 32 << 20}

func TestGet(t *testing.T) {
	big := bytesOf(5<<20 + 3)
	tests := map[string]struct {
		serve   func(s *server)
		want    []byte
		asked   []string // number of requests, and their parts
		thrown  int      // number of times that the sink had to start again
		unknown bool     // unknown size
	}{
		"a body is brought as it is": {
			serve: func(s *server) { s.whole(big) },
			want:  big, asked: []string{"all"},
		},
		"an empty body is brought too": {
			serve: func(s *server) { s.whole(nil) },
			want:  nil, asked: []string{"all"},
		},
		"a body of no known size is brought": {
			serve: func(s *server) { s.chunked(big) },
			want:  big, asked: []string{"all"}, unknown: true,
		},
		"a body that is compressed is not touched": {
			serve: func(s *server) { s.header("Content-Encoding", "gzip"); s.whole([]byte("\x1f\x8bnot really")) },
			want:  []byte("\x1f\x8bnot really"), asked: []string{"all"},
		},
		"500, then 200": {
			serve: func(s *server) { s.status(500, 503, 502, 504); s.whole(big) },
			want:  big, asked: []string{"all", "all", "all", "all", "all"},
		},
		"429, then 200": {
			serve: func(s *server) { s.header("Retry-After", "0"); s.status(429); s.whole(big) },
			want:  big, asked: []string{"all", "all"},
		},
		"a connection that is reset, then 200": {
			serve: func(s *server) { s.reset(2); s.whole(big) },
			want:  big, asked: []string{"all", "all", "all"},
		},
		"a body that is cut is resumed": {
			serve: func(s *server) { s.etag(`"a"`); s.cut(big, 1<<20, 2<<20, 4<<20); s.whole(big) },
			want:  big, asked: []string{"all", "1048576-", "2097152-", "4194304-"},
		},
		"a body that is cut is resumed by its time too": {
			serve: func(s *server) {
				s.header("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
				s.cut(big, 1<<20)
				s.whole(big)
			},
			want: big, asked: []string{"all", "1048576-"},
		},
		"a body of no known size that is cut is resumed": {
			serve: func(s *server) { s.etag(`"a"`); s.cutChunks(big, 1<<20); s.whole(big) },
			want:  big, asked: []string{"all", "1048576-"}, unknown: true,
		},
		"a body without validators that is cut begins anew": {
			serve: func(s *server) { s.cut(big, 1<<20); s.whole(big) },
			want:  big, asked: []string{"all", "all"}, thrown: 1,
		},
		"a body with a weak tag that is cut begins anew": {
			serve: func(s *server) { s.etag(`W/"a"`); s.cut(big, 1<<20); s.whole(big) },
			want:  big, asked: []string{"all", "all"}, thrown: 1,
		},
		"a body that has changed after the cut begins anew": {
			serve: func(s *server) {
				s.etag(`"a"`)
				s.cut(bytes.Repeat([]byte("x"), 3<<20), 1<<20)
				s.etag(`"b"`)
				s.whole(big)
			},
			want: big, asked: []string{"all", "1048576-"}, thrown: 1,
		},
		"a server that ignores ranges makes it begin anew": {
			serve: func(s *server) { s.etag(`"a"`); s.cut(big, 1<<20); s.ignoreRange(big) },
			want:  big, asked: []string{"all", "1048576-"}, thrown: 1,
		},
		"a server that continues elsewhere makes it begin anew": {
			serve: func(s *server) { s.etag(`"a"`); s.cut(big, 1<<20); s.wrongRange(big); s.whole(big) },
			want:  big, asked: []string{"all", "1048576-", "all"}, thrown: 1,
		},
		"a range that is refused makes it begin anew": {
			serve: func(s *server) { s.etag(`"a"`); s.cut(big, 1<<20); s.status(416); s.whole(big) },
			want:  big, asked: []string{"all", "1048576-", "all"}, thrown: 1,
		},
		"500 while it is resumed is tried again": {
			serve: func(s *server) { s.etag(`"a"`); s.cut(big, 1<<20); s.status(500); s.whole(big) },
			want:  big, asked: []string{"all", "1048576-", "1048576-"},
		},
		"a redirect is followed": {
			serve: func(s *server) { s.redirect(4); s.whole(big) },
			want:  big, asked: []string{"all", "all", "all", "all", "all"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			tt.serve(s)
			var k sink
			if _, err := reader(t, quick).Get(t.Context(), source.Request{URL: s.URL, OnProgress: k.progress}, k.put); err != nil {
				t.Fatal(err)
			}
			k.check(t, tt.want, tt.thrown, tt.unknown)
			if diff := cmp.Diff(tt.asked, s.requested()); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// check checks the received content and its size.
func (k *sink) check(t *testing.T, want []byte, discarded int, unknown bool) {
	t.Helper()
	if !bytes.Equal(want, k.Bytes()) {
		t.Errorf("%d bytes came, %d wanted, or others", k.Len(), len(want))
	}
	if k.discarded != discarded {
		t.Errorf("began anew %d times, want %d", k.discarded, discarded)
	}
	total := int64(len(want))
	if unknown {
		total = -1
	}
	if k.done != int64(len(want)) || k.total != total {
		t.Errorf("progress ended at %d of %d", k.done, k.total)
	}
}

func TestGetFails(t *testing.T) {
	big := bytesOf(3 << 20)
	tests := map[string]struct {
		settings func(s *source.Settings)
		serve    func(s *server)
		path     string
		reason   event.Reason
		class    event.Class
		want     string
		asked    int
	}{
		"404 is said at once": {
			serve: func(s *server) { s.status(404) }, path: "/cats.tar?token=s3cret",
			reason: event.FetchFailed, class: event.ClassUser, want: "/cats.tar?token=REDACTED answers 404 Not Found", asked: 1,
		},
		"401 is said at once": {
			serve:  func(s *server) { s.status(401) },
			reason: event.FetchFailed, class: event.ClassUser, want: "answers 401 Unauthorized", asked: 1,
		},
		"410 is said at once": {
			serve:  func(s *server) { s.status(410) },
			reason: event.FetchFailed, class: event.ClassUser, want: "answers 410 Gone", asked: 1,
		},
		"no content is not content": {
			serve:  func(s *server) { s.status(204) },
			reason: event.FetchFailed, class: event.ClassUser, want: "answers 204 No Content", asked: 1,
		},
		"a part that nobody asked for is not the whole": {
			serve:  func(s *server) { s.status(206) },
			reason: event.FetchFailed, class: event.ClassUser, want: "answers 206 Partial Content", asked: 1,
		},
		"304 that nobody asked for is no content": {
			serve:  func(s *server) { s.status(304) },
			reason: event.FetchFailed, class: event.ClassUser, want: "answers 304 Not Modified", asked: 1,
		},
		"500 for ever is given up": {
			serve:  func(s *server) { s.status(500, 500, 500, 500, 500, 500, 500, 500) },
			reason: event.FetchFailed, class: event.ClassInfra, want: "answers 500 Internal Server Error; tried 7 times", asked: 7,
		},
		"a wait that is too long is not waited for": {
			serve:  func(s *server) { s.header("Retry-After", "86400"); s.status(503) },
			reason: event.FetchFailed, class: event.ClassInfra, want: "answers 503 Service Unavailable and asks to come back in 24h0m0s", asked: 1,
		},
		"a body that is always cut at the same place is given up": {
			serve:  func(s *server) { s.cut(big, slicesOf(1<<20, 20)...) },
			reason: event.FetchFailed, class: event.ClassInfra, want: "cut, after 1048576 of 3145728 bytes; tried 7 times", asked: 7,
		},
		"a server that always resets is given up": {
			serve:  func(s *server) { s.reset(20) },
			reason: event.FetchFailed, class: event.ClassInfra, want: "tried 7 times", asked: 7,
		},
		"a body that says that it is too large is not begun": {
			settings: func(s *source.Settings) { s.MaxSize = 1 << 20 },
			serve:    func(s *server) { s.whole(big) },
			reason:   event.DataTooLarge, class: event.ClassUser, want: "more than the 1048576 bytes", asked: 1,
		},
		"an endless body ends at the limit": {
			settings: func(s *source.Settings) { s.MaxSize = 1 << 20 },
			serve:    func(s *server) { s.endless() },
			reason:   event.DataTooLarge, class: event.ClassUser, want: "more than the 1048576 bytes", asked: 1,
		},
		"a body that stalls is given up": {
			settings: func(s *source.Settings) { s.Stall, s.Attempts = 500*time.Millisecond, 2 },
			serve:    func(s *server) { s.etag(`"a"`); s.stall(big, 0); s.stall(big, 0) },
			reason:   event.FetchFailed, class: event.ClassInfra, want: "stalled: less than 1 KiB in 500ms, after 0 of 3145728 bytes; tried 2 times", asked: 2,
		},
		"a server that does not answer is given up": {
			settings: func(s *source.Settings) { s.Stall, s.Attempts = 500*time.Millisecond, 2 },
			serve:    func(s *server) { s.silent(); s.silent() },
			reason:   event.FetchFailed, class: event.ClassInfra, want: "stalled: less than 1 KiB in 500ms", asked: 2,
		},
		"a trickle is a stall": {
			settings: func(s *source.Settings) { s.Stall, s.Attempts = 500*time.Millisecond, 1 },
			serve:    func(s *server) { s.trickle(big) },
			reason:   event.FetchFailed, class: event.ClassInfra, want: "stalled: less than 1 KiB in 500ms", asked: 1,
		},
		"a slow body ends at the deadline": {
			settings: func(s *source.Settings) { s.Deadline = 500 * time.Millisecond },
			serve:    func(s *server) { s.stall(big, 1<<20) },
			reason:   event.FetchFailed, class: event.ClassInfra, want: "is not read within 500ms", asked: 1,
		},
		"waits end at the deadline": {
			settings: func(s *source.Settings) { s.Deadline, s.Retry = 500*time.Millisecond, time.Hour },
			serve:    func(s *server) { s.status(500, 500) },
			reason:   event.FetchFailed, class: event.ClassInfra, want: "is not read within 500ms", asked: 1,
		},
		"a sixth redirect is not followed": {
			serve:  func(s *server) { s.redirect(6); s.whole(big) },
			reason: event.FetchFailed, class: event.ClassUser, want: "redirects more than 5 times", asked: 6,
		},
		"a redirect to itself is a circle": {
			serve:  func(s *server) { s.redirectTo(s.URL) },
			reason: event.FetchFailed, class: event.ClassUser, want: "redirects in a circle", asked: 1,
		},
		"a redirect to where it came from is a circle": {
			serve:  func(s *server) { s.redirectTo(s.URL + "/b"); s.redirectTo(s.URL) },
			reason: event.FetchFailed, class: event.ClassUser, want: "redirects in a circle", asked: 2,
		},
		"a redirect to a private address is refused": {
			serve:  func(s *server) { s.redirectTo("http://169.254.169.254/latest/meta-data/iam?token=x") },
			reason: event.SourceRefused, class: event.ClassUser, want: "address 169.254.169.254 is not public", asked: 1,
		},
		"a redirect to a file is refused": {
			serve:  func(s *server) { s.redirectTo("file:///etc/passwd") },
			reason: event.SourceRefused, class: event.ClassUser, want: `scheme "file" is neither http nor https`, asked: 1,
		},
		"a redirect to another host than settings allow is refused": {
			settings: func(s *source.Settings) { s.Hosts = []string{"127.0.0.1"} },
			serve:    func(s *server) { s.redirectTo("http://localhost/x") },
			reason:   event.SourceRefused, class: event.ClassUser, want: `host "localhost" is not one`, asked: 1,
		},
		"a redirect to nowhere is said": {
			serve:  func(s *server) { s.redirectTo("") },
			reason: event.FetchFailed, class: event.ClassUser, want: "answers 302 Found", asked: 1,
		},
		"what is not HTTP is given up": {
			settings: func(s *source.Settings) { s.Attempts = 2 },
			serve:    func(s *server) { s.garbage(); s.garbage() },
			reason:   event.FetchFailed, class: event.ClassInfra, want: "malformed HTTP", asked: 2,
		},
		"headers without end are given up": {
			settings: func(s *source.Settings) { s.Attempts = 1 },
			serve:    func(s *server) { s.header("X-Long", strings.Repeat("x", 1<<20)); s.whole(nil) },
			reason:   event.FetchFailed, class: event.ClassInfra, want: "response headers exceeded", asked: 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, settings := serve(t), quick
			tt.serve(s)
			if tt.settings != nil {
				tt.settings(&settings)
			}
			_, err := reader(t, settings).Get(t.Context(), source.Request{URL: s.URL + tt.path}, new(sink).put)
			wantError(t, err, tt.reason, tt.class, tt.want)
			if got := len(s.requested()); got != tt.asked {
				t.Errorf("asked %d times, want %d", got, tt.asked)
			}
		})
	}
}

func TestANameThatLeadsToAPrivateAddressIsRefusedWhenItIsConnectedTo(t *testing.T) {
	s := serve(t)
	s.whole([]byte("secret"))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	r := reader(t, source.Settings{Retry: time.Millisecond})
	for _, url := range []string{"http://localhost:" + port, "http://localhost:" + port + "/?sig=hunter2"} {
		_, err := r.Get(t.Context(), source.Request{URL: url}, new(sink).put)
		wantError(t, err, event.SourceRefused, event.ClassUser, "is not public")
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a password is shown: %v", err)
		}
	}
	if got := s.requested(); len(got) > 0 {
		t.Errorf("it was asked for %q", got)
	}
}

func TestNobodyThereIsNotTheUsersFaultButAHostThatDoesNotExistIs(t *testing.T) {
	settings := quick
	settings.Attempts = 2
	closedServer := httptest.NewServer(nil)
	closedServer.Close()
	_, err := reader(t, settings).Get(t.Context(), source.Request{URL: closedServer.URL}, new(sink).put)
	wantError(t, err, event.FetchFailed, event.ClassInfra, "connection refused")
}

func TestACertificateThatNobodyTrustsIsSaidAtOnce(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = zap.NewStdLog(zap.NewNop())
	s.StartTLS()
	defer s.Close()
	_, err := reader(t, quick).Get(t.Context(), source.Request{URL: s.URL}, new(sink).put)
	wantError(t, err, event.FetchFailed, event.ClassUser, "its certificate is not trusted")
}

func TestWhatIsKnownIsNotBroughtAgain(t *testing.T) {
	for name, previous := range map[string]source.Validators{
		"by its tag":  {ETag: `"a"`},
		"by its time": {Modified: "Fri, 02 Jan 2026 03:04:05 GMT"},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := serve(t), reader(t, quick)
			s.header("ETag", previous.ETag)
			s.header("Last-Modified", previous.Modified)
			s.whole([]byte("cats"))
			s.whole([]byte("cats"))
			var k sink
			a, err := r.Get(t.Context(), source.Request{URL: s.URL}, k.put)
			if err != nil || a.Validators != previous || a.Unchanged || k.String() != "cats" {
				t.Fatalf("Get: %+v, %v, %q", a, err, k.String())
			}
			a, err = r.Get(t.Context(), source.Request{URL: s.URL, Previous: a.Validators}, func(context.Context, int64, func(io.Writer) error) error {
				t.Error("it was brought again")
				return nil
			})
			if err != nil || !a.Unchanged || a.Validators != previous {
				t.Errorf("Get: %+v, %v", a, err)
			}
		})
	}
}

func TestWhatHasChangedIsBroughtAgain(t *testing.T) {
	s := serve(t)
	s.etag(`"b"`)
	s.whole([]byte("dogs"))
	var k sink
	a, err := reader(t, quick).Get(t.Context(), source.Request{URL: s.URL, Previous: source.Validators{ETag: `"a"`}}, k.put)
	if err != nil || a.Unchanged || a.ETag != `"b"` || k.String() != "dogs" {
		t.Errorf("Get: %+v, %v, %q", a, err, k.String())
	}
}

func TestWhatTheSinkSaysIsNotTheSourcesFault(t *testing.T) {
	full := errors.New("full")
	for name, put := range map[string]source.Sink{
		"before the first byte": func(context.Context, int64, func(io.Writer) error) error { return full },
		"in the middle": func(_ context.Context, _ int64, fill func(io.Writer) error) error {
			return fill(writer(func([]byte) (int, error) { return 0, full }))
		},
		"at the end": func(_ context.Context, _ int64, fill func(io.Writer) error) error {
			return errors.Join(fill(io.Discard), full)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			s.whole(bytesOf(1000))
			_, err := reader(t, quick).Get(t.Context(), source.Request{URL: s.URL}, put)
			if own := new(source.Error); !errors.Is(err, full) || errors.As(err, &own) {
				t.Errorf("Get: %v, want %v", err, full)
			}
		})
	}
}

func TestGetEndsAtOnceWhenItIsCanceled(t *testing.T) {
	enough := errors.New("enough")
	for name, script := range map[string]func(s *server){
		"before the answer":        func(s *server) { s.silent() },
		"in the body":              func(s *server) { s.stall(bytesOf(3<<20), 1<<20) },
		"while it waits":           func(s *server) { s.header("Retry-After", "60"); s.status(503, 503) },
		"while a wait is resumed":  func(s *server) { s.etag(`"a"`); s.cut(bytesOf(3<<20), 1<<20); s.silent() },
		"while it begins somewhat": func(s *server) { s.trickle(bytesOf(1 << 20)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			script(s)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(50*time.Millisecond, func() { cancel(enough) })
			start := time.Now()
			_, err := reader(t, quick).Get(ctx, source.Request{URL: s.URL}, new(sink).put)
			if !errors.Is(err, enough) {
				t.Errorf("Get: %v, want %v", err, enough)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %s to end", took)
			}
		})
	}
}

func wantError(t *testing.T, err error, reason event.Reason, class event.Class, want string) {
	t.Helper()
	own := new(source.Error)
	if !errors.As(err, &own) {
		t.Fatalf("Get: %v, want a *source.Error", err)
	}
	if own.Reason != reason || own.Class != class || !strings.Contains(own.Message, want) {
		t.Errorf("Get: %s, %s: %s\nwant %s, %s with %q", own.Reason, own.Class, own.Message, reason, class, want)
	}
}

// sink stores what it receives.
type sink struct {
	bytes.Buffer

	calls, discarded int
	done, total      int64
}

func (k *sink) put(_ context.Context, _ int64, fill func(w io.Writer) error) error {
	if k.calls++; k.calls > 1 {
		k.discarded++
	}
	k.Reset()
	return fill(writer(k.Write)) // hides other methods
}

func (k *sink) progress(done, total int64) { k.done, k.total = done, total }

type writer func([]byte) (int, error)

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) { return w(p) }

// server sends its responses one after another. The last one repeats.
type server struct {
	*httptest.Server

	mu              sync.Mutex
	answers         []http.HandlerFunc
	headers         http.Header // headers of the responses that are added from now on
	requestedRanges []string
	done            chan struct{}
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{headers: make(http.Header), done: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(func() {
		close(s.done)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	part := "all"
	if rng := r.Header.Get("Range"); rng != "" {
		part = strings.TrimPrefix(rng, "bytes=")
	}
	s.requestedRanges = append(s.requestedRanges, part)
	if len(s.answers) == 0 {
		s.mu.Unlock()
		w.WriteHeader(http.StatusTeapot)
		return
	}
	a := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	s.mu.Unlock()
	a(w, r)
}

func (s *server) requested() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requestedRanges
}

func (s *server) header(name, value string) {
	if value != "" {
		s.headers.Set(name, value)
	}
}

func (s *server) etag(tag string) { s.header("ETag", tag) }

func (s *server) add(a http.HandlerFunc) {
	headers := s.headers.Clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), headers)
		a(w, r)
	})
}

func (s *server) status(codes ...int) {
	for _, c := range codes {
		s.add(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c) })
	}
}

func (s *server) whole(content []byte) {
	s.add(func(w http.ResponseWriter, r *http.Request) {
		modified, _ := http.ParseTime(w.Header().Get("Last-Modified")) // zero without the header
		http.ServeContent(w, r, "", modified, bytes.NewReader(content))
	})
}

func (s *server) chunked(content []byte) {
	s.add(func(w http.ResponseWriter, _ *http.Request) { flush(w, content) })
}

// cut adds responses with the content from the requested offset, each up to one of
// these offsets.
func (s *server) cut(content []byte, places ...int) {
	for _, to := range places {
		s.add(func(w http.ResponseWriter, r *http.Request) {
			from := 0
			if rng := r.Header.Get("Range"); rng != "" {
				from, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(rng, "bytes="), "-")) // from the reader's own header
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
			}
			w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
			if from > 0 {
				w.WriteHeader(http.StatusPartialContent)
			}
			flush(w, content[from:to])
			abort(w)
		})
	}
}

func (s *server) cutChunks(content []byte, to int) {
	s.add(func(w http.ResponseWriter, _ *http.Request) {
		flush(w, content[:to])
		abort(w)
	})
}

func (s *server) ignoreRange(content []byte) {
	s.add(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content) // the client may be gone
	})
}

func (s *server) wrongRange(content []byte) {
	s.add(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(content)-1, len(content)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(content) // the client may be gone
	})
}

func (s *server) endless() {
	s.add(func(w http.ResponseWriter, _ *http.Request) {
		for piece := make([]byte, 64<<10); ; {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
}

// stall adds a response with the first part of the content and then nothing.
func (s *server) stall(content []byte, to int) {
	s.add(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		flush(w, content[:to])
		s.wait(r, 0)
	})
}

func (s *server) silent() { s.add(func(_ http.ResponseWriter, r *http.Request) { s.wait(r, 0) }) }

func (s *server) trickle(content []byte) {
	s.add(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		for i := 0; s.wait(r, time.Millisecond); i++ {
			flush(w, content[i:i+1])
		}
	})
}

func (s *server) reset(times int) {
	for range times {
		s.add(func(w http.ResponseWriter, _ *http.Request) { abort(w) })
	}
}

func (s *server) garbage() {
	s.add(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "220 smtp.example.com ESMTP\r\n") // the client may be gone
		_ = c.Close()
	})
}

func (s *server) redirect(times int) {
	for i := range times {
		s.redirectTo(fmt.Sprintf("%s/%d", s.URL, i))
	}
}

func (s *server) redirectTo(url string) {
	s.add(func(w http.ResponseWriter, _ *http.Request) {
		if url != "" {
			w.Header().Set("Location", url)
		}
		w.WriteHeader(http.StatusFound)
	})
}

// wait waits until the client or the test has ended, or until timeout; 0 means no
// limit. It reports whether both are still running.
func (s *server) wait(r *http.Request, timeout time.Duration) bool {
	var end <-chan time.Time
	if timeout > 0 {
		end = time.After(timeout)
	}
	select {
	case <-r.Context().Done():
		return false
	case <-s.done:
		return false
	case <-end:
		return true
	}
}

func flush(w http.ResponseWriter, content []byte) {
	_, _ = w.Write(content)                   // the client may be gone
	_ = http.NewResponseController(w).Flush() // the client may be gone
}

// abort closes the connection.
func abort(w http.ResponseWriter) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.Close() // the client may have closed it
	}
}

func slicesOf(n, times int) []int {
	all := make([]int, times)
	for i := range all {
		all[i] = n
	}
	return all
}

func bytesOf(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it never fails
	return b
}
