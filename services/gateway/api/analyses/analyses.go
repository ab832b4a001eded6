// Package analyses has the handlers of bai.v1.AnalysisService and bai.v1.BaselineService.
package analyses

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/gateway/api/message"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
)

// Server implements bai.v1.AnalysisService.
type Server struct {
	baiv1.UnimplementedAnalysisServiceServer

	Analyses *analysis.Analyses
}

// CompareRuns implements bai.v1.AnalysisService.
func (s *Server) CompareRuns(ctx context.Context, req *baiv1.CompareRunsRequest) (*baiv1.CompareRunsResponse, error) {
	c, err := s.Analyses.Compare(ctx, analysis.CompareRequest{
		Old: req.GetOld(), New: req.GetNew(), Scope: analysis.Scope{Owner: request.Owner(ctx, req), Namespace: request.Namespace(req)},
		Metrics: req.GetMetrics(), MinChange: req.GetMinChange(),
	})
	if err != nil {
		return nil, err
	}
	resp := &baiv1.CompareRunsResponse{Old: comparedSideOf(c.Old), New: comparedSideOf(c.New), Notes: c.Notes}
	for i := range c.Series {
		resp.Series = append(resp.Series, seriesComparisonOf(&c.Series[i]))
	}
	for _, d := range c.Differences {
		resp.Differences = append(resp.Differences,
			&baiv1.SideDifference{Subject: d.Subject, Old: d.Old, New: d.New, Incomparable: d.Incomparable})
	}
	return resp, checkSize(resp, len(resp.GetSeries()))
}

// checkSize refuses a response with n series that is too large to be sent.
func checkSize(resp proto.Message, n int) error {
	if size := proto.Size(resp); size > rpc.MaxResponse {
		return status.Error(codes.FailedPrecondition,
			fmt.Sprintf("the %d series have %d bytes, %d at most (name the metrics that you want, or take fewer runs)", n, size,
				rpc.MaxResponse))
	}
	return nil
}

// maxExcluded is how many runs that do not count are listed.
const maxExcluded = 100

func comparedSideOf(s analysis.ComparedSide) *baiv1.ComparedSide {
	out := &baiv1.ComparedSide{Operand: s.Operand, RunIds: s.Runs, ExcludedCount: message.Int32(len(s.Excluded))}
	for _, e := range s.Excluded[:min(maxExcluded, len(s.Excluded))] {
		out.Excluded = append(out.Excluded, &baiv1.ExcludedRun{RunId: e.Run, Reason: e.Reason})
	}
	return out
}

func seriesComparisonOf(s *analysis.SeriesComparison) *baiv1.SeriesComparison {
	out := &baiv1.SeriesComparison{
		Metric: s.Metric, Unit: s.Unit, Labels: s.Labels, Direction: string(s.Direction), Cell: s.Cell,
		Verdict: string(s.Verdict), Reason: string(s.Reason), Test: string(s.Test), P: s.P, AdjustedP: s.AdjustedP,
		Old: sideValuesOf(s.Base, s.OldValues), New: sideValuesOf(s.Other, s.NewValues),
		LackingOld: message.Int32(s.LackingBase), LackingNew: message.Int32(s.LackingOther),
		LackingHistory: message.Int32(s.LackingHistory),
		History:        message.Int32(s.History), Needed: message.Int32(s.Needed), Shows: s.Shows,
	}
	if s.Change != nil {
		out.Change = differenceOf(*s.Change, s.Scale)
	}
	return out
}

func sideValuesOf(s compare.Side, values []float64) *baiv1.SideValues {
	out := &baiv1.SideValues{
		N: message.Int32(s.N), Excluded: message.Int32(s.Excluded), Median: s.Median,
		Samples: int64(s.Samples), Values: values,
	}
	if s.Interval != nil {
		out.Interval = intervalOf(*s.Interval)
	}
	return out
}

func intervalOf(i judge.Interval) *baiv1.Interval {
	return &baiv1.Interval{Low: i.Low, High: i.High, Level: i.Level}
}

