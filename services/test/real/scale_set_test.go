package real_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed/kwok"
)

// setSize is how many runs the set on simulated nodes has: as BAI_SET_RUNS says, else 1,000.
func setSize(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("BAI_SET_RUNS"))
	if err != nil {
		return 1000
	}
	return n
}

// TestTheLastRunsOfASetCostWhatTheFirstDo has a set of many cells run on nodes that run nothing, and compares its first fifth with the last.
func TestTheLastRunsOfASetCostWhatTheFirstDo(t *testing.T) {
	t.Parallel()
	n := setSize(t)
	testCluster := simulated(t, 8)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	f := newMeteredFleet(t, testCluster, "--slots", fmt.Sprint(together))
	numbers := make([]string, n)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i)
	}
	text := plain(kwok.EndsAfter+` = "1s", number = "c{{cell}}"`, "") + "[sweep.product]\ncell = [" + strings.Join(numbers, ", ") + "]\n"
	part, begun := n/5, time.Now()
	set, err := f.api.SubmitRun(ctx, &baiv1.SubmitRunRequest{DescriptorToml: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	var marks []setMark
	for _, ended := range []int{0, part, n - part, n} {
		m, err := f.awaitEnded(ctx, set.GetSetId(), ended)
		if err != nil {
			t.Fatal(err)
		}
		marks = append(marks, m)
	}
	awaitCleared(t, f.cluster, f.scope)
	first, last := marks[1].since(marks[0]), marks[3].since(marks[2])
	t.Logf("%d runs in %s; the first %d: %.2f writes and %.1f ms a run; the last %d: %.2f writes and %.1f ms a run", n, time.Since(begun).Round(time.Second),
		first.runs, first.writes, first.ms, last.runs, last.writes, last.ms)
	if last.writes > flat*first.writes || last.writes > mostWrites || last.ms > flat*first.ms {
		t.Errorf("the last runs cost more than %g times what the first do, or more than %d writes", flat, mostWrites)
	}
}

// setMark is how far a set has come.
type setMark struct {
	at            time.Time
	ended, writes int
}

// setCost is what a run of a part of a set costs on average.
type setCost struct {
	runs       int
	writes, ms float64
}

func (m setMark) since(before setMark) setCost {
	n := m.ended - before.ended
	return setCost{n, float64(m.writes-before.writes) / float64(n), float64(m.at.Sub(before.at).Milliseconds()) / float64(n)}
}

// awaitEnded waits until so many runs of a set have ended.
func (f *meteredFleet) awaitEnded(ctx context.Context, id string, runs int) (setMark, error) {
	for ; ctx.Err() == nil; time.Sleep(500 * time.Millisecond) {
		r, err := f.sets.GetSet(ctx, &baiv1.GetSetRequest{Set: id})
		if err != nil {
			return setMark{}, err
		}
		switch s := r.GetSet(); {
		case s.GetFailed()+s.GetCanceled() > 0:
			return setMark{}, fmt.Errorf("%d runs failed, %d were canceled: %v", s.GetFailed(), s.GetCanceled(), s.GetFailures())
		case int(s.GetSucceeded()) >= runs:
			return setMark{time.Now(), int(s.GetSucceeded()), f.apiCalls().sum(writes)}, nil
		}
	}
	return setMark{}, ctx.Err()
}
