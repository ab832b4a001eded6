package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// maxKey is the maximum number of bytes in an idempotency key.
const maxKey = 128

// scheduleServer implements bai.v1.ScheduleService.
type scheduleServer struct {
	baiv1.UnimplementedScheduleServiceServer

	schedules *schedule.Schedules
}

// ListSchedules implements bai.v1.ScheduleService.
func (s *scheduleServer) ListSchedules(ctx context.Context, req *baiv1.ListSchedulesRequest) (*baiv1.ListSchedulesResponse, error) {
	after, limit, err := idPage(req)
	if err != nil {
		return nil, err
	}
	all, err := s.schedules.List(ctx, after, limit+1, func(one schedule.Schedule) bool { return wantsOwned(req, one.Owner, one.Namespace) })
	if err != nil {
		return nil, err
	}
	resp := &baiv1.ListSchedulesResponse{}
	if len(all) > limit {
		all = all[:limit]
		resp.NextPageToken = all[limit-1].ID
	}
	for _, one := range all {
		resp.Schedules = append(resp.Schedules, s.message(one, 1))
	}
	return resp, nil
}

// upcoming is the number of next firings in a response about one schedule.
const upcoming = 5

// GetSchedule implements bai.v1.ScheduleService.
func (s *scheduleServer) GetSchedule(ctx context.Context, req *baiv1.GetScheduleRequest) (*baiv1.GetScheduleResponse, error) {
	one, err := s.schedules.Get(ctx, owner(ctx, req), req.GetSchedule())
	if err != nil {
		return nil, err
	}
	out := s.message(one.Schedule, upcoming)
	out.DescriptorToml = one.Descriptor
	for _, f := range one.Firings {
		out.Firings = append(out.Firings, firingOf(f))
	}
	for _, b := range one.Backfills {
		out.Backfills = append(out.Backfills, &baiv1.Backfill{From: timeOf(b.From), To: timeOf(b.To), Next: timeOf(b.Next), By: b.By})
	}
	return &baiv1.GetScheduleResponse{Schedule: out}, nil
}

func firingOf(f schedule.PastFiring) *baiv1.Firing {
	return &baiv1.Firing{
		Time: timeOf(f.Time), LastTime: timeOf(f.Last), Count: int32Of(f.Count), RunId: f.Run, SetId: f.Set, Phase: phaseOf(f.Phase),
		Outcome: outcomeOf(f.Outcome), Reason: string(f.Reason), Message: f.Message, Missed: f.Missed,
	}
}

// PauseSchedule implements bai.v1.ScheduleService.
func (s *scheduleServer) PauseSchedule(ctx context.Context, req *baiv1.PauseScheduleRequest) (*baiv1.PauseScheduleResponse, error) {
	one, err := s.schedules.Pause(ctx, owner(ctx, req), req.GetSchedule(), caller(ctx))
	if err != nil {
		return nil, err
	}
	return &baiv1.PauseScheduleResponse{Schedule: s.message(one, upcoming)}, nil
}

// ResumeSchedule implements bai.v1.ScheduleService.
func (s *scheduleServer) ResumeSchedule(ctx context.Context, req *baiv1.ResumeScheduleRequest) (*baiv1.ResumeScheduleResponse, error) {
	one, err := s.schedules.Resume(ctx, owner(ctx, req), req.GetSchedule())
	if err != nil {
		return nil, err
	}
	return &baiv1.ResumeScheduleResponse{Schedule: s.message(one, upcoming)}, nil
}

// DeleteSchedule implements bai.v1.ScheduleService.
func (s *scheduleServer) DeleteSchedule(ctx context.Context, req *baiv1.DeleteScheduleRequest) (*baiv1.DeleteScheduleResponse, error) {
	if req.GetSchedule() == "" {
		return nil, &schedule.MissingError{}
	}
	resp := &baiv1.DeleteScheduleResponse{}
	var err error
	if req.GetPageToken() == "" {
		if resp.Existed, err = s.schedules.Delete(ctx, owner(ctx, req), req.GetSchedule()); err != nil {
			return nil, err
		}
	}
	if !req.GetCancelRuns() {
		return resp, nil
	}
	canceled, err := s.schedules.CancelPage(ctx, owner(ctx, req), req.GetSchedule(), req.GetPageToken(), caller(ctx))
	if errors.Is(err, store.ErrCursor) {
		return nil, invalidPageToken(" for this schedule")
	}
	resp.CanceledRuns, resp.CanceledSets, resp.NextPageToken = int32Of(canceled.Runs), int32Of(canceled.Sets), canceled.Next
	return resp, err
}

// TriggerSchedule implements bai.v1.ScheduleService.
func (s *scheduleServer) TriggerSchedule(ctx context.Context, req *baiv1.TriggerScheduleRequest) (*baiv1.TriggerScheduleResponse, error) {
	if n := len(req.GetIdempotencyKey()); n > maxKey {
		return nil, rpc.InvalidArgument("idempotency_key", fmt.Sprintf("has %d bytes, %d at most", n, maxKey), "")
	}
	w, repeated, err := s.schedules.Trigger(ctx, owner(ctx, req), req.GetSchedule(), req.GetIdempotencyKey())
	if err != nil {
		return nil, err
	}
	return &baiv1.TriggerScheduleResponse{RunId: w.Run, SetId: w.Set, Repeated: repeated}, nil
}

// BackfillSchedule implements bai.v1.ScheduleService.
func (s *scheduleServer) BackfillSchedule(ctx context.Context, req *baiv1.BackfillScheduleRequest) (*baiv1.BackfillScheduleResponse, error) {
	if req.GetFrom() == nil {
		return nil, rpc.InvalidArgument("from", "is missing", "give the first time that is to be looked at")
	}
	from, to := timeFrom(req.GetFrom()), timeFrom(req.GetTo())
	missing, present, err := s.schedules.Backfill(ctx, owner(ctx, req), req.GetSchedule(), from, to, caller(ctx))
	if err != nil {
		return nil, err
	}
	return &baiv1.BackfillScheduleResponse{Present: int32Of(present), Missing: timesOf(missing)}, nil
}

// message returns a schedule as a message of the API, with its next n firings.
func (s *scheduleServer) message(one schedule.Schedule, n int) *baiv1.Schedule {
	r := one.Rules
	return &baiv1.Schedule{
		Id: one.ID, Name: one.Name, Namespace: one.Namespace, Owner: one.Owner, Version: int32Of(one.Version),
		Description: one.Description, Scheduling: r.Cron, Timezone: r.Zone, Concurrency: r.Concurrency, Missed: r.Missed,
		MissedWindowSeconds: int64(r.Window / time.Second), DelaySeconds: int64(r.Delay / time.Second), StartTime: timeOf(r.Start), EndTime: timeOf(r.End),
		Paused: one.Paused, PausedBy: one.PausedBy, CreateTime: timeOf(one.Created), UpdateTime: timeOf(one.Updated),
		DescriptorFile: one.File, Labels: one.Labels, NextFirings: timesOf(s.schedules.Upcoming(one, n)),
	}
}

func timesOf(all []time.Time) []*timestamppb.Timestamp {
	var out []*timestamppb.Timestamp
	for _, t := range all {
		out = append(out, timeOf(t))
	}
	return out
}
