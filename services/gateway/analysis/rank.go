package analysis

import (
	"context"
	"fmt"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// RankRequest selects runs, and what they are grouped by.
type RankRequest struct {
	Runs    string // operand
	By      string // attribute
	Scope   Scope
	Metrics []string // names; none means all but system.*
}

// Rank groups runs by an attribute, and ranks the groups. The error is *OperandError,
// *MissingError or *StateError for a request that cannot be answered.
func (a *Analyses) Rank(ctx context.Context, req RankRequest) (Ranking, error) {
	valueOf, err := attributeNamed(req.By)
	if err != nil {
		return Ranking{}, err
	}
	j, err := judge.New(judge.Settings{})
	if err != nil {
		return Ranking{}, fmt.Errorf("rank: %w", err)
	}
	s, err := a.resolve(ctx, "runs", req.Runs, req.Scope)
	if err != nil {
		return Ranking{}, err
	}
	all, err := a.sideMembers(ctx, s, req.Metrics)
	if err != nil {
		return Ranking{}, err
	}
	return rankGroups(j, newResults(s, all), req, valueOf)
}
