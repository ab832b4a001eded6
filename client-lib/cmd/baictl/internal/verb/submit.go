package verb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// wish is what a user says of a run beside its descriptor.
type wish struct {
	name       string
	namespace  string
	labels     []string
	key        string
	descriptor string
}

func (w *wish) flags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&w.name, "name", "", "`NAME` of the run, unique per owner")
	flags.StringVar(&w.namespace, "namespace", "", "`TEAM` that the run belongs to (default \"default\")")
	flags.StringArrayVar(&w.labels, "label", nil, "label `KEY=VALUE` of the run, over those of the descriptor; may be repeated")
	flags.StringVar(&w.key, "idempotency-key", "", "`KEY` under which repetitions are the same run (default: a new one)")
	flags.StringVar(&w.descriptor, "descriptor", "", "`FILE` with the descriptor, instead of the argument")
}

// files are the arguments, or the one of --descriptor.
func (w *wish) files(cmd *cobra.Command, args []string) ([]string, error) {
	switch {
	case w.descriptor != "" && len(args) > 0:
		return nil, misuse(cmd, "either --descriptor or an argument, not both")
	case w.descriptor != "":
		return []string{w.descriptor}, nil
	case len(args) == 0:
		return nil, misuse(cmd, "a descriptor's FILE is missing")
	case len(args) > 1 && w.name != "":
		return nil, misuse(cmd, "--name names one run, not %d", len(args))
	case len(args) > 1 && w.key != "":
		return nil, misuse(cmd, "--idempotency-key is for one run, not %d", len(args))
	}
	return args, nil
}

func submitCommand(s *session) *cobra.Command {
	var w wish
	cmd := &cobra.Command{
		Use:   "submit FILE...",
		Short: "Submit runs and print their IDs",
		Long: `Submits one run for each descriptor and prints their IDs, one a line. FILE - is
the standard input. A descriptor that is refused does not keep those after it
from being submitted.

With -o json or yaml: {"runs": [{"file", "runId", "repeated", "idempotencyKey",
"warnings": [...]}]}.`,
		Args: arguments(0, -1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := w.files(cmd, args)
			if err != nil {
				return err
			}
			return s.submit(cmd, w, files)
		},
	}
	w.flags(cmd)
	return withNoun(cmd)
}

// An accepted submission.
type accepted struct {
	file string
	bai.Submitted
}

func (s *session) submit(cmd *cobra.Command, w wish, files []string) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	var all []accepted
	refused := &verdict.FaultsError{Of: len(files)}
	for _, file := range files {
		got, err := s.submitOne(cmd, c, w, file)
		if e, ok := errors.AsType[*verdict.FaultsError](err); ok {
			refused.Faults += e.Faults
			refused.Files++
			continue
		}
		if err != nil {
			return errors.Join(s.printAccepted(all), err)
		}
		all = append(all, got)
	}
	if err := s.printAccepted(all); err != nil {
		return err
	}
	if refused.Files > 0 {
		return refused
	}
	return nil
}

// submitOne prints the faults for which a descriptor is refused, and returns
// their number as a FaultsError.
func (s *session) submitOne(cmd *cobra.Command, c *bai.Client, w wish, file string) (accepted, error) {
	labels, err := pairs(cmd, "label", w.labels)
	if err != nil {
		return accepted{}, err
	}
	doc, err := s.sendable(file)
	if err != nil {
		return accepted{}, err
	}
	key := w.key
	if key == "" {
		key = bai.NewKey()
	}
	got, err := c.Submit(cmd.Context(), bai.Submission{
		Descriptor: doc.text, File: doc.name, Name: w.name, Namespace: w.namespace, Labels: labels, Key: key,
	})
	if e, ok := errors.AsType[*bai.InvalidError](err); ok && len(e.Faults) > 0 {
		return accepted{}, s.refuse(e.Faults)
	}
	if err != nil {
		return accepted{}, unheard(cmd.Context(), err, key)
	}
	s.complain(got.Warnings)
	if got.RunID == "" {
		return accepted{}, fmt.Errorf("submit %q: the platform made %s, which this baictl does not know: it is older than the platform", file, setOrSchedule(got))
	}
	return accepted{doc.name, got}, nil
}

// sendable reads a descriptor that a platform may take.
func (s *session) sendable(file string) (document, error) {
	doc, faults := s.read(file)
	if len(faults) == 0 {
		faults = doc.tooLarge()
	}
	if len(faults) > 0 {
		return document{}, s.refuse(faults)
	}
	return doc, nil
}

// refuse prints the faults of one descriptor, and returns their number.
func (s *session) refuse(faults []*baiv1.Fault) error {
	s.complain(faults)
	return &verdict.FaultsError{Faults: errorsIn(faults), Files: 1, Of: 1}
}

func setOrSchedule(got bai.Submitted) string {
	if got.SetID != "" {
		return "set " + got.SetID
	}
	return "schedule " + got.ScheduleID
}

// unheard adds to an error that the answer to a submission was not awaited.
func unheard(ctx context.Context, err error, key string) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w, before the platform answered: the run may exist, submit again with --idempotency-key %s", err, key)
}

func (s *session) printAccepted(all []accepted) error {
	switch s.output {
	case "json", "yaml":
		return s.printAcceptedObjects(all)
	case "wide":
		t := show.Table{Columns: []show.Column{{Title: "ID"}, {Title: "REPEATED"}, {Title: "FILE", Flex: true}}}
		for _, a := range all {
			t.Rows = append(t.Rows, []string{a.RunID, fmt.Sprint(a.Repeated), a.file})
		}
		return s.printTable(t)
	}
	for _, a := range all {
		if err := put(s.env.Out, a.RunID+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) printAcceptedObjects(all []accepted) error {
	runs := make([]json.RawMessage, len(all))
	for i, a := range all {
		run, err := object(entry{"file", a.file}, entry{"runId", a.RunID}, entry{"repeated", a.Repeated},
			entry{"idempotencyKey", a.Key}, entry{"warnings", array(a.Warnings)})
		if err != nil {
			return err
		}
		runs[i] = run
	}
	text, err := object(entry{"runs", runs})
	if err != nil {
		return err
	}
	return s.print(text)
}
