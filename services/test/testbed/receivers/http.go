package receivers

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/post"
)

// serve starts an HTTP server. The function take is called with each request that is not refused by a fault.
func (l *log) serve(t *testing.T, take func(w http.ResponseWriter, r *http.Request, body []byte)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := l.doing()
		if fault == Away {
			panic(http.ErrAbortHandler) //nolint:forbidigo // how net/http ends a connection without an answer
		}
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil: // it was killed in between
			return
		case fault == Busy:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "rate_limited", http.StatusTooManyRequests)
			return
		case fault == Broken:
			http.Error(w, "a fault", http.StatusServiceUnavailable)
			return
		case fault == Cut:
			take(httptest.NewRecorder(), r, body)
			panic(http.ErrAbortHandler) //nolint:forbidigo // how net/http ends a connection without an answer
		}
		take(w, r, body)
	}))
	t.Cleanup(s.Close)
	return s
}

// webhookSecret signs the requests of the webhook.
const webhookSecret = "a secret of at least 24 bytes"

// Webhook takes signed notices. It knows a repeated one by its ID.
type Webhook struct {
	log

	server *httptest.Server
}

func startWebhook(t *testing.T) *Webhook {
	t.Helper()
	h := &Webhook{}
	h.server = h.serve(t, h.take)
	return h
}

func (h *Webhook) settings(t *testing.T) map[string]any {
	t.Helper()
	return map[string]any{"kind": "webhook", "url": h.server.URL, "secret_file": secret(t, webhookSecret)}
}

func (h *Webhook) take(w http.ResponseWriter, r *http.Request, body []byte) {
	id := r.Header.Get("Webhook-Id")
	at, err := strconv.ParseInt(r.Header.Get("Webhook-Timestamp"), 10, 64)
	var n struct {
		ID, State string
		Again     bool
	}
	if err != nil || json.Unmarshal(body, &n) != nil || n.ID != id || id == "" {
		h.refuse("%v %s: %s", err, id, body)
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	if want := post.Signed([]byte(webhookSecret), id, time.Unix(at, 0),
		body)["Webhook-Signature"]; r.Header.Get("Webhook-Signature") != want {
		h.refuse("%s is not signed", id)
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	h.add(Arrival{Notice: id, Became: n.State, Again: n.Again, Text: string(body)})
}

// Slack is an incoming webhook. It takes one message a second, asks to wait every third time, and cannot know a repeated notice.
type Slack struct {
	log

	server   *httptest.Server
	requests int
	last     time.Time
}

func startSlack(t *testing.T) *Slack {
	t.Helper()
	s := &Slack{requests: 1} // the second request is the first one that has to wait
	s.server = s.serve(t, s.take)
	return s
}

func (s *Slack) settings(t *testing.T) map[string]any {
	t.Helper()
	return map[string]any{"kind": "slack", "url_file": secret(t, s.server.URL+"/services/T0/B0/token")}
}

// The text of a message of Slack has its notice in the last line.
var noticeInText = regexp.MustCompile(`, notice ([0-9a-v]{26})`)

func (s *Slack) take(w http.ResponseWriter, r *http.Request, body []byte) {
	if s.busy() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "rate_limited", http.StatusTooManyRequests)
		return
	}
	var m struct {
		Text   string
		Blocks []struct{ Type string }
	}
	id := noticeInText.FindSubmatch(body)
	if err := json.Unmarshal(body, &m); err != nil || r.URL.Path != "/services/T0/B0/token" || len(m.Blocks) == 0 || len(m.Blocks) > 50 ||
		len([]rune(m.Text)) > 4000 || id == nil {
		s.refuse("%s: %v: %s", r.URL.Path, err, body)
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	s.add(Arrival{Notice: string(id[1]), Became: became(m.Text), Again: again(m.Text), Text: m.Text})
	_, _ = io.WriteString(w, "ok")
}

// busy reports whether a request is the third one, or comes too soon after the one before.
func (s *Slack) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	soon := time.Since(s.last) < 900*time.Millisecond
	if s.requests%3 == 0 || soon {
		return true
	}
	s.last = time.Now()
	return false
}

// strictly decodes JSON that may have no other fields.
func strictly(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// bearer reports whether a request has a token.
func bearer(r *http.Request, token string) bool {
	got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && got == token
}
