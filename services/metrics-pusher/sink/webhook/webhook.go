// Package webhook posts the ends of runs to a URL of the operator's choice, and samples if the settings ask for them: one HTTP POST for
// each event, signed according to the Standard Webhooks specification, with the event's JSON as its body.
//
// An event has the same ID, webhook-id, each time it is posted, so that a receiver can recognize it. It is retried while the place is away,
// until it is older than settings allow.
package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/post"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
)

// Settings say where to post, and what.
type Settings struct {
	post.Settings

	// file with the secret that requests are signed with: 24 bytes or more, as they are, or whsec_ and base64
	SecretFile  string        `toml:"secret_file"`
	Samples     bool          `toml:"samples"` // posts samples too, as they come: a request for each message of theirs
	GiveUpAfter time.Duration `toml:"give_up"` // how old an event may become while the place is away; zero means 24h
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	errs := []error{s.Settings.Validate("sinks.webhook")}
	if s.SecretFile == "" {
		errs = append(errs, errors.New("sinks.webhook.secret_file: is needed: who receives requests knows by their signature whose they are"))
	}
	if s.GiveUpAfter < 0 {
		errs = append(errs, errors.New("sinks.webhook.give_up: must not be negative"))
	}
	return errors.Join(errs...)
}

// Sink implements sink.Sink and the interface finishedSink of package sink.
type Sink struct {
	settings Settings
	client   *post.Client
	now      func() time.Time
}

// New returns a Sink. It reads the secret, to fail at once if there is none, and does not wait for the place.
func New(s Settings, now func() time.Time) (*Sink, error) {
	s.GiveUpAfter = cmp.Or(s.GiveUpAfter, 24*time.Hour)
	if _, err := post.Key(s.SecretFile); err != nil {
		return nil, err
	}
	c, err := post.New(s.Settings)
	if err != nil {
		return nil, err
	}
	return &Sink{settings: s, client: c, now: now}, nil
}

// Close closes the idle connections.
func (s *Sink) Close() error { return s.client.Close() }

// Samples implements sink.Sink.
func (s *Sink) Samples(ctx context.Context, batches []event.Metrics) error {
	if !s.settings.Samples {
		return nil
	}
	refused, why := 0, error(nil)
	for _, b := range batches {
		if len(b.Samples) == 0 {
			continue
		}
		no, err := s.postEvent(ctx, b)
		if err != nil {
			return err
		}
		if no != nil {
			refused, why = refused+len(b.Samples), no
		}
	}
	return sink.Rejected(refused, why)
}

// Finished implements the interface finishedSink of package sink.
func (s *Sink) Finished(ctx context.Context, ends []event.Finished) error {
	refused, why := 0, error(nil)
	for _, end := range ends {
		no, err := s.postEvent(ctx, end)
		if err != nil {
			return err
		}
		if no != nil {
			refused, why = refused+1, no
		}
	}
	return sink.Rejected(refused, why)
}

// postEvent posts an event. It returns refused if the place will never take the event, and err if the place cannot take it now.
func (s *Sink) postEvent(ctx context.Context, ev event.Event) (refused, err error) {
	m, err := event.Encode(ev)
	if err != nil {
		return err, nil
	}
	key, err := post.Key(s.settings.SecretFile)
	if err != nil {
		return nil, err
	}
	now := s.now()
	headers := map[string]string{
		"Content-Type": "application/json", "Ce-Specversion": "1.0", "Ce-Id": m.ID, "Ce-Type": m.Type, "Ce-Source": "bai",
		"Ce-Time": m.Time.Format(time.RFC3339Nano),
	}
	maps.Copy(headers, post.Signed(key, m.ID, now, m.Value))
	err = s.client.Post(ctx, m.Value, headers)
	var no *post.PermanentError
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &no):
		return no, nil
	case ctx.Err() == nil && !ev.Head().PublishedAt.IsZero() && now.Sub(ev.Head().PublishedAt) > s.settings.GiveUpAfter:
		return fmt.Errorf("given up after %s: %w", s.settings.GiveUpAfter, err), nil
	}
	return nil, err
}
