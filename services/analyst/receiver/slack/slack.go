// Package slack posts notices to an incoming webhook of Slack, or of what takes the same requests: Mattermost and Rocket.Chat. A chat
// cannot recognize a repeated notice, so one that may have arrived before says so.
package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/internal/post"
)

// Pause is the time between two notices: Slack takes one a second.
const Pause = time.Second

// Settings say where to post. The URL of an incoming webhook is a secret, so it is in a file, which is read for each notice.
type Settings struct {
	URLFile string
	CAFile  string
	Timeout time.Duration
}

// Receiver implements receiver.Receiver.
type Receiver struct {
	settings Settings
	client   *post.Client
}

// New returns a Receiver. It reads the URL, to fail at once if there is none, and does not wait for the place.
func New(s Settings) (*Receiver, error) {
	if _, err := address(s.URLFile); err != nil {
		return nil, err
	}
	c, err := post.New(post.Settings{CAFile: s.CAFile, Timeout: s.Timeout})
	if err != nil {
		return nil, err
	}
	return &Receiver{settings: s, client: c}, nil
}

// Close closes the idle connections.
func (r *Receiver) Close() error { return r.client.Close() }

// Send implements receiver.Receiver.
func (r *Receiver) Send(ctx context.Context, n notice.Notice) (answer string, err error) {
	body, err := json.Marshal(bodyOf(n))
	if err != nil {
		return "", &receiver.RejectedError{Err: fmt.Errorf("write notice %s: %w", n.ID, err)}
	}
	to, err := address(r.settings.URLFile)
	if err != nil {
		return "", err
	}
	answer, err = r.client.Send(ctx, post.Request{URL: to, Body: body, Headers: map[string]string{"Content-Type": "application/json"}})
	return answer, receiver.FromPost(err)
}

// address returns the URL in a file.
func address(path string) (string, error) {
	text, err := post.Secret(path)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("read the address of an incoming webhook: %s has no URL such as https://hooks.slack.com/services/…", path)
	}
	return text, nil
}
