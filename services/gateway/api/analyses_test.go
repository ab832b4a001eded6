package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// noSets has no sets.
type noSets struct{}

func (noSets) Find(_ context.Context, owner, ref string) (set.Set, error) {
	return set.Set{}, &set.MissingError{Ref: ref, Owner: owner}
}

// putResults stores a run of task rates a day from 2026-03-01 on, for each value of rate.
func (w *fixture) putResults(values ...float64) (ids []string) {
	w.t.Helper()
	for i, v := range values {
		id := fmt.Sprintf("01k8h4fzqh3v7x9y2m5n8p%04d", i)
		run, change := storetest.NewRun(id, time.Date(2026, 3, 1+i, 0, 0, 0, 0, time.UTC))
		run.Namespace, run.Descriptor, run.Phase, run.Outcome = "default", valid, event.PhaseFinished, event.Succeeded
		run.Labels = map[string]string{store.LabelTask: "rates", "version": fmt.Sprint("v", 1+i/12)}
		if err := w.store.PutRun(w.t.Context(), run, change); err != nil {
			w.t.Fatal(err)
		}
		err := store.Create(w.t.Context(), w.store, store.KindSummary, id, store.Summaries{Run: id, Attempt: 1, Complete: true, Summaries: []store.Summary{{
			Metric: "rate", Unit: "B/s", N: 9, Median: store.Float(v), Direction: event.Higher, Interval: &store.Interval{Low: store.Float(v) - 1, High: store.Float(v) + 1, Level: 0.95},
		}}})
		if err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// twoLevels returns 12 values about 100, and 12 about 90.
func twoLevels() (values []float64) {
	for i := range 24 {
		values = append(values, 100-float64(i/12*10)+0.1*float64(i*7%5))
	}
	return values
}

func TestARangeIsComparedWithABaseline(t *testing.T) {
	w := newFixture(t, options{})
	ids := w.putResults(twoLevels()...)
	baselines, analyses := baiv1.NewBaselineServiceClient(w.conn), baiv1.NewAnalysisServiceClient(w.conn)
	made, err := baselines.SetBaseline(t.Context(), &baiv1.SetBaselineRequest{Name: "main", Operand: "rates@2026-03-01..2026-03-13", Reason: "release"})
	if err != nil {
		t.Fatal(err)
	}
	if b := made.GetBaseline(); b.GetRevision() != 1 || len(b.GetRevisions()) != 1 || b.GetRevisions()[0].GetRunCount() != 12 || b.GetRevisions()[0].GetCreateTime() == nil {
		t.Errorf("%v", b)
	}
	got, err := analyses.CompareRuns(t.Context(), &baiv1.CompareRunsRequest{Old: "baseline:main", New: "rates@2026-03-13", MinChange: 0.02})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{ids[:12], ids[12:]}, [][]string{got.GetOld().GetRunIds(), got.GetNew().GetRunIds()}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s := got.GetSeries()[0]
	if text := fmt.Sprint(s.GetMetric(), s.GetUnit(), s.GetDirection(), s.GetVerdict(), s.GetTest(), s.GetOld().GetN(), s.GetOld().GetSamples(), s.GetNew().GetN()); text != "rateB/shigherworsemann_whitney12 108 12" {
		t.Error(text)
	}
	if c := s.GetChange(); !c.GetRelative() || c.GetValue() > -0.09 || c.GetInterval().GetLow() >= c.GetInterval().GetHigh() || c.GetInterval().GetLevel() < 0.95 {
		t.Errorf("%v", c)
	}
}

func TestAHistoryHasItsChanges(t *testing.T) {
	w := newFixture(t, options{})
	ids := w.putResults(twoLevels()...)
	analyses := baiv1.NewAnalysisServiceClient(w.conn)
	got, err := analyses.QueryHistory(t.Context(), &baiv1.QueryHistoryRequest{Task: "rates"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.GetRuns()) != 24 || got.GetRuns()[0].GetImage() != "alpine" || got.GetRuns()[13].GetVersion() != "v2" {
		t.Errorf("%v", got.GetRuns())
	}
	s := got.GetSeries()[0]
	if len(s.GetPoints()) != 24 || s.GetPoints()[3].GetInterval() == nil || s.GetPoints()[3].GetRun() != 3 || len(s.GetLevels()) != 2 {
		t.Errorf("%v", s)
	}
	c := s.GetChanges()[0]
	want := &baiv1.HistoryChange{
		Index: 12, RunId: ids[12], Time: got.GetRuns()[12].GetTime(), Kind: "step", Direction: "down", Verdict: "regression", VersionBefore: "v1", VersionAfter: "v2",
	}
	if diff := cmp.Diff(want, c, protocmp.Transform(), protocmp.IgnoreFields(c, "before", "after", "magnitude", "interval", "shift", "shift_interval", "p", "range_first", "range_last")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.GetInterval().GetLevel() != 0.95 || c.GetMagnitude() > -0.09 || c.GetP() > 0.01 {
		t.Errorf("%v", c)
	}
	without, err := analyses.QueryHistory(t.Context(), &baiv1.QueryHistoryRequest{Task: "rates", WithoutPoints: true})
	if err != nil || len(without.GetSeries()[0].GetPoints()) != 0 || len(without.GetSeries()[0].GetChanges()) != 1 {
		t.Errorf("%v, %v", without, err)
	}
	plan, err := analyses.PlanPower(t.Context(), &baiv1.PlanPowerRequest{Task: "rates", Runs: []int32{2, 6}, Effect: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	p := plan.GetSeries()[0]
	if p.GetPoints() != 12 || p.GetDetectable()[0].GetChange() != nil || p.GetDetectable()[1].GetChange().GetValue() <= 0 || p.GetNeeded().GetRunsASide() == 0 {
		t.Errorf("%v", p)
	}
}

func TestBaselinesAreListedPageByPage(t *testing.T) {
	w := newFixture(t, options{})
	ids := w.putResults(1)
	client := baiv1.NewBaselineServiceClient(w.conn)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := client.SetBaseline(t.Context(), &baiv1.SetBaselineRequest{Name: name, Operand: ids[0]}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for token := ""; ; {
		page, err := client.ListBaselines(t.Context(), &baiv1.ListBaselinesRequest{PageSize: 2, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page.GetBaselines() {
			names = append(names, b.GetName())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	one, err := client.GetBaseline(t.Context(), &baiv1.GetBaselineRequest{Name: "b"})
	if err != nil || one.GetBaseline().GetRevisions()[0].GetRunIds()[0] != ids[0] {
		t.Errorf("%v, %v", one, err)
	}
	if _, err := client.DeleteBaseline(t.Context(), &baiv1.DeleteBaselineRequest{Name: "b"}); err != nil {
		t.Error(err)
	}
	_, err = client.GetBaseline(t.Context(), &baiv1.GetBaselineRequest{Name: "b"})
	checkRefused(t, err, codes.NotFound, "baseline b of team default does not exist")
}

func TestComparisonsThatCannotBeMadeAreRefused(t *testing.T) {
	w := newFixture(t, options{})
	w.putResults(1)
	analyses := baiv1.NewAnalysisServiceClient(w.conn)
	for _, tt := range []struct {
		old  string
		code codes.Code
		text string
	}{
		{"", codes.InvalidArgument, "old"},
		{"nobody", codes.NotFound, "nobody"},
		{"rates@2020-01-01..2020-01-02", codes.FailedPrecondition, "has no runs"},
	} {
		_, err := analyses.CompareRuns(t.Context(), &baiv1.CompareRunsRequest{Old: tt.old, New: "rates@2026-03-01"})
		checkRefused(t, err, tt.code, tt.text)
	}
}
