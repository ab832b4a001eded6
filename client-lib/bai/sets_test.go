package bai_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// clientWithSets is a client of a platform with three sets.
func clientWithSets(t *testing.T) (*bai.Client, *baitest.Platform) {
	t.Helper()
	p := baitest.Start(t)
	for i, id := range []string{"a", "b", "c"} {
		p.AddSet(&baiv1.Set{
			Id: id, Name: "n" + id, Owner: []string{"ann", "ann", "bob"}[i], RunCount: 3, Submitted: 2, State: baiv1.SetState_SET_STATE_RUNNING,
		}, &baiv1.Cell{Id: "1", Name: "x=1", Runs: []*baiv1.CellRun{{RunId: "r1"}, {RunId: "r2"}}}, &baiv1.Cell{Id: "2", Name: "x=2"})
	}
	c, err := bai.Settings{Owner: "ann", RetryTimeout: 10 * time.Second, Pause: time.Millisecond}.Dial(p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, p
}

func TestSetsAreListedPageByPage(t *testing.T) {
	c, _ := clientWithSets(t)
	for owner, want := range map[string][]string{"": {"a", "b", "c"}, "ann": {"a", "b"}, "eve": nil} {
		var got []string
		for s, err := range c.Sets(t.Context(), owner, "") {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s.GetId())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of %q (-want +got):\n%s", owner, diff)
		}
	}
}

func TestResultsOfASetAreReadPageByPage(t *testing.T) {
	c, p := clientWithSets(t)
	p.SetResults("a", &baiv1.CellResult{Name: "x=1", Metrics: []*baiv1.MetricResult{{Metric: "m"}, {Metric: "other"}}}, &baiv1.CellResult{Name: "x=2"})
	for name, metrics := range map[string][]string{"x=1 2 x=2 0 ": nil, "x=1 1 x=2 0 ": {"m"}} {
		got := ""
		for cell, err := range c.SetResults(t.Context(), "na", metrics...) {
			if err != nil {
				t.Fatal(err)
			}
			got += fmt.Sprintf("%s %d ", cell.GetName(), len(cell.GetMetrics()))
		}
		if got != name {
			t.Errorf("of metrics %q: got %q, want %q", metrics, got, name)
		}
	}
	for _, err := range c.SetResults(t.Context(), "none") {
		if !errors.As(err, new(*bai.NotFoundError)) {
			t.Errorf("of a set that does not exist: %v", err)
		}
	}
}

func TestACellThatIsContinuedByTheNextPageComesOnce(t *testing.T) {
	c, _ := clientWithSets(t)
	var got []string
	for cell, err := range c.Cells(t.Context(), "na") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(cell.GetName(), " ", len(cell.GetRuns())))
	}
	if diff := cmp.Diff([]string{"x=1 2", "x=2 0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASetIsCanceledAndResumedByItsName(t *testing.T) {
	c, p := clientWithSets(t)
	if s, err := c.CancelSet(t.Context(), "na"); err != nil || s.GetState() != baiv1.SetState_SET_STATE_CANCELING || s.GetCanceledBy() != "ann" {
		t.Errorf("canceled: %v, %v", s, err)
	}
	if s, err := c.ResumeSet(t.Context(), "a"); err != nil || s.GetState() != baiv1.SetState_SET_STATE_RUNNING {
		t.Errorf("resumed: %v, %v", s, err)
	}
	p.ChangeSet("a", func(s *baiv1.Set) { s.Submitted = 3 })
	if s, err := c.RerunSet(t.Context(), "a", false, "k"); err != nil || s.GetRerunOfSet() == "" {
		t.Errorf("rerun: %v, %v", s, err)
	}
	_, err := c.ResumeSet(t.Context(), "a")
	if _, ok := errors.AsType[*bai.InvalidError](err); !ok {
		t.Errorf("resumed after its last run: %v", err)
	}
	_, err = c.Set(t.Context(), "none")
	if e, ok := errors.AsType[*bai.NotFoundError](err); !ok || e.What != "set" {
		t.Errorf("a set that does not exist: %v", err)
	}
}

func TestASetIsWatchedUntilItHasFinishedWhateverTheConnectionDoes(t *testing.T) {
	c, p := clientWithSets(t)
	p.Fail("WatchSet", nil, status.Error(codes.Unavailable, "connection lost"))
	var got []string
	for s, err := range c.WatchSet(t.Context(), "na") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(s.GetState(), " ", s.GetSucceeded()))
		next := s.GetSucceeded() + 1
		p.ChangeSet("a", func(s *baiv1.Set) {
			s.Succeeded = next
			if next == 3 {
				s.State, s.Outcome = baiv1.SetState_SET_STATE_FINISHED, baiv1.Outcome_OUTCOME_SUCCEEDED
			}
		})
	}
	want := []string{"SET_STATE_RUNNING 0", "SET_STATE_RUNNING 1", "SET_STATE_RUNNING 2", "SET_STATE_FINISHED 3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s, err := c.WaitSet(t.Context(), "a"); err != nil || s.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("waited for: %v, %v", s, err)
	}
}

func TestADescriptorWithASweepIsSubmittedAsASet(t *testing.T) {
	c, p := clientWithSets(t)
	text := []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\n" +
		"[ml]\nbenchmark_code = \"run {{x}}\"\n[sweep]\nrepetitions = 2\n[sweep.product]\nx = [1, 2]\n")
	got, err := c.Submit(t.Context(), bai.Submission{Descriptor: text, Name: "new"})
	if err != nil || got.SetID == "" || got.RunID != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	if s, err := c.Set(t.Context(), "new"); err != nil || s.GetCellCount() != 2 || s.GetRunCount() != 4 {
		t.Errorf("%v, %v", s, err)
	}
	p.Add(&baiv1.Run{Owner: "ann", Lineage: &baiv1.Lineage{SetId: got.SetID, Cell: "x=1"}})
	p.Add(&baiv1.Run{Owner: "ann"})
	n := 0
	for _, err := range c.List(t.Context(), bai.Filter{Set: got.SetID, Cell: "x=1"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d runs of the set, want 1", n)
	}
}

func TestAPlatformThatIsTooOldHasNoSets(t *testing.T) {
	p := baitest.StartOld(t)
	c, err := bai.Dial(p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, err := range c.Sets(t.Context(), "", "") {
		if _, ok := errors.AsType[*bai.UnsupportedError](err); !ok {
			t.Errorf("listed: %v", err)
		}
	}
	for _, err := range c.List(t.Context(), bai.Filter{Set: "x"}) {
		if _, ok := errors.AsType[*bai.UnsupportedError](err); !ok {
			t.Errorf("listed the runs of a set: %v", err)
		}
	}
}
