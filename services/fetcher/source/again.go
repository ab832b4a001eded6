package source

import (
	"context"
	"errors"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// again asks until it is answered, however many times that takes. What is not
// there, or has changed, is said as it is.
func (d *download) again(ctx context.Context, ask func(context.Context) error) error {
	for {
		err := d.once(ctx, ask)
		switch own := new(Error); {
		case err == nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict), errors.As(err, &own):
			return err
		case errors.As(err, new(sinkError)):
			return errors.Unwrap(err)
		case errors.Is(err, store.ErrRefused):
			return failed(event.ClassUser, "source %s: the platform is not let in: %v", d.name, err)
		}
		why, fatal := d.explain(ctx, err)
		if fatal != nil {
			return fatal
		}
		if err := d.pause(ctx, why, 0); err != nil {
			return err
		}
	}
}

func (d *download) once(ctx context.Context, ask func(context.Context) error) error {
	asking, body, err := newBody(ctx, d.host, d.reader.settings.Stall)
	if err != nil {
		return err
	}
	d.body = body
	defer body.close()
	return ask(asking)
}
