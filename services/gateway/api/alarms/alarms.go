// Package alarms has the handlers of bai.v1.AlarmService.
package alarms

import (
	"context"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/gateway/alarm"
	"github.com/benchmark-ai/bai/services/gateway/api/message"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
)

// Server implements bai.v1.AlarmService.
type Server struct {
	baiv1.UnimplementedAlarmServiceServer

	Alarms *alarm.Alarms
}

// ListIncidents implements bai.v1.AlarmService.
func (s *Server) ListIncidents(ctx context.Context, req *baiv1.ListIncidentsRequest) (*baiv1.ListIncidentsResponse, error) {
	page, err := alarmPage(req)
	if err != nil {
		return nil, err
	}
	f := alarm.IncidentFilter{Task: req.GetTask(), Metric: req.GetMetric(), States: req.GetStates(), Open: req.GetOpen()}
	all, next, err := s.Alarms.Incidents(ctx, request.Namespace(req), f, page)
	if err != nil {
		return nil, err
	}
	resp := &baiv1.ListIncidentsResponse{NextPageToken: next}
	for _, i := range all {
		i.Recent = nil
		resp.Incidents = append(resp.Incidents, incidentOf(i))
	}
	return resp, nil
}

// GetIncident implements bai.v1.AlarmService.
func (s *Server) GetIncident(ctx context.Context, req *baiv1.GetIncidentRequest) (*baiv1.GetIncidentResponse, error) {
	i, err := s.Alarms.Incident(ctx, request.Namespace(req), req.GetIncident())
	if err != nil {
		return nil, err
	}
	return &baiv1.GetIncidentResponse{Incident: incidentOf(i)}, nil
}

// AckIncident implements bai.v1.AlarmService.
func (s *Server) AckIncident(ctx context.Context, req *baiv1.AckIncidentRequest) (*baiv1.AckIncidentResponse, error) {
	ack := incident.Ack{By: request.Caller(ctx), Reason: req.GetReason(), Accept: req.GetAccept(), Wrong: req.GetWrong()}
	if until := req.GetUntil(); until != nil {
		if until.CheckValid() != nil {
			return nil, rpc.InvalidArgument("until", "is no time", "give seconds and nanoseconds of a time between the years 1 and 9999")
		}
		ack.Until = until.AsTime()
	}
	i, err := s.Alarms.Acknowledge(ctx, request.Namespace(req), req.GetIncident(), ack)
	if err != nil {
		return nil, err
	}
	i.Recent = nil
	return &baiv1.AckIncidentResponse{Incident: incidentOf(i)}, nil
}

// CreateMute implements bai.v1.AlarmService.
func (s *Server) CreateMute(ctx context.Context, req *baiv1.CreateMuteRequest) (*baiv1.CreateMuteResponse, error) {
	r := alarm.MuteRequest{
		Namespace: request.Namespace(req), Task: req.GetTask(), Labels: req.GetLabels(), All: req.GetAll(),
		By: request.Caller(ctx), Reason: req.GetReason(),
	}
	if until := req.GetUntil(); until != nil && until.CheckValid() == nil {
		r.Until = until.AsTime()
	}
	m, err := s.Alarms.Mute(ctx, r)
	if err != nil {
		return nil, err
	}
	return &baiv1.CreateMuteResponse{Mute: muteOf(m)}, nil
}

// ListMutes implements bai.v1.AlarmService.
func (s *Server) ListMutes(ctx context.Context, req *baiv1.ListMutesRequest) (*baiv1.ListMutesResponse, error) {
	page, err := alarmPage(req)
	if err != nil {
		return nil, err
	}
	all, next, err := s.Alarms.Mutes(ctx, request.Namespace(req), req.GetEnded(), page)
	if err != nil {
		return nil, err
	}
	resp := &baiv1.ListMutesResponse{NextPageToken: next}
	for _, m := range all {
		resp.Mutes = append(resp.Mutes, muteOf(m))
	}
	return resp, nil
}

// DeleteMute implements bai.v1.AlarmService.
func (s *Server) DeleteMute(ctx context.Context, req *baiv1.DeleteMuteRequest) (*baiv1.DeleteMuteResponse, error) {
	existed, err := s.Alarms.Unmute(ctx, request.Namespace(req), req.GetMute())
	if err != nil {
		return nil, err
	}
	return &baiv1.DeleteMuteResponse{Existed: existed}, nil
}

// ListNotices implements bai.v1.AlarmService.
func (s *Server) ListNotices(ctx context.Context, req *baiv1.ListNoticesRequest) (*baiv1.ListNoticesResponse, error) {
	page, err := alarmPage(req)
	if err != nil {
		return nil, err
	}
	f := alarm.NoticeFilter{Receiver: req.GetReceiver(), Incident: req.GetIncident(), Statuses: req.GetStatuses()}
	all, next, err := s.Alarms.Notices(ctx, request.Namespace(req), f, page)
	if err != nil {
		return nil, err
	}
	resp := &baiv1.ListNoticesResponse{NextPageToken: next}
	for _, d := range all {
		resp.Notices = append(resp.Notices, noticeOf(d))
	}
	return resp, nil
}

// ListReceivers implements bai.v1.AlarmService.
func (s *Server) ListReceivers(_ context.Context, req *baiv1.ListReceiversRequest) (*baiv1.ListReceiversResponse, error) {
	resp := &baiv1.ListReceiversResponse{}
	for _, name := range s.Alarms.Receivers(request.Namespace(req)) {
		resp.Receivers = append(resp.Receivers, &baiv1.Receiver{Name: name})
	}
	return resp, nil
}

