package set_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// quietStore is a store that notifies of no write.
type quietStore struct{ *storetest.Memory }

// Changed implements store.Notifier.
func (quietStore) Changed(string) <-chan struct{} { return nil }

// apis are clients of a server that serves the sets and runs of a gateway.
type apis struct {
	sets baiv1.SetServiceClient
	runs baiv1.RunServiceClient
}

func (g *gateway) api() apis {
	t := g.w.t
	t.Helper()
	l := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- api.New(api.Settings{}, api.Deps{Sets: g.Sets, Submitter: g.submitter, Store: quietStore{g.w.store}, Log: zap.NewNop()}).Serve(l)(ctx)
	}()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(conn.Close(), <-done); err != nil {
			t.Error(err)
		}
	})
	return apis{baiv1.NewSetServiceClient(conn), baiv1.NewRunServiceClient(conn)}
}

// submit submits a set with the name n.
func (a apis) submit(t *testing.T, sweep string) string {
	t.Helper()
	got, err := a.runs.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{
		DescriptorToml: []byte(descriptor(sweep)), DescriptorFile: "sweep.toml", Owner: "ann", Name: "n", IdempotencyKey: "k", Labels: map[string]string{"a": "b"},
	})
	if err != nil || got.GetSetId() == "" {
		t.Fatal(got, err)
	}
	return got.GetSetId()
}

func TestASetShowsTheNumberOfActiveRunsThatItKeepsTo(t *testing.T) {
	for asked, kept := range map[int]int32{0: 100, 1: 1, 200: 200, 1000: 200} {
		w := newFixture(t)
		a := w.gateway().api()
		id := a.submit(t, fmt.Sprintf("max_parallel = %d%s", asked, sixCells))
		got, err := a.sets.GetSet(t.Context(), &baiv1.GetSetRequest{Set: id, Owner: "ann"})
		if err != nil || got.GetSet().GetMaxParallel() != kept {
			t.Errorf("max_parallel = %d: %d, %v, want %d", asked, got.GetSet().GetMaxParallel(), err, kept)
		}
	}
}

