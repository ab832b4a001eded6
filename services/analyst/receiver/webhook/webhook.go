// Package webhook posts notices as JSON to a URL of the operator's choice, signed as the specification Standard Webhooks says, as the sink
// of the same name signs. A notice has the same webhook-id each time it is posted, so that a receiver can recognize it.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/internal/post"
)

// Settings say where to post.
type Settings struct {
	post.Settings

	SecretFile string
}

// Receiver implements receiver.Receiver.
type Receiver struct {
	settings Settings
	client   *post.Client
	now      func() time.Time
}

// New returns a Receiver. It reads the secret, to fail at once if there is none, and does not wait for the place.
func New(s Settings, now func() time.Time) (*Receiver, error) {
	if _, err := post.Key(s.SecretFile); err != nil {
		return nil, err
	}
	c, err := post.New(s.Settings)
	if err != nil {
		return nil, err
	}
	return &Receiver{settings: s, client: c, now: now}, nil
}

// Close closes the idle connections.
func (r *Receiver) Close() error { return r.client.Close() }

// Send implements receiver.Receiver.
func (r *Receiver) Send(ctx context.Context, n notice.Notice) (answer string, err error) {
	body, err := json.Marshal(bodyOf(n))
	if err != nil {
		return "", &receiver.RejectedError{Err: fmt.Errorf("write notice %s: %w", n.ID, err)}
	}
	key, err := post.Key(r.settings.SecretFile)
	if err != nil {
		return "", err
	}
	headers := map[string]string{
		"Content-Type": "application/json", "Ce-Specversion": "1.0", "Ce-Id": n.ID, "Ce-Type": "bai.notice", "Ce-Source": "bai",
		"Ce-Time": n.Made.UTC().Format(time.RFC3339Nano),
	}
	maps.Copy(headers, post.Signed(key, n.ID, r.now(), body))
	answer, err = r.client.Send(ctx, post.Request{Body: body, Headers: headers})
	return answer, receiver.FromPost(err)
}
