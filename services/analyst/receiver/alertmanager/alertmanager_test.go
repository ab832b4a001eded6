package alertmanager_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/receiver/alertmanager"
	"github.com/benchmark-ai/bai/services/analyst/receiver/receivertest"
	"github.com/benchmark-ai/bai/services/internal/post"
)

func show(_ *http.Request, body []byte) string {
	var indented bytes.Buffer
	if err := json.Indent(&indented, body, "", "  "); err != nil {
		return err.Error()
	}
	return indented.String() + "\n"
}

// alert is what Alertmanager documents of a posted alert.
type alert struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
	GeneratorURL        string
}

// valid reports whether Alertmanager takes a body.
func valid(body []byte) bool {
	var alerts []alert
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&alerts); err != nil {
		return false
	}
	for _, a := range alerts {
		if a.Labels["alertname"] == "" || a.EndsAt.Before(a.StartsAt) {
			return false
		}
	}
	return true
}

func open(t *testing.T, trusted receivertest.Trust, now func() time.Time) receivertest.Server {
	t.Helper()
	var token atomic.Value
	token.Store("Bearer one")
	server := receivertest.NewHTTPServer(t, trusted, func(r *http.Request, body []byte) int {
		switch {
		case r.URL.Path != "/prefix/api/v2/alerts":
			return http.StatusNotFound
		case r.Header.Get("Authorization") != token.Load():
			return http.StatusUnauthorized
		case !valid(body) || r.Header.Get("Content-Type") != "application/json":
			return http.StatusBadRequest
		}
		return 0
	}, show)
	file := receivertest.Secret(t, "one")
	s := server.Suite()
	s.IncidentsOnly = true
	to, err := alertmanager.New(post.Settings{URL: server.URL + "/prefix/", CAFile: server.CAFile, TokenFile: file}, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	s.Receiver = to
	s.Inert = []string{"<!", "<http", "u003c!", "@channel", "@all", "\u202e", "\\u001b", "\\r", "\\u0000"}
	s.Rotate = func(t *testing.T, renewed bool) {
		t.Helper()
		if token.Store("Bearer two"); renewed {
			receivertest.WriteSecret(t, file, "two")
		}
	}
	return s
}

func TestTheContractOfAReceiver(t *testing.T) {
	receivertest.Run(t, func(t *testing.T, trusted receivertest.Trust) receivertest.Server {
		t.Helper()
		return open(t, trusted, receivertest.Made)
	})
}

func TestAnAlertHasTheSameLabelsAsLongAsItsIncidentAndEndsWithIt(t *testing.T) {
	now := receivertest.Made()
	s := open(t, true, func() time.Time { return now })
	n := receivertest.Notice("n1")
	send := func() alert {
		t.Helper()
		if _, err := s.Receiver.Send(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		var alerts []alert
		all := s.Received()
		if err := json.Unmarshal([]byte(all[len(all)-1]), &alerts); err != nil || len(alerts) != 1 {
			t.Fatalf("%v: %d alerts, want 1", err, len(alerts))
		}
		return alerts[0]
	}
	first := send()
	now = now.Add(alertmanager.Repeat)
	n.Again, n.Incidents[0].Cause, n.Incidents[0].State = true, incident.CauseNoise, incident.Acknowledged
	again := send()
	n.ID, n.Became, n.Incidents[0].State = "n2", incident.Resolved, incident.Resolved
	over := send()
	for name, a := range map[string]alert{"sent again": again, "over": over} {
		if diff := cmp.Diff(first.Labels, a.Labels); diff != "" {
			t.Errorf("%s (-first +now):\n%s", name, diff)
		}
	}
	if !first.EndsAt.Equal(receivertest.Made().Add(5*time.Minute)) || !again.EndsAt.Equal(now.Add(5*time.Minute)) || !over.EndsAt.Equal(now) {
		t.Errorf("ends at %s, %s, %s", first.EndsAt, again.EndsAt, over.EndsAt)
	}
	if !first.StartsAt.Equal(over.StartsAt) {
		t.Errorf("starts at %s, then at %s", first.StartsAt, over.StartsAt)
	}
}
