package real_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed"
)

const (
	concurrency    = 6
	maxCancelDelay = 8 * time.Second // the longest time from submission to cancellation
	gangEvery      = 10              // one of so many runs has several pods
)

// runEnd is the end of a run in its history.
type runEnd struct {
	run  runStatus
	ends int // facts that end it
	at   time.Duration
}

// seedVariable is the variable with the seed of random times; without it a new seed is
// chosen, and printed.
const seedVariable = "BAI_SEED"

// seededRand is a source of random moments, the same for the same seed.
func seededRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("%s=%d", seedVariable, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestRunsThatAreCanceledAtAnyMomentLeaveNothing cancels runs at moments that
// lie anywhere between their submission and their end.
func TestRunsThatAreCanceledAtAnyMomentLeaveNothing(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[executor.pods]\ngrace = \"2s\"\n", "--slots", fmt.Sprint(concurrency))
	importBenchImage(t, w)
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		found = map[string]int{}
		room  = make(chan struct{}, concurrency)
		dir   = t.TempDir()
		begun = time.Now()
		rnd   = seededRand(t)
		runs  = testbed.Size(100, 20)
	)
	for i := range runs {
		after := time.Duration(rnd.Int64N(int64(maxCancelDelay)))
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			text := failureCase{code: `"sleep 1"`}.descriptor()
			if i%gangEvery == 0 {
				text = mpi
			}
			e, err := w.cancelAt(t.Context(), filepath.Join(dir, fmt.Sprintf("%d.toml", i)), text, after)
			mu.Lock()
			defer mu.Unlock()
			found[e.run.Outcome+" "+e.run.Reason]++
			if err := errors.Join(err, e.check()); err != nil {
				t.Errorf("run %d, %s, canceled after %s: %v", i, e.run.ID, e.at, err)
			}
		})
	}
	all.Wait()
	for _, outcome := range slices.Sorted(maps.Keys(found)) {
		t.Logf("%d %s", found[outcome], outcome)
	}
	t.Logf("%d runs in %s", runs, time.Since(begun).Round(time.Second))
	awaitCleared(t, w.cluster, w.scope)
}

// check returns the fault of an end.
func (e runEnd) check() error {
	canceled := e.run.Outcome == "canceled" && e.run.Reason == "CanceledByUser"
	if e.run.Phase != "finished" || !canceled && e.run.Outcome != "succeeded" {
		return fmt.Errorf("it is %+v", e.run)
	}
	if e.ends != 1 {
		return fmt.Errorf("it ended %d times", e.ends)
	}
	return nil
}

// cancelAt submits a run and cancels it a while later.
func (w fixture) cancelAt(ctx context.Context, file, text string, after time.Duration) (runEnd, error) {
	e := runEnd{at: after}
	run, err := w.submit(ctx, file, text)
	if err != nil {
		return e, err
	}
	e.run.ID = run
	time.Sleep(after) // the time is random
	if out, code, err := w.try(ctx, "cancel", run); err != nil || code != 0 {
		if r, _ := w.get(ctx, run); r.Phase != "finished" {
			return e, fmt.Errorf("cancel it: exit code %d: %w\n%s", code, err, out)
		}
	}
	if out, code, err := w.try(ctx, "watch", run, "--timeout", "10m"); err != nil || code != 0 && code != 5 {
		return e, fmt.Errorf("watch it: exit code %d: %w\n%s", code, err, out)
	}
	if e.run, err = w.get(ctx, run); err != nil {
		return e, err
	}
	e.ends, err = w.countEnds(ctx, run)
	return e, err
}

// countEnds counts the facts of a run's history that end it.
func (w fixture) countEnds(ctx context.Context, run string) (n int, err error) {
	out, _, err := w.try(ctx, "why", run, "-o", "json")
	if err != nil {
		return 0, err
	}
	var history struct {
		Steps []struct {
			Change struct{ Kind, Phase, Outcome string }
		}
	}
	if err := json.Unmarshal([]byte(out), &history); err != nil {
		return 0, fmt.Errorf("%w in %s", err, out)
	}
	for _, s := range history.Steps {
		if s.Change.Outcome != "" {
			n++
		}
	}
	return n, nil
}
