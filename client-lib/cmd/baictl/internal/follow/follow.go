// Package follow shows what happens to a run while it happens.
package follow

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A Watcher returns every change of a run after a revision, as bai.Client does.
type Watcher interface {
	Watch(ctx context.Context, run string, after int64) iter.Seq2[*baiv1.Change, error]
}

// A Follower shows what happens to one run: lines that last and, on a terminal,
// one that is live.
type Follower struct {
	Screen  *screen.Screen
	Watcher Watcher
	ID      string
	Begin   time.Time           // since when time is counted
	Say     func(*baiv1.Change) // shows a change; nil: as a line, and there is a live one
	All     bool                // every change is shown, on a terminal too

	last  *baiv1.Change
	meter meter
}

// news is a change of a run, or why there are no more.
type news struct {
	change *baiv1.Change
	err    error
}

// Follow shows what happens until the run's end, and returns the terminal
// change. If ctx ends before, it returns a LeftError.
func (f *Follower) Follow(ctx context.Context) (*baiv1.Change, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan news)
	go f.watch(ctx, changes)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	defer f.Screen.Live("")
	for {
		select {
		case n, ok := <-changes:
			if !ok || n.err != nil {
				return f.last, f.left(ctx, n.err)
			}
			f.see(n.change)
		case <-tick.C:
			f.refresh()
		}
	}
}

func (f *Follower) watch(ctx context.Context, changes chan<- news) {
	defer close(changes)
	for change, err := range f.Watcher.Watch(ctx, f.ID, 0) {
		select {
		case changes <- news{change, err}:
		case <-ctx.Done():
			return
		}
	}
}

// left is the error after which nobody follows the run any more.
func (f *Follower) left(ctx context.Context, err error) error {
	ended := f.last.GetPhase() == baiv1.Phase_PHASE_FINISHED
	if ctx.Err() != nil && !ended {
		return &verdict.LeftError{ID: f.ID, Why: context.Cause(ctx)}
	}
	return err
}

func (f *Follower) see(c *baiv1.Change) {
	if f.All || isNews(f.last, c) || !f.Screen.IsLive() {
		f.show(c)
	}
	f.last = c
	f.meter.see(c)
	f.refresh()
}

func (f *Follower) show(c *baiv1.Change) {
	if f.Say != nil {
		f.Say(c)
		return
	}
	f.Screen.Line(Line(f.Screen, c))
}

// Line is a change on one line, or on several where it is too long for the screen.
func Line(s *screen.Screen, c *baiv1.Change) string {
	at := show.Time(c.GetTime())
	if s.IsTerminal() {
		at = c.GetTime().AsTime().Local().Format(time.TimeOnly)
	}
	phase, told := show.Word(c.GetPhase()), Tells(c)
	pad := ""
	if told != "" {
		pad = strings.Repeat(" ", max(0, 12-len(phase)))
	}
	status := show.Status(&baiv1.Run{Phase: c.GetPhase(), Outcome: c.GetOutcome()})
	line := show.Hang(at+"  "+phase+pad, told, s.Width())
	return strings.Replace(line, phase, s.Paint(Style(status), phase), 1)
}

func (f *Follower) refresh() {
	if f.Say != nil || f.last == nil || f.last.GetPhase() == baiv1.Phase_PHASE_FINISHED {
		return
	}
	f.Screen.Live(standing(f.last, time.Since(f.Begin), f.meter.rate()))
}
