package verb

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// choice is which runs a user wants to see.
type choice struct {
	everybody bool
	namespace string
	phases    []string
	outcomes  []string
	labels    []string
	limit     int
}

func listCommand(s *session) *cobra.Command {
	var ch choice
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Long: `Lists the runs of --owner, newest first. With -o json or yaml: {"runs": [...]},
without descriptors.`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := ch.filter(cmd, s.owner)
			if err != nil {
				return err
			}
			return s.list(cmd.Context(), filter, ch.limit)
		},
	}
	flags := cmd.PersistentFlags()
	flags.BoolVarP(&ch.everybody, "all-owners", "A", false, "everybody's runs")
	flags.StringVar(&ch.namespace, "namespace", "", "only runs of this `TEAM`")
	flags.StringSliceVar(&ch.phases, "phase", nil, "only runs in these `PHASES`")
	flags.StringSliceVar(&ch.outcomes, "outcome", nil, "only runs with these `OUTCOMES`")
	flags.StringArrayVar(&ch.labels, "label", nil, "only runs with label `KEY=VALUE`; may be repeated")
	flags.IntVar(&ch.limit, "limit", 50, "at most so `MANY`; 0 means all")
	offer(cmd, "phase", baiv1.Phase(0).Descriptor())
	offer(cmd, "outcome", baiv1.Outcome(0).Descriptor())
	return withNoun(cmd)
}

// offer completes a flag with the words of an enum.
func offer(cmd *cobra.Command, flag string, e protoreflect.EnumDescriptor) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(show.Words(e), cobra.ShellCompDirectiveNoFileComp)) // fails for flags that do not exist
}

func (ch choice) filter(cmd *cobra.Command, owner string) (bai.Filter, error) {
	if ch.limit < 0 {
		return bai.Filter{}, misuse(cmd, "--limit must not be negative")
	}
	labels, err := pairs(cmd, "label", ch.labels)
	if err != nil {
		return bai.Filter{}, err
	}
	f := bai.Filter{Owner: owner, Namespace: ch.namespace, Labels: labels, Page: min(ch.limit+1, 500)}
	if ch.everybody {
		f.Owner = ""
	}
	if f.Phases, err = values[baiv1.Phase](cmd, "phase", ch.phases); err != nil {
		return bai.Filter{}, err
	}
	f.Outcomes, err = values[baiv1.Outcome](cmd, "outcome", ch.outcomes)
	return f, err
}

// values are the values of an enum that words mean.
func values[E interface {
	~int32
	Descriptor() protoreflect.EnumDescriptor
}](cmd *cobra.Command, flag string, words []string) ([]E, error) {
	var all []E
	for _, word := range words {
		n, ok := show.Parse(E(0).Descriptor(), word)
		if !ok {
			return nil, misuse(cmd, "--%s %q: want one of %q", flag, word, show.Words(E(0).Descriptor()))
		}
		all = append(all, E(n))
	}
	return all, nil
}

func (s *session) list(ctx context.Context, filter bai.Filter, limit int) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	var runs []*baiv1.Run
	more := false
	for run, err := range c.List(ctx, filter) {
		if err != nil {
			return err
		}
		if more = limit > 0 && len(runs) == limit; more {
			break
		}
		runs = append(runs, run)
	}
	if err := s.printRuns(runs); err != nil {
		return err
	}
	if more {
		s.screen.Note(fmt.Sprintf("baictl: there are more than these %d (see --limit)", limit))
	}
	return nil
}

func (s *session) printRuns(runs []*baiv1.Run) error {
	switch s.output {
	case "json", "yaml":
		text, err := object(entry{"runs", array(runs)})
		if err != nil {
			return err
		}
		return s.print(text)
	case "name":
		for _, run := range runs {
			if err := put(s.env.Out, run.GetId()+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
	if len(runs) == 0 {
		s.screen.Note("baictl: no runs" + s.whose())
		return nil
	}
	return s.printTable(s.table(runs))
}

func (s *session) whose() string {
	if s.owner == "" {
		return ""
	}
	return fmt.Sprintf(" of %s that match (baictl list -A lists everybody's)", show.Clean(s.owner))
}

// statusColumn is where a table of runs has the status.
const statusColumn = 2

func (s *session) table(runs []*baiv1.Run) show.Table {
	t := show.Table{Columns: []show.Column{{Title: "ID"}, {Title: "NAME", Flex: true}, {Title: "STATUS"}, {Title: "REASON", Flex: true}, {Title: "TOOK", Right: true}, {Title: "AGE", Right: true}}}
	wide := s.output == "wide"
	if wide {
		for _, title := range []string{"OWNER", "NAMESPACE", "ATTEMPT", "DESCRIPTOR", "LABELS", "MESSAGE"} {
			t.Columns = append(t.Columns, show.Column{Title: title, Flex: true})
		}
	}
	now := time.Now()
	for _, r := range runs {
		row := []string{r.GetId(), r.GetName(), show.Status(r), r.GetReason(), show.Span(r.GetStartTime(), r.GetEndTime()), show.Age(now.Sub(r.GetCreateTime().AsTime()))}
		if wide {
			row = append(row, r.GetOwner(), r.GetNamespace(), fmt.Sprint(r.GetAttempt()), r.GetDescriptorFile(), show.Labels(r.GetLabels()), r.GetMessage())
		}
		t.Rows = append(t.Rows, row)
	}
	t.Paint = func(row, column int, text string) string {
		if column != statusColumn {
			return text
		}
		return s.screen.Paint(follow.Style(show.Status(runs[row])), text)
	}
	return t
}
