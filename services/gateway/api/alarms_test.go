package api_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// putIncident stores an incident of each field.
func (w *fixture) putIncident() (id string, opened time.Time) {
	w.t.Helper()
	id, opened = "0a1b2c3d4e5f6g7h8j9kamnbpc", time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	point := func(run string, v float64) *incident.Point {
		return &incident.Point{Run: run, Time: opened, Version: "v" + run, Value: v}
	}
	err := store.Create(w.t.Context(), w.store, store.KindIncident, "default/"+id, incident.Incident{
		ID: id, Series: store.SeriesKey{Namespace: "default", Task: "rates", Metric: "rate", Labels: map[string]string{"level": "9"}, Cell: "n=1"},
		Rule:  incident.Rule{ID: "r", When: incident.Regression, Statistic: incident.Median, MinChange: 0.02, For: 2, Notify: []string{"mail"}},
		Group: "g", State: incident.Firing, Kind: "step", Direction: "down", Before: 100, After: 90, Unit: "B/s", Magnitude: new(store.Float(-0.1)),
		Interval: [2]store.Float{-0.12, -0.08}, P: 0.001, LastGood: point("1", 100), FirstBad: point("2", 90), First: point("2", 90), Last: point("3", 90),
		Recent: []incident.Point{*point("1", 100), *point("2", 90)}, Cause: incident.CauseRegression, Reasons: []string{"version differs"}, Message: "rate fell",
		Opened: opened, Updated: opened, Became: []incident.Transition{{State: incident.Firing, At: opened, Why: "it is there"}},
	})
	if err := errors.Join(err, store.Create(w.t.Context(), w.store, store.KindOpenIncident, "default/"+id, struct{}{})); err != nil {
		w.t.Fatal(err)
	}
	return id, opened
}

