package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// retry calls ask until it succeeds or another try would not help. It returns
// store.ErrNotFound and store.ErrConflict unchanged.
func (d *download) retry(ctx context.Context, ask func(context.Context) error) error {
	for {
		err := d.attemptOnce(ctx, ask)
		_, own := errors.AsType[*Error](err)
		sink, ofSink := errors.AsType[sinkError](err)
		switch {
		case err == nil, own:
			return err
		case ofSink && !errors.Is(context.Cause(ctx), errDeadline):
			return sink.error
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict):
			return err
		case errors.Is(err, store.ErrRefused):
			return failed(event.ClassUser, "source %s: the platform is not let in: %v", d.name, err)
		case errors.Is(err, store.ErrTooLarge):
			return unreadablyLarge(d.name, err)
		case errors.Is(err, errors.ErrUnsupported):
			return failed(event.ClassUser, "source %s cannot be read: %v", d.name, err)
		}
		why, wait, fatal := d.classifyWithWait(ctx, err)
		if fatal != nil {
			return fatal
		}
		if err := d.waitRetry(ctx, why, wait); err != nil {
			return err
		}
	}
}

// classifyWithWait does the same as explain, and also returns the wait that the server
// asks for.
func (d *download) classifyWithWait(ctx context.Context, cause error) (why string, wait time.Duration, err error) {
	why, err = d.explain(ctx, cause)
	busy, ok := errors.AsType[*store.UnavailableError](cause)
	if err != nil || !ok {
		return why, 0, err
	}
	v := classifyStatus(d.name, busy.Status, fmt.Sprintf("%d %s", busy.Status, http.StatusText(busy.Status)), busy.RetryAfter, time.Now())
	if v.fatal != nil {
		return "", 0, v.fatal
	}
	return v.reason, v.wait, nil
}

func (d *download) attemptOnce(ctx context.Context, ask func(context.Context) error) error {
	asking, body, err := newBody(ctx, d.host, d.reader.settings.Stall)
	if err != nil {
		return err
	}
	d.body = body
	defer body.close()
	return ask(asking)
}
