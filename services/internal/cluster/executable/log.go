package executable

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
)

// Log implements cluster.Logger.
func (c *Cluster) Log(ctx context.Context, l cluster.Log) (io.ReadCloser, error) {
	all, err := c.states(ctx)
	if err != nil {
		return nil, err
	}
	for at, s := range all {
		if s.Record.Scope == l.Scope && s.Record.Job+"-0" == l.Pod {
			ctx, cancel := context.WithCancel(ctx)
			return &logReader{ctx: ctx, cancel: cancel, cluster: c, attempt: at, since: l.Since}, nil
		}
	}
	return nil, fmt.Errorf("pod %s: %w", l.Pod, cluster.ErrNotFound)
}

// logReader reads the lines of an attempt, page by page.
type logReader struct {
	ctx     context.Context //nolint:containedctx // io.Reader has none
	cancel  context.CancelFunc
	cluster *Cluster
	attempt attempt
	since   time.Time
	cursor  string
	end     bool
	text    bytes.Buffer
}

// Read implements io.Reader.
func (r *logReader) Read(b []byte) (int, error) {
	for r.text.Len() == 0 {
		if r.end {
			return 0, io.EOF
		}
		if err := r.fill(); err != nil {
			return 0, err
		}
		if r.text.Len() == 0 && !r.end && !control.Sleep(r.ctx, r.cluster.settings.Poll) {
			return 0, r.ctx.Err()
		}
	}
	return r.text.Read(b)
}

// fill asks for the next page.
func (r *logReader) fill() error {
	a, err := r.cluster.call(r.ctx, request{Call: callLog, Run: r.attempt.run, Attempt: r.attempt.number, Cursor: r.cursor}, "the log")
	if err != nil {
		return err
	}
	for _, l := range a.Lines {
		if !l.Time.Before(r.since) {
			fmt.Fprintf(&r.text, "%s %s\n", l.Time.UTC().Format(time.RFC3339Nano), l.Text)
		}
	}
	r.end = a.End && a.Cursor == r.cursor || a.End && len(a.Lines) == 0
	r.cursor = a.Cursor
	return nil
}

// Close implements io.Closer.
func (r *logReader) Close() error {
	r.cancel()
	return nil
}
