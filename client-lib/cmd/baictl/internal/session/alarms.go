package session

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Incidents offers the newest incidents of a team, empty for that of the context: open ones
// only, if open is true.
func (s *Session) Incidents(cmd *cobra.Command, namespace string, open bool) []string {
	var all []string
	s.QueryForCompletion(cmd, func(ctx context.Context, c *bai.Client, _ string) {
		team, err := s.Team(namespace)
		if err != nil {
			return
		}
		for i, err := range c.Incidents(ctx, &baiv1.ListIncidentsRequest{Namespace: team, Open: open, PageSize: most}) {
			if err != nil || len(all) == most {
				return
			}
			all = append(all, cobra.CompletionWithDesc(i.GetId(), printer.Clean(i.GetState()+": "+i.GetMessage())))
		}
	})
	return all
}

// Mutes offers the mutes of a team, empty for that of the context, that have not ended.
func (s *Session) Mutes(cmd *cobra.Command, namespace string) []string {
	var all []string
	s.QueryForCompletion(cmd, func(ctx context.Context, c *bai.Client, _ string) {
		team, err := s.Team(namespace)
		if err != nil {
			return
		}
		for m, err := range c.Mutes(ctx, team, false) {
			if err != nil || len(all) == most {
				return
			}
			all = append(all, cobra.CompletionWithDesc(m.GetId(), printer.Clean(m.GetReason())))
		}
	})
	return all
}

// Receivers offers the receivers that a team, empty for that of the context, may use.
func (s *Session) Receivers(cmd *cobra.Command, namespace string) (names []string) {
	s.QueryForCompletion(cmd, func(ctx context.Context, c *bai.Client, _ string) {
		team, err := s.Team(namespace)
		if err != nil {
			return
		}
		all, err := c.Receivers(ctx, team)
		if err != nil {
			return
		}
		for _, name := range all {
			names = append(names, printer.Clean(name))
		}
	})
	return names
}