// TestReceiver implements bai.v1.AlarmService.
func (s *Server) TestReceiver(ctx context.Context, req *baiv1.TestReceiverRequest) (*baiv1.TestReceiverResponse, error) {
	d, err := s.Alarms.Test(ctx,
		alarm.TestRequest{
			Namespace: request.Namespace(req), Receiver: req.GetReceiver(),
			Key: req.GetIdempotencyKey(), By: request.Caller(ctx),
		})
	if err != nil {
		return nil, err
	}
	return &baiv1.TestReceiverResponse{Notice: noticeOf(d)}, nil
}

// alarmPage returns the page that a request asks for.
func alarmPage(req interface {
	GetPageSize() int32
	GetPageToken() string
},
) (alarm.Page, error) {
	limit, err := request.PageSize(req)
	return alarm.Page{Token: req.GetPageToken(), Size: limit}, err
}

func incidentOf(i incident.Incident) *baiv1.Incident {
	out := &baiv1.Incident{
		Id: i.ID, Namespace: i.Series.Namespace, Task: i.Series.Task, Metric: i.Series.Metric, Unit: i.Unit,
		Labels: i.Series.Labels, Cell: i.Series.Cell,
		State: string(i.State), Silent: i.Silent, Message: i.Message, Rule: alarmRuleOf(i.Rule), Kind: i.Kind, Direction: i.Direction,
		Before: i.Before, After: i.After,
		Cause: string(i.Cause), Reasons: i.Reasons, LastGood: incidentPointOf(i.LastGood), FirstBad: incidentPointOf(i.FirstBad),
		RangeFirst: incidentPointOf(i.First), RangeLast: incidentPointOf(i.Last), OpenTime: message.Time(i.Opened),
		UpdateTime: message.Time(i.Updated), GroupId: i.Group,
	}
	out.Confirmation = confirmationOf(i.Confirmation)
	if i.Magnitude != nil {
		out.Magnitude = new(float64(*i.Magnitude))
	}
	if i.Kind != "" {
		out.P = new(float64(i.P))
		out.Interval = &baiv1.Interval{Low: float64(i.Interval[0]), High: float64(i.Interval[1]), Level: changeLevel}
	}
	for _, p := range i.Recent {
		out.Recent = append(out.Recent, incidentPointOf(&p))
	}
	for _, t := range i.Became {
		out.Transitions = append(out.Transitions,
			&baiv1.IncidentTransition{State: string(t.State), Time: message.Time(t.At), User: t.By, Reason: t.Why})
	}
	if a := i.Acked; a != nil {
		out.Ack = &baiv1.IncidentAck{
			User: a.By, Time: message.Time(a.At), Reason: a.Reason, Until: message.Time(a.Until),
			Accept: a.Accept, Wrong: a.Wrong,
		}
	}
	return out
}

func confirmationOf(c *incident.Confirmation) *baiv1.IncidentConfirmation {
	if c == nil {
		return nil
	}
	out := &baiv1.IncidentConfirmation{OldRunId: c.Old, NewRunId: c.New, Verdict: string(c.Verdict), Message: c.Why, Gaps: c.Gaps}
	for _, r := range c.Runs {
		one := &baiv1.ConfirmationRun{RunId: r.Run, Pair: message.Int32(r.Pair), Side: string(r.Side), State: r.State}
		if r.Value != nil {
			one.Value = new(float64(*r.Value))
		}
		out.Runs = append(out.Runs, one)
	}
	return out
}

// changeLevel is the level of the intervals of changes.
const changeLevel = 0.95

func alarmRuleOf(r incident.Rule) *baiv1.AlarmRule {
	out := &baiv1.AlarmRule{
		Id: r.ID, When: string(r.When), Statistic: string(r.Statistic), Limit: r.Limit, Unit: r.Unit,
		Baseline: r.Baseline, MinChange: r.MinChange,
		ForPoints: message.Int32(r.For), Notify: r.Notify,
	}
	if r.Confirm != nil {
		out.ConfirmPairs = message.Int32(r.Confirm.Pairs)
	}
	return out
}

func incidentPointOf(p *incident.Point) *baiv1.IncidentPoint {
	if p == nil {
		return nil
	}
	return &baiv1.IncidentPoint{RunId: p.Run, Time: message.Time(p.Time), Version: p.Version, Value: p.Value}
}

func muteOf(m incident.Mute) *baiv1.Mute {
	return &baiv1.Mute{
		Id: m.ID, Namespace: m.Namespace, Task: m.Task, Labels: m.Labels, User: m.By, Reason: m.Reason, CreateTime: message.Time(m.Since),
		Until: message.Time(m.Until),
	}
}

func noticeOf(d notice.Delivery) *baiv1.Notice {
	n := d.Notice
	out := &baiv1.Notice{
		Id: n.ID, Receiver: n.Receiver, Namespace: n.Namespace, Became: string(n.Became),
		More: message.Int32(n.More), Status: string(d.Status),
		Attempts: message.Int32(d.Attempts), Answer: d.Answer, CreateTime: message.Time(n.Made), StatusTime: message.Time(d.At),
		RetryTime: message.Time(d.Next), Test: n.Test, DigestIds: n.Digest,
	}
	for _, i := range n.Incidents {
		out.IncidentIds = append(out.IncidentIds, i.ID)
	}
	for _, e := range n.Ends {
		out.EndedIds = append(out.EndedIds, e.ID)
	}
	if len(n.Incidents) > 0 {
		out.Message = n.Incidents[0].Message
	}
	return out
}
