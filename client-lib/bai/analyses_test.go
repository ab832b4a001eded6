package bai_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/benchmark-ai/bai/client-lib/bai"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestSidesAreComparedUnderTheOwnersNames(t *testing.T) {
	c, p := clientWithSets(t)
	want := &baiv1.CompareRunsResponse{Old: &baiv1.ComparedSide{Operand: "a"}, New: &baiv1.ComparedSide{Operand: "b"}}
	p.SetComparison(want)
	got, err := c.Compare(t.Context(), &baiv1.CompareRunsRequest{Old: "a", New: "b", MinChange: 0.02})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	sent := []proto.Message{&baiv1.CompareRunsRequest{Old: "a", New: "b", Owner: "ann", MinChange: 0.02}}
	if diff := cmp.Diff(sent, p.AnalysisRequests(), protocmp.Transform()); diff != "" {
		t.Errorf("(-sent +got):\n%s", diff)
	}
	if _, err := c.Compare(t.Context(), &baiv1.CompareRunsRequest{Old: "a", New: "none"}); !errors.As(err, new(*bai.NotFoundError)) {
		t.Error(err)
	}
}

func TestAHistoryAndThePowerOfATaskAreRead(t *testing.T) {
	c, p := clientWithSets(t)
	p.SetHistory("rates", &baiv1.QueryHistoryResponse{Excluded: 3})
	p.SetPower("rates", &baiv1.PlanPowerResponse{RunSeconds: 4})
	h, err := c.History(t.Context(), &baiv1.QueryHistoryRequest{Task: "rates"})
	if err != nil || h.GetExcluded() != 3 {
		t.Errorf("%v, %v", h, err)
	}
	w, err := c.Power(t.Context(), &baiv1.PlanPowerRequest{Task: "rates"})
	if err != nil || w.GetRunSeconds() != 4 {
		t.Errorf("%v, %v", w, err)
	}
}

func TestBaselinesAreKeptByTeamAndName(t *testing.T) {
	c, _ := clientWithSets(t)
	for _, name := range []string{"b", "a"} {
		if _, err := c.SetBaseline(t.Context(), &baiv1.SetBaselineRequest{Name: name, Operand: "run-1", Reason: "why"}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for b, err := range c.Baselines(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, b.GetName())
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b, err := c.Baseline(t.Context(), "", "a"); err != nil || b.GetRevisions()[0].GetOwner() != "ann" {
		t.Errorf("%v, %v", b, err)
	}
	for _, want := range []bool{true, false} {
		if existed, err := c.DeleteBaseline(t.Context(), "", "a"); err != nil || existed != want {
			t.Errorf("existed %t, %v", existed, err)
		}
	}
	if _, err := c.Baseline(t.Context(), "", "a"); !errors.As(err, new(*bai.NotFoundError)) {
		t.Error(err)
	}
}