func differenceOf(e judge.Estimate, s judge.Scale) *baiv1.Difference {
	return &baiv1.Difference{Value: e.Value, Interval: intervalOf(e.Interval), Relative: s.Kind != judge.Absolute}
}

// QueryHistory implements bai.v1.AnalysisService.
func (s *Server) QueryHistory(ctx context.Context, req *baiv1.QueryHistoryRequest) (*baiv1.QueryHistoryResponse, error) {
	query := analysis.HistoryRequest{
		Task: req.GetTask(), Namespace: request.Namespace(req), Metrics: req.GetMetrics(),
		Limit: int(req.GetLimit()), Labels: req.GetLabels(),
	}
	if req.GetSince() != nil {
		query.Since = req.GetSince().AsTime()
	}
	if req.GetUntil() != nil {
		query.Until = req.GetUntil().AsTime()
	}
	h, err := s.Analyses.History(ctx, query)
	if err != nil {
		return nil, err
	}
	resp := &baiv1.QueryHistoryResponse{Excluded: message.Int32(h.Excluded), Truncated: h.Truncated, Method: changepoint.Method}
	for i := range h.Runs {
		resp.Runs = append(resp.Runs, historyRunOf(&h.Runs[i]))
	}
	for i := range h.Series {
		one := seriesHistoryOf(&h.Series[i])
		if req.GetWithoutPoints() {
			one.Points = nil
		}
		resp.Series = append(resp.Series, one)
	}
	return resp, checkSize(resp, len(resp.GetSeries()))
}

func historyRunOf(r *analysis.HistoryRun) *baiv1.HistoryRun {
	return &baiv1.HistoryRun{
		RunId: r.ID, Name: r.Name, Time: timestamppb.New(r.Time), Version: r.Version, Machine: r.Machine, Nodes: r.Nodes,
		Image: r.Image, DescriptorSha256: r.Descriptor, Complete: r.Complete,
	}
}

func seriesHistoryOf(s *analysis.SeriesHistory) *baiv1.SeriesHistory {
	out := &baiv1.SeriesHistory{
		Metric: s.Metric, Unit: s.Unit, Labels: s.Labels, Direction: string(s.Direction),
		Cell: s.Cell, Notes: s.Notes,
	}
	for _, p := range s.Points {
		point := &baiv1.HistoryPoint{Run: message.Int32(p.Index), Value: p.Value, Samples: p.Samples}
		if i := p.Interval; i != nil {
			point.Interval = &baiv1.Interval{Low: float64(i.Low), High: float64(i.High), Level: i.Level}
		}
		out.Points = append(out.Points, point)
	}
	for _, l := range s.Levels {
		out.Levels = append(out.Levels, &baiv1.HistoryLevel{First: message.Int32(l.First), Last: message.Int32(l.Last), Median: l.Median})
	}
	for i := range s.Changes {
		out.Changes = append(out.Changes, historyChangeOf(&s.Changes[i], s.Direction))
	}
	return out
}

func historyChangeOf(c *analysis.HistoryChange, d judge.Direction) *baiv1.HistoryChange {
	out := &baiv1.HistoryChange{
		Index: message.Int32(c.Index), RunId: c.Run.ID, Time: timestamppb.New(c.Run.Time), Kind: string(c.Kind),
		Direction: "down", Verdict: c.Verdict(d),
		Before: c.Before, After: c.After, Magnitude: c.Magnitude, P: c.P, RangeFirst: message.Int32(c.First),
		RangeLast:     message.Int32(c.Last),
		VersionBefore: c.VersionBefore, VersionAfter: c.VersionAfter, Subjects: c.Subjects, Shift: c.Shift,
	}
	if c.Shift > 0 {
		out.Direction = "up"
	}
	out.Interval, out.ShiftInterval = changeIntervalOf(c.MagnitudeInterval), changeIntervalOf(c.ShiftInterval)
	return out
}

// changeIntervalOf returns the interval of a change, or nil if it has none.
func changeIntervalOf(i judge.Interval) *baiv1.Interval {
	if math.IsNaN(i.Low) {
		return nil
	}
	i.Level = cmp.Or(i.Level, analysis.Confidence)
	return intervalOf(i)
}

