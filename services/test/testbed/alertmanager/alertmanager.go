// Package alertmanager gives a test a real Alertmanager: its own API and dispatcher, in a program that is built the first time, which takes
// some minutes. It is started only where BAI_TEST_REAL is 1; else the test is skipped.
package alertmanager

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// Server is an Alertmanager that a test may use alone.
type Server struct {
	URL string
	// Notified has what Alertmanager has sent to a receiver of its own.
	Notified <-chan Notification
}

// Notification is what Alertmanager sends to a webhook, in part.
type Notification struct {
	Status string
	Alerts []Alert
}

// Alert is an alert of a notification or of the API, in part.
type Alert struct {
	Status           any // a text in a notification, an object in the API
	Labels           map[string]string
	Annotations      map[string]string
	StartsAt, EndsAt time.Time
}

// configuration groups nothing, and notifies at once.
const configuration = `route:
  receiver: test
  group_by: ["..."]
  group_wait: 10ms
  group_interval: 100ms
  repeat_interval: 1h
receivers:
  - name: test
    webhook_configs:
      - url: %s
        send_resolved: true
`

// Start returns an Alertmanager that answers, for as long as the test lasts, or skips the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if os.Getenv("BAI_TEST_REAL") != "1" {
		tb.Skip("needs an Alertmanager: set BAI_TEST_REAL=1 to have one built and started")
	}
	program, err := kit.Program(tb.Context(), "alertmanager", "./server")
	if err != nil {
		tb.Fatal(err)
	}
	notified := make(chan Notification, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n Notification
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		notified <- n
	}))
	tb.Cleanup(hook.Close)
	dir := tb.TempDir()
	file := filepath.Join(dir, "alertmanager.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, hook.URL), 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(program, file, dir) //nolint:noctx // it ends with the test
	cmd.Stderr = tb.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = kit.Start(cmd)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // by our own signal
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatalf("Alertmanager does not say where it listens: %v", err)
	}
	return &Server{URL: "http://" + strings.TrimSpace(line), Notified: notified}
}

// Alerts returns the alerts that are not over.
func (s *Server) Alerts(tb testing.TB) (all []Alert) {
	tb.Helper()
	resp, err := http.Get(s.URL + "/api/v2/alerts") //nolint:noctx // on loopback
	if err != nil {
		tb.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close(), json.Unmarshal(body, &all)); err != nil {
		tb.Fatalf("%s: %v", body, err)
	}
	return all
}
