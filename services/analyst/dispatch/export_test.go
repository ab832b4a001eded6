package dispatch

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/receiver"
)

// Over is over.
func Over(channels []receiver.Channel, st Store, now func() time.Time, log *zap.Logger) *Dispatcher {
	return over(channels, st, now, log)
}

// Round does what is due for one receiver, and returns the time until more is.
func (d *Dispatcher) Round(ctx context.Context, name string) (time.Duration, error) {
	return d.workers[name].round(ctx)
}
