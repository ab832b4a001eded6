package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
)

func backfill(s *session.Session) *cobra.Command {
	var v timeRange
	cmd := &cobra.Command{
		Use:   "backfill SCHEDULE --from TIME [--to TIME]",
		Short: "Make the runs of past firings that have none",
		Long: `Makes the runs, or the sets, of past firings that have none, from one time on
and before another, with the descriptor that the schedule has now, and prints
the times. It takes up to 10,000 firings, nearly a week of a schedule that fires
every minute.
Again it makes no run twice.

A date or time without an offset is read in the zone of the schedule, in which
the times are printed too: 2026-01-31 is where that day begins there. Of a time
that clocks show twice the first is meant, and in place of one that they leave
out the moment when they are put forward.

It does not wait for the runs. They are made some at a time, and no more than
100 of them go on at once, or one after another where the schedule does not
allow two at a time; baictl schedule get says how far it is.

With -o json or yaml: {"missing": [...], "present": n}, times in UTC. With
-o name: the times, in UTC.`,
		Example: `  baictl schedule backfill nightly --from 2026-01-31 --to 2026-02-01`,
		Args:    session.Arguments(1, 1, "a SCHEDULE"), ValidArgsFunction: complete(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			if v.from == "" {
				return session.UsageErrorf(cmd, "--from is missing: the first time that is looked at, as 2026-01-31 or 3d")
			}
			if _, _, err := v.resolve(cmd, time.UTC); err != nil { // before the platform is called
				return err
			}
			c, err := s.Client()
			if err != nil {
				return err
			}
			return v.run(cmd, s, c, args[0])
		},
	}
	cmd.Flags().StringVar(&v.from, "from", "",
		"the first `TIME` that is looked at: how long ago, as 2h or 3d, or as 2026-01-31 in the schedule's zone")
	cmd.Flags().StringVar(&v.to, "to", "", "only `TIMES` before this one (default: now)")
	return cmd
}

// timeRange is the time that a backfill is about, as the user wrote it.
type timeRange struct {
	from, to string
}

// resolve returns it as clocks in a zone have it.
func (v timeRange) resolve(cmd *cobra.Command, zone *time.Location) (from, to time.Time, err error) {
	now := time.Now()
	if from, err = session.ParseTime(cmd, "from", v.from, now, zone); err != nil {
		return from, to, err
	}
	to, err = session.ParseTime(cmd, "to", v.to, now, zone)
	return from, to, err
}

func (v timeRange) run(cmd *cobra.Command, s *session.Session, c *bai.Client, name string) error {
	sched, err := c.Schedule(cmd.Context(), name)
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(sched.GetTimezone())
	if err != nil {
		return fmt.Errorf("backfill schedule %q: its time zone is not known to this baictl, take a newer one: %w", name, err)
	}
	from, to, err := v.resolve(cmd, zone)
	if err != nil {
		return err
	}
	got, err := requestBackfill(cmd.Context(), s, c, name, from, to)
	if err != nil {
		return err
	}
	return printMissing(s, got, sched.GetTimezone())
}

func requestBackfill(ctx context.Context, s *session.Session, c *bai.Client, name string, from, to time.Time) (bai.Backfilled, error) {
	got, err := c.BackfillSchedule(ctx, name, from, to)
	if err != nil {
		return got, s.FailIfInvalid(err)
	}
	return got, nil
}

// backfillNote says how many of the firings have a run, and how many get one.
func backfillNote(present, missing int) string {
	all := printer.Plural(present+missing, "firing")
	switch {
	case present+missing == 0:
		return "the schedule does not fire in that time"
	case missing == 0 && present == 1:
		return "the 1 firing has a run already"
	case missing == 0:
		return "all " + all + " have a run already"
	case present == 0:
		return "making a run for each of " + all
	}
	return fmt.Sprintf("making a run for %d of %s; the others have one", missing, all)
}

func printMissing(s *session.Session, got bai.Backfilled, zone string) error {
	if s.Structured() || s.Output == "name" {
		zone = "UTC"
	}
	times := make([]string, len(got.Missing))
	for i, at := range got.Missing {
		times[i] = printer.TimeIn(timestamppb.New(at), zone)
	}
	if s.Structured() {
		text, err := session.Object(session.Entry{Name: "missing", Value: times}, session.Entry{Name: "present", Value: got.Present})
		if err != nil {
			return err
		}
		return s.Print(text)
	}
	for _, at := range times {
		if err := session.WriteText(s.Env.Out, at+"\n"); err != nil {
			return err
		}
	}
	if s.Output != "name" {
		s.Screen.Note("baictl: " + backfillNote(got.Present, len(times)))
	}
	return nil
}
