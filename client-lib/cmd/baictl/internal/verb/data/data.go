// Package data has the verbs for data sets that the platform has fetched.
package data

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Data is the verb data.
func Data(s *session.Session) *cobra.Command {
	return session.Parent(&cobra.Command{
		Use:   "data",
		Short: "Look after the data sets that the platform has fetched",
		Long: `Looks after the data sets that the platform has fetched. Each is stored once,
whoever asked for it, under the sha256 of its bytes; a DIGEST is that, or as
much of its beginning as no other has.`,
	}, list(s), prefetch(s), verify(s), evict(s))
}

func list(s *session.Session) *cobra.Command {
	var unneeded bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List stored data sets",
		Long: `Lists stored data sets: digest, size, time of the last use by a run, how many
runs need it, and where it came from. -o wide adds which runs.

With -o json or yaml: {"data": [...]}. With -o name: the digests.`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.Client()
			if err != nil {
				return err
			}
			all, err := listStored(cmd.Context(), c)
			if err != nil {
				return err
			}
			if unneeded {
				all = withoutRuns(all)
			}
			return printList(s, all)
		},
	}
	cmd.Flags().BoolVar(&unneeded, "unneeded", false, "only data that no run needs")
	return cmd
}

func listStored(ctx context.Context, c *bai.Client) ([]*baiv1.StoredData, error) {
	var all []*baiv1.StoredData
	for d, err := range c.Data(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// withoutRuns are those that no run needs.
func withoutRuns(all []*baiv1.StoredData) []*baiv1.StoredData {
	var some []*baiv1.StoredData
	for _, d := range all {
		if len(d.GetRuns()) == 0 {
			some = append(some, d)
		}
	}
	return some
}

func printList(s *session.Session, all []*baiv1.StoredData) error {
	switch {
	case s.Structured():
		text, err := session.Object(session.Entry{Name: "data", Value: session.Array(all)})
		if err != nil {
			return err
		}
		return s.Print(text)
	case s.Output == "name":
		for _, d := range all {
			if err := session.WriteText(s.Env.Out, d.GetSha256()+"\n"); err != nil {
				return err
			}
		}
		return nil
	case len(all) == 0:
		s.Screen.Note("baictl: no data sets stored")
		return nil
	}
	return s.PrintTable(table(all, s.Output == "wide"))
}

func table(all []*baiv1.StoredData, wide bool) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "SHA256"}, {Title: "SIZE", Right: true}, {Title: "USED"}, {Title: "RUNS", Right: true}, {Title: "SOURCE", Flex: true},
	}}
	for _, d := range all {
		runs, sources := "", strings.Join(d.GetSources(), " ")
		if n := len(d.GetRuns()); n > 0 {
			runs = fmt.Sprint(n)
		}
		if wide {
			runs = strings.Join(d.GetRuns(), " ")
		}
		t.Rows = append(t.Rows, []string{
			digits(d.GetSha256(), wide), printer.Bytes(d.GetSize()),
			printer.Time(d.GetUseTime()), runs, sources,
		})
	}
	return t
}

// digits are as many of a digest as people read.
func digits(sha256 string, wide bool) string {
	if wide {
		return printer.Clean(sha256)
	}
	return printer.Clean(fmt.Sprintf("%.12s", sha256))
}

// choose returns the data sets whose digests begin with the prefixes, or all if all is
// set.
func choose(cmd *cobra.Command, c *bai.Client, all bool, prefixes []string) ([]*baiv1.StoredData, error) {
	if all == (len(prefixes) > 0) {
		return nil, session.UsageErrorf(cmd, "either a DIGEST or --all")
	}
	available, err := listStored(cmd.Context(), c)
	if err != nil || all {
		return available, err
	}
	var chosen []*baiv1.StoredData
	for _, b := range prefixes {
		d, err := findByPrefix(available, b)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, d)
	}
	return chosen, nil
}

// findByPrefix is the one whose digest begins so.
func findByPrefix(all []*baiv1.StoredData, prefix string) (*baiv1.StoredData, error) {
	var found []*baiv1.StoredData
	for _, d := range all {
		if strings.HasPrefix(d.GetSha256(), strings.ToLower(prefix)) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return nil, &bai.NotFoundError{What: "data", Message: fmt.Sprintf("no data are stored whose sha256 begins with %q", prefix)}
	case 1:
		return found[0], nil
	}
	return nil, &exitcode.UsageError{
		Message: fmt.Sprintf("%q begins the sha256 of %d data sets: give more of it", prefix, len(found)),
		Help:    "baictl data list -o name",
	}
}

// digests offers the digests of stored data.
func digests(s *session.Session) session.Completion {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		var offered []string
		s.QueryForCompletion(cmd, func(ctx context.Context, c *bai.Client, _ string) {
			all, err := listStored(ctx, c)
			if err != nil {
				return
			}
			for _, d := range all {
				offered = append(offered, cobra.CompletionWithDesc(digits(d.GetSha256(), false),
					printer.Clean(strings.Join(d.GetSources(), " "))))
			}
		})
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}
