package submit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// wantsScript is a descriptor that needs code.
const wantsScript = valid + "[ml.script]\nscript = \"code.tar\"\n"

// digest is the digest of some code.
const digest = "abababababababababababababababababababababababababababababababab"

// fakeScripts has stored code, and records its pins.
type fakeScripts struct {
	mu     sync.Mutex
	sizes  map[string]int64
	pinned []string
	err    error
}

// Pin implements submit.Scripts.
func (s *fakeScripts) Pin(_ context.Context, owner, sha256, run string) (event.Bundle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return event.Bundle{}, s.err
	}
	size, ok := s.sizes[sha256]
	if !ok {
		return event.Bundle{}, store.ErrNotFound
	}
	s.pinned = append(s.pinned, owner+" "+sha256+" "+run)
	return event.Bundle{SHA256: sha256, Size: size}, nil
}

func (h *harness) newSubmitterWithScripts(s *fakeScripts) *submit.Submitter {
	return submit.New(submit.Settings{}, submit.Deps{
		Store: h.store, Bus: h.bus, Scripts: s, IDs: h.ids, Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
	})
}

func TestCodeIsPinnedToItsRunBeforeAnybodyHearsOfTheRun(t *testing.T) {
	h, s := newHarness(openSQLite(t)), &fakeScripts{sizes: map[string]int64{digest: 7}}
	in := h.newSubmitterWithScripts(s)
	req := request(func(r *submit.Request) {
		r.Descriptor, r.Script, r.Key = []byte(wantsScript), strings.ToUpper(digest), "k"
	})
	acc, err := in.Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	again, err := in.Submit(t.Context(), req)
	if err != nil || !again.Repeated || again.Run != acc.Run {
		t.Errorf("the same again is %+v, %v", again, err)
	}
	if len(s.pinned) != 1 || s.pinned[0] != "ann "+digest+" "+acc.Run {
		t.Errorf("pinned %q", s.pinned)
	}
	sub, _, err := store.Get[event.Submitted](t.Context(), h.store, store.KindSubmission, acc.Run)
	if err != nil || sub.Bundle == nil || *sub.Bundle != (event.Bundle{SHA256: digest, Size: 7}) {
		t.Errorf("submitted with %+v, %v", sub.Bundle, err)
	}
	h.checkConsistent(t)
}

func TestAnotherScriptUnderAKeyIsAnotherRequest(t *testing.T) {
	other := strings.Repeat("cd", 32)
	h, s := newHarness(openSQLite(t)), &fakeScripts{sizes: map[string]int64{digest: 7, other: 7}}
	in := h.newSubmitterWithScripts(s)
	for i, code := range []string{digest, other, ""} {
		_, err := in.Submit(t.Context(), request(func(r *submit.Request) { r.Script, r.Key = code, "k" }))
		if taken := new(submit.NotUniqueError); errors.As(err, &taken) != (i > 0) {
			t.Errorf("with code %.4q: %v", code, err)
		}
	}
}

func TestCodeThatIsNotKeptIsAFaultAndItsRunIsNone(t *testing.T) {
	h, s := newHarness(openSQLite(t)), &fakeScripts{sizes: map[string]int64{}}
	in := h.newSubmitterWithScripts(s)
	req := request(func(r *submit.Request) { r.Script, r.Key = digest, "k" })
	_, err := in.Submit(t.Context(), req)
	invalid, ok := errors.AsType[*submit.InvalidError](err)
	if !ok || invalid.Faults[0].Path != "script_sha256" || !strings.Contains(invalid.Faults[0].Remedy, "--script DIR") {
		t.Fatalf("submitted: %v", err)
	}
	if got := h.docs(t, store.KindOutbox); len(got) > 0 || len(h.bus.runs()) > 0 {
		t.Errorf("remembered %v, published %v", got, h.bus.runs())
	}
	s.sizes[digest] = 7
	if acc, err := in.Submit(t.Context(), req); err != nil || len(h.bus.runs()) != 1 {
		t.Errorf("sent again once it is kept: %+v, %v", acc, err)
	}
	s.err = errors.New("the store is away")
	if _, err := in.Submit(t.Context(), request(func(r *submit.Request) { r.Script = digest })); !errors.As(err, new(*submit.UnavailableError)) {
		t.Errorf("with a store that is away: %v", err)
	}
	if _, err := h.newSubmitter(neverCrashes()).Submit(t.Context(), req); err != nil {
		t.Errorf("a run that is known: %v", err)
	}
	if _, err := h.newSubmitter(neverCrashes()).Submit(t.Context(), request(func(r *submit.Request) { r.Script = digest })); !errors.As(err, new(*submit.UnsupportedError)) {
		t.Errorf("where no code is taken: %v", err)
	}
}

func TestADescriptorAndItsCodeBelongTogether(t *testing.T) {
	scheduled := strings.Replace(wantsScript, `description = "hello"`, "description = \"hello\"\nscheduling = \"@daily\"", 1)
	for name, tt := range map[string]struct {
		descriptor, script, rerun string
		fault                     string // path of the fault; empty for none
	}{
		"code for who wants it":               {descriptor: wantsScript, script: digest},
		"code for who does not ask for it":    {descriptor: valid, script: digest},
		"none for who wants it":               {descriptor: wantsScript, fault: "ml.script"},
		"what is no digest":                   {descriptor: wantsScript, script: "xyz", fault: "script_sha256"},
		"a digest that is too short":          {descriptor: valid, script: "abcd", fault: "script_sha256"},
		"a schedule that wants code":          {descriptor: scheduled, fault: "ml.script"},
		"code for what repeats a run of such": {descriptor: scheduled, script: digest, rerun: runID},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := submit.Decide(parser.Parser{}, request(func(r *submit.Request) {
				r.Descriptor, r.Script, r.RerunOf = []byte(tt.descriptor), tt.script, tt.rerun
			}), runID, noon())
			if tt.fault == "" {
				if err != nil || plan.Submitted.Bundle == nil || plan.Submitted.Bundle.SHA256 != digest {
					t.Errorf("%+v, %v", plan.Submitted.Bundle, err)
				}
				return
			}
			invalid, ok := errors.AsType[*submit.InvalidError](err)
			if !ok || invalid.Faults[0].Path != tt.fault || invalid.Faults[0].Remedy == "" {
				t.Errorf("%v, want a fault of %s", err, tt.fault)
			}
		})
	}
}