func TestADescriptorWithASweepIsAnsweredWithTheIDOfASet(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	a := g.api()
	id := a.submit(t, "repetitions = 2\nwarmup = 1\nmax_parallel = 4"+sixCells)
	want(t, "ID of the same request", a.submit(t, "repetitions = 2\nwarmup = 1\nmax_parallel = 4"+sixCells), id)
	_, err := a.runs.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: []byte(descriptor(sixCells)), Owner: "ann", Name: "n", IdempotencyKey: "other"})
	want(t, "code of another request with the name", status.Code(err), codes.AlreadyExists)
	g.pass()
	got, err := a.sets.GetSet(t.Context(), &baiv1.GetSetRequest{Set: "n", Owner: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	s := got.GetSet()
	if s.GetId() != id || len(s.GetActiveRuns()) != 4 || s.GetActive() != 4 || s.GetSubmitted() != 4 || s.GetState() != baiv1.SetState_SET_STATE_RUNNING ||
		s.GetCellCount() != 6 || s.GetRunCount() != 18 || s.GetDescriptorToml() != descriptor("repetitions = 2\nwarmup = 1\nmax_parallel = 4"+sixCells) {
		t.Errorf("the set is %v", s)
	}
	want(t, "labels", fmt.Sprint(s.GetLabels()), "map[a:b task_name:t]")
	w.finishRuns(event.Failed)
	g.runToEnd(id)
	all, err := a.sets.ListSets(t.Context(), &baiv1.ListSetsRequest{Owner: "ann", Namespace: "default"})
	if err != nil || len(all.GetSets()) != 1 {
		t.Fatal(all, err)
	}
	s = all.GetSets()[0]
	if s.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || s.GetFailed() != 4 || s.GetSucceeded() != 14 || s.GetFailureClasses()["infra"] != 4 || len(s.GetFailures()) != 4 || s.GetDescriptorToml() != "" {
		t.Errorf("the set in a list is %v", s)
	}
}

func TestCellsAndRunsOfASetAreListed(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	a := g.api()
	id := a.submit(t, "repetitions = 2\nwarmup = 1"+sixCells)
	g.runToEnd(id)
	cells, err := a.sets.ListCells(t.Context(), &baiv1.ListCellsRequest{Set: id, PageSize: 1})
	if err != nil || len(cells.GetCells()) != 1 || cells.GetNextPageToken() == "" {
		t.Fatal(cells, err)
	}
	c := cells.GetCells()[0]
	var got []string
	for _, p := range c.GetParameters() {
		got = append(got, p.GetName()+"="+p.GetValue())
	}
	for _, r := range c.GetRuns() {
		got = append(got, fmt.Sprint(r.GetRepetition(), r.GetWarmup(), r.GetOutcome()))
	}
	want(t, "first cell", c.GetName()+" "+strings.Join(got, ", "),
		`size=1K,n=1 size="1K", n=1, 1 true OUTCOME_SUCCEEDED, 1 false OUTCOME_SUCCEEDED, 2 false OUTCOME_SUCCEEDED`)
	for cell, n := range map[string]int{"": 18, "size=1M,n=3": 3, "none": 0} {
		runs, err := a.runs.ListRuns(t.Context(), &baiv1.ListRunsRequest{SetId: strings.ToUpper(id), Cell: cell})
		if err != nil || len(runs.GetRuns()) != n {
			t.Errorf("of cell %q: %d runs, %v, want %d", cell, len(runs.GetRuns()), err, n)
		}
	}
	for name, err := range map[string]error{
		"a token of cells":     second(a.sets.ListCells(t.Context(), &baiv1.ListCellsRequest{Set: id, PageToken: "x"})),
		"a token of sets":      second(a.sets.ListSets(t.Context(), &baiv1.ListSetsRequest{PageToken: "x"})),
		"a size of a page":     second(a.sets.ListSets(t.Context(), &baiv1.ListSetsRequest{PageSize: -1})),
		"a cell without a set": second(a.runs.ListRuns(t.Context(), &baiv1.ListRunsRequest{Cell: "x"})),
		"no set":               second(a.sets.GetSet(t.Context(), &baiv1.GetSetRequest{})),
	} {
		want(t, name, status.Code(err), codes.InvalidArgument)
	}
}

func TestTheCellsOfARerunSayWhichRunsItMakes(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	a := g.api()
	id := a.submit(t, "repetitions = 2\nmax_parallel = 1"+sixCells)
	g.pass()
	w.finishRuns(event.Failed) // of the first repetition of the first cell
	g.runToEnd(id)
	again, err := a.sets.RerunSet(t.Context(), &baiv1.RerunSetRequest{Set: id, Failed: true, IdempotencyKey: "again"})
	if err != nil {
		t.Fatal(err)
	}
	g.runToEnd(again.GetSet().GetId())
	cells, err := a.sets.ListCells(t.Context(), &baiv1.ListCellsRequest{Set: again.GetSet().GetId(), PageSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.sets.GetSetResults(t.Context(), &baiv1.GetSetResultsRequest{Set: again.GetSet().GetId(), PageSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "first cell", fmt.Sprint(cells.GetCells()[0].GetSelected().GetRepetitions(), len(cells.GetCells()[0].GetRuns()), got.GetCells()[0].GetNotSelected()), "[1] 1 false")
	want(t, "second cell", fmt.Sprint(cells.GetCells()[1].GetSelected() != nil, len(cells.GetCells()[1].GetRuns()), got.GetCells()[1].GetNotSelected()), "true 0 true")
}

func second[T any](_ T, err error) error { return err }

func TestASetIsWatchedCanceledAndResumed(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	a := g.api()
	id := a.submit(t, "max_parallel = 2"+sixCells)
	stream, err := a.sets.WatchSet(t.Context(), &baiv1.WatchSetRequest{Set: "n", Owner: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	next := func() *baiv1.Set {
		t.Helper()
		got, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return got.GetSet()
	}
	want(t, "submitted at first", next().GetSubmitted(), 0)
	g.pass()
	for last := next(); last.GetSubmitted() < 2; last = next() {
	}
	canceled, err := a.sets.CancelSet(t.Context(), &baiv1.CancelSetRequest{Set: id})
	if err != nil || canceled.GetSet().GetState() != baiv1.SetState_SET_STATE_CANCELING || canceled.GetSet().GetCanceledBy() != "anonymous" {
		t.Errorf("canceled: %v, %v", canceled, err)
	}
	_, err = a.sets.ResumeSet(t.Context(), &baiv1.ResumeSetRequest{Set: id})
	want(t, "code of an early resume", status.Code(err), codes.FailedPrecondition)
	g.runToEnd(id)
	last := next()
	for ; last.GetState() != baiv1.SetState_SET_STATE_FINISHED; last = next() {
	}
	want(t, "outcome", last.GetOutcome(), baiv1.Outcome_OUTCOME_CANCELED)
	if got, err := stream.Recv(); err == nil {
		t.Errorf("after the end: %v", got)
	}
	resumed, err := a.sets.ResumeSet(t.Context(), &baiv1.ResumeSetRequest{Set: id})
	if err != nil || resumed.GetSet().GetState() != baiv1.SetState_SET_STATE_RUNNING {
		t.Errorf("resumed: %v, %v", resumed, err)
	}
	early, err := a.sets.WatchSet(t.Context(), &baiv1.WatchSetRequest{Set: id, AfterRevision: 1000})
	if err == nil {
		_, err = early.Recv()
	}
	want(t, "code of a watch after a revision that does not exist", status.Code(err), codes.InvalidArgument)
	_, err = a.sets.CancelSet(t.Context(), &baiv1.CancelSetRequest{Set: "none"})
	want(t, "code of a set that does not exist", status.Code(err), codes.NotFound)
}
