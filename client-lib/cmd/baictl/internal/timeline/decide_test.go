package timeline_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/timeline"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

const second = time.Second

func at(s int) *timestamppb.Timestamp { return timestamppb.New(time.Unix(int64(1000+s), 0)) }

func change(s int, phase baiv1.Phase, attempt int32) *baiv1.Change {
	return &baiv1.Change{Time: at(s), Phase: phase, Attempt: attempt}
}

func progress(s int, done int64) *baiv1.Change {
	c := change(s, baiv1.Phase_PHASE_FETCHING, 1)
	c.Progress = &baiv1.Progress{Done: done}
	return c
}

func TestEachStepSaysWhenItCameAndEachPhaseHowLongItTook(t *testing.T) {
	changes := []*baiv1.Change{
		change(0, baiv1.Phase_PHASE_SUBMITTED, 1), change(2, baiv1.Phase_PHASE_QUEUED, 1), change(10, baiv1.Phase_PHASE_RUNNING, 1),
		change(15, baiv1.Phase_PHASE_LAUNCHING, 2), change(16, baiv1.Phase_PHASE_RUNNING, 2), change(20, baiv1.Phase_PHASE_FINISHED, 2),
	}
	got := timeline.Build(&baiv1.Run{CreateTime: at(0), Phase: baiv1.Phase_PHASE_FINISHED}, changes, time.Unix(9999, 0))
	want := timeline.History{
		Steps: []timeline.Step{
			{Change: changes[0]},
			{Change: changes[1], Since: 2 * second, After: 2 * second},
			{Change: changes[2], Since: 10 * second, After: 8 * second},
			{Change: changes[3], Since: 15 * second, After: 5 * second},
			{Change: changes[4], Since: 16 * second, After: 1 * second},
			{Change: changes[5], Since: 20 * second, After: 4 * second},
		},
		Phases: []timeline.PhaseSpan{
			{Phase: baiv1.Phase_PHASE_SUBMITTED, Attempt: 1, Took: 2 * second, Waiting: true},
			{Phase: baiv1.Phase_PHASE_QUEUED, Attempt: 1, From: 2 * second, Took: 8 * second, Waiting: true},
			{Phase: baiv1.Phase_PHASE_RUNNING, Attempt: 1, From: 10 * second, Took: 5 * second},
			{Phase: baiv1.Phase_PHASE_LAUNCHING, Attempt: 2, From: 15 * second, Took: 1 * second},
			{Phase: baiv1.Phase_PHASE_RUNNING, Attempt: 2, From: 16 * second, Took: 4 * second},
		},
		Total: 20 * second, Waited: 10 * second, Ended: true,
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProgressInBetweenIsCountedOnly(t *testing.T) {
	changes := []*baiv1.Change{
		change(0, baiv1.Phase_PHASE_SUBMITTED, 1), progress(1, 0), progress(2, 1), progress(3, 2), progress(4, 3), change(5, baiv1.Phase_PHASE_QUEUED, 1),
	}
	got := timeline.Build(&baiv1.Run{CreateTime: at(0)}, changes, time.Unix(1007, 0))
	var steps []timeline.Step
	steps = append(steps, got.Steps...)
	want := []timeline.Step{
		{Change: changes[0]},
		{Change: changes[1], Since: second, After: second},
		{Change: changes[4], Since: 4 * second, After: 3 * second, More: 2},
		{Change: changes[5], Since: 5 * second, After: second},
	}
	if diff := cmp.Diff(want, steps, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	last := got.Phases[len(got.Phases)-1]
	if want := (timeline.PhaseSpan{Phase: baiv1.Phase_PHASE_QUEUED, Attempt: 1, From: 5 * second, Took: 2 * second, Open: true, Waiting: true}); last != want {
		t.Errorf("a run that goes on: %+v, want %+v", last, want)
	}
}

func TestNoTimeIsNegativeThoughClocksDisagree(t *testing.T) {
	changes := []*baiv1.Change{change(5, baiv1.Phase_PHASE_SUBMITTED, 1), change(2, baiv1.Phase_PHASE_RUNNING, 1), change(-9, baiv1.Phase_PHASE_FINISHED, 1)}
	for _, run := range []*baiv1.Run{{CreateTime: at(6), Phase: baiv1.Phase_PHASE_FINISHED}, {}, {CreateTime: at(100)}} {
		got := timeline.Build(run, changes, time.Unix(0, 0))
		for _, s := range got.Steps {
			if s.Since < 0 || s.After < 0 {
				t.Errorf("%+v", s)
			}
		}
		for _, s := range got.Phases {
			if s.Took < 0 || s.From < 0 {
				t.Errorf("%+v", s)
			}
		}
	}
}

func TestARunWithoutChangesHasAStory(t *testing.T) {
	got := timeline.Build(&baiv1.Run{CreateTime: at(0)}, nil, time.Unix(1003, 0))
	if got.Total != 3*second || len(got.Steps) != 0 {
		t.Errorf("%+v", got)
	}
}
