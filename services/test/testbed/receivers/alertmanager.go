package receivers

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	bed "github.com/benchmark-ai/bai/services/test/testbed/alertmanager"
)

// Alertmanager is a proxy of the real one where BAI_TEST_REAL is 1, else a server that notifies as that does, without its groups.
type Alertmanager struct {
	log

	server *httptest.Server
	real   *bed.Server          // nil without
	active map[string]time.Time // by incident, when its alert ends; without a real one
}

func startAlertmanager(t *testing.T) *Alertmanager {
	t.Helper()
	a := &Alertmanager{active: map[string]time.Time{}}
	if os.Getenv("BAI_TEST_REAL") == "1" {
		a.real = bed.Start(t)
		go func() {
			for n := range a.real.Notified { // which nobody closes
				for _, alert := range n.Alerts {
					a.notify(alert.Labels["incident"], n.Status)
				}
			}
		}()
	}
	a.server = a.serve(t, a.take)
	return a
}

func (a *Alertmanager) settings() map[string]any {
	return map[string]any{"kind": "alertmanager", "url": a.server.URL}
}

// notify notes that somebody was notified of an alert; the notice of such an arrival is the ID of the incident.
func (a *Alertmanager) notify(incident, status string) {
	a.add(Arrival{Notice: incident, Became: status})
}

// alert is what Alertmanager documents of an alert.
type alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
}

func (a *Alertmanager) take(w http.ResponseWriter, r *http.Request, body []byte) {
	var alerts []alert
	if err := strictly(body, &alerts); err != nil || r.Method != http.MethodPost || r.URL.Path != "/api/v2/alerts" {
		a.refuse("%s %s: %v: %s", r.Method, r.URL, err, body)
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	if a.real != nil {
		a.forward(w, r, body)
		return
	}
	for _, one := range alerts {
		a.judge(one)
	}
}

// forward passes a request on to the real Alertmanager.
func (a *Alertmanager) forward(w http.ResponseWriter, r *http.Request, body []byte) {
	req, err := http.NewRequestWithContext(r.Context(), r.Method, a.real.URL+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	req.Header.Set("Content-Type", r.Header.Get("Content-Type"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if resp.StatusCode >= http.StatusBadRequest {
		text, _ := io.ReadAll(resp.Body)
		a.refuse("%d: %s: %s", resp.StatusCode, text, body)
	}
	w.WriteHeader(resp.StatusCode)
}

// judge notifies of an alert that begins or ends.
func (a *Alertmanager) judge(one alert) {
	id := one.Labels["incident"]
	if one.Labels["alertname"] == "" || id == "" || one.EndsAt.Before(one.StartsAt) {
		text, _ := json.Marshal(one)
		a.refuse("%s", text)
		return
	}
	a.mu.Lock()
	_, fires := a.active[id]
	over := !one.EndsAt.After(time.Now())
	if delete(a.active, id); !over {
		a.active[id] = one.EndsAt
	}
	a.mu.Unlock()
	switch {
	case over && fires:
		a.notify(id, "resolved")
	case !over && !fires:
		a.notify(id, "firing")
	}
}
