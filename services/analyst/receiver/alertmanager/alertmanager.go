// Package alertmanager sends notices as alerts to Prometheus' Alertmanager, by its API v2, and through it to whatever it has receivers for.
// It ends an alert that nobody sends again, so notices of incidents that go on are sent again every Repeat.
package alertmanager

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/internal/post"
)

// Repeat is how often a notice of firing incidents is sent again.
const Repeat = time.Minute

// Receiver implements receiver.Receiver.
type Receiver struct {
	client *post.Client
	url    string
	now    func() time.Time
}

// New returns a Receiver for the Alertmanager at the URL of the settings. It does not wait for it.
func New(s post.Settings, now func() time.Time) (*Receiver, error) {
	c, err := post.New(s)
	if err != nil {
		return nil, err
	}
	return &Receiver{client: c, url: strings.TrimSuffix(s.URL, "/") + "/api/v2/alerts", now: now}, nil
}

// Close closes the idle connections.
func (r *Receiver) Close() error { return r.client.Close() }

// Send implements receiver.Receiver.
func (r *Receiver) Send(ctx context.Context, n notice.Notice) (answer string, err error) {
	body, err := json.Marshal(alertsOf(n, r.now()))
	if err != nil {
		return "", &receiver.RejectedError{Err: fmt.Errorf("write notice %s: %w", n.ID, err)}
	}
	answer, err = r.client.Send(ctx, post.Request{URL: r.url, Body: body, Headers: map[string]string{"Content-Type": "application/json"}})
	return answer, receiver.FromPost(err)
}