// PlanPower implements bai.v1.AnalysisService.
func (s *Server) PlanPower(ctx context.Context, req *baiv1.PlanPowerRequest) (*baiv1.PlanPowerResponse, error) {
	query := analysis.PowerRequest{
		Task: req.GetTask(), Namespace: request.Namespace(req),
		Metrics: req.GetMetrics(), Effect: req.GetEffect(),
	}
	for _, n := range req.GetRuns() {
		query.Runs = append(query.Runs, int(n))
	}
	p, err := s.Analyses.Power(ctx, query)
	if err != nil {
		return nil, err
	}
	resp := &baiv1.PlanPowerResponse{RunSeconds: p.Duration.Seconds()}
	if c := p.Cost; c != nil {
		resp.RunCost = &baiv1.RunCost{Amount: c.Amount, Currency: c.Currency, Runs: message.Int32(c.Runs)}
	}
	for i := range p.Series {
		resp.Series = append(resp.Series, seriesPowerOf(&p.Series[i]))
	}
	return resp, checkSize(resp, len(resp.GetSeries()))
}

func seriesPowerOf(s *analysis.SeriesPower) *baiv1.SeriesPower {
	out := &baiv1.SeriesPower{
		Metric: s.Metric, Unit: s.Unit, Labels: s.Labels, Cell: s.Cell, Points: message.Int32(s.History.Summary.N),
		Lacking: message.Int32(s.History.Lacking),
		Spread:  s.Spread(), Absolute: s.History.Scale.Kind == judge.Absolute,
	}
	for _, d := range s.Detectable {
		one := &baiv1.DetectableChange{RunsASide: message.Int32(d.Runs)}
		if d.Change != nil {
			one.Change = differenceOf(*d.Change, s.History.Scale)
		}
		out.Detectable = append(out.Detectable, one)
	}
	if n := s.Needed; n != nil {
		out.Needed = &baiv1.NeededRuns{RunsASide: message.Int32(n.Runs), Low: message.Int32(n.Low), High: message.Int32(n.High)}
	}
	return out
}

// RankRuns implements bai.v1.AnalysisService.
func (s *Server) RankRuns(ctx context.Context, req *baiv1.RankRunsRequest) (*baiv1.RankRunsResponse, error) {
	r, err := s.Analyses.Rank(ctx, analysis.RankRequest{
		Runs: req.GetRuns(), By: req.GetBy(), Scope: analysis.Scope{Owner: request.Owner(ctx, req), Namespace: request.Namespace(req)},
		Metrics: req.GetMetrics(),
	})
	if err != nil {
		return nil, err
	}
	resp := &baiv1.RankRunsResponse{Runs: message.Int32(r.Runs), Excluded: message.Int32(r.Excluded), Notes: r.Notes}
	for i := range r.Series {
		resp.Series = append(resp.Series, seriesRankingOf(&r.Series[i]))
	}
	return resp, checkSize(resp, len(resp.GetSeries()))
}

func seriesRankingOf(s *analysis.SeriesRanking) *baiv1.SeriesRanking {
	out := &baiv1.SeriesRanking{
		Metric: s.Metric, Unit: s.Unit, Labels: s.Labels, Direction: string(s.Direction),
		Needed: message.Int32(s.Needed),
	}
	for _, g := range s.Groups {
		one := &baiv1.RankedGroup{Value: g.Value, Best: g.Best, Lacking: message.Int32(g.Lacking), Values: &baiv1.SideValues{
			N: message.Int32(g.Summary.N), Excluded: message.Int32(g.Summary.Excluded), Median: g.Summary.Median,
			Samples: g.Samples, Values: g.Values,
		}}
		if g.Summary.Interval != nil {
			one.Values.Interval = intervalOf(*g.Summary.Interval)
		}
		for _, place := range g.Alike {
			one.Alike = append(one.Alike, message.Int32(place))
		}
		out.Groups = append(out.Groups, one)
	}
	return out
}
