package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
)

// Submit is the verb submit.
func Submit(s *session.Session) *cobra.Command {
	var w submitFlags
	var wait bool
	cmd := &cobra.Command{
		Use:   "submit FILE...",
		Short: "Submit runs and print their IDs",
		Long: `Submits one run for each descriptor and prints their IDs, one a line. A
descriptor that is refused does not keep those after it from being submitted.

` + session.Sources + `

` + scriptHelp + `

With --wait it then waits for the ends of the runs, and exits with the code of
the first one that did not succeed; with 4 where --timeout is over before, or
after Ctrl-C. The runs go on.

With -o json or yaml: {"runs": [{"file", "runId", "repeated", "idempotencyKey",
"warnings": [...]}]}.

A descriptor with info.scheduling makes a schedule, or the next version of the
one with that --name: its ID is printed, and when it fires (baictl schedule).
With -o json or yaml it is in "schedules", with "schedule" for "runId".

A descriptor with a table sweep makes a set of runs: its ID is printed (baictl
set). With -o json or yaml it is in "sets", with "set" for "runId". So does a
suite, a file with a table suite that lists descriptors: see docs/suites.md.`,
		Example: `  baictl submit resnet.toml --name nightly-7 --label model=resnet
  baictl submit stored:resnet --set hardware.gpus=4 --wait --timeout 2h`,
		Args:              session.Arguments(0, -1, ""),
		ValidArgsFunction: s.StoredDescriptors(input.Stored),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := w.files(cmd, args)
			if err != nil {
				return err
			}
			return submit(cmd, s, w, files, wait)
		},
	}
	w.fileFlags(cmd, s)
	cmd.PersistentFlags().BoolVar(&wait, "wait", false, "wait for the ends of the runs")
	return session.WithNoun(cmd)
}

func submit(cmd *cobra.Command, s *session.Session, w submitFlags, files []string, wait bool) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	all, failed := submitAll(cmd, s, c, w, files)
	if err := printSubmitted(s, all); err != nil {
		return err
	}
	if !wait || len(all) == 0 {
		return failed
	}
	ended := await(cmd, s, all)
	if failed != nil && ended != nil {
		s.PrintError(ended)
	}
	if failed != nil {
		return failed
	}
	return ended
}

// submitAll returns the accepted runs, and an error if one was refused.
func submitAll(cmd *cobra.Command, s *session.Session, c *bai.Client, w submitFlags, files []string) ([]submitResult, error) {
	var all []submitResult
	refused := &exitcode.FaultsError{Of: len(files)}
	for _, file := range files {
		got, err := w.submitFile(cmd, s, c, file)
		if e, ok := errors.AsType[*exitcode.FaultsError](err); ok {
			refused.Faults += e.Faults
			refused.Files++
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, got)
	}
	if refused.Files > 0 {
		return all, refused
	}
	return all, nil
}

// await waits for the ends of runs, and says each. It returns the error of the
// first run, in the order in which they were submitted, that did not succeed.
func await(cmd *cobra.Command, s *session.Session, all []submitResult) error {
	ctx, release := s.Env.Interrupts(cmd.Context(), exitcode.ErrDetached)
	defer release()
	client, err := s.FollowClient()
	if err != nil {
		return err
	}
	var first error
	for _, a := range all {
		if a.schedule != nil {
			continue // it has no end
		}
		s.Screen.Live("waiting for " + a.title())
		note, outcome, err := a.wait(ctx, client)
		s.Screen.Live("")
		if ctx.Err() != nil {
			return &exitcode.DetachedError{ID: a.id(), Cause: context.Cause(ctx), Others: len(all) > 1 && a.set == nil, Set: a.set != nil}
		}
		if err != nil {
			return err
		}
		s.Screen.Note(note)
		first = cmp.Or(first, outcome)
	}
	return first
}

// wait waits for the end of a run or a set. It returns the text about that, and the error
// of a run or set that did not succeed.
func (a submitResult) wait(ctx context.Context, client *bai.Client) (note string, outcome, err error) {
	if a.set != nil {
		set, err := client.WaitSet(ctx, a.SetID)
		return fmt.Sprintf("%s %s after %s, %s", a.title(), printer.SetStatus(set), printer.Span(set.GetCreateTime(), set.GetEndTime()),
			printer.SetCounts(set)), exitcode.FromSet(set), err
	}
	run, err := client.Wait(ctx, a.RunID)
	return fmt.Sprintf("%s %s after %s", a.title(), printer.Status(run), printer.Span(run.GetCreateTime(), run.GetEndTime())),
		exitcode.FromRun(run), err
}

func printSubmitted(s *session.Session, all []submitResult) error {
	switch s.Output {
	case "json", "yaml":
		return printSubmittedObjects(s, all)
	case "wide":
		t := printer.Table{Columns: []printer.Column{{Title: "ID"}, {Title: "REPEATED"}, {Title: "FILE", Flex: true}}}
		for _, a := range all {
			t.Rows = append(t.Rows, []string{a.id(), fmt.Sprint(a.Repeated), a.file})
		}
		if err := s.PrintTable(t); err != nil {
			return err
		}
		noteDetails(s, all)
		return nil
	}
	for _, a := range all {
		if err := session.WriteText(s.Env.Out, a.id()+"\n"); err != nil {
			return err
		}
	}
	if s.Output != "name" {
		noteDetails(s, all)
	}
	return nil
}

// id is that of the run, the set or the schedule.
func (a submitResult) id() string { return cmp.Or(a.RunID, a.SetID, a.ScheduleID) }

// title names the run or the set.
func (a submitResult) title() string {
	if a.set != nil {
		return "set " + a.SetID
	}
	return "run " + a.RunID
}

// noteDetails says of schedules when they fire, and of sets how many runs they have.
func noteDetails(s *session.Session, all []submitResult) {
	for _, a := range all {
		switch {
		case a.schedule != nil:
			s.Screen.Note("baictl: " + printer.Schedule(a.schedule))
		case a.set != nil:
			s.Screen.Note("baictl: " + printer.SetSize(a.set))
		}
	}
}

func printSubmittedObjects(s *session.Session, all []submitResult) error {
	runs, sets, schedules := []json.RawMessage{}, []json.RawMessage{}, []json.RawMessage{}
	for _, a := range all {
		idEntry := session.Entry{Name: "runId", Value: a.RunID}
		switch {
		case a.schedule != nil:
			idEntry = session.Entry{Name: "schedule", Value: printer.JSON(a.schedule)}
		case a.set != nil:
			idEntry = session.Entry{Name: "set", Value: printer.JSON(a.set)}
		}
		one, err := session.Object(session.Entry{Name: "file", Value: a.file}, idEntry, session.Entry{Name: "repeated", Value: a.Repeated},
			session.Entry{Name: "idempotencyKey", Value: a.Key}, session.Entry{Name: "warnings", Value: session.Array(a.Warnings)})
		switch {
		case err != nil:
			return err
		case a.schedule != nil:
			schedules = append(schedules, one)
		case a.set != nil:
			sets = append(sets, one)
		default:
			runs = append(runs, one)
		}
	}
	entries := []session.Entry{{Name: "runs", Value: runs}}
	if len(sets) > 0 {
		entries = append(entries, session.Entry{Name: "sets", Value: sets})
	}
	if len(schedules) > 0 {
		entries = append(entries, session.Entry{Name: "schedules", Value: schedules})
	}
	text, err := session.Object(entries...)
	if err != nil {
		return err
	}
	return s.Print(text)
}
