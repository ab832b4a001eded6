package submit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// strict returns a submitter of a platform that has no receivers any more.
func (h *harness) strict() *submit.Submitter {
	return submit.New(submit.Settings{}, submit.Deps{
		Store: h.store, Bus: h.bus, IDs: h.ids, Parser: parser.Parser{Receivers: map[string][]string{}},
		Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
	})
}

// notifying is a request that a platform without receivers refuses.
func notifying(change func(*submit.Request)) submit.Request {
	req := request(change)
	req.Descriptor = []byte(strings.Replace(valid, "[info]\n", "[info]\nnotify = [\"perf\"]\n", 1))
	return req
}

func TestARepeatedRequestIsAnsweredWithItsRunEvenIfItWouldBeRefusedNow(t *testing.T) {
	for name, change := range map[string]func(*submit.Request){
		"of a user":         func(r *submit.Request) { r.Key = "k" },
		"of a set":          func(r *submit.Request) { r.Key, r.Cell = "7", &submit.CellRun{Set: runID, Cell: "c", Repetition: 1} },
		"of a schedule":     func(r *submit.Request) { r.Key, r.Firing = "k", &submit.Firing{Schedule: "s", Time: noon()} },
		"of a confirmation": func(r *submit.Request) { r.Key, r.Confirms = "k", &submit.ConfirmingRun{Confirmation: "c"} },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(storetest.NewMemory())
			first, err := h.newSubmitter(neverCrashes()).Submit(t.Context(), notifying(change))
			if err != nil {
				t.Fatal(err)
			}
			again, err := h.strict().Submit(t.Context(), notifying(change))
			if err != nil || again.Run != first.Run || !again.Repeated {
				t.Errorf("run %q, repeated %t, %v, want run %s", again.Run, again.Repeated, err, first.Run)
			}
			h.checkConsistent(t)
		})
	}
}

func TestARequestThatIsRefusedNowHasTheRunThatACrashedProcessHasMade(t *testing.T) {
	for p := range crashtest.Points() {
		h := newHarness(storetest.NewMemory())
		req := notifying(func(r *submit.Request) { r.Key, r.Name = "k", "n" })
		_, _ = h.newSubmitter(p).Submit(t.Context(), req) // the process may crash
		made := len(h.docs(t, store.KindOutbox))+len(h.docs(t, store.KindSubmission)) > 0
		acc, err := h.strict().Submit(t.Context(), req)
		var invalid *submit.InvalidError
		if made != (err == nil) || made != (acc.Run != "") || !made && !errors.As(err, &invalid) {
			t.Errorf("%s: run %q, %v, and a run was made: %t", p, acc.Run, err, made)
		}
		h.checkConsistent(t)
	}
}

func TestAnotherRequestUnderTheKeyOfARunIsRefused(t *testing.T) {
	h := newHarness(storetest.NewMemory())
	if _, err := h.newSubmitter(neverCrashes()).Submit(t.Context(), requestWithKey("k")); err != nil {
		t.Fatal(err)
	}
	var invalid *submit.InvalidError
	if _, err := h.strict().Submit(t.Context(), notifying(func(r *submit.Request) { r.Key = "k" })); !errors.As(err, &invalid) {
		t.Errorf("another request: %v", err)
	}
	if _, err := h.strict().Submit(t.Context(), notifying(nil)); !errors.As(err, &invalid) {
		t.Errorf("a request without a key: %v", err)
	}
}
