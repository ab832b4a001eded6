package dispatch

import (
	"context"
	"time"
)

// Round does what is due for one receiver, and returns the time until more is.
func (d *Dispatcher) Round(ctx context.Context, name string) (time.Duration, error) {
	return d.workers[name].round(ctx)
}
