package bai

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

const longestPause = 5 * time.Second

// A trial repeats what failed because the platform was not there, with growing
// pauses. It is used by one goroutine.
type trial struct {
	settings Settings
	patience time.Duration // without an answer; 0: no end
	pauses   *backoff.ExponentialBackOff
	alive    time.Time // when the platform last answered or was first asked
	lost     bool      // it did not answer since
}

func newTrial(s Settings, patience time.Duration) *trial {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = s.Pause, max(s.Pause, longestPause)
	pauses.Reset()
	return &trial{settings: s, patience: patience, pauses: pauses, alive: time.Now()}
}

// progress notes that the platform answered.
func (t *trial) progress() {
	t.pauses.Reset()
	t.found()
}

// found notes that the platform is there.
func (t *trial) found() {
	if t.lost && t.settings.Found != nil {
		t.settings.Found()
	}
	t.alive, t.lost = time.Now(), false
}

// again waits before the next try after err. It returns the error to give up
// with: err itself if repetition does not mend it or patience is over, that of
// ctx and err if ctx ended.
func (t *trial) again(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*UnavailableError](err); !ok {
		return err
	}
	pause := t.pauses.NextBackOff()
	if t.patience > 0 && time.Since(t.alive)+pause > t.patience {
		return err
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= pause { // no other try: nothing was lost
		<-ctx.Done()
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	t.lost = true
	if t.settings.Lost != nil {
		t.settings.Lost(err)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
}

type method[Req, Res any] func(context.Context, *Req, ...grpc.CallOption) (*Res, error)

// ask calls a method that may be called again with the same request.
func ask[Req, Res any](ctx context.Context, c *Client, m method[Req, Res], req *Req) (*Res, error) {
	t := newTrial(c.settings, c.settings.Patience)
	for {
		res, err := askOnce(ctx, c, m, req)
		if err == nil {
			t.progress()
			return res, nil
		}
		if err := t.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

func askOnce[Req, Res any](ctx context.Context, c *Client, m method[Req, Res], req *Req) (*Res, error) {
	answer, cancel := context.WithTimeout(ctx, c.settings.Answer)
	defer cancel()
	res, err := m(answer, req)
	if err != nil && answer.Err() != nil && ctx.Err() == nil {
		return nil, c.silent(c.settings.Answer)
	}
	return res, typed(ctx, c.target, err)
}

// errEnough ends a stream whose reader wants no more of it.
var errEnough = errors.New("enough")

// errSilent ends a stream from which nothing came for too long.
var errSilent = errors.New("silent")

// A source opens a stream from where the last one broke and hands out what
// comes, keeping the pulse. It returns nil when all was handed out, and errEnough
// when nobody wants more.
type source func(ctx context.Context, p pulse) error

// A pulse notices that nothing comes from a stream.
type pulse struct {
	trial    *trial
	watchdog *time.Timer // nil: silence is fine
	silence  time.Duration
}

// wait is called before each wait for a message.
func (p pulse) wait() {
	if !p.trial.lost {
		p.trial.alive = time.Now() // the reader of the last message took its time
	}
	if p.watchdog != nil {
		p.watchdog.Reset(p.silence)
	}
}

// reached is called with what a stream begins with. Where messages may be hours
// apart it says that the platform is there.
func (p pulse) reached(header metadata.MD, err error) {
	if err == nil && header != nil && p.watchdog == nil {
		p.trial.found()
	}
}

// got is called after each message.
func (p pulse) got() {
	if p.watchdog != nil {
		p.watchdog.Stop()
	}
	p.trial.progress()
}

// follow reads from a source, where messages may be hours apart, until it is
// exhausted or ctx ends.
func (c *Client) follow(ctx context.Context, s source) error {
	return c.read(ctx, pulse{trial: newTrial(c.settings, 0)}, s)
}

// drain reads from a source that has everything at hand.
func (c *Client) drain(ctx context.Context, s source) error {
	return c.read(ctx, pulse{trial: newTrial(c.settings, c.settings.Patience), silence: c.settings.Answer}, s)
}

func (c *Client) read(ctx context.Context, p pulse, s source) error {
	for {
		err := c.readOnce(ctx, p, s)
		if err == nil || errors.Is(err, errEnough) {
			return nil
		}
		if err := p.trial.again(ctx, err); err != nil {
			return err
		}
	}
}

func (c *Client) readOnce(ctx context.Context, p pulse, s source) error {
	open, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if p.silence > 0 {
		p.watchdog = time.AfterFunc(p.silence, func() { cancel(errSilent) })
		defer p.watchdog.Stop()
	}
	err := s(open, p)
	switch {
	case errors.Is(err, errEnough):
		return err
	case err != nil && ctx.Err() == nil && errors.Is(context.Cause(open), errSilent):
		return c.silent(p.silence)
	default:
		return typed(ctx, c.target, err)
	}
}

func (c *Client) silent(d time.Duration) error {
	return &UnavailableError{Target: c.target, Message: fmt.Sprintf("no answer within %s", d)}
}
