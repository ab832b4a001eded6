// Package launch has the verbs that make runs.
package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// submitFlags are the settings of a run beside its descriptor.
type submitFlags struct {
	name         string
	namespace    string
	labels       []string
	set          session.OverrideFlags
	key          string
	descriptor   string
	script       string
	notify       []string
	scriptDigest string // digest of the code at script, once the platform has it
}

func (w *submitFlags) flags(cmd *cobra.Command, s *session.Session) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&w.name, "name", "", "`NAME` of the run, unique per owner")
	flags.StringVar(&w.namespace, "namespace", "", "`TEAM` that the run belongs to (default: that of the context, or \"default\")")
	flags.StringArrayVar(&w.labels, "label", nil, "label `KEY=VALUE` of the run, over those of the descriptor; may be repeated")
	flags.StringVar(&w.key, "idempotency-key", "", "`KEY` under which repetitions are the same run (default: a new one)")
	flags.StringVar(&w.script, "script", "", "`DIR` with code that is sent along, or an archive of it")
	flags.StringSliceVar(&w.notify, "notify", nil,
		"receivers of a notice of the end, by `NAMES` of the platform's settings, or submitter: the same as --set info.notify=[...]")
	// It fails for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("notify", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return append(s.Receivers(cmd, w.namespace), "submitter"), cobra.ShellCompDirectiveNoFileComp
	})
	w.set.Register(cmd)
}

// fileFlags are those of a verb whose descriptor is given.
func (w *submitFlags) fileFlags(cmd *cobra.Command, s *session.Session) {
	w.flags(cmd, s)
	cmd.PersistentFlags().StringVar(&w.descriptor, "descriptor", "", "`FILE` with the descriptor, instead of the argument")
}

// files are the arguments, or the one of --descriptor.
func (w *submitFlags) files(cmd *cobra.Command, args []string) ([]string, error) {
	switch {
	case w.descriptor != "" && len(args) > 0:
		return nil, session.UsageErrorf(cmd, "either --descriptor or an argument, not both")
	case w.descriptor != "":
		return []string{w.descriptor}, nil
	case len(args) == 0:
		return nil, session.UsageErrorf(cmd, "a descriptor's FILE is missing")
	case len(args) > 1 && w.name != "":
		return nil, session.UsageErrorf(cmd, "--name names one run, not %d", len(args))
	case len(args) > 1 && w.key != "":
		return nil, session.UsageErrorf(cmd, "--idempotency-key is for one run, not %d", len(args))
	}
	return args, nil
}

// submission is the submission of the flags, without a descriptor.
func (w *submitFlags) submission(cmd *cobra.Command, s *session.Session) (bai.Submission, error) {
	labels, err := session.Pairs(cmd, "label", w.labels)
	if err != nil {
		return bai.Submission{}, err
	}
	set, err := s.Overrides(cmd, w.set)
	if err != nil {
		return bai.Submission{}, err
	}
	if len(w.notify) > 0 {
		set = append(set, &baiv1.Override{Path: "info.notify", Value: notifyValue(w.notify)})
	}
	team, err := s.Team(w.namespace)
	if err != nil {
		return bai.Submission{}, err
	}
	key := w.key
	if key == "" {
		key = bai.NewKey()
	}
	return bai.Submission{Name: w.name, Namespace: team, Labels: labels, Overrides: set, Key: key}, nil
}

