package rpc

import (
	"context"
	"time"
)

// pollInterval is the time between two reads of the store. Changed does not report a
// write of another process.
const pollInterval = 400 * time.Millisecond

// WaitForChange returns when changed is closed, or after pollInterval. Its only errors
// are those of ctx.
func WaitForChange(ctx context.Context, changed <-chan struct{}) error {
	t := time.NewTimer(pollInterval)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-t.C:
	}
	return nil
}
