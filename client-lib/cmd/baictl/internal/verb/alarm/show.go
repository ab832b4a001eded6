package alarm

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// maxNotices is how many notices of an incident are shown.
const maxNotices = 20

func (v *verbs) show() *cobra.Command {
	return v.one(&cobra.Command{
		Use:         "show ID",
		Short:       "Show an incident: what changed, since when, and why",
		Annotations: session.ExtraFormats("svg"),
		Long: `Shows an incident: a sentence of what happened, the change with its interval,
the last good and the first bad run, what differs between them, the pairs of
runs that confirm it, how far the incident has come, and the notices of it.

With -o svg: a plot of the newest points. With -o json or yaml: the incident, a
message of the API, with its recent points; baictl alarms log --incident ID has
the notices. With -o name: its ID.`,
		Example: `  baictl alarms show 0a1b2c
  baictl alarms show 0a1b2c -o svg > incident.svg`,
	}, false, v.showOne)
}

func (v *verbs) showOne(ctx context.Context, _ *cobra.Command, id string) error {
	c, team, err := v.dial()
	if err != nil {
		return err
	}
	got, err := c.Incident(ctx, team, id)
	if err != nil {
		return err
	}
	switch {
	case v.Structured():
		return v.Print(printer.JSON(got))
	case v.Output == "name":
		return session.WriteText(v.Env.Out, printer.Clean(got.GetId())+"\n")
	case v.Output == "svg":
		return session.WriteText(v.Env.Out, chart(got).SVG())
	}
	var notices []*baiv1.Notice
	for n, err := range c.Notices(ctx, &baiv1.ListNoticesRequest{Namespace: team, Incident: got.GetId(), PageSize: maxNotices}) {
		if err != nil {
			return err
		}
		if notices = append(notices, n); len(notices) == maxNotices {
			break
		}
	}
	width := printer.Unbound // scripts look for its lines
	if v.Screen.IsTerminal() {
		width = v.Screen.Width()
	}
	return session.WriteText(v.Env.Out, describe(got, notices, width))
}
