package set

import (
	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/result"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/client-lib/internal/plot"
)

// svg prints a plot of the only metric, by the parameters of --by or those that vary.
func (p resultPrinter) svg(cmd *cobra.Command, all []*result.Metric, flags resultFlags) error {
	switch {
	case len(all) == 0:
		return &bai.NotFoundError{What: "result", Message: p.reasonForNone(flags)}
	case len(all) > 1:
		return session.UsageErrorf(cmd, "-o svg shows one metric, and the set has %s: name one by --metric", titles(all))
	}
	chart, err := chartOf(cmd, all[0], flags)
	if err != nil {
		return err
	}
	text, err := chart.SVG()
	if err != nil {
		return session.UsageErrorf(cmd, "%v", err)
	}
	return p.text(text)
}

func chartOf(cmd *cobra.Command, m *result.Metric, flags resultFlags) (plot.Chart, error) {
	if len(flags.by) > 0 {
		by, err := flags.parameters(cmd, []*result.Metric{m})
		return m.Chart(by[0], by[1]), err
	}
	charts, reason := m.Charts()
	switch {
	case reason != "":
		return plot.Chart{}, session.UsageErrorf(cmd, "%s", reason)
	case len(charts) > 1:
		return plot.Chart{}, session.UsageErrorf(cmd, "these parameters make %d plots: name one or two by --by", len(charts))
	}
	return charts[0], nil
}
