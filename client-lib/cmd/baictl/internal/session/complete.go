package session

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
)

// A Completion offers values for an argument.
type Completion = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// most is how many are offered.
const most = 50

// Runs offers the newest runs. Where the platform does not answer within a
// second it offers nothing, and says nothing.
func (s *Session) Runs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var all []string
	s.QueryForCompletion(cmd, func(ctx context.Context, c *bai.Client, owner string) {
		for run, err := range c.List(ctx, bai.Filter{Owner: owner, Page: most}) {
			if err != nil || len(all) == most {
				return
			}
			all = append(all, cobra.CompletionWithDesc(run.GetId(), run.GetName()))
		}
	})
	return all, cobra.ShellCompDirectiveNoFileComp
}

// OneRun is Runs for the first argument alone.
func (s *Session) OneRun(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.Runs(cmd, args, toComplete)
}

// StoredDescriptors offers the descriptors that the platform keeps, as Runs does, with a
// prefix; files too where it is not empty.
func (s *Session) StoredDescriptors(prefix string) Completion {
	directive := cobra.ShellCompDirectiveNoFileComp
	if prefix != "" {
		directive = cobra.ShellCompDirectiveDefault
	}
	return func(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if !strings.HasPrefix(prefix, toComplete) && !strings.HasPrefix(toComplete, prefix) {
			return nil, directive
		}
		var all []string
		s.QueryForCompletion(cmd, func(ctx context.Context, c *bai.Client, _ string) {
			for d, err := range c.Kept(ctx, s.resolved.Namespace, "") {
				if err != nil || len(all) == most {
					return
				}
				all = append(all, prefix+d.GetName())
			}
		})
		return all, directive
	}
}

// Artifacts offers a run, and then the files that were kept of it.
func (s *Session) Artifacts(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return s.Runs(cmd, args, toComplete)
	}
	var all []string
	s.QueryForCompletion(cmd, func(ctx context.Context, c *bai.Client, _ string) {
		files, err := c.Artifacts(ctx, args[0])
		if err != nil {
			return
		}
		for _, f := range files {
			all = append(all, f.GetName())
		}
	})
	return all, cobra.ShellCompDirectiveNoFileComp
}

// Contexts offers the names of the contexts.
func (s *Session) Contexts(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.ContextNames(), cobra.ShellCompDirectiveNoFileComp
}

// QueryForCompletion asks the platform for a second at most.
func (s *Session) QueryForCompletion(cmd *cobra.Command, query func(ctx context.Context, c *bai.Client, owner string)) {
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
	defer cancel()
	c, err := s.Client()
	if err != nil {
		return
	}
	query(ctx, c, s.resolved.Owner)
}
