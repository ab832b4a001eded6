package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Sizes of pages of schedules.
const (
	defaultPageSize = 50
	maxPageSize     = 1000
)

// maxKey is how many bytes an idempotency key can have.
const maxKey = 128

// Server implements bai.v1.ScheduleService. It may be used by several goroutines.
type Server struct {
	baiv1.UnimplementedScheduleServiceServer

	schedules *Schedules
}

// NewServer returns a Server.
func NewServer(k *Schedules) *Server { return &Server{schedules: k} }

// PutSchedule makes the schedule that a request asks for: see Schedules.Put.
func (s *Server) PutSchedule(ctx context.Context, req submit.Request, asked *submit.ScheduleError) (id string, repeated bool, err error) {
	one, repeated, err := s.schedules.Put(ctx, req, asked)
	return one.ID, repeated, err
}

// scheduleRequest is a request about one schedule.
type scheduleRequest interface {
	GetSchedule() string
	GetOwner() string
}

// caller returns who calls, as far as the client says.
func caller(ctx context.Context) string {
	for _, user := range metadata.ValueFromIncomingContext(ctx, baiv1.UserMetadata) {
		if user != "" {
			return user
		}
	}
	return "anonymous"
}

// owner returns whose schedule a request is about.
func owner(ctx context.Context, req scheduleRequest) string {
	return cmp.Or(req.GetOwner(), caller(ctx))
}

// statusOf turns what a user must know into a status.
func statusOf(err error) error {
	var (
		missing *MissingError
		invalid *submit.InvalidError
	)
	switch {
	case errors.As(err, &missing) && missing.Ref == "":
		return invalidArgument("schedule", "is empty", "give the ID or the name of a schedule")
	case errors.As(err, &missing):
		return status.Error(codes.NotFound, missing.Error())
	case errors.As(err, &invalid):
		return status.Error(codes.FailedPrecondition, "the descriptor of the schedule cannot be run any more: "+invalid.Error())
	}
	return err
}

// invalidArgument says what is wrong with one field of a request.
func invalidArgument(field, message, remedy string) error {
	st := status.New(codes.InvalidArgument, field+": "+message)
	full, err := st.WithDetails(&baiv1.Fault{Path: field, Code: "BAI9000", Message: message, Remedy: remedy})
	if err != nil {
		return st.Err()
	}
	return full.Err()
}

