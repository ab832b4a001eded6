// Package follow shows the progress of a run.
package follow

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A Watcher returns every change of a run after a revision, as bai.Client does.
type Watcher interface {
	Watch(ctx context.Context, run string, after int64) iter.Seq2[*baiv1.Change, error]
}

// A Follower shows the progress of one run: lasting lines and, on a terminal, one live
// line.
type Follower struct {
	Screen   *screen.Screen
	Watcher  Watcher
	ID       string
	Begin    time.Time           // since when time is counted
	OnChange func(*baiv1.Change) // shows a change; nil: as a line, and there is a live one
	All      bool                // every change is shown, on a terminal too

	last  *baiv1.Change
	meter meter
}

// Follow shows the progress until the run's end, and returns the terminal change. If ctx
// ends before, it returns a DetachedError.
func (f *Follower) Follow(ctx context.Context) (*baiv1.Change, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer f.Screen.Live("")
	err := handleEach(ctx, f.Watcher.Watch(ctx, f.ID, 0), f.handle, f.refresh)
	return f.last, f.detachedError(ctx, err)
}

// handleEach hands each element of a sequence to handle, and calls refresh in between, until the sequence ends or has an error, which it
// returns. The sequence ends with ctx.
func handleEach[T any](ctx context.Context, all iter.Seq2[T, error], handle func(T), refresh func()) error {
	type element struct {
		value T
		err   error
	}
	elements := make(chan element)
	go func() {
		defer close(elements)
		for value, err := range all {
			select {
			case elements <- element{value, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case e, ok := <-elements:
			if !ok || e.err != nil {
				return e.err
			}
			handle(e.value)
		case <-tick.C:
			refresh()
		}
	}
}

// detachedError is the error of a run that is not followed any longer.
func (f *Follower) detachedError(ctx context.Context, err error) error {
	ended := f.last.GetPhase() == baiv1.Phase_PHASE_FINISHED
	if ctx.Err() != nil && !ended {
		return &exitcode.DetachedError{ID: f.ID, Cause: context.Cause(ctx)}
	}
	return err
}

func (f *Follower) handle(c *baiv1.Change) {
	if f.All || isNotable(f.last, c) || !f.Screen.IsLive() {
		f.show(c)
	}
	f.last = c
	f.meter.observe(c)
	f.refresh()
}

func (f *Follower) show(c *baiv1.Change) {
	if f.OnChange != nil {
		f.OnChange(c)
		return
	}
	f.Screen.Line(Line(f.Screen, c))
}

// Line is a change on one line, or on several where it is too long for the screen.
func Line(s *screen.Screen, c *baiv1.Change) string {
	at := printer.Time(c.GetTime())
	if s.IsTerminal() {
		at = c.GetTime().AsTime().Local().Format(time.TimeOnly)
	}
	phase, description := printer.Word(c.GetPhase()), Describe(c)
	pad := ""
	if description != "" {
		pad = strings.Repeat(" ", max(0, 12-len(phase)))
	}
	status := printer.Status(&baiv1.Run{Phase: c.GetPhase(), Outcome: c.GetOutcome()})
	line := printer.Hang(at+"  "+phase+pad, description, s.Width())
	return strings.Replace(line, phase, s.Paint(Style(status), phase), 1)
}

func (f *Follower) refresh() {
	if f.OnChange != nil || f.last == nil || f.last.GetPhase() == baiv1.Phase_PHASE_FINISHED {
		return
	}
	f.Screen.Live(liveLine(f.last, time.Since(f.Begin), f.meter.rate()))
}
