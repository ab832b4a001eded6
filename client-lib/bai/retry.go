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

// A retryer repeats calls to an unreachable platform, with growing pauses. One goroutine
// uses it.
type retryer struct {
	settings   Settings
	timeout    time.Duration // without an answer; 0: no end
	pauses     *backoff.ExponentialBackOff
	lastAnswer time.Time // when the platform last answered or was first asked
	lost       bool      // it did not answer since
}

func newRetryer(s Settings, timeout time.Duration) *retryer {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = s.Pause, max(s.Pause, longestPause)
	pauses.Reset()
	return &retryer{settings: s, timeout: timeout, pauses: pauses, lastAnswer: time.Now()}
}

// onSuccess notes that the platform answered.
func (t *retryer) onSuccess() {
	t.pauses.Reset()
	t.onReachable()
}

// onReachable records that the platform answers.
func (t *retryer) onReachable() {
	if t.lost && t.settings.Found != nil {
		t.settings.Found()
	}
	t.lastAnswer, t.lost = time.Now(), false
}

// waitRetry waits before the next try after err, as long as the platform asks for at
// least. It returns the final error: err itself
// if a retry cannot help or the time for retries is over, ctx's error and err if ctx
// ended.
func (t *retryer) waitRetry(ctx context.Context, err error) error {
	unavailable, ok := errors.AsType[*UnavailableError](err)
	if !ok {
		return err
	}
	pause := max(t.pauses.NextBackOff(), unavailable.RetryAfter)
	if t.timeout > 0 && time.Since(t.lastAnswer)+pause > t.timeout {
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

// callWithRetry calls a method that may be called again with the same request.
func callWithRetry[Req, Res any](ctx context.Context, c *Client, m method[Req, Res], req *Req) (*Res, error) {
	t := newRetryer(c.settings, c.settings.RetryTimeout)
	for {
		res, err := callOnce(ctx, c, m, req)
		if err == nil {
			t.onSuccess()
			return res, nil
		}
		if err := t.waitRetry(ctx, err); err != nil {
			return nil, err
		}
	}
}

func callOnce[Req, Res any](ctx context.Context, c *Client, m method[Req, Res], req *Req) (*Res, error) {
	answer, cancel := context.WithTimeout(ctx, c.settings.Answer)
	defer cancel()
	res, err := m(answer, req)
	if err != nil && answer.Err() != nil && ctx.Err() == nil {
		return nil, c.idleError(c.settings.Answer)
	}
	return res, toClientError(ctx, c.target, err)
}

// errStopped ends a stream whose reader wants no more of it.
var errStopped = errors.New("enough")

// errIdle ends a stream from which nothing came for too long.
var errIdle = errors.New("silent")

// A streamFunc opens a stream at the position where the last one broke, hands out its
// messages and keeps the watchdog informed. It returns nil at the end of the stream, and
// errStopped if the consumer wants no more.
type streamFunc func(ctx context.Context, p streamWatchdog) error

// A pulse notices that nothing comes from a stream.
type streamWatchdog struct {
	retryer     *retryer
	timer       *time.Timer // nil: silence is fine
	idleTimeout time.Duration
}

// beforeRecv is called before each wait for a message.
func (p streamWatchdog) beforeRecv() {
	if !p.retryer.lost {
		p.retryer.lastAnswer = time.Now() // the reader of the last message took its time
	}
	if p.timer != nil {
		p.timer.Reset(p.idleTimeout)
	}
}

// onHeader is called with the header of a stream. Where messages may be hours apart, the
// header shows that the platform is reachable.
func (p streamWatchdog) onHeader(header metadata.MD, err error) {
	if err == nil && header != nil && p.timer == nil {
		p.retryer.onReachable()
	}
}

// afterRecv is called after each message.
func (p streamWatchdog) afterRecv() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.retryer.onSuccess()
}

// follow reads from a source, where messages may be hours apart, until it is
// exhausted or ctx ends.
func (c *Client) follow(ctx context.Context, s streamFunc) error {
	return c.read(ctx, streamWatchdog{retryer: newRetryer(c.settings, 0)}, s)
}

// drain reads from a source that has everything at hand.
func (c *Client) drain(ctx context.Context, s streamFunc) error {
	return c.read(ctx, streamWatchdog{retryer: newRetryer(c.settings, c.settings.RetryTimeout), idleTimeout: c.settings.Answer}, s)
}

func (c *Client) read(ctx context.Context, p streamWatchdog, s streamFunc) error {
	for {
		err := c.readOnce(ctx, p, s)
		if err == nil || errors.Is(err, errStopped) {
			return nil
		}
		if err := p.retryer.waitRetry(ctx, err); err != nil {
			return err
		}
	}
}

func (c *Client) readOnce(ctx context.Context, p streamWatchdog, s streamFunc) error {
	open, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if p.idleTimeout > 0 {
		p.timer = time.AfterFunc(p.idleTimeout, func() { cancel(errIdle) })
		defer p.timer.Stop()
	}
	err := s(open, p)
	switch {
	case errors.Is(err, errStopped):
		return err
	case err != nil && ctx.Err() == nil && errors.Is(context.Cause(open), errIdle):
		return c.idleError(p.idleTimeout)
	default:
		return toClientError(ctx, c.target, err)
	}
}

func (c *Client) idleError(d time.Duration) error {
	return &UnavailableError{Target: c.target, Message: fmt.Sprintf("no answer within %s", d)}
}
