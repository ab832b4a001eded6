package baitest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/cron"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// AddSchedule adds a schedule.
func (p *Platform) AddSchedule(s *baiv1.Schedule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedules = append(p.schedules, s)
	slices.SortFunc(p.schedules, func(a, b *baiv1.Schedule) int { return cmp.Compare(a.GetId(), b.GetId()) })
}

// A calendar is the part of a platform that keeps schedules.
type scheduleService struct {
	baiv1.UnimplementedScheduleServiceServer

	p *Platform
}

// submitSchedule makes the schedule that a submission asks for, if it asks for one:
// every name has one, and every text a version.
func (p *Platform) submitSchedule(req *baiv1.SubmitRunRequest, text string) (*baiv1.SubmitRunResponse, bool) {
	d, _, _ := suite.ParseWith(parser.Parser{}, req.GetDescriptorFile(), []byte(text), nil)
	if d == nil || !d.Info.Scheduled() || req.GetRerunOf() != "" {
		return nil, false
	}
	i := slices.IndexFunc(p.schedules, func(s *baiv1.Schedule) bool {
		return s.GetOwner() == req.GetOwner() && s.GetName() == req.GetName()
	})
	if i < 0 {
		s := &baiv1.Schedule{
			Id: fmt.Sprintf("7zzz%022d", len(p.schedules)+1), Name: req.GetName(), Owner: req.GetOwner(),
			Namespace: cmp.Or(req.GetNamespace(), "default"),
		}
		p.schedules = append(p.schedules, s)
		i = len(p.schedules) - 1
	}
	s := p.schedules[i]
	repeated := s.GetDescriptorToml() == text
	if !repeated {
		s.Version++
	}
	s.Scheduling, s.Timezone, s.Concurrency, s.Missed, s.MissedWindowSeconds = d.Info.Scheduling, d.Info.Timezone, d.Schedule.Concurrency,
		d.Schedule.Missed, int64(d.Schedule.MissedWindow/time.Second)
	s.DescriptorToml, s.DescriptorFile, s.Description, s.Labels = text, req.GetDescriptorFile(), d.Info.Description, d.Info.Labels
	p.setNextFirings(s)
	return &baiv1.SubmitRunResponse{Result: &baiv1.SubmitRunResponse_ScheduleId{ScheduleId: s.GetId()}, Repeated: repeated}, true
}

// setNextFirings says when a schedule fires next.
func (p *Platform) setNextFirings(s *baiv1.Schedule) {
	s.NextFirings = nil
	times, err := cron.Parse(s.GetScheduling())
	zone, unknown := time.LoadLocation(s.GetTimezone())
	if s.GetPaused() || err != nil || unknown != nil {
		return
	}
	at := p.now.In(zone)
	for range 3 {
		at = times.Next(at)
		s.NextFirings = append(s.NextFirings, timestamppb.New(at))
	}
}

