package post_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/post"
)

func TestWhatAnAnswerMeans(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		status     int
		retryAfter string

		permanent, unanswered bool
		after                 time.Duration
	}{
		"a fault of the server passes":                {status: 500},
		"a request that is not understood never will": {status: 400, permanent: true},
		"a wrong password can be repaired":            {status: 401},
		"a wrong address can be repaired":             {status: 404},
		"a busy server says how long":                 {status: 429, retryAfter: "7", after: 7 * time.Second},
		"a busy server says until when":               {status: 503, retryAfter: now.Add(time.Minute).Format(http.TimeFormat), after: time.Minute},
		"no server can ask for more than an hour":     {status: 429, retryAfter: "4000000000", after: time.Hour},
		"a wait that is none is left out":             {status: 429, retryAfter: "soon"},
		"a time that is over is no wait":              {status: 429, retryAfter: now.Add(-time.Minute).Format(http.TimeFormat)},
		"the server behind a proxy may have it":       {status: 502, unanswered: true},
		"so may one that is slow":                     {status: 504, unanswered: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := send(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", now.Format(http.TimeFormat))
				w.Header().Set("Retry-After", tt.retryAfter)
				w.WriteHeader(tt.status)
			})
			var no *post.PermanentError
			var away *post.TemporaryError
			if errors.As(err, &no) != tt.permanent || errors.As(err, &away) == tt.permanent || errors.Is(err, post.ErrUnanswered) != tt.unanswered {
				t.Fatalf("Send: %v", err)
			}
			if away != nil && away.After != tt.after {
				t.Errorf("it asks for %s, want %s", away.After, tt.after)
			}
		})
	}
}

// send returns the error of a request that answer answers.
func send(t *testing.T, answer http.HandlerFunc) error {
	t.Helper()
	server := httptest.NewServer(answer)
	defer server.Close()
	c, err := post.New(post.Settings{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Send(t.Context(), post.Request{})
	return err
}

func TestAnAddressThatIsSecretIsInNoError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	c, err := post.New(post.Settings{URL: "https://example.com/"})
	if err != nil {
		t.Fatal(err)
	}
	answered, unknown := server.URL+"/secret", "http://127.0.0.1:1/secret"
	for _, url := range []string{answered, unknown, "http://[::1/secret", "http://127.0.0.1:port/secret"} {
		if _, err := c.Send(t.Context(), post.Request{URL: url}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Send to %s: %v", url, err)
		}
	}
	server.Close()
}

func TestASignatureIsThatOfStandardWebhooks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := post.Key(path)
	if err != nil {
		t.Fatal(err)
	}
	got := post.Signed(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got["Webhook-Signature"] != want { // the example of the specification
		t.Errorf("signed %s, want %s", got["Webhook-Signature"], want)
	}
}
