package bai_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/bai"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestIncidentsAreReadInPages(t *testing.T) {
	c, p := clientWithSets(t)
	for i, state := range []string{"resolved", "firing", "suspected"} {
		p.AddIncident(&baiv1.Incident{Id: fmt.Sprint("incident", i), Namespace: "default", Task: "rates", State: state, Recent: []*baiv1.IncidentPoint{{Value: 1}}})
	}
	req := &baiv1.ListIncidentsRequest{Task: "rates", Open: true}
	var ids []string
	for i, err := range c.Incidents(t.Context(), req) {
		if err != nil || len(i.GetRecent()) > 0 {
			t.Fatal(i, err)
		}
		ids = append(ids, i.GetId())
	}
	if diff := cmp.Diff([]string{"incident2", "incident1"}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if req.GetPageSize() != 0 || req.GetPageToken() != "" {
		t.Errorf("the request is changed to %v", req)
	}
	if i, err := c.Incident(t.Context(), "", "incident1"); err != nil || len(i.GetRecent()) != 1 {
		t.Errorf("%v, %v", i, err)
	}
	_, err := c.Incident(t.Context(), "other", "incident1")
	if missing, ok := errors.AsType[*bai.NotFoundError](err); !ok || missing.What != "incident" {
		t.Errorf("%v", err)
	}
}

func TestIncidentsAreWatchedWhateverTheConnectionDoes(t *testing.T) {
	c, p := clientWithSets(t)
	at := func(n int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC))
	}
	p.AddIncident(&baiv1.Incident{Id: "old", Namespace: "default", State: "resolved", UpdateTime: at(1)})
	p.AddIncident(&baiv1.Incident{Id: "new", Namespace: "default", State: "suspected", UpdateTime: at(2), Recent: []*baiv1.IncidentPoint{{Value: 1}}})
	p.Fail("WatchIncidents", nil, status.Error(codes.Unavailable, "connection lost"))
	states := []string{"firing", "resolved"}
	var got []string
	for i, err := range c.WatchIncidents(t.Context(), &baiv1.WatchIncidentsRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(i.GetId(), " ", i.GetState(), " ", len(i.GetRecent())))
		if len(states) == 0 {
			break
		}
		p.ChangeIncident("new", func(i *baiv1.Incident) { i.State, i.UpdateTime = states[0], at(5-len(states)) })
		states = states[1:]
	}
	if diff := cmp.Diff([]string{"new suspected 0", "new firing 0", "new resolved 0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnIncidentIsAcknowledgedUntilItIsOver(t *testing.T) {
	c, p := clientWithSets(t)
	p.AddIncident(&baiv1.Incident{Id: "incident1", Namespace: "default", State: "firing"})
	for _, step := range []struct {
		req  *baiv1.AckIncidentRequest
		want string
	}{
		{&baiv1.AckIncidentRequest{Incident: "incident1", Reason: "known"}, "acknowledged"},
		{&baiv1.AckIncidentRequest{Incident: "incident1", Reason: "fine", Accept: true}, "resolved"},
	} {
		if i, err := c.AckIncident(t.Context(), step.req); err != nil || i.GetState() != step.want || i.GetAck().GetReason() != step.req.GetReason() {
			t.Errorf("%v, %v, want %s", i, err, step.want)
		}
	}
	if _, err := c.AckIncident(t.Context(), &baiv1.AckIncidentRequest{Incident: "incident1", Reason: "again"}); !errors.As(err, new(*bai.InvalidError)) {
		t.Error(err)
	}
	if _, err := c.AckIncident(t.Context(), &baiv1.AckIncidentRequest{Incident: "none"}); !errors.As(err, new(*bai.NotFoundError)) {
		t.Error(err)
	}
}

func TestAMuteThatIsMadeAgainIsTheSame(t *testing.T) {
	c, p := clientWithSets(t)
	p.Fail("CreateMute", status.Error(codes.Unavailable, "the answer was lost"))
	req := &baiv1.CreateMuteRequest{Task: "rates", Reason: "moving", Until: timestamppb.New(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))}
	first, err := c.CreateMute(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.CreateMute(t.Context(), req); err != nil || again.GetId() != first.GetId() {
		t.Errorf("%v, %v, want %v", again, err, first)
	}
	n := 0
	for m, err := range c.Mutes(t.Context(), "", false) {
		if n++; err != nil || m.GetTask() != "rates" {
			t.Errorf("%v, %v", m, err)
		}
	}
	if n != 1 {
		t.Errorf("%d mutes", n)
	}
	for _, want := range []bool{true, false} {
		if existed, err := c.DeleteMute(t.Context(), "", first.GetId()); err != nil || existed != want {
			t.Errorf("existed %t, %v", existed, err)
		}
	}
}

func TestTheLogOfNoticesIsReadInPages(t *testing.T) {
	c, p := clientWithSets(t)
	p.AddIncident(&baiv1.Incident{Id: "incident1", Namespace: "default"})
	for i, receiver := range []string{"mail", "chat", "mail"} {
		p.AddNotice(&baiv1.Notice{Id: fmt.Sprint("n", i), Namespace: "default", Receiver: receiver, IncidentIds: []string{"incident1"}})
	}
	var ids []string
	for n, err := range c.Notices(t.Context(), &baiv1.ListNoticesRequest{Receiver: "mail", Incident: "incident1"}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, n.GetId())
	}
	if diff := cmp.Diff([]string{"n2", "n0"}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, err := range c.Notices(t.Context(), &baiv1.ListNoticesRequest{Incident: "none"}) {
		if !errors.As(err, new(*bai.NotFoundError)) {
			t.Error(err)
		}
	}
}