func (c scheduleService) find(ref, owner string) (*baiv1.Schedule, error) {
	for _, s := range c.p.schedules {
		if s.GetId() == ref || s.GetName() == ref && s.GetOwner() == owner {
			return s, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "schedule %q of owner %q does not exist", ref, owner)
}

// ListSchedules returns pages of one, so that there are several.
func (c scheduleService) ListSchedules(_ context.Context, req *baiv1.ListSchedulesRequest) (*baiv1.ListSchedulesResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	res := &baiv1.ListSchedulesResponse{}
	for _, s := range c.p.schedules {
		switch {
		case s.GetId() <= req.GetPageToken(), req.GetOwner() != "" && req.GetOwner() != s.GetOwner(), req.GetNamespace() != "" &&
			req.GetNamespace() != s.GetNamespace():
		case len(res.GetSchedules()) == 0:
			one := proto.CloneOf(s)
			one.DescriptorToml, one.Firings, one.Backfills = "", nil, nil
			one.NextFirings = one.GetNextFirings()[:min(1, len(one.GetNextFirings()))]
			res.Schedules = append(res.Schedules, one)
		default:
			res.NextPageToken = res.GetSchedules()[0].GetId()
		}
	}
	return res, nil
}

// GetSchedule returns a schedule.
func (c scheduleService) GetSchedule(_ context.Context, req *baiv1.GetScheduleRequest) (*baiv1.GetScheduleResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	s, err := c.find(req.GetSchedule(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	return &baiv1.GetScheduleResponse{Schedule: proto.CloneOf(s)}, nil
}

func (c scheduleService) pause(ref, owner, by string, paused bool) (*baiv1.Schedule, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	s, err := c.find(ref, owner)
	if err != nil {
		return nil, err
	}
	s.Paused, s.PausedBy, s.UpdateTime = paused, by, timestamppb.New(c.p.now)
	c.p.setNextFirings(s)
	return proto.CloneOf(s), nil
}

// PauseSchedule pauses a schedule.
func (c scheduleService) PauseSchedule(_ context.Context, req *baiv1.PauseScheduleRequest) (*baiv1.PauseScheduleResponse, error) {
	s, err := c.pause(req.GetSchedule(), req.GetOwner(), req.GetOwner(), true)
	return &baiv1.PauseScheduleResponse{Schedule: s}, err
}

// ResumeSchedule resumes a schedule.
func (c scheduleService) ResumeSchedule(_ context.Context, req *baiv1.ResumeScheduleRequest) (*baiv1.ResumeScheduleResponse, error) {
	s, err := c.pause(req.GetSchedule(), req.GetOwner(), "", false)
	return &baiv1.ResumeScheduleResponse{Schedule: s}, err
}

// TriggerSchedule makes a run, unless one goes on and the schedule forbids it.
func (c scheduleService) TriggerSchedule(_ context.Context, req *baiv1.TriggerScheduleRequest) (*baiv1.TriggerScheduleResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	s, err := c.find(req.GetSchedule(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	for _, r := range c.p.runs {
		if s.GetConcurrency() == descriptors.Forbid && r.run.GetLineage().GetScheduleId() == s.GetId() &&
			r.run.GetPhase() != baiv1.Phase_PHASE_FINISHED {
			return nil, status.Errorf(codes.FailedPrecondition,
				"run %s of the schedule goes on, and schedule.concurrency is forbid: wait for its end, or cancel it", r.run.GetId())
		}
	}
	if d, _, _ := suite.ParseWith(parser.Parser{}, s.GetDescriptorFile(), []byte(s.GetDescriptorToml()), nil); d != nil && d.Sweep != nil {
		return c.triggerSet(s)
	}
	r := c.p.add(&baiv1.Run{Owner: s.GetOwner(), Lineage: &baiv1.Lineage{ScheduleId: s.GetId(), FiringTime: timestamppb.New(c.p.now)}})
	return &baiv1.TriggerScheduleResponse{RunId: r.run.GetId()}, nil
}

// triggerSet makes a set of a schedule.
func (c scheduleService) triggerSet(s *baiv1.Schedule) (*baiv1.TriggerScheduleResponse, error) {
	req := &baiv1.SubmitRunRequest{
		DescriptorFile: s.GetDescriptorFile(), Owner: s.GetOwner(),
		Namespace: s.GetNamespace(), Labels: s.GetLabels(),
	}
	res, _ := c.p.submitSet(req, s.GetDescriptorToml())
	made, err := setService{p: c.p}.find(res.GetSetId(), s.GetOwner())
	if err != nil {
		return nil, err
	}
	made.apply(func(one *baiv1.Set) { one.ScheduleId, one.FiringTime = s.GetId(), timestamppb.New(c.p.now) })
	return &baiv1.TriggerScheduleResponse{SetId: res.GetSetId()}, nil
}

// DeleteSchedule removes a schedule. It cancels one run a call, so that there are several
// pages, and all sets in the first.
func (c scheduleService) DeleteSchedule(_ context.Context, req *baiv1.DeleteScheduleRequest) (*baiv1.DeleteScheduleResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	res := &baiv1.DeleteScheduleResponse{}
	id := req.GetPageToken()
	if s, err := c.find(req.GetSchedule(), req.GetOwner()); err == nil && id == "" {
		c.p.schedules = slices.DeleteFunc(c.p.schedules, func(o *baiv1.Schedule) bool { return o == s })
		res.Existed, id = true, s.GetId()
	}
	if req.GetCancelRuns() && id != "" {
		c.cancelPage(id, res)
	}
	return res, nil
}

// cancelPage cancels the sets of a schedule, and one run.
func (c scheduleService) cancelPage(id string, res *baiv1.DeleteScheduleResponse) {
	for _, s := range c.p.sets {
		if s.set.GetScheduleId() == id && s.set.GetState() == baiv1.SetState_SET_STATE_RUNNING {
			s.apply(func(one *baiv1.Set) { one.State = baiv1.SetState_SET_STATE_CANCELING })
			res.CanceledSets++
		}
	}
	for _, r := range c.p.runs {
		if r.run.GetLineage().GetScheduleId() != id || r.run.GetPhase() >= baiv1.Phase_PHASE_CANCELING {
			continue
		}
		if res.GetCanceledRuns() == 1 {
			res.NextPageToken = id
			return
		}
		r.run.Phase = baiv1.Phase_PHASE_CANCELING
		res.CanceledRuns++
	}
}

// BackfillSchedule says that the first of the times has its run, and makes none.
func (c scheduleService) BackfillSchedule(_ context.Context, req *baiv1.BackfillScheduleRequest) (*baiv1.BackfillScheduleResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	s, err := c.find(req.GetSchedule(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	to := c.p.now
	if req.GetTo() != nil {
		to = req.GetTo().AsTime()
	}
	if !req.GetFrom().AsTime().Before(to) {
		return nil, Status(codes.InvalidArgument, "from: is not before the end",
			&baiv1.Fault{Path: "from", Message: "is not before the end", Remedy: "give an earlier time"})
	}
	times, err := cron.Parse(s.GetScheduling())
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(s.GetTimezone())
	if err != nil {
		return nil, err
	}
	res := &baiv1.BackfillScheduleResponse{}
	for at := times.Next(req.GetFrom().AsTime().Add(-1).In(zone)); at.Before(to); at = times.Next(at) {
		if res.GetPresent() == 0 {
			res.Present = 1
			continue
		}
		res.Missing = append(res.Missing, timestamppb.New(at))
	}
	return res, nil
}
