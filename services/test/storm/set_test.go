package storm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed"
)

// sweepOf returns a descriptor whose sweep has so many cells of one run each.
func (w *harness) sweepOf(cells int) string {
	numbers := make([]string, cells)
	for i := range numbers {
		numbers[i] = fmt.Sprint(i)
	}
	counting := w.descriptor(1, 0, false, "")
	return strings.Replace(counting, "vars = {", `vars = { CELL = "{{cell}}",`, 1) + fmt.Sprintf(`
[sweep]
max_parallel = %d
[sweep.product]
cell = [%s]
`, slots, strings.Join(numbers, ", "))
}

// submitSet submits a sweep until the platform has accepted it, and returns its ID and
// whether it had been accepted before.
func (w *harness) submitSet(key, descriptor string) (id string, repeated bool) {
	w.t.Helper()
	if !w.retry("submit a set", func(ctx context.Context) error {
		r, err := w.api.SubmitRun(ctx, &baiv1.SubmitRunRequest{IdempotencyKey: key, DescriptorToml: []byte(descriptor), Owner: "tester"})
		id, repeated = r.GetSetId(), r.GetRepeated()
		return err
	}) {
		w.t.FailNow()
	}
	return id, repeated
}

// setStorm watches a set while processes are killed.
type setStorm struct {
	w    *harness
	id   string
	last *baiv1.Set // as it was looked at last
}

// look reads the set, and checks its counts against each other and against those before.
func (s *setStorm) look() *baiv1.Set {
	s.w.t.Helper()
	var now *baiv1.Set
	if !s.w.retry("get the set", func(ctx context.Context) error {
		r, err := s.w.sets.GetSet(ctx, &baiv1.GetSetRequest{Set: s.id})
		now = r.GetSet()
		return err
	}) {
		s.w.t.FailNow()
	}
	ended := now.GetSucceeded() + now.GetFailed() + now.GetCanceled()
	switch was := s.last; {
	case now.GetSubmitted() != now.GetActive()+ended, int(now.GetActive()) != len(now.GetActiveRuns()):
		s.w.t.Errorf("%d submitted are not %d active, of which %d have names, and %d ended", now.GetSubmitted(), now.GetActive(), len(now.GetActiveRuns()), ended)
	case now.GetSubmitted() > now.GetRunCount(), now.GetActive() > slots:
		s.w.t.Errorf("%d of %d are submitted, %d active of %d at the most", now.GetSubmitted(), now.GetRunCount(), now.GetActive(), slots)
	case now.GetFailed() > 0, now.GetCanceled() > 0:
		s.w.t.Errorf("%d failed, %d were canceled: %v", now.GetFailed(), now.GetCanceled(), now.GetFailures())
	case was != nil && (now.GetSubmitted() < was.GetSubmitted() || now.GetSucceeded() < was.GetSucceeded() || now.GetRevision() < was.GetRevision()):
		s.w.t.Errorf("it goes back: %v, then %v", was, now)
	}
	s.last = now
	return now
}

// killUntilFinished kills processes in a random order, each so many times, at random
// moments, while the set has not finished. It returns the number of kills.
func (s *setStorm) killUntilFinished(random *rand.Rand, rounds int, victims ...victim) int {
	s.w.t.Helper()
	kills := 0
	for range rounds {
		for _, i := range random.Perm(len(victims)) {
			if !wait(s.w.t.Context(), time.Duration(random.Int64N(int64(2*time.Second)))) || s.w.t.Failed() {
				return kills
			}
			if s.look().GetState() == baiv1.SetState_SET_STATE_FINISHED {
				return kills
			}
			victims[i].kill()
			kills++
		}
	}
	return kills
}

// awaitFinished waits until the set has finished, as long as it comes on.
func (s *setStorm) awaitFinished() {
	s.w.t.Helper()
	for late, was := time.Now().Add(waitTimeout), int32(-1); ; time.Sleep(pollInterval) {
		now := s.look()
		switch {
		case s.w.t.Failed(), now.GetState() == baiv1.SetState_SET_STATE_FINISHED:
			return
		case now.GetSucceeded() > was:
			late, was = time.Now().Add(waitTimeout), now.GetSucceeded()
		case time.Now().After(late):
			s.w.t.Fatalf("the set has not come on for %s: %v", waitTimeout, now)
		}
	}
}

