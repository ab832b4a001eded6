package follow

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A SetWatcher returns a set after each of its changes, as bai.Client does.
type SetWatcher interface {
	WatchSet(ctx context.Context, name string) iter.Seq2[*baiv1.Set, error]
}

// A SetFollower shows the progress of one set: lasting lines and, on a terminal, one live
// line with the counts of its runs.
type SetFollower struct {
	Screen   *screen.Screen
	Watcher  SetWatcher
	ID       string
	OnChange func(*baiv1.Set) // shows a change; nil: as a line, and there is a live one

	last *baiv1.Set
}

// Follow shows the progress until the set has finished, and returns the set. If ctx ends
// before, it returns a DetachedError.
func (f *SetFollower) Follow(ctx context.Context) (*baiv1.Set, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer f.Screen.Live("")
	err := handleEach(ctx, f.Watcher.WatchSet(ctx, f.ID), f.handle, f.refresh)
	return f.last, f.detachedError(ctx, err)
}

// detachedError is the error of a set that is not followed any longer.
func (f *SetFollower) detachedError(ctx context.Context, err error) error {
	if ctx.Err() != nil && f.last.GetState() != baiv1.SetState_SET_STATE_FINISHED {
		return &exitcode.DetachedError{ID: f.ID, Cause: context.Cause(ctx), Set: true}
	}
	return err
}

func (f *SetFollower) handle(set *baiv1.Set) {
	switch {
	case f.OnChange != nil:
		f.OnChange(set)
	case isNotableSet(f.last, set, f.Screen.IsLive()):
		f.Screen.Line(SetLine(f.Screen, set))
	}
	f.last = set
	f.refresh()
}

func (f *SetFollower) refresh() {
	if f.OnChange != nil || f.last == nil || f.last.GetState() == baiv1.SetState_SET_STATE_FINISHED {
		return
	}
	elapsed := time.Since(f.last.GetCreateTime().AsTime()).Truncate(time.Second)
	f.Screen.Live(printer.SetStatus(f.last) + "  " + printer.Duration(elapsed) + "  " + printer.SetProgress(f.last))
}

// SetLine is the state of a set on one line, or on several where it is too long for the
// screen.
func SetLine(s *screen.Screen, set *baiv1.Set) string {
	at := printer.Time(set.GetUpdateTime())
	if s.IsTerminal() {
		at = set.GetUpdateTime().AsTime().Local().Format(time.TimeOnly)
	}
	status, text := printer.SetStatus(set), printer.SetProgress(set)
	if set.GetMessage() != "" {
		text += fmt.Sprintf(" (%s)", set.GetMessage())
	}
	line := printer.Hang(at+"  "+status+strings.Repeat(" ", max(0, 12-len(status))), printer.Clean(text), s.Width())
	return strings.Replace(line, status, s.Paint(Style(status), status), 1)
}
