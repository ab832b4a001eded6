package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// sets measures a set of 10,000 cells, each a no-op run, against runs that are submitted
// one by one: how many end a second, whether the last ones end as fast as the first ones,
// and the largest memory of the platform meanwhile.
func sets(ctx context.Context, b bench) ([]result, error) {
	const cells, singles = 10_000, 2000
	var single float64
	err := withPlatform(ctx, b, func(p *platform) error {
		if err := p.submitMany(ctx, 10); err != nil { // warm
			return err
		}
		begin := time.Now()
		err := p.submitMany(ctx, singles)
		single = singles / time.Since(begin).Seconds()
		return err
	}, "--slots", "16")
	if err != nil {
		return nil, err
	}
	var seen setProgress
	err = withPlatform(ctx, b, func(p *platform) error {
		if err := p.submitMany(ctx, 10); err != nil {
			return err
		}
		seen, err = p.runSet(ctx, cells)
		return err
	}, "--slots", "16")
	if err != nil {
		return nil, err
	}
	rate := seen.rate(0, cells)
	return []result{
		atMost("SetMemory", seen.memory, "MiB", 160, "the largest while 10,000 cells run"),
		atLeast("SetRunsPerSecond", rate/single, "ratio", 0.9,
			fmt.Sprintf("%.0f runs/s of a set, %.0f of runs that are submitted one by one", rate, single)),
		atLeast("SetRunsPerSecondFlat", seen.rate(cells-1000, cells)/seen.rate(0, 1000), "ratio", 0.8,
			fmt.Sprintf("the last 1,000 cells; the first: %.0f runs/s", seen.rate(0, 1000))),
	}, nil
}

// setProgress is the progress of a set.
type setProgress struct {
	begin  time.Time
	ended  []int       // numbers of runs that had ended
	at     []time.Time // the times of these
	memory float64     // of the platform, the largest seen, in MiB
}

// rate returns how many runs ended a second between the one and the other number of ended
// runs, as far as the progress was looked at.
func (s setProgress) rate(from, to int) float64 {
	ended, begin := 0, s.begin
	for i, n := range s.ended {
		if n <= from {
			ended, begin = n, s.at[i]
		}
		if n >= to {
			return float64(n-ended) / s.at[i].Sub(begin).Seconds()
		}
	}
	return 0
}

// runSet submits a set of so many cells, and looks at it until it has finished.
func (p *platform) runSet(ctx context.Context, cells int) (s setProgress, err error) {
	numbers := make([]string, cells)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i)
	}
	text := noop("true {{cell}}") + "[sweep.product]\ncell = [" + strings.Join(numbers, ", ") + "]\n"
	s.begin = time.Now()
	submitted, err := p.api.SubmitRun(ctx, &baiv1.SubmitRunRequest{DescriptorToml: []byte(text)})
	if err != nil {
		return s, err
	}
	for {
		used, err := p.usage()
		if err != nil {
			return s, err
		}
		s.memory = max(s.memory, used.rss)
		r, err := p.sets.GetSet(ctx, &baiv1.GetSetRequest{Set: submitted.GetSetId()})
		if err != nil {
			return s, err
		}
		s.ended, s.at = append(s.ended, int(r.GetSet().GetSucceeded())), append(s.at, time.Now())
		switch set := r.GetSet(); {
		case set.GetFailed()+set.GetCanceled() > 0:
			return s, fmt.Errorf("of the set %s %d runs failed and %d were canceled", set.GetId(), set.GetFailed(), set.GetCanceled())
		case set.GetState() == baiv1.SetState_SET_STATE_FINISHED:
			return s, nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return s, err
		}
	}
}
