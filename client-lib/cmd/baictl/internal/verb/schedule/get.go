package schedule

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func get(s *session.Session) *cobra.Command {
	return one(s, &cobra.Command{
		Use:   "get SCHEDULE",
		Short: "Show a schedule, when it fires, and what it fired",
		Long: `Shows a schedule, when it fires next, and what became of its last firings, the
latest first. A firing that is missed has no run, or had one that went on when
the schedule was to fire again. Times are in the zone of the schedule.

With -o json or yaml: the schedule, with its descriptor. With -o name: its ID.`,
	}, func(ctx context.Context, c *bai.Client, name string) error {
		got, err := c.Schedule(ctx, name)
		switch {
		case err != nil:
			return err
		case s.Structured() || s.Output == "name":
			return printOne(s, got)
		}
		if err := session.Put(s.Env.Out, about(got, s.Screen)); err != nil || len(got.GetFirings()) == 0 {
			return err
		}
		if err := session.Put(s.Env.Out, "\n"); err != nil {
			return err
		}
		return s.PrintTable(firings(got))
	})
}

// about says what a schedule is, a line for each that there is to say.
func about(got *baiv1.Schedule, on *screen.Screen) string {
	width := show.Unbound // scripts look for its lines
	if on.IsTerminal() {
		width = on.Width()
	}
	var text strings.Builder
	line := func(name, value string) {
		if value != "" {
			text.WriteString(show.Hang(fmt.Sprintf("%-12s ", name), show.Clean(value), width) + "\n")
		}
	}
	zone := got.GetTimezone()
	line("schedule", got.GetId())
	line("name", got.GetName())
	line("description", got.GetDescription())
	line("fires", fmt.Sprintf("%s in %s", got.GetScheduling(), zone))
	line("delay", span(got.GetDelaySeconds()))
	line("from", show.In(got.GetStartTime(), zone))
	line("until", show.In(got.GetEndTime(), zone))
	line("concurrency", got.GetConcurrency())
	missed := got.GetMissed()
	if missed != "skip" {
		missed += ", up to " + span(got.GetMissedWindowSeconds()) + " late"
	}
	line("missed", missed)
	line("owner", got.GetOwner())
	line("namespace", got.GetNamespace())
	line("descriptor", strings.TrimPrefix(fmt.Sprintf("%s, version %d", got.GetDescriptorFile(), got.GetVersion()), ", "))
	line("labels", show.Labels(got.GetLabels()))
	if got.GetPaused() {
		line("paused", "by "+cmp.Or(got.GetPausedBy(), "its descriptor")+", "+show.In(got.GetUpdateTime(), zone))
	}
	for _, b := range got.GetBackfills() {
		line("backfill", fmt.Sprintf("from %s, to %s, at %s", show.In(b.GetFrom(), zone), show.In(b.GetTo(), zone), show.In(b.GetNext(), zone)))
	}
	for i, at := range got.GetNextFirings() {
		line([]string{"next", ""}[min(i, 1)], show.In(at, zone))
	}
	return text.String()
}

func span(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return show.Duration(time.Duration(seconds) * time.Second)
}

func firings(got *baiv1.Schedule) show.Table {
	t := show.Table{Columns: []show.Column{{Title: "FIRING"}, {Title: "RUN"}, {Title: "STATUS"}, {Title: "MISSED", Optional: true}, {Title: "REASON"}, {Title: "MESSAGE", Flex: true, Wrap: true}}}
	for _, f := range got.GetFirings() {
		at := show.In(f.GetTime(), got.GetTimezone())
		if f.GetCount() > 1 {
			at += fmt.Sprintf(" +%d", f.GetCount()-1)
		}
		missed := ""
		if f.GetMissed() {
			missed = "missed"
		}
		status := ""
		if f.GetRunId() != "" {
			status = show.Status(&baiv1.Run{Phase: f.GetPhase(), Outcome: f.GetOutcome()})
		}
		t.Rows = append(t.Rows, []string{at, f.GetRunId(), status, missed, f.GetReason(), f.GetMessage()})
	}
	return t
}
