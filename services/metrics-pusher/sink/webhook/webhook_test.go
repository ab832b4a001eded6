package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/post"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/sinktest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/webhook"
)

const key = "a secret of at least 24 bytes"

// fakeReceiver takes signed requests, each ID once.
type fakeReceiver struct {
	unavailable atomic.Bool

	mu     sync.Mutex
	ids    map[string]bool
	bodies []map[string]json.RawMessage
}

// ServeHTTP implements http.Handler.
func (r *fakeReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	h := req.Header
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(h.Get("Webhook-Id") + "." + h.Get("Webhook-Timestamp") + "." + string(body)))
	signature := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	var fields map[string]json.RawMessage
	switch err := json.Unmarshal(body, &fields); {
	case r.unavailable.Load():
		w.WriteHeader(http.StatusBadGateway)
	case err != nil || h.Get("Webhook-Signature") != signature || h.Get("Ce-Id") != h.Get("Webhook-Id") || h.Get("Ce-Type") == "":
		http.Error(w, "signature", http.StatusBadRequest)
	case strings.Contains(string(body), "forbidden"):
		http.Error(w, "forbidden", http.StatusUnprocessableEntity)
	default:
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.ids[h.Get("Webhook-Id")] {
			r.ids[h.Get("Webhook-Id")] = true
			r.bodies = append(r.bodies, fields)
		}
	}
}

func open(t *testing.T, s webhook.Settings, secret string, now time.Time) (*fakeReceiver, *webhook.Sink) {
	t.Helper()
	r := &fakeReceiver{ids: make(map[string]bool)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	s.Settings, s.SecretFile = post.Settings{URL: server.URL}, filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(s.SecretFile, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	to, err := webhook.New(s, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	return r, to
}

func TestTheContractOfASink(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Destination {
		t.Helper()
		r, to := open(t, webhook.Settings{Samples: true}, key, time.Now())
		return sinktest.Destination{
			Sink: to, Specials: true, // a message that repeats part of another is another
			Points:         func(t *testing.T) []sinktest.Point { t.Helper(); return r.points(t) },
			SetUnavailable: func(_ *testing.T, away bool) { r.unavailable.Store(away) },
		}
	})
}

func (r *fakeReceiver) points(t *testing.T) []sinktest.Point {
	t.Helper()
	var batches []event.Metrics
	for _, b := range r.bodies {
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		var m event.Metrics
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		batches = append(batches, m)
	}
	return sinktest.Points(batches...)
}

func end(run, message string, at time.Time) event.Finished {
	h := event.NewHeader(event.Derive("end", run), run, "pets", "ann", sinktest.Start())
	h.PublishedAt = at
	return event.Finished{Header: h, Outcome: event.Failed, Class: event.ClassUser, Reason: event.NonZeroExit, Message: message}
}

func TestAnEndIsToldOnceHoweverOftenItIsHandedOver(t *testing.T) {
	now := time.Now()
	r, to := open(t, webhook.Settings{}, "whsec_"+base64.StdEncoding.EncodeToString([]byte(key)), now)
	for range 2 {
		if err := to.Finished(t.Context(), []event.Finished{end("r1", "x", now), end("r2", "x", now)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.bodies) != 2 || string(r.bodies[0]["run"]) != `"r1"` || string(r.bodies[0]["reason"]) != `"NonZeroExit"` {
		t.Errorf("told %s", r.bodies)
	}
	if err := to.Samples(t.Context(), []event.Metrics{sinktest.Metrics("r1", 0, "loss")}); err != nil || len(r.bodies) != 2 {
		t.Errorf("samples, for which nobody has asked: %d told, %v", len(r.bodies), err)
	}
}

func TestAnEndIsTriedAgainUntilItIsOld(t *testing.T) {
	now := time.Now()
	r, to := open(t, webhook.Settings{GiveUpAfter: time.Hour}, key, now)
	r.unavailable.Store(true)
	var no *sink.RejectedError
	if err := to.Finished(t.Context(), []event.Finished{end("r1", "x", now.Add(-time.Minute))}); err == nil || errors.As(err, &no) {
		t.Errorf("a young one: %v, want that it is to be tried again", err)
	}
	if err := to.Finished(t.Context(), []event.Finished{end("r1", "x", now.Add(-2*time.Hour))}); !errors.As(err, &no) || !strings.Contains(err.Error(), "given up after 1h0m0s") {
		t.Errorf("an old one: %v, want that it is given up", err)
	}
}

func TestWhatIsRefusedTakesNothingWithIt(t *testing.T) {
	now := time.Now()
	r, to := open(t, webhook.Settings{}, key, now)
	err := to.Finished(t.Context(), []event.Finished{end("r1", "x", now), end("r2", "forbidden", now), end("r3", "x", now)})
	var no *sink.RejectedError
	if !errors.As(err, &no) || no.Count != 1 || len(r.bodies) != 2 {
		t.Errorf("%v, %d told: want one refused and two told", err, len(r.bodies))
	}
}

func TestASecretThatIsNoneIsSaidAtOnce(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"a short one":    {"short", "5 bytes, want 24 or more"},
		"a coded one":    {"whsec_!", "no base64"},
		"an absent file": {"", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secret")
			if tt.text != "" {
				if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := webhook.New(webhook.Settings{SecretFile: path}, time.Now); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New: %v, want %q", err, tt.want)
			}
		})
	}
	if err := (webhook.Settings{Settings: post.Settings{URL: "https://x/"}, GiveUpAfter: -1}).Validate(); err == nil || !strings.Contains(err.Error(), "secret_file") || !strings.Contains(err.Error(), "give_up") {
		t.Errorf("Validate: %v", err)
	}
}