func TestIncidentsAreWatched(t *testing.T) {
	w := newFixture(t, options{})
	id, opened := w.putIncident()
	alarms := baiv1.NewAlarmServiceClient(w.conn)
	watch := func(req *baiv1.WatchIncidentsRequest) (next func() string) {
		stream, err := alarms.WatchIncidents(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return func() string {
			got, err := stream.Recv()
			if err != nil {
				return status.Code(err).String()
			}
			return fmt.Sprintf("%s %s, %d points", got.GetIncident().GetId(), got.GetIncident().GetState(), len(got.GetIncident().GetRecent()))
		}
	}
	next := watch(&baiv1.WatchIncidentsRequest{Task: "rates"})
	if got := next(); got != id+" firing, 0 points" {
		t.Errorf("at first %q", got)
	}
	if _, err := alarms.AckIncident(t.Context(), &baiv1.AckIncidentRequest{Incident: id, Reason: "known", Accept: true}); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != id+" resolved, 0 points" {
		t.Errorf("then %q", got)
	}
	if got := watch(&baiv1.WatchIncidentsRequest{ChangedAfter: timestamppb.New(opened)})(); got != id+" resolved, 0 points" {
		t.Errorf("after a break %q", got)
	}
	if got := watch(&baiv1.WatchIncidentsRequest{ChangedAfter: &timestamppb.Timestamp{Seconds: -1 << 60}})(); got != "InvalidArgument" {
		t.Errorf("a time that is none: %s", got)
	}
}

func TestAnIncidentHasAllThatTheAnalystFound(t *testing.T) {
	w := newFixture(t, options{})
	id, opened := w.putIncident()
	at := timestamppb.New(opened)
	alarms := baiv1.NewAlarmServiceClient(w.conn)
	got, err := alarms.GetIncident(t.Context(), &baiv1.GetIncidentRequest{Incident: id[:6]})
	if err != nil {
		t.Fatal(err)
	}
	point := func(run string, v float64) *baiv1.IncidentPoint {
		return &baiv1.IncidentPoint{RunId: run, Time: at, Version: "v" + run, Value: v}
	}
	want := &baiv1.Incident{
		Id: id, Namespace: "default", Task: "rates", Metric: "rate", Unit: "B/s", Labels: map[string]string{"level": "9"}, Cell: "n=1", State: "firing",
		Message: "rate fell", Rule: &baiv1.AlarmRule{Id: "r", When: "regression", Statistic: "median", MinChange: 0.02, ForPoints: 2, Notify: []string{"mail"}},
		Kind: "step", Direction: "down", Before: 100, After: 90, Magnitude: new(-0.1), Interval: &baiv1.Interval{Low: -0.12, High: -0.08, Level: 0.95}, P: new(0.001),
		Cause: "regression", Reasons: []string{"version differs"}, LastGood: point("1", 100), FirstBad: point("2", 90), RangeFirst: point("2", 90), RangeLast: point("3", 90),
		Recent:      []*baiv1.IncidentPoint{point("1", 100), point("2", 90)},
		Transitions: []*baiv1.IncidentTransition{{State: "firing", Time: at, Reason: "it is there"}}, OpenTime: at, UpdateTime: at, GroupId: "g",
	}
	if diff := cmp.Diff(want, got.GetIncident(), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	list, err := alarms.ListIncidents(t.Context(), &baiv1.ListIncidentsRequest{Task: "rates", Open: true})
	if err != nil {
		t.Fatal(err)
	}
	want.Recent = nil
	if diff := cmp.Diff([]*baiv1.Incident{want}, list.GetIncidents(), protocmp.Transform()); diff != "" {
		t.Errorf("in a list (-want +got):\n%s", diff)
	}
	none, err := alarms.ListIncidents(t.Context(), &baiv1.ListIncidentsRequest{Namespace: "other"})
	if err != nil || len(none.GetIncidents()) > 0 {
		t.Errorf("%v, %v, want none of another team", none, err)
	}
}

func TestAnIncidentIsAcknowledgedByTheCaller(t *testing.T) {
	w := newFixture(t, options{})
	id, _ := w.putIncident()
	alarms := baiv1.NewAlarmServiceClient(w.conn)
	ann := metadata.AppendToOutgoingContext(t.Context(), baiv1.UserMetadata, "ann")
	until := timestamppb.New(time.Now().Add(time.Hour))
	got, err := alarms.AckIncident(ann, &baiv1.AckIncidentRequest{Incident: id, Reason: "known", Until: until})
	if err != nil {
		t.Fatal(err)
	}
	if i := got.GetIncident(); i.GetState() != "acknowledged" || len(i.GetRecent()) > 0 {
		t.Errorf("%v", i)
	}
	want := &baiv1.IncidentAck{User: "ann", Reason: "known", Until: until}
	if diff := cmp.Diff(want, got.GetIncident().GetAck(), protocmp.Transform(), protocmp.IgnoreFields(&baiv1.IncidentAck{}, "time")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = alarms.AckIncident(ann, &baiv1.AckIncidentRequest{Incident: id})
	if faults := checkRefused(t, err, codes.InvalidArgument, "reason"); len(faults) != 1 || faults[0].GetPath() != "reason" || faults[0].GetRemedy() != "say why in a sentence" {
		t.Errorf("%v", faults)
	}
	_, err = alarms.AckIncident(ann, &baiv1.AckIncidentRequest{Incident: id, Reason: "x", Until: &timestamppb.Timestamp{Seconds: 1 << 60}})
	checkRefused(t, err, codes.InvalidArgument, "until")
	_, err = alarms.GetIncident(ann, &baiv1.GetIncidentRequest{Incident: "qqqqqq"})
	checkRefused(t, err, codes.NotFound, "incident qqqqqq of team default does not exist")
	if _, err = alarms.AckIncident(ann, &baiv1.AckIncidentRequest{Incident: id, Reason: "fine", Accept: true}); err != nil {
		t.Error(err)
	}
	_, err = alarms.AckIncident(ann, &baiv1.AckIncidentRequest{Incident: id, Reason: "known"})
	checkRefused(t, err, codes.FailedPrecondition, "is resolved already")
}

func TestMutesAreMadeListedAndRemoved(t *testing.T) {
	w := newFixture(t, options{})
	alarms := baiv1.NewAlarmServiceClient(w.conn)
	ann := metadata.AppendToOutgoingContext(t.Context(), baiv1.UserMetadata, "ann")
	until := timestamppb.New(time.Now().Add(time.Hour))
	made, err := alarms.CreateMute(ann, &baiv1.CreateMuteRequest{Task: "rates", Labels: map[string]string{"a": "b"}, Reason: "moving", Until: until})
	if err != nil {
		t.Fatal(err)
	}
	want := &baiv1.Mute{Namespace: "default", Task: "rates", Labels: map[string]string{"a": "b"}, User: "ann", Reason: "moving", Until: until}
	if diff := cmp.Diff(want, made.GetMute(), protocmp.Transform(), protocmp.IgnoreFields(&baiv1.Mute{}, "id", "create_time")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	list, err := alarms.ListMutes(ann, &baiv1.ListMutesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*baiv1.Mute{made.GetMute()}, list.GetMutes(), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, want := range []bool{true, false} {
		done, err := alarms.DeleteMute(ann, &baiv1.DeleteMuteRequest{Mute: made.GetMute().GetId()})
		if err != nil || done.GetExisted() != want {
			t.Errorf("%v, %v, want %t", done, err, want)
		}
	}
	_, err = alarms.CreateMute(ann, &baiv1.CreateMuteRequest{Task: "rates", Reason: "moving"})
	checkRefused(t, err, codes.InvalidArgument, "until")
	_, err = alarms.ListMutes(ann, &baiv1.ListMutesRequest{PageToken: "x"})
	checkRefused(t, err, codes.InvalidArgument, "page_token")
	_, err = alarms.ListMutes(ann, &baiv1.ListMutesRequest{PageSize: -1})
	checkRefused(t, err, codes.InvalidArgument, "page_size")
}

func TestTheLogOfNoticesHasTheAnswersOfReceivers(t *testing.T) {
	w := newFixture(t, options{})
	id, at := w.putIncident()
	for i, d := range []notice.Delivery{
		{Notice: notice.Notice{ID: "n1", Receiver: "mail", Namespace: "default", Became: incident.Firing, Incidents: []incident.Incident{{ID: id, Message: "rate fell"}}, More: 2}, Status: notice.Sent, Attempts: 1, Answer: "250 ok"},
		{Notice: notice.Notice{ID: "n2", Receiver: "chat", Namespace: "default", Became: incident.Firing, Test: true}, Status: notice.Waiting, Next: at},
	} {
		d.Notice.Made, d.At = at.Add(time.Duration(i)*time.Minute), at
		if err := store.Create(t.Context(), w.store, store.KindDelivery, d.Notice.Receiver+"/"+d.Notice.ID, d); err != nil {
			t.Fatal(err)
		}
	}
	alarms := baiv1.NewAlarmServiceClient(w.conn)
	got, err := alarms.ListNotices(t.Context(), &baiv1.ListNoticesRequest{PageSize: 1})
	if err != nil || got.GetNextPageToken() == "" {
		t.Fatalf("%v, %v", got, err)
	}
	rest, err := alarms.ListNotices(t.Context(), &baiv1.ListNoticesRequest{PageToken: got.GetNextPageToken()})
	if err != nil {
		t.Fatal(err)
	}
	want := []*baiv1.Notice{
		{Id: "n2", Receiver: "chat", Namespace: "default", Became: "firing", Test: true, Status: "waiting", CreateTime: timestamppb.New(at.Add(time.Minute)), StatusTime: timestamppb.New(at), RetryTime: timestamppb.New(at)},
		{
			Id: "n1", Receiver: "mail", Namespace: "default", Became: "firing", IncidentIds: []string{id}, More: 2, Message: "rate fell",
			Status: "sent", Attempts: 1, Answer: "250 ok", CreateTime: timestamppb.New(at), StatusTime: timestamppb.New(at),
		},
	}
	if diff := cmp.Diff(want, append(got.GetNotices(), rest.GetNotices()...), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = alarms.ListNotices(t.Context(), &baiv1.ListNoticesRequest{Statuses: []string{"lost"}})
	checkRefused(t, err, codes.InvalidArgument, "lost")
}

func TestATeamSeesAndTestsItsReceivers(t *testing.T) {
	w := newFixture(t, options{})
	alarms := baiv1.NewAlarmServiceClient(w.conn)
	ann := metadata.AppendToOutgoingContext(t.Context(), baiv1.UserMetadata, "ann")
	all, err := alarms.ListReceivers(ann, &baiv1.ListReceiversRequest{})
	if diff := cmp.Diff([]*baiv1.Receiver{{Name: "chat"}}, all.GetReceivers(), protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	at := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	n := notice.NewTest("chat", "default", "ann", "k", at)
	d := notice.Delivery{Notice: n, Status: notice.Sent, Attempts: 1, Answer: "ok", At: at}
	if err := store.Create(t.Context(), w.store, store.KindDelivery, notice.Key("chat", n.ID), d); err != nil {
		t.Fatal(err)
	}
	got, err := alarms.TestReceiver(ann, &baiv1.TestReceiverRequest{Receiver: "chat", IdempotencyKey: "k"})
	if err != nil || got.GetNotice().GetStatus() != "sent" || got.GetNotice().GetAnswer() != "ok" || !got.GetNotice().GetTest() {
		t.Errorf("%v, %v", got, err)
	}
	_, err = alarms.TestReceiver(ann, &baiv1.TestReceiverRequest{Receiver: "mail"})
	checkRefused(t, err, codes.NotFound, "it may use chat")
	_, err = alarms.TestReceiver(ann, &baiv1.TestReceiverRequest{})
	checkRefused(t, err, codes.InvalidArgument, "receiver")
}

func TestTheLogHasTheRunsWhoseEndsItIsAbout(t *testing.T) {
	w := newFixture(t, options{})
	n := notice.NewEnd("chat", notice.End{ID: "r1", Namespace: "default", Ended: time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)})
	if err := notice.Enqueue(t.Context(), w.store, n, n.Made); err != nil {
		t.Fatal(err)
	}
	got, err := baiv1.NewAlarmServiceClient(w.conn).ListNotices(t.Context(), &baiv1.ListNoticesRequest{})
	if err != nil || len(got.GetNotices()) != 1 || got.GetNotices()[0].GetBecame() != "ended" || got.GetNotices()[0].GetEndedIds()[0] != "r1" {
		t.Errorf("%v, %v", got, err)
	}
}
