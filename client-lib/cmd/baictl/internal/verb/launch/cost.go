package launch

import (
	"context"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

const (
	costMetric  = "cost.amount"
	costTimeout = 2 * time.Second // a submission waits no longer for an estimate
)

// noteCost says what a run of the descriptor's task costs, by the history of the task. Where that is not known it says nothing: an
// estimate fails no submission, and delays it by costTimeout at most.
func noteCost(ctx context.Context, s *session.Session, c *bai.Client, submission bai.Submission) {
	if s.Output != "table" && s.Output != "wide" {
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
	ctx, cancel := context.WithTimeout(ctx, costTimeout)
	defer cancel()
	got, err := c.Power(ctx, &baiv1.PlanPowerRequest{Task: task, Namespace: submission.Namespace, Metrics: []string{costMetric}})
	if err != nil || got.GetRunCost() == nil {
		return
	}
	cost := got.GetRunCost()
	s.Screen.Note(fmt.Sprintf("baictl: a run of %s costs about %s, the median of its newest %s",
		printer.Clean(task), printer.Money(cost.GetAmount(), cost.GetCurrency()), printer.Plural(cost.GetRuns(), "run")))
}
