package bai

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Schedules returns the schedules of an owner and of a team, in the order of
// their IDs, without their descriptors; an empty name means all. After an error
// there is nothing more.
func (c *Client) Schedules(ctx context.Context, owner, namespace string) iter.Seq2[*baiv1.Schedule, error] {
	return func(yield func(*baiv1.Schedule, error) bool) {
		yieldPages(yield, func(token string) (*baiv1.ListSchedulesResponse, error) {
			res, err := callWithRetry(ctx, c, c.schedules.ListSchedules,
				&baiv1.ListSchedulesRequest{Owner: owner, Namespace: namespace, PageSize: 500, PageToken: token})
			if err != nil {
				return nil, fmt.Errorf("list schedules: %w", err)
			}
			return res, nil
		}, (*baiv1.ListSchedulesResponse).GetSchedules)
	}
}

// Schedule returns a schedule, with the outcome of its last firings.
func (c *Client) Schedule(ctx context.Context, name string) (*baiv1.Schedule, error) {
	res, err := callWithRetry(ctx, c, c.schedules.GetSchedule, &baiv1.GetScheduleRequest{Schedule: name, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("get schedule %q: %w", name, withNotFoundKind("schedule", err))
	}
	return res.GetSchedule(), nil
}

// PauseSchedule has a schedule fire no more until it is resumed. Asking again
// changes nothing.
func (c *Client) PauseSchedule(ctx context.Context, name string) (*baiv1.Schedule, error) {
	res, err := callWithRetry(ctx, c, c.schedules.PauseSchedule, &baiv1.PauseScheduleRequest{Schedule: name, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("pause schedule %q: %w", name, withNotFoundKind("schedule", err))
	}
	return res.GetSchedule(), nil
}

// ResumeSchedule has a schedule fire from now on. Asking again changes nothing.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (*baiv1.Schedule, error) {
	res, err := callWithRetry(ctx, c, c.schedules.ResumeSchedule, &baiv1.ResumeScheduleRequest{Schedule: name, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("resume schedule %q: %w", name, withNotFoundKind("schedule", err))
	}
	return res.GetSchedule(), nil
}

// TriggerSchedule has a schedule fire now, beside its times, and returns the ID
// of the run, or of the set if the descriptor has a sweep. All triggers under one
// key are one run or set; an empty key is a new one.
func (c *Client) TriggerSchedule(ctx context.Context, name, key string) (id string, err error) {
	fired, err := c.FireSchedule(ctx, name, key)
	return cmp.Or(fired.RunID, fired.SetID), err
}

// FireSchedule does the same as TriggerSchedule, and tells runs and sets apart. Its
// result has no warnings and no ScheduleID.
func (c *Client) FireSchedule(ctx context.Context, name, key string) (Submitted, error) {
	key = cmp.Or(key, NewKey())
	res, err := callWithRetry(ctx, c, c.schedules.TriggerSchedule,
		&baiv1.TriggerScheduleRequest{Schedule: name, Owner: c.settings.Owner, IdempotencyKey: key})
	if err != nil {
		return Submitted{}, fmt.Errorf("trigger schedule %q: %w", name, withNotFoundKind("schedule", err))
	}
	return Submitted{RunID: res.GetRunId(), SetID: res.GetSetId(), Key: key, Repeated: res.GetRepeated()}, nil
}

// DeleteSchedule ends a schedule, and reports whether it existed. Its runs remain.
func (c *Client) DeleteSchedule(ctx context.Context, name string) (existed bool, err error) {
	res, err := callWithRetry(ctx, c, c.schedules.DeleteSchedule, &baiv1.DeleteScheduleRequest{Schedule: name, Owner: c.settings.Owner})
	if err != nil {
		return false, fmt.Errorf("delete schedule %q: %w", name, err)
	}
	return res.GetExisted(), nil
}

// A ScheduleDeletion is the outcome of DeleteScheduleAndRuns.
type ScheduleDeletion struct {
	Existed bool // the schedule existed
	Runs    int  // runs that were canceled
	Sets    int  // sets that were canceled
}

// DeleteScheduleAndRuns ends a schedule and cancels its runs and sets that have not ended,
// also those of a schedule that was deleted before. It does not wait for their ends. After
// an error it returns what was done until then; a second call does the rest.
func (c *Client) DeleteScheduleAndRuns(ctx context.Context, name string) (ScheduleDeletion, error) {
	var done ScheduleDeletion
	if err := c.requireFeatures(ctx, []requiredFeature{{8, "canceling the runs of a schedule", true}}); err != nil {
		return done, fmt.Errorf("delete schedule %q: %w", name, err)
	}
	for token := ""; ; {
		res, err := callWithRetry(ctx, c, c.schedules.DeleteSchedule,
			&baiv1.DeleteScheduleRequest{Schedule: name, Owner: c.settings.Owner, CancelRuns: true, PageToken: token})
		if err != nil {
			return done, fmt.Errorf("delete schedule %q: %w", name, err)
		}
		done.Existed = done.Existed || res.GetExisted()
		done.Runs, done.Sets = done.Runs+int(res.GetCanceledRuns()), done.Sets+int(res.GetCanceledSets())
		if token = res.GetNextPageToken(); token == "" {
			return done, nil
		}
	}
}

// A Backfilled lists the missed firings of a schedule.
type Backfilled struct {
	Missing []time.Time // firings whose runs or sets will be made, oldest first
	Present int         // firings that have theirs
}

// BackfillSchedule has the runs of past firings made that have none, from one
// time on and before another, and returns without waiting for that; a zero end
// is now. Asking again makes no run twice.
func (c *Client) BackfillSchedule(ctx context.Context, name string, from, to time.Time) (Backfilled, error) {
	req := &baiv1.BackfillScheduleRequest{Schedule: name, Owner: c.settings.Owner, From: timestamppb.New(from)}
	if !to.IsZero() {
		req.To = timestamppb.New(to)
	}
	res, err := callWithRetry(ctx, c, c.schedules.BackfillSchedule, req)
	if err != nil {
		return Backfilled{}, fmt.Errorf("backfill schedule %q: %w", name, withNotFoundKind("schedule", err))
	}
	done := Backfilled{Present: int(res.GetPresent())}
	for _, at := range res.GetMissing() {
		done.Missing = append(done.Missing, at.AsTime())
	}
	return done, nil
}
