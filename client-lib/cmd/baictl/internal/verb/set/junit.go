package set

import (
	"context"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/junit"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/result"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
)

// junit prints the runs of the set as test cases, with the medians of the metrics.
func (p resultPrinter) junit(ctx context.Context, c *bai.Client, all []*result.Metric) error {
	cells, _, err := readCells(ctx, c, p.set.GetId(), 0)
	if err != nil {
		return err
	}
	runs, err := session.RunsOfSet(ctx, c, p.set.GetId())
	if err != nil {
		return err
	}
	text, err := junit.Marshal(junit.Input{Set: p.set, Cells: cells, Runs: runs, Metrics: all})
	if err != nil {
		return err
	}
	return p.text(text)
}
