package submit_test

import (
	"errors"
	"testing"

	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// cellRequest returns the request for run 7 of a set that was resumed that often.
func cellRequest(resumes int) submit.Request {
	return request(func(r *submit.Request) {
		r.Key, r.Cell = "7", &submit.CellRun{Set: runID, Cell: "c", Repetition: 1, Resumes: resumes}
	})
}

func TestAKeyThatWasWithdrawnHasNoRunUntilItsSetIsResumed(t *testing.T) {
	h := newHarness(storetest.NewMemory())
	in := h.newSubmitter(neverCrashes())
	for range 2 {
		if w, err := in.Withdraw(t.Context(), runID, "7", 1); err != nil || w != (submit.Withdrawal{}) {
			t.Errorf("%+v, %v", w, err)
		}
	}
	var withdrawn *submit.WithdrawnError
	for _, resumes := range []int{0, 1} {
		if _, err := in.Submit(t.Context(), cellRequest(resumes)); !errors.As(err, &withdrawn) {
			t.Errorf("after %d resumes: %v", resumes, err)
		}
	}
	if run, err := in.RunOfCell(t.Context(), runID, "7"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("run %q, %v", run, err)
	}
	acc, err := in.Submit(t.Context(), cellRequest(2))
	if err != nil {
		t.Fatal(err)
	}
	for _, resumes := range []int{0, 2} { // it is that of all requests now, and is not withdrawn any more
		again, err := in.Submit(t.Context(), cellRequest(resumes))
		w, withdrawErr := in.Withdraw(t.Context(), runID, "7", resumes)
		if err != nil || withdrawErr != nil || again.Run != acc.Run || w != (submit.Withdrawal{Run: acc.Run, Made: true}) {
			t.Errorf("after %d resumes: run %q, %v, withdrawal %+v, %v, want run %s", resumes, again.Run, err, w, withdrawErr, acc.Run)
		}
	}
	h.checkConsistent(t)
}

// A process submits a run, and another one withdraws it before any of its effects.
func TestAKeyIsEitherThatOfARunOrWithdrawn(t *testing.T) {
	for p := range crashtest.Overtaken() {
		h := newHarness(storetest.NewMemory())
		other := h.newSubmitter(neverCrashes())
		var w submit.Withdrawal
		overtaken := false
		p.OvertakeWith(func() {
			var err error
			overtaken = true
			if w, err = other.Withdraw(t.Context(), runID, "7", 0); err != nil {
				t.Fatal(err)
			}
		})
		acc, err := h.newSubmitter(p).Submit(t.Context(), cellRequest(0))
		var withdrawn *submit.WithdrawnError
		if refused := errors.As(err, &withdrawn); refused != (overtaken && w.Run == "") || !refused && err != nil || acc.Run != w.Run && overtaken {
			t.Errorf("%s: run %q, %v, and the withdrawal is %+v", p, acc.Run, err, w)
		}
		if made := len(h.bus.runs()); made > 1 || (made == 1) != (err == nil) {
			t.Errorf("%s: %v, and %d runs", p, err, made)
		}
		h.checkConsistent(t)
	}
}
