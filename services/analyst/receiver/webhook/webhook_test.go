package webhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/receiver/receivertest"
	"github.com/benchmark-ai/bai/services/analyst/receiver/webhook"
	"github.com/benchmark-ai/bai/services/internal/post"
)

const (
	secret = "a secret of at least 24 bytes"
	second = "another one of at least 24 bytes"
)

// show returns the headers that say what a request is, and its body.
func show(r *http.Request, body []byte) string {
	var text strings.Builder
	for _, name := range []string{"Content-Type", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "Ce-Specversion", "Ce-Id", "Ce-Type", "Ce-Source", "Ce-Time"} {
		fmt.Fprintf(&text, "%s: %s\n", name, r.Header.Get(name))
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, body, "", "  "); err != nil {
		return err.Error()
	}
	return text.String() + "\n" + indented.String() + "\n"
}

func TestTheContractOfAReceiver(t *testing.T) {
	receivertest.Run(t, func(t *testing.T, trusted receivertest.Trust) receivertest.Server {
		t.Helper()
		var key atomic.Value
		key.Store(secret)
		server := receivertest.NewHTTPServer(t, trusted, func(r *http.Request, body []byte) int {
			want := post.Signed([]byte(key.Load().(string)), r.Header.Get("Webhook-Id"), receivertest.Made(), body)["Webhook-Signature"] //nolint:errcheck,forcetypeassert // a string
			if r.Header.Get("Webhook-Signature") != want {
				return http.StatusUnauthorized
			}
			return 0
		}, show)
		path := receivertest.Secret(t, secret)
		s := server.Suite()
		to, err := webhook.New(webhook.Settings{Settings: post.Settings{URL: server.URL, CAFile: server.CAFile}, SecretFile: path}, receivertest.Made)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = to.Close() })
		s.Receiver = to
		s.Rotate = func(t *testing.T, file bool) {
			t.Helper()
			if key.Store(second); file {
				receivertest.WriteSecret(t, path, second)
			}
		}
		return s
	})
}

func TestASecretThatIsNoneIsSaidAtOnce(t *testing.T) {
	_, err := webhook.New(webhook.Settings{Settings: post.Settings{URL: "https://example.com/"}, SecretFile: receivertest.Secret(t, "short")}, time.Now)
	if err == nil || !strings.Contains(err.Error(), "5 bytes, want 24 or more") {
		t.Errorf("New: %v", err)
	}
}
