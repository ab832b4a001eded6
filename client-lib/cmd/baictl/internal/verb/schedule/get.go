package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func get(s *session.Session) *cobra.Command {
	return oneScheduleCommand(s, &cobra.Command{
		Use:   "get SCHEDULE",
		Short: "Show a schedule, its next firing, and its last ones",
		Long: `Shows a schedule, its next firing, and the outcome of its last firings, the
latest first. A firing of a descriptor with a table sweep is a set. A firing
that is missed has no run, or had one that went on when the schedule was to fire
again. Times are in the zone of the schedule.

With -o json or yaml: the schedule, with its descriptor. With -o name: its ID.`,
	}, func(ctx context.Context, c *bai.Client, name string) error {
		got, err := c.Schedule(ctx, name)
		switch {
		case err != nil:
			return err
		case s.Structured() || s.Output == "name":
			return printOne(s, got)
		}
		if err := session.WriteText(s.Env.Out, describe(got, s.Screen)); err != nil || len(got.GetFirings()) == 0 {
			return err
		}
		if err := session.WriteText(s.Env.Out, "\n"); err != nil {
			return err
		}
		return s.PrintTable(firings(got))
	})
}

// describe describes a schedule, a line for each field that is set.
func describe(got *baiv1.Schedule, on *screen.Screen) string {
	width := printer.Unbound // scripts look for its lines
	if on.IsTerminal() {
		width = on.Width()
	}
	var text strings.Builder
	line := func(name, value string) {
		if value != "" {
			text.WriteString(printer.Hang(fmt.Sprintf("%-12s ", name), printer.Clean(value), width) + "\n")
		}
	}
	zone := got.GetTimezone()
	line("schedule", got.GetId())
	line("name", got.GetName())
	line("description", got.GetDescription())
	line("fires", fmt.Sprintf("%s in %s", got.GetScheduling(), zone))
	line("delay", span(got.GetDelaySeconds()))
	line("from", printer.TimeIn(got.GetStartTime(), zone))
	line("until", printer.TimeIn(got.GetEndTime(), zone))
	line("concurrency", got.GetConcurrency())
	missed := got.GetMissed()
	if missed != "skip" {
		missed += ", up to " + span(got.GetMissedWindowSeconds()) + " late"
	}
	line("missed", missed)
	line("owner", got.GetOwner())
	line("namespace", got.GetNamespace())
	line("descriptor", strings.TrimPrefix(fmt.Sprintf("%s, version %d", got.GetDescriptorFile(), got.GetVersion()), ", "))
	line("labels", printer.Labels(got.GetLabels()))
	if got.GetPaused() {
		line("paused", "by "+cmp.Or(got.GetPausedBy(), "its descriptor")+", "+printer.TimeIn(got.GetUpdateTime(), zone))
	}
	for _, b := range got.GetBackfills() {
		line("backfill", fmt.Sprintf("from %s, to %s, at %s", printer.TimeIn(b.GetFrom(), zone), printer.TimeIn(b.GetTo(), zone),
			printer.TimeIn(b.GetNext(), zone)))
	}
	for i, at := range got.GetNextFirings() {
		line([]string{"next", ""}[min(i, 1)], printer.TimeIn(at, zone))
	}
	return text.String()
}

func span(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return printer.Duration(time.Duration(seconds) * time.Second)
}

func firings(got *baiv1.Schedule) printer.Table {
	title := "RUN"
	if slices.ContainsFunc(got.GetFirings(), func(f *baiv1.Firing) bool { return f.GetSetId() != "" }) {
		title = "RUN OR SET"
	}
	t := printer.Table{Columns: []printer.Column{
		{Title: "FIRING"},
		{Title: title},
		{Title: "STATUS"},
		{Title: "MISSED", Optional: true},
		{Title: "REASON"},
		{Title: "MESSAGE", Flex: true, Wrap: true},
	}}
	for _, f := range got.GetFirings() {
		at := printer.TimeIn(f.GetTime(), got.GetTimezone())
		if f.GetCount() > 1 {
			at += fmt.Sprintf(" +%d", f.GetCount()-1)
		}
		missed := ""
		if f.GetMissed() {
			missed = "missed"
		}
		status := ""
		made := cmp.Or(f.GetRunId(), f.GetSetId())
		if made != "" {
			status = printer.Status(&baiv1.Run{Phase: f.GetPhase(), Outcome: f.GetOutcome()})
		}
		t.Rows = append(t.Rows, []string{at, made, status, missed, f.GetReason(), f.GetMessage()})
	}
	return t
}
