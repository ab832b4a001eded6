package slack_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/receiver/receivertest"
	"github.com/benchmark-ai/bai/services/analyst/receiver/slack"
)

// payload is what Slack documents of a request to an incoming webhook.
type payload struct {
	Text   string
	Blocks []struct {
		Type string
		Text *struct{ Type, Text string }
	}
}

// valid reports whether a body is within Slack's documented limits.
func valid(body []byte) bool {
	var p payload
	if err := json.Unmarshal(body, &p); err != nil || p.Text == "" || utf8.RuneCountInString(p.Text) > 4000 || len(p.Blocks) > 50 {
		return false
	}
	for _, b := range p.Blocks {
		limit := map[string]int{"header": 150, "section": 3000}[b.Type]
		if b.Text != nil && (b.Text.Text == "" || utf8.RuneCountInString(b.Text.Text) > limit) {
			return false
		}
	}
	return true
}

// show returns the body, with HTML's signs as they are and zero-width spaces to be seen.
func show(_ *http.Request, body []byte) string {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err.Error()
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(text.String(), "\u200b", "|")
}

func open(t *testing.T, trusted receivertest.Trust) receivertest.Server {
	t.Helper()
	var path atomic.Value
	path.Store("/services/T1/B1/one")
	server := receivertest.NewHTTPServer(t, trusted, func(r *http.Request, body []byte) int {
		switch {
		case r.URL.Path != path.Load():
			return http.StatusNotFound
		case !valid(body) || r.Header.Get("Content-Type") != "application/json":
			return http.StatusBadRequest
		}
		return 0
	}, show)
	file := receivertest.Secret(t, server.URL+"/services/T1/B1/one")
	s := server.Suite()
	to, err := slack.New(slack.Settings{URLFile: file, CAFile: server.CAFile})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	s.Receiver = to
	s.Inert = []string{"<!", "@channel", "@here", "@all", "<https://evil", "http://evil", "](", "*bold*", "`", "~no~", "www.evil", "\u202e", "\\u001b"}
	s.Rotate = func(t *testing.T, renewed bool) {
		t.Helper()
		if path.Store("/services/T1/B1/two"); renewed {
			receivertest.WriteSecret(t, file, server.URL+"/services/T1/B1/two")
		}
	}
	return s
}

func TestTheContractOfAReceiver(t *testing.T) { receivertest.Run(t, open) }

func TestTheLongestNoticeIsWithinTheLimitsOfSlack(t *testing.T) {
	s := open(t, true)
	n := receivertest.Hostile()
	i := n.Incidents[0]
	i.Rule.Task, i.Message = strings.Repeat("&<>@", 5000), strings.Repeat("\U0001f600", 5000)
	for len(i.Reasons) < 100 {
		i.Reasons = append(i.Reasons, strings.Repeat("&", 5000))
	}
	n.Incidents = []incident.Incident{i, i, i, i, i, i, i, i, i, i}
	if answer, err := s.Receiver.Send(t.Context(), n); err != nil || answer != "ok" {
		t.Errorf("Send: %q, %v", answer, err)
	}
}

func TestTheAddressOfTheChatIsInNoError(t *testing.T) {
	s := open(t, true)
	s.Set(receivertest.Broken)
	_, broken := s.Receiver.Send(t.Context(), receivertest.Notice("n1"))
	s.Stop()
	_, away := s.Receiver.Send(t.Context(), receivertest.Notice("n1"))
	for _, err := range []error{broken, away} {
		if err == nil || strings.Contains(err.Error(), "services/T1") {
			t.Errorf("Send: %v", err)
		}
	}
	for _, text := range []string{"", "hooks.slack.com/services/T1", "ftp://x/services/T1"} {
		if _, err := slack.New(slack.Settings{URLFile: receivertest.Secret(t, text)}); err == nil || strings.Contains(err.Error(), "T1") {
			t.Errorf("New with the address %q: %v", text, err)
		}
	}
}
