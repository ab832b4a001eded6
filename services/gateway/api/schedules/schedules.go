// Package schedules has the handlers of bai.v1.ScheduleService.
package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/message"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// maxKey is the maximum number of bytes in an idempotency key.
const maxKey = 128

// Server implements bai.v1.ScheduleService.
type Server struct {
	baiv1.UnimplementedScheduleServiceServer

	Schedules *schedule.Schedules
}

// ListSchedules implements bai.v1.ScheduleService.
func (s *Server) ListSchedules(ctx context.Context, req *baiv1.ListSchedulesRequest) (*baiv1.ListSchedulesResponse, error) {
	after, limit, err := request.IDPage(req)
	if err != nil {
		return nil, err
	}
	all, err := s.Schedules.List(ctx, after, limit+1,
		func(one schedule.Schedule) bool { return request.Wants(req, one.Owner, one.Namespace) })
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
func (s *Server) GetSchedule(ctx context.Context, req *baiv1.GetScheduleRequest) (*baiv1.GetScheduleResponse, error) {
	one, err := s.Schedules.Get(ctx, request.Owner(ctx, req), req.GetSchedule())
	if err != nil {
		return nil, err
	}
	out := s.message(one.Schedule, upcoming)
	out.DescriptorToml = one.Descriptor
	for _, f := range one.Firings {
		out.Firings = append(out.Firings, firingOf(f))
	}
	for _, b := range one.Backfills {
		out.Backfills = append(out.Backfills,
			&baiv1.Backfill{From: message.Time(b.From), To: message.Time(b.To), Next: message.Time(b.Next), By: b.By})
	}
	return &baiv1.GetScheduleResponse{Schedule: out}, nil
}

func firingOf(f schedule.PastFiring) *baiv1.Firing {
	return &baiv1.Firing{
		Time: message.Time(f.Time), LastTime: message.Time(f.Last), Count: message.Int32(f.Count), RunId: f.Run, SetId: f.Set,
		Phase:   message.Phase(f.Phase),
		Outcome: message.Outcome(f.Outcome), Reason: string(f.Reason), Message: f.Message, Missed: f.Missed,
	}
}

// PauseSchedule implements bai.v1.ScheduleService.
func (s *Server) PauseSchedule(ctx context.Context, req *baiv1.PauseScheduleRequest) (*baiv1.PauseScheduleResponse, error) {
	one, err := s.Schedules.Pause(ctx, request.Owner(ctx, req), req.GetSchedule(), request.Caller(ctx))
	if err != nil {
		return nil, err
	}
	return &baiv1.PauseScheduleResponse{Schedule: s.message(one, upcoming)}, nil
}

// ResumeSchedule implements bai.v1.ScheduleService.
func (s *Server) ResumeSchedule(ctx context.Context, req *baiv1.ResumeScheduleRequest) (*baiv1.ResumeScheduleResponse, error) {
	one, err := s.Schedules.Resume(ctx, request.Owner(ctx, req), req.GetSchedule())
	if err != nil {
		return nil, err
	}
	return &baiv1.ResumeScheduleResponse{Schedule: s.message(one, upcoming)}, nil
}

// DeleteSchedule implements bai.v1.ScheduleService.
func (s *Server) DeleteSchedule(ctx context.Context, req *baiv1.DeleteScheduleRequest) (*baiv1.DeleteScheduleResponse, error) {
	if req.GetSchedule() == "" {
		return nil, &schedule.MissingError{}
	}
	resp := &baiv1.DeleteScheduleResponse{}
	var err error
	if req.GetPageToken() == "" {
		if resp.Existed, err = s.Schedules.Delete(ctx, request.Owner(ctx, req), req.GetSchedule()); err != nil {
			return nil, err
		}
	}
	if !req.GetCancelRuns() {
		return resp, nil
	}
	canceled, err := s.Schedules.CancelPage(ctx, request.Owner(ctx, req), req.GetSchedule(), req.GetPageToken(), request.Caller(ctx))
	if errors.Is(err, store.ErrCursor) {
		return nil, request.InvalidPageToken(" for this schedule")
	}
	resp.CanceledRuns, resp.CanceledSets, resp.NextPageToken = message.Int32(canceled.Runs), message.Int32(canceled.Sets), canceled.Next
	return resp, err
}

// TriggerSchedule implements bai.v1.ScheduleService.
func (s *Server) TriggerSchedule(ctx context.Context, req *baiv1.TriggerScheduleRequest) (*baiv1.TriggerScheduleResponse, error) {
	if n := len(req.GetIdempotencyKey()); n > maxKey {
		return nil, rpc.InvalidArgument("idempotency_key", fmt.Sprintf("has %d bytes, %d at most", n, maxKey), "")
	}
	w, repeated, err := s.Schedules.Trigger(ctx, request.Owner(ctx, req), req.GetSchedule(), req.GetIdempotencyKey())
	if err != nil {
		return nil, err
	}
	return &baiv1.TriggerScheduleResponse{RunId: w.Run, SetId: w.Set, Repeated: repeated}, nil
}

// BackfillSchedule implements bai.v1.ScheduleService.
func (s *Server) BackfillSchedule(ctx context.Context, req *baiv1.BackfillScheduleRequest) (*baiv1.BackfillScheduleResponse, error) {
	if req.GetFrom() == nil {
		return nil, rpc.InvalidArgument("from", "is missing", "give the first time that is to be looked at")
	}
	from, to := request.Time(req.GetFrom()), request.Time(req.GetTo())
	missing, present, err := s.Schedules.Backfill(ctx, request.Owner(ctx, req), req.GetSchedule(), from, to, request.Caller(ctx))
	if err != nil {
		return nil, err
	}
	return &baiv1.BackfillScheduleResponse{Present: message.Int32(present), Missing: timesOf(missing)}, nil
}

// message returns a schedule as a message of the API, with its next n firings.
func (s *Server) message(one schedule.Schedule, n int) *baiv1.Schedule {
	r := one.Rules
	return &baiv1.Schedule{
		Id: one.ID, Name: one.Name, Namespace: one.Namespace, Owner: one.Owner, Version: message.Int32(one.Version),
		Description: one.Description, Scheduling: r.Cron, Timezone: r.Zone, Concurrency: r.Concurrency, Missed: r.Missed,
		MissedWindowSeconds: int64(r.Window / time.Second), DelaySeconds: int64(r.Delay / time.Second), StartTime: message.Time(r.Start),
		EndTime: message.Time(r.End),
		Paused:  one.Paused, PausedBy: one.PausedBy, CreateTime: message.Time(one.Created), UpdateTime: message.Time(one.Updated),
		DescriptorFile: one.File, Labels: one.Labels, NextFirings: timesOf(s.Schedules.Upcoming(one, n)),
	}
}

func timesOf(all []time.Time) []*timestamppb.Timestamp {
	var out []*timestamppb.Timestamp
	for _, t := range all {
		out = append(out, message.Time(t))
	}
	return out
}
