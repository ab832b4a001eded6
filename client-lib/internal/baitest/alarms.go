package baitest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// alarms are incidents, mutes and notices, the newest first.
type alarms struct {
	incidents []*baiv1.Incident
	mutes     []*baiv1.Mute
	notices   []*baiv1.Notice
	receivers map[string]string
}

// AddReceiver adds a receiver of all teams that answers a test so; one without an answer takes none.
func (p *Platform) AddReceiver(name, answer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alarms.receivers == nil {
		p.alarms.receivers = map[string]string{}
	}
	p.alarms.receivers[name] = answer
}

// AddIncident adds an incident before the others.
func (p *Platform) AddIncident(i *baiv1.Incident) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alarms.incidents = slices.Insert(p.alarms.incidents, 0, proto.CloneOf(i))
}

// AddMute adds a mute before the others.
func (p *Platform) AddMute(m *baiv1.Mute) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alarms.mutes = slices.Insert(p.alarms.mutes, 0, proto.CloneOf(m))
}

// AddNotice adds a notice before the others.
func (p *Platform) AddNotice(n *baiv1.Notice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alarms.notices = slices.Insert(p.alarms.notices, 0, proto.CloneOf(n))
}

// alarmService is the platform's service for alarms. It lists pages of one, so that there are
// several.
type alarmService struct {
	baiv1.UnimplementedAlarmServiceServer

	p *Platform
}

// incident returns the incident that a request names.
func (c alarmService) incident(req interface {
	GetIncident() string
	GetNamespace() string
},
) (*baiv1.Incident, error) {
	for _, i := range c.p.alarms.incidents {
		if strings.HasPrefix(i.GetId(), req.GetIncident()) && i.GetNamespace() == cmp.Or(req.GetNamespace(), "default") {
			return i, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "incident %s does not exist", req.GetIncident())
}

// ListIncidents implements bai.v1.AlarmService.
func (c alarmService) ListIncidents(_ context.Context, req *baiv1.ListIncidentsRequest) (*baiv1.ListIncidentsResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	page, next, err := pageOfOne(c.p.alarms.incidents, req.GetPageToken(), func(i *baiv1.Incident) bool {
		return i.GetNamespace() == cmp.Or(req.GetNamespace(), "default") && (req.GetTask() == "" || i.GetTask() == req.GetTask()) &&
			(req.GetMetric() == "" || i.GetMetric() == req.GetMetric()) &&
			(len(req.GetStates()) == 0 || slices.Contains(req.GetStates(), i.GetState())) &&
			(!req.GetOpen() || !isOver(i))
	})
	for _, i := range page {
		i.Recent = nil
	}
	return &baiv1.ListIncidentsResponse{Incidents: page, NextPageToken: next}, err
}

// WatchIncidents implements bai.v1.AlarmService.
func (c alarmService) WatchIncidents(
	req *baiv1.WatchIncidentsRequest, stream grpc.ServerStreamingServer[baiv1.WatchIncidentsResponse],
) error {
	if err := stream.SendHeader(nil); err != nil { // the client may know that it is being served
		return err
	}
	sent := map[string]*baiv1.Incident{}
	for first := true; ; first = false {
		all, changed := c.watched(req)
		for _, i := range slices.Backward(all) {
			over := first && isOver(i) &&
				(req.GetChangedAfter() == nil || !i.GetUpdateTime().AsTime().After(req.GetChangedAfter().AsTime()))
			if proto.Equal(i, sent[i.GetId()]) || over {
				sent[i.GetId()] = i
				continue
			}
			if sent[i.GetId()] = i; stream.Send(&baiv1.WatchIncidentsResponse{Incident: i}) != nil {
				return status.Error(codes.Canceled, "the client has gone")
			}
		}
		if err := wait(stream.Context(), changed); err != nil {
			return err
		}
	}
}

// watched returns the incidents of a watch, and the channel that is closed at the next change.
func (c alarmService) watched(req *baiv1.WatchIncidentsRequest) (all []*baiv1.Incident, changed <-chan struct{}) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	for _, i := range c.p.alarms.incidents {
		if i.GetNamespace() == cmp.Or(req.GetNamespace(), "default") && (req.GetTask() == "" || i.GetTask() == req.GetTask()) &&
			(req.GetMetric() == "" || i.GetMetric() == req.GetMetric()) {
			i = proto.CloneOf(i)
			i.Recent = nil
			all = append(all, i)
		}
	}
	return all, c.p.changed
}

