package launch

import (
	"context"
	"time"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/series"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

const (
	costMetric     = "cost.amount"
	outlookTimeout = 2 * time.Second // a user waits no longer for an estimate
	outlookRuns    = 5               // on each side
)

// noteOutlook says what a run of a task costs, and which changes the alarms of its descriptor can see,
// by the history of the task. Where that is not known, or where no person looks, it says nothing.
func noteOutlook(ctx context.Context, s *session.Session, c *bai.Client, submission bai.Submission) {
	if !s.Screen.IsTerminal() || s.Output != "table" && s.Output != "wide" {
		return
	}
	task := submission.Labels["task_name"]
	d, _ := (parser.Parser{Accepted: true}).Parse("", submission.Descriptor)
	if task == "" && d != nil {
		task = d.Info.TaskName
	}
	if task == "" {
		return
	}
	watched := watchedMetrics(d)
	ctx, cancel := context.WithTimeout(ctx, outlookTimeout)
	defer cancel()
	got, err := c.Power(ctx, &baiv1.PlanPowerRequest{
		Task: task, Namespace: submission.Namespace, Metrics: append([]string{costMetric}, watched...), Runs: []int32{outlookRuns},
	})
	if err != nil {
		return
	}
	for _, text := range series.Outlook(got, task, watched, outlookRuns) {
		s.Screen.Note("baictl: " + printer.Clean(text))
	}
}

// watchedMetrics returns the metrics whose changes the alarms of a descriptor watch.
func watchedMetrics(d *descriptors.Descriptor) (names []string) {
	if d == nil {
		return nil
	}
	for _, a := range d.Alarms {
		if a.When == descriptors.OnRegression || a.When == descriptors.OnChange {
			names = append(names, a.Metric)
		}
	}
	return names
}