// notifyValue is a list of names in TOML.
func notifyValue(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// An accepted submission.
type submitResult struct {
	file string
	bai.Submitted

	schedule *baiv1.Schedule // nil for a run or a set
	set      *baiv1.Set      // nil for a run or a schedule
}

// submitFile submits one descriptor. It prints the faults for which that is
// refused, and returns their number as a FaultsError.
func (w *submitFlags) submitFile(cmd *cobra.Command, s *session.Session, c *bai.Client, file string) (submitResult, error) {
	submission, err := w.submission(cmd, s)
	if err != nil {
		return submitResult{}, err
	}
	doc, err := readDescriptor(cmd.Context(), s, w.namespace, file)
	if err != nil {
		return submitResult{}, err
	}
	submission.Descriptor, submission.File, submission.Origin = doc.Text, doc.Name, doc.Origin
	if err := w.requireScript(s, doc, submission.Overrides); err != nil {
		return submitResult{}, err
	}
	if submission.Script, err = w.uploadScript(cmd.Context(), s, c); err != nil {
		return submitResult{}, err
	}
	return submitOne(cmd.Context(), s, c, submission)
}

// readDescriptor reads a descriptor that a platform may take.
func readDescriptor(ctx context.Context, s *session.Session, namespace, file string) (input.Document, error) {
	doc, faults, err := s.Reader(namespace).Read(ctx, file)
	if err != nil {
		return input.Document{}, err
	}
	if len(faults) == 0 {
		faults = doc.SizeFaults()
	}
	if len(faults) > 0 {
		return input.Document{}, s.FailWithFaults(faults)
	}
	return doc, nil
}

func submitOne(ctx context.Context, s *session.Session, c *bai.Client, submission bai.Submission) (submitResult, error) {
	got, err := c.Submit(ctx, submission)
	if e, ok := errors.AsType[*bai.InvalidError](err); ok && len(e.Faults) > 0 {
		return submitResult{}, s.FailWithFaults(e.Faults)
	}
	if err != nil {
		return submitResult{}, unansweredError(ctx, err, submission.Key)
	}
	s.PrintFaults(got.Warnings)
	if !got.Repeated {
		noteOutlook(ctx, s, c, submission)
	}
	switch {
	case got.ScheduleID != "":
		made, err := c.Schedule(ctx, got.ScheduleID)
		return submitResult{file: submission.File, Submitted: got, schedule: made}, unreadError("schedule", got.ScheduleID, err)
	case got.SetID != "":
		made, err := c.Set(ctx, got.SetID)
		return submitResult{file: submission.File, Submitted: got, set: made}, unreadError("set", got.SetID, err)
	}
	return submitResult{file: submission.File, Submitted: got}, nil
}

// unreadError is the error of a set or a schedule that was made and cannot be read, nil
// if err is: its ID must not be lost.
func unreadError(noun, id string, err error) error {
	if err == nil {
		return nil
	}
	return &exitcode.UnreadError{Noun: noun, ID: id, Err: err}
}

// unansweredError adds to an error that the answer to a submission was not awaited.
func unansweredError(ctx context.Context, err error, key string) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w, before the platform answered: the run may exist, submit again with --idempotency-key %s", err, key)
}

// rerunSubmission is the submission that repeats a run, with the flags applied.
func (w *submitFlags) rerunSubmission(cmd *cobra.Command, s *session.Session, run *baiv1.Run,
	labels map[string]string,
) (bai.Submission, error) {
	submission, err := w.submission(cmd, s)
	if err != nil {
		return bai.Submission{}, err
	}
	if w.namespace == "" {
		submission.Namespace = run.GetNamespace()
	}
	for k, v := range labels {
		if _, given := submission.Labels[k]; !given {
			submission.Labels[k] = v
		}
	}
	submission.Descriptor, submission.File = []byte(run.GetDescriptorToml()), run.GetDescriptorFile()
	submission.Origin, submission.RerunOf = run.GetOrigination(), run.GetId()
	submission.Script = run.GetScript().GetSha256()
	// They are part of the text already: given again they change nothing, and
	// are remembered with the new run.
	previous := slices.DeleteFunc(slices.Clone(run.GetOverrides()), func(old *baiv1.Override) bool {
		return slices.ContainsFunc(submission.Overrides, func(o *baiv1.Override) bool { return o.GetPath() == old.GetPath() })
	})
	submission.Overrides = append(previous, submission.Overrides...)
	return submission, nil
}