// wantEveryCellOnce checks that each cell has one run, which succeeded, and that the
// platform has no further run of the set.
func (s *setStorm) wantEveryCellOnce(cells int) {
	w := s.w
	w.t.Helper()
	listed := s.listCells()
	found := map[string]bool{}
	for _, c := range listed {
		if len(c.GetRuns()) != 1 || c.GetRuns()[0].GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			w.t.Errorf("the cell %s has the runs %v, want one that succeeded", c.GetName(), c.GetRuns())
			continue
		}
		found[c.GetRuns()[0].GetRunId()] = true
	}
	runs := s.listRuns()
	if len(listed) != cells || len(found) != cells || len(runs) != cells {
		w.t.Errorf("%d cells are listed, with %d runs; the platform has %d runs of the set; want %d of each", len(listed), len(found), len(runs), cells)
	}
	for _, id := range runs {
		if !found[id] {
			w.t.Errorf("the run %s is of no cell", id)
		}
		if how, err := w.howItEnded(id); err != nil || how != baiv1.Outcome_OUTCOME_SUCCEEDED {
			w.t.Errorf("the run %s ended as %s, %v", id, how, err)
		}
	}
}

// awaitListed waits until each cell in the list has runs, none of which is under way. Elasticsearch finds what was stored a second later, or later
// than that on a busy machine; what the set itself says is read from its document.
func (s *setStorm) awaitListed() {
	s.w.t.Helper()
	for late := time.Now().Add(waitTimeout); time.Now().Before(late); time.Sleep(pollInterval) {
		if !slices.ContainsFunc(s.listCells(), func(c *baiv1.Cell) bool {
			return len(c.GetRuns()) == 0 || slices.ContainsFunc(c.GetRuns(), func(r *baiv1.CellRun) bool { return r.GetPhase() != baiv1.Phase_PHASE_FINISHED })
		}) {
			return
		}
	}
}

// listCells returns all cells of the set.
func (s *setStorm) listCells() (cells []*baiv1.Cell) {
	s.w.t.Helper()
	request := &baiv1.ListCellsRequest{Set: s.id, PageSize: 1000}
	for {
		page, err := s.w.sets.ListCells(s.w.t.Context(), request)
		if err != nil {
			s.w.t.Fatal(err)
		}
		cells = append(cells, page.GetCells()...)
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return cells
		}
	}
}

// listRuns returns the IDs of all runs of the set.
func (s *setStorm) listRuns() (ids []string) {
	s.w.t.Helper()
	request := &baiv1.ListRunsRequest{SetId: s.id, PageSize: 1000}
	for {
		page, err := s.w.api.ListRuns(s.w.t.Context(), request)
		if err != nil {
			s.w.t.Fatal(err)
		}
		for _, r := range page.GetRuns() {
			ids = append(ids, r.GetId())
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return ids
		}
	}
}

// TestASetHasEveryCellOnceWhateverIsKilled submits a set twice with one key, and kills
// each service, each at 20 random moments, while its cells run.
func TestASetHasEveryCellOnceWhateverIsKilled(t *testing.T) {
	w := startSeparate(t)
	seed := uint64(os.Getpid()) //nolint:gosec // a process ID is not negative
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // moments of kills are no secret
	cells := testbed.Size(1000, 60)
	s := &setStorm{w: w}
	s.id, _ = w.submitSet("set", w.sweepOf(cells))
	victims := []victim{
		w.killProcess(w.services["gateway"]), w.killProcess(w.services["fetcher"]), w.killProcess(w.platform), w.killProcess(w.services["metrics-pusher"]),
	}
	kills := s.killUntilFinished(random, 1, victims...)
	if again, repeated := w.submitSet("set", w.sweepOf(cells)); again != s.id || !repeated {
		t.Errorf("submitted again with the same key, the set is %s, repeated %v; want %s", again, repeated, s.id)
	}
	kills += s.killUntilFinished(random, testbed.Size(19, 1), victims...)
	s.awaitFinished()
	s.awaitListed()
	s.wantEveryCellOnce(cells)
	t.Logf("%d cells, %d kills", cells, kills)
	if least := testbed.Size(80, 4); kills < least && !t.Failed() {
		t.Errorf("only %d kills before the set had finished, want %d", kills, least)
	}
}
