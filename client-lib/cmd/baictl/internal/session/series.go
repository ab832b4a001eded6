package session

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/bai"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// maxHistory is how many runs a history has at most.
const maxHistory = 1000

// A SeriesSelector is which series of a task a user means.
type SeriesSelector struct {
	Task string

	namespace string
	since     string
	until     string
	limit     int32
	labels    []string
}

// TaskFlags adds the flags that name a task.
func (v *SeriesSelector) TaskFlags(cmd *cobra.Command, s *Session) {
	flags := cmd.Flags()
	flags.StringVar(&v.Task, "task", "", "the `TASK`: its runs are those with label task_name=TASK")
	flags.StringVar(&v.namespace, "namespace", "", "`TEAM` of the runs (default: that of the context, or \"default\")")
	_ = cmd.RegisterFlagCompletionFunc("task", s.tasks) // fails for flags that do not exist
}

// RunFlags adds the flags that select runs of the task.
func (v *SeriesSelector) RunFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&v.since, "since", "", "only runs submitted at `TIME` or later: how long ago, as 2h or 30d, or as 2026-01-31")
	flags.StringVar(&v.until, "until", "", "only runs submitted before `TIME`")
	flags.Int32Var(&v.limit, "limit", 0, fmt.Sprintf("the newest `N` runs, at most %d (default 200)", maxHistory))
	flags.StringArrayVar(&v.labels, "label", nil, "only runs with label `KEY=VALUE`; may be repeated")
}

// SeriesFlagNames are the names of the flags of TaskFlags and RunFlags.
func SeriesFlagNames() []string {
	return []string{"task", "namespace", "since", "until", "limit", "label"}
}

// Team returns the team of the task. The task must be named.
func (v *SeriesSelector) Team(cmd *cobra.Command, s *Session) (string, error) {
	if v.Task == "" {
		return "", UsageErrorf(cmd, "--task is missing: the task_name of the descriptor, as baictl get RUN shows it")
	}
	return s.Team(v.namespace)
}

// Query returns the request for the history of metrics; none means all.
func (v *SeriesSelector) Query(cmd *cobra.Command, s *Session, metrics []string, now time.Time) (*baiv1.QueryHistoryRequest, error) {
	team, err := v.Team(cmd, s)
	if err != nil {
		return nil, err
	}
	if v.limit < 0 || v.limit > maxHistory {
		return nil, UsageErrorf(cmd, "--limit %d: want 1 to %d", v.limit, maxHistory)
	}
	req := &baiv1.QueryHistoryRequest{Task: v.Task, Namespace: team, Metrics: metrics, Limit: v.limit}
	if req.Labels, err = Pairs(cmd, "label", v.labels); err != nil {
		return nil, err
	}
	if req.Since, err = timeFlag(cmd, "since", v.since, now); err != nil {
		return nil, err
	}
	req.Until, err = timeFlag(cmd, "until", v.until, now)
	return req, err
}

// timeFlag reads the time of a flag; nil if the flag is empty.
func timeFlag(cmd *cobra.Command, flag, text string, now time.Time) (*timestamppb.Timestamp, error) {
	at, err := ParseTime(cmd, flag, text, now, time.Local)
	if err != nil || at.IsZero() {
		return nil, err
	}
	return timestamppb.New(at), nil
}

// tasks offers the tasks of the newest runs.
func (s *Session) tasks(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var all []string
	s.QueryForCompletion(cmd, func(ctx context.Context, c *bai.Client, _ string) {
		seen, n := map[string]bool{"": true}, 0
		for run, err := range c.List(ctx, bai.Filter{Page: most}) {
			if n++; err != nil || n > most {
				return
			}
			if task := run.GetLabels()["task_name"]; !seen[task] {
				seen[task], all = true, append(all, task)
			}
		}
	})
	return all, cobra.ShellCompDirectiveNoFileComp
}

// Metrics offers the metrics of the task.
func (v *SeriesSelector) Metrics(s *Session) Completion {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		var all []string
		s.QueryForCompletion(cmd, func(ctx context.Context, c *bai.Client, _ string) {
			team, err := v.Team(cmd, s)
			if err != nil {
				return
			}
			got, err := c.History(ctx, &baiv1.QueryHistoryRequest{Task: v.Task, Namespace: team, Limit: 1, WithoutPoints: true})
			if err != nil {
				return
			}
			last := ""
			for _, one := range got.GetSeries() {
				if one.GetMetric() != last {
					last = one.GetMetric()
					all = append(all, last)
				}
			}
		})
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// Baselines offers the baselines of a team, empty for that of the context, with a prefix.
func (s *Session) Baselines(cmd *cobra.Command, namespace, prefix string) []string {
	var all []string
	s.QueryForCompletion(cmd, func(ctx context.Context, c *bai.Client, _ string) {
		team, err := s.Team(namespace)
		if err != nil {
			return
		}
		for b, err := range c.Baselines(ctx, team) {
			if err != nil || len(all) == most {
				return
			}
			newest := ""
			if r := b.GetRevisions(); len(r) > 0 {
				newest = r[0].GetOperand()
			}
			all = append(all, cobra.CompletionWithDesc(prefix+b.GetName(), newest))
		}
	})
	return all
}
