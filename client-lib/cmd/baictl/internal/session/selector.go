package session

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A RunSelector is which runs a user means.
type RunSelector struct {
	Since, Until time.Time // --since and --until, once Filter was called

	everybody bool
	namespace string
	phases    []string
	outcomes  []string
	labels    []string
	task      string
	text      string
	schedule  string
	set       string
	cell      string
	framework string
	version   string
	data      string
	since     string
	until     string
}

// Flags adds the flags that select runs. The word done names the event that since and
// until refer to: "submitted ".
func (ch *RunSelector) Flags(cmd *cobra.Command, done string) {
	flags := cmd.PersistentFlags()
	flags.BoolVarP(&ch.everybody, "all", "A", false, "everybody's runs")
	flags.BoolVar(&ch.everybody, "all-owners", false, "the same as --all")
	_ = flags.MarkHidden("all-owners") // fails for flags that do not exist
	flags.StringVar(&ch.namespace, "namespace", "", "only runs of this `TEAM`")
	flags.StringSliceVar(&ch.phases, "phase", nil, "only runs in these `PHASES`")
	flags.StringSliceVar(&ch.outcomes, "outcome", nil, "only runs with these `OUTCOMES`")
	flags.StringArrayVar(&ch.labels, "label", nil, "only runs with label `KEY=VALUE`; may be repeated")
	flags.StringVar(&ch.task, "task", "", "only runs of this `TASK`: those with label task_name=TASK")
	flags.StringVar(&ch.text, "text", "", "only runs whose ID, name or file begins with `TEXT`, or whose task it is")
	flags.StringVar(&ch.schedule, "schedule", "", "only the firings of this `SCHEDULE`: its ID, or the name that its owner gave it")
	flags.StringVar(&ch.set, "set", "", "only the runs of this `SET`: its ID, or the name that its owner gave it")
	flags.StringVar(&ch.cell, "cell", "", "only the runs of the cell with this `NAME` of the set")
	flags.StringVar(&ch.framework, "framework", "", "only runs whose descriptor names this framework: `NAME`")
	flags.StringVar(&ch.version, "framework-version", "", "only runs whose descriptor names this `VERSION` of a framework")
	flags.StringVar(&ch.data, "data-id", "", "only runs with a data source or model of this `ID`")
	flags.StringVar(&ch.since, "since", "", "only what was "+done+"at `TIME` or later: how long ago, as 2h or 3d, or as 2026-01-31")
	flags.StringVar(&ch.until, "until", "", "only what was "+done+"before `TIME`")
	completeEnum(cmd, "phase", baiv1.Phase(0).Descriptor())
	completeEnum(cmd, "outcome", baiv1.Outcome(0).Descriptor())
}

// completeEnum completes a flag with the words of an enum.
func completeEnum(cmd *cobra.Command, flag string, e protoreflect.EnumDescriptor) {
	// Fails for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(printer.Words(e), cobra.ShellCompDirectiveNoFileComp))
}

// Filter is the choice but for its times, which it reads.
func (ch *RunSelector) Filter(cmd *cobra.Command, s *Session, now time.Time) (bai.Filter, error) {
	labels, err := Pairs(cmd, "label", ch.labels)
	if err != nil {
		return bai.Filter{}, err
	}
	if ch.task != "" {
		labels["task_name"] = ch.task
	}
	if ch.Since, err = ParseTime(cmd, "since", ch.since, now, time.Local); err != nil {
		return bai.Filter{}, err
	}
	if ch.Until, err = ParseTime(cmd, "until", ch.until, now, time.Local); err != nil {
		return bai.Filter{}, err
	}
	f := bai.Filter{
		Namespace: ch.namespace, Labels: labels, Text: ch.text, Framework: ch.framework, FrameworkVersion: ch.version,
		DataID: ch.data, Cell: ch.cell,
	}
	if ch.cell != "" && ch.set == "" {
		return f, UsageErrorf(cmd, "--cell needs --set: cells of several sets have one name")
	}
	if f.Phases, err = enumValues[baiv1.Phase](cmd, "phase", ch.phases); err != nil {
		return bai.Filter{}, err
	}
	if f.Outcomes, err = enumValues[baiv1.Outcome](cmd, "outcome", ch.outcomes); err != nil {
		return f, err
	}
	if f.Set, err = s.set(cmd, ch.set); err != nil {
		return f, err
	}
	if f.Schedule, err = s.ScheduleID(cmd, ch.schedule); err != nil || ch.everybody {
		return f, err
	}
	where, err := s.ResolveContext()
	f.Owner = where.Owner
	return f, err
}

// ChangedFlags are the flags that say which runs are meant, as far as they were typed.
func (ch *RunSelector) ChangedFlags(cmd *cobra.Command) []string {
	var changed []string
	for _, name := range []string{
		"all", "all-owners", "namespace", "phase", "outcome", "label", "task", "text", "schedule", "set", "cell", "framework",
		"framework-version", "data-id",
	} {
		if cmd.Flags().Changed(name) {
			changed = append(changed, "--"+name)
		}
	}
	return changed
}

// enumValues are the values of an enum that words mean.
func enumValues[E interface {
	~int32
	Descriptor() protoreflect.EnumDescriptor
}](cmd *cobra.Command, flag string, words []string) ([]E, error) {
	var all []E
	for _, word := range words {
		n, ok := printer.Parse(E(0).Descriptor(), word)
		if !ok {
			return nil, UsageErrorf(cmd, "--%s %q: use %s", flag, word, JoinOr(printer.Words(E(0).Descriptor())))
		}
		all = append(all, E(n))
	}
	return all, nil
}

// ScheduleID is the ID of the schedule that a user names; empty for none.
func (s *Session) ScheduleID(cmd *cobra.Command, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	c, err := s.Client()
	if err != nil {
		return "", err
	}
	found, err := c.Schedule(cmd.Context(), name)
	return found.GetId(), err
}

// set is the ID of the set that a user names; empty for none.
func (s *Session) set(cmd *cobra.Command, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	c, err := s.Client()
	if err != nil {
		return "", err
	}
	found, err := c.Set(cmd.Context(), name)
	return found.GetId(), err
}

// JoinOr joins words that are to be chosen from: "a, b or c".
func JoinOr(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