// ChangeIncident changes an incident.
func (p *Platform) ChangeIncident(id string, change func(*baiv1.Incident)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.alarms.incidents {
		if i.GetId() == id {
			change(i)
		}
	}
	p.notifyWaiters()
}

func isOver(i *baiv1.Incident) bool { return i.GetState() == "resolved" || i.GetState() == "dismissed" }

// GetIncident implements bai.v1.AlarmService.
func (c alarmService) GetIncident(_ context.Context, req *baiv1.GetIncidentRequest) (*baiv1.GetIncidentResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	i, err := c.incident(req)
	return &baiv1.GetIncidentResponse{Incident: proto.CloneOf(i)}, err
}

// AckIncident implements bai.v1.AlarmService.
func (c alarmService) AckIncident(ctx context.Context, req *baiv1.AckIncidentRequest) (*baiv1.AckIncidentResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	i, err := c.incident(req)
	switch {
	case err != nil:
		return nil, err
	case isOver(i):
		return nil, status.Errorf(codes.FailedPrecondition, "incident %s is %s already: there is nothing to acknowledge", i.GetId(),
			i.GetState())
	}
	i.State = "acknowledged"
	if req.GetAccept() {
		i.State = "resolved"
	}
	if req.GetWrong() {
		i.State = "dismissed"
	}
	i.Ack = &baiv1.IncidentAck{
		User: user(ctx), Time: timestamppb.New(c.p.now), Reason: req.GetReason(), Until: req.GetUntil(),
		Accept: req.GetAccept(), Wrong: req.GetWrong(),
	}
	i.Transitions = append(i.Transitions,
		&baiv1.IncidentTransition{State: i.GetState(), Time: i.GetAck().GetTime(), User: user(ctx), Reason: req.GetReason()})
	shown := proto.CloneOf(i)
	shown.Recent = nil
	return &baiv1.AckIncidentResponse{Incident: shown}, nil
}

// user is the caller of a call.
func user(ctx context.Context) string {
	return cmp.Or(append(metadata.ValueFromIncomingContext(ctx, baiv1.UserMetadata), "anonymous")...)
}

// CreateMute implements bai.v1.AlarmService.
func (c alarmService) CreateMute(ctx context.Context, req *baiv1.CreateMuteRequest) (*baiv1.CreateMuteResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	m := &baiv1.Mute{
		Id: fmt.Sprintf("5mute%021d", len(c.p.alarms.mutes)), Namespace: cmp.Or(req.GetNamespace(), "default"),
		Task: req.GetTask(), Labels: req.GetLabels(),
		User: user(ctx), Reason: req.GetReason(), CreateTime: timestamppb.New(c.p.now), Until: req.GetUntil(),
	}
	for _, other := range c.p.alarms.mutes {
		same := proto.CloneOf(m)
		same.Id = other.GetId()
		if proto.Equal(same, other) {
			return &baiv1.CreateMuteResponse{Mute: proto.CloneOf(other)}, nil
		}
	}
	c.p.alarms.mutes = slices.Insert(c.p.alarms.mutes, 0, m)
	return &baiv1.CreateMuteResponse{Mute: proto.CloneOf(m)}, nil
}