// ListSchedules implements bai.v1.ScheduleService.
func (s *Server) ListSchedules(ctx context.Context, req *baiv1.ListSchedulesRequest) (*baiv1.ListSchedulesResponse, error) {
	if req.GetPageSize() < 0 {
		return nil, invalidArgument("page_size", "must be 0 or more", "leave it out")
	}
	after := req.GetPageToken()
	if after != "" && !submit.IsRunID(after) {
		return nil, invalidArgument("page_token", "is not one that this server gave", "leave it empty for the first page")
	}
	limit := min(cmp.Or(int(req.GetPageSize()), defaultPageSize), maxPageSize)
	all, err := s.schedules.list(ctx, after, limit+1, func(one Schedule) bool {
		return (req.GetOwner() == "" || one.Owner == req.GetOwner()) && (req.GetNamespace() == "" || one.Namespace == req.GetNamespace())
	})
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

// list returns up to n schedules that are wanted, in the order of their IDs.
func (k *Schedules) list(ctx context.Context, after string, n int, want func(Schedule) bool) ([]Schedule, error) {
	var all []Schedule
	for d, err := range k.documents(ctx, after) {
		var s Schedule
		if err == nil {
			err = json.Unmarshal(d.Value, &s)
		}
		if err != nil {
			return nil, fmt.Errorf("read schedule %q: %w", d.Key, err)
		}
		if s.Deleted.IsZero() && want(s) {
			all = append(all, s)
		}
		if len(all) == n {
			break
		}
	}
	return all, nil
}

// upcoming is how many of the next firings are told of one schedule.
const upcoming = 5

// GetSchedule implements bai.v1.ScheduleService.
func (s *Server) GetSchedule(ctx context.Context, req *baiv1.GetScheduleRequest) (*baiv1.GetScheduleResponse, error) {
	one, err := s.schedules.Find(ctx, owner(ctx, req), req.GetSchedule())
	if err != nil {
		return nil, statusOf(err)
	}
	out := s.message(one, upcoming)
	e, err := s.schedules.loadEdition(ctx, one)
	if err != nil {
		return nil, err
	}
	out.DescriptorToml = e.Descriptor
	if out.Firings, err = s.schedules.history(ctx, one); err != nil {
		return nil, err
	}
	backfills, err := s.schedules.backfills(ctx, one.ID)
	if err != nil {
		return nil, err
	}
	for _, o := range backfills {
		out.Backfills = append(out.Backfills, &baiv1.Backfill{From: timestampOf(o.From), To: timestampOf(o.To), Next: timestampOf(o.Next), By: o.By})
	}
	return &baiv1.GetScheduleResponse{Schedule: out}, nil
}

// history returns what became of the last firings of a schedule, the latest first.
func (k *Schedules) history(ctx context.Context, s Schedule) ([]*baiv1.Firing, error) {
	l, _, err := store.Get[FiringLog](ctx, k.store, store.KindFirings, s.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	runs, _, err := k.store.Runs(ctx, store.RunFilter{Schedule: s.ID, Since: s.Created}, "", s.Rules.History)
	if err != nil {
		return nil, err
	}
	var all []*baiv1.Firing
	for _, r := range runs {
		all = append(all, firingOf(r))
	}
	for _, r := range l.Records {
		i := slices.IndexFunc(all, func(f *baiv1.Firing) bool { return r.Run != "" && f.GetRunId() == r.Run })
		switch {
		case i >= 0:
			all[i].Missed = r.Overdue
		case r.Run == "" && (r.Time.After(s.Created) || r.Last.After(s.Created)):
			all = append(all, &baiv1.Firing{
				Time: timestampOf(r.Time), LastTime: timestampOf(r.Last), Count: int32(min(r.Count, 1<<30)), Reason: string(r.Reason), Message: r.Message, Missed: true, //nolint:gosec // it is no more
			})
		case r.Open && k.isUnrecorded(ctx, r.Run):
			all = append(all, &baiv1.Firing{Time: timestampOf(r.Time), RunId: r.Run, Phase: baiv1.Phase_PHASE_SUBMITTED, Missed: r.Overdue})
		}
	}
	slices.SortStableFunc(all, func(a, b *baiv1.Firing) int { return b.GetTime().AsTime().Compare(a.GetTime().AsTime()) })
	return all[:min(len(all), s.Rules.History)], nil
}

// isUnrecorded reports whether a run was submitted so recently that nothing is known
// of it.
func (k *Schedules) isUnrecorded(ctx context.Context, run string) bool {
	_, err := k.store.Run(ctx, run)
	return errors.Is(err, store.ErrNotFound)
}

func firingOf(r store.Run) *baiv1.Firing {
	f := &baiv1.Firing{
		RunId: r.ID, Reason: string(r.Reason), Message: r.Message,
		Phase:   baiv1.Phase(baiv1.Phase_value["PHASE_"+strings.ToUpper(string(r.Phase))]),
		Outcome: baiv1.Outcome(baiv1.Outcome_value["OUTCOME_"+strings.ToUpper(string(r.Outcome))]),
	}
	if r.Firing != nil {
		f.Time = timestampOf(*r.Firing)
	}
	return f
}

// PauseSchedule implements bai.v1.ScheduleService.
func (s *Server) PauseSchedule(ctx context.Context, req *baiv1.PauseScheduleRequest) (*baiv1.PauseScheduleResponse, error) {
	one, err := s.schedules.Pause(ctx, owner(ctx, req), req.GetSchedule(), caller(ctx))
	if err != nil {
		return nil, statusOf(err)
	}
	return &baiv1.PauseScheduleResponse{Schedule: s.message(one, upcoming)}, nil
}

// ResumeSchedule implements bai.v1.ScheduleService.
func (s *Server) ResumeSchedule(ctx context.Context, req *baiv1.ResumeScheduleRequest) (*baiv1.ResumeScheduleResponse, error) {
	one, err := s.schedules.Resume(ctx, owner(ctx, req), req.GetSchedule())
	if err != nil {
		return nil, statusOf(err)
	}
	return &baiv1.ResumeScheduleResponse{Schedule: s.message(one, upcoming)}, nil
}

// DeleteSchedule implements bai.v1.ScheduleService.
func (s *Server) DeleteSchedule(ctx context.Context, req *baiv1.DeleteScheduleRequest) (*baiv1.DeleteScheduleResponse, error) {
	if req.GetSchedule() == "" {
		return nil, statusOf(&MissingError{})
	}
	existed, err := s.schedules.Delete(ctx, owner(ctx, req), req.GetSchedule())
	return &baiv1.DeleteScheduleResponse{Existed: existed}, err
}

// TriggerSchedule implements bai.v1.ScheduleService.
func (s *Server) TriggerSchedule(ctx context.Context, req *baiv1.TriggerScheduleRequest) (*baiv1.TriggerScheduleResponse, error) {
	if n := len(req.GetIdempotencyKey()); n > maxKey {
		return nil, invalidArgument("idempotency_key", fmt.Sprintf("has %d bytes, %d at most", n, maxKey), "")
	}
	run, repeated, err := s.schedules.Trigger(ctx, owner(ctx, req), req.GetSchedule(), req.GetIdempotencyKey())
	if activeRun := new(ActiveRunError); errors.As(err, &activeRun) {
		return nil, status.Error(codes.FailedPrecondition, activeRun.Error())
	}
	if err != nil {
		return nil, statusOf(err)
	}
	return &baiv1.TriggerScheduleResponse{RunId: run, Repeated: repeated}, nil
}

// BackfillSchedule implements bai.v1.ScheduleService.
func (s *Server) BackfillSchedule(ctx context.Context, req *baiv1.BackfillScheduleRequest) (*baiv1.BackfillScheduleResponse, error) {
	now := s.schedules.now().UTC()
	from, to := req.GetFrom().AsTime(), now
	if req.GetTo() != nil && req.GetTo().AsTime().Before(now) {
		to = req.GetTo().AsTime()
	}
	switch {
	case req.GetFrom() == nil:
		return nil, invalidArgument("from", "is missing", "give the first time that is to be looked at")
	}
	one, err := s.schedules.Find(ctx, owner(ctx, req), req.GetSchedule())
	if err != nil {
		return nil, statusOf(err)
	}
	if !from.Before(to) {
		return nil, invalidArgument("from", fmt.Sprintf("%s is not before the end, %s", one.Rules.formatTime(from), one.Rules.formatTime(to)), "give an earlier time")
	}
	missing, present, more, err := s.schedules.Backfill(ctx, one, from, to, caller(ctx))
	if err != nil {
		return nil, err
	}
	if more {
		return nil, invalidArgument("from", fmt.Sprintf("the schedule fires more than %d times from then on", maxBackfill), "backfill a shorter time, and then the next")
	}
	resp := &baiv1.BackfillScheduleResponse{Present: int32(present)} //nolint:gosec // it is at most maxBackfill
	for _, at := range missing {
		resp.Missing = append(resp.Missing, timestampOf(at))
	}
	return resp, nil
}

// message returns what is told of a schedule, with its next n firings.
func (s *Server) message(one Schedule, n int) *baiv1.Schedule {
	r := one.Rules
	out := &baiv1.Schedule{
		Id: one.ID, Name: one.Name, Namespace: one.Namespace, Owner: one.Owner, Version: int32(one.Version), //nolint:gosec // nobody changes it so often
		Description: one.Description, Scheduling: r.Cron, Timezone: r.Zone, Concurrency: r.Concurrency, Missed: r.Missed,
		MissedWindowSeconds: int64(r.Window / time.Second), DelaySeconds: int64(r.Delay / time.Second), StartTime: timestampOf(r.Start), EndTime: timestampOf(r.End),
		Paused: one.Paused, PausedBy: one.PausedBy, CreateTime: timestampOf(one.Created), UpdateTime: timestampOf(one.Updated),
		DescriptorFile: one.File, Labels: one.Labels,
	}
	times, err := r.Times()
	if one.Paused || err != nil {
		return out
	}
	for _, at := range times.Next(later(one.From, s.schedules.now()), n) {
		out.NextFirings = append(out.NextFirings, timestampOf(at))
	}
	return out
}

func timestampOf(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