// ListMutes implements bai.v1.AlarmService.
func (c alarmService) ListMutes(_ context.Context, req *baiv1.ListMutesRequest) (*baiv1.ListMutesResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	page, next, err := pageOfOne(c.p.alarms.mutes, req.GetPageToken(), func(m *baiv1.Mute) bool {
		return m.GetNamespace() == cmp.Or(req.GetNamespace(), "default") && (req.GetEnded() || m.GetUntil().AsTime().After(c.p.now))
	})
	return &baiv1.ListMutesResponse{Mutes: page, NextPageToken: next}, err
}

// DeleteMute implements bai.v1.AlarmService.
func (c alarmService) DeleteMute(_ context.Context, req *baiv1.DeleteMuteRequest) (*baiv1.DeleteMuteResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	n := len(c.p.alarms.mutes)
	c.p.alarms.mutes = slices.DeleteFunc(c.p.alarms.mutes, func(m *baiv1.Mute) bool { return strings.HasPrefix(m.GetId(), req.GetMute()) })
	return &baiv1.DeleteMuteResponse{Existed: len(c.p.alarms.mutes) < n}, nil
}

// ListNotices implements bai.v1.AlarmService.
func (c alarmService) ListNotices(_ context.Context, req *baiv1.ListNoticesRequest) (*baiv1.ListNoticesResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	about := ""
	if req.GetIncident() != "" {
		i, err := c.incident(req)
		if err != nil {
			return nil, err
		}
		about = i.GetId()
	}
	page, next, err := pageOfOne(c.p.alarms.notices, req.GetPageToken(), func(n *baiv1.Notice) bool {
		return n.GetNamespace() == cmp.Or(req.GetNamespace(), "default") &&
			(req.GetReceiver() == "" || n.GetReceiver() == req.GetReceiver()) &&
			(about == "" || slices.Contains(n.GetIncidentIds(), about)) &&
			(len(req.GetStatuses()) == 0 || slices.Contains(req.GetStatuses(), n.GetStatus()))
	})
	return &baiv1.ListNoticesResponse{Notices: page, NextPageToken: next}, err
}

// ListReceivers implements bai.v1.AlarmService.
func (c alarmService) ListReceivers(context.Context, *baiv1.ListReceiversRequest) (*baiv1.ListReceiversResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	res := &baiv1.ListReceiversResponse{}
	for _, name := range slices.Sorted(maps.Keys(c.p.alarms.receivers)) {
		res.Receivers = append(res.Receivers, &baiv1.Receiver{Name: name})
	}
	return res, nil
}

// TestReceiver implements bai.v1.AlarmService.
func (c alarmService) TestReceiver(_ context.Context, req *baiv1.TestReceiverRequest) (*baiv1.TestReceiverResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	answer, ok := c.p.alarms.receivers[req.GetReceiver()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "receiver %q does not exist for team %s", req.GetReceiver(),
			cmp.Or(req.GetNamespace(), "default"))
	}
	n := &baiv1.Notice{
		Id: "8test000000000000000000001", Receiver: req.GetReceiver(), Namespace: cmp.Or(req.GetNamespace(), "default"),
		Became: "firing", Status: "sent",
		Attempts: 1, Answer: answer, CreateTime: timestamppb.New(c.p.now), StatusTime: timestamppb.New(c.p.now), Test: true,
	}
	if answer == "" {
		n.Status, n.Answer = "refused", "no such chat"
	}
	return &baiv1.TestReceiverResponse{Notice: n}, nil
}

// pageOfOne returns a copy of the wanted message with the number that a token has.
func pageOfOne[M proto.Message](all []M, token string, wanted func(M) bool) (page []M, next string, err error) {
	skip := 0
	if token != "" {
		if skip, err = strconv.Atoi(token); err != nil {
			return nil, "", status.Errorf(codes.InvalidArgument, "page_token: %s", token)
		}
	}
	n := 0
	for _, m := range all {
		if !wanted(m) {
			continue
		}
		if n == skip {
			page = append(page, proto.CloneOf(m))
		}
		if n == skip+1 {
			next = strconv.Itoa(n)
		}
		n++
	}
	return page, next, nil
}
