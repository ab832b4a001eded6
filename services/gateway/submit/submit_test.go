package submit_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// recordingBus records the published events.
type recordingBus struct {
	mu        sync.Mutex
	published []event.Event
}

func (b *recordingBus) Publish(_ context.Context, events ...event.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.published = append(b.published, events...)
	return nil
}

// runs returns the IDs of the published runs, each once.
func (b *recordingBus) runs() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var runs []string
	for _, ev := range b.published {
		if run := ev.Head().Run; !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	return runs
}

// harness is a store and a bus that outlive the processes that use them.
type harness struct {
	store storetest.Store
	bus   *recordingBus
	ids   *submit.IDs
	clock time.Time
}

func newHarness(s storetest.Store) *harness {
	return &harness{store: s, bus: &recordingBus{}, ids: submit.NewIDs(rand.Reader), clock: noon()}
}

func openSQLite(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "bai.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (h *harness) newSubmitter(p *crashtest.Process) *submit.Submitter {
	return submit.New(submit.Settings{}, submit.Deps{
		Store: p.Store(h.store), Bus: p.Bus(h.bus), IDs: h.ids, Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
	})
}

func neverCrashes() *crashtest.Process { return crashtest.New(0, false) }

func (h *harness) docs(t *testing.T, kind store.Kind) []string {
	t.Helper()
	docs, err := h.store.Docs(t.Context(), kind, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, d := range docs {
		keys = append(keys, d.Key)
	}
	return keys
}

// relayOutbox relays the outbox after the time in which a submit may still be at work.
func (h *harness) relayOutbox(t *testing.T) {
	t.Helper()
	h.clock = h.clock.Add(time.Hour)
	if err := h.newSubmitter(neverCrashes()).RelayOutbox(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// checkConsistent checks the invariants that hold while no process is at work.
func (h *harness) checkConsistent(t *testing.T) {
	t.Helper()
	if entries := h.docs(t, store.KindOutbox); len(entries) > 0 {
		t.Errorf("left in the outbox: %v", entries)
	}
	submitted, published := h.docs(t, store.KindSubmission), h.bus.runs()
	slices.Sort(published)
	if diff := cmp.Diff(submitted, published); diff != "" {
		t.Errorf("submissions and published runs differ (-submitted +published):\n%s", diff)
	}
}

// TestADeathBetweenAnyTwoLinesLosesNothingAndMakesNothingTwice crashes a submit before
// and after each of its effects. Then the client sends its request again, or the outbox
// is relayed, or both in either order.
func TestADeathBetweenAnyTwoLinesLosesNothingAndMakesNothingTwice(t *testing.T) {
	requests := map[string]submit.Request{
		"key and name": request(func(r *submit.Request) { r.Key, r.Name = "k", "n" }),
		"key":          request(func(r *submit.Request) { r.Key = "k" }),
		"name":         request(func(r *submit.Request) { r.Name = "n" }),
		"neither":      request(nil),
	}
	const effects = 6 // effects of the first request; the others have fewer
	for what, req := range requests {
		for at := range effects + 1 {
			for _, after := range []bool{false, true} {
				for _, next := range []string{"retry", "sweep", "sweep retry", "retry sweep"} {
					t.Run(fmt.Sprintf("%s/%d %t/%s", what, at, after, next), func(t *testing.T) {
						t.Parallel()
						checkCrash(t, req, crashtest.New(at+1, after), strings.Fields(next))
					})
				}
			}
		}
	}
}

// firstTry is the client's view of its first try.
type firstTry struct {
	req      submit.Request
	accepted bool
	run      string // accepted, or possibly accepted; may be empty
}

func checkCrash(t *testing.T, req submit.Request, p *crashtest.Process, next []string) {
	t.Helper()
	h := newHarness(storetest.NewMemory())
	acc, err := h.newSubmitter(p).Submit(t.Context(), req)
	first := firstTry{req, err == nil, acc.Run}
	if unavailable, ok := errors.AsType[*submit.UnavailableError](err); ok {
		first.run = unavailable.Run
	} else if err != nil {
		t.Fatalf("died with %v, want *UnavailableError", err)
	}
	for _, step := range next {
		if step == "sweep" {
			h.relayOutbox(t)
		} else {
			h.retry(t, first)
		}
	}
	h.relayOutbox(t) // an entry of another process
	h.checkConsistent(t)
	runs := h.bus.runs()
	if first.accepted && !slices.Contains(runs, first.run) {
		t.Errorf("run %s was accepted and is lost", first.run)
	}
	if (req.Key != "" || req.Name != "") && len(runs) > 1 {
		t.Errorf("one request made runs %v", runs)
	}
	if slices.Contains(next, "retry") && len(runs) == 0 {
		t.Error("a request that was sent again made no run")
	}
}

// retry sends a request again.
func (h *harness) retry(t *testing.T, first firstTry) {
	t.Helper()
	again, err := h.newSubmitter(neverCrashes()).Submit(t.Context(), first.req)
	var taken *submit.NotUniqueError
	switch {
	case first.req.Key == "" && first.req.Name != "" && errors.As(err, &taken): // the first try has the name
	case err != nil:
		t.Fatalf("sent again: %v", err)
	case first.req.Key != "" && first.run != "" && again.Run != first.run:
		t.Errorf("was %s, and sent again is %s", first.run, again.Run)
	case first.req.Key != "" && first.accepted && !again.Repeated:
		t.Error("was accepted, and sent again is new")
	}
}

func TestFiftyEqualRequestsAtOnceAreOneRun(t *testing.T) {
	for name, processes := range map[string]int{"in one process": 1, "in five processes": 5} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(openSQLite(t))
			runs, fresh := submitFifty(t, h, processes)
			if len(runs) != 1 || fresh != 1 {
				t.Errorf("runs %v, %d of them new", runs, fresh)
			}
			h.checkConsistent(t)
			if diff := cmp.Diff(slices.Repeat(h.bus.published[:1], len(h.bus.published)), h.bus.published); diff != "" {
				t.Errorf("said differently:\n%s", diff)
			}
			if processes == 1 && len(h.bus.published) != 1 {
				t.Errorf("published %d times", len(h.bus.published))
			}
		})
	}
}

// submitFifty submits one request from files with fifty names, through that many
// processes. It returns the accepted runs, and the number of responses that reported a
// new run.
func submitFifty(t *testing.T, h *harness, processes int) (runs map[string]int, fresh int) {
	t.Helper()
	ins := make([]*submit.Submitter, processes)
	for i := range ins {
		ins[i] = h.newSubmitter(neverCrashes())
	}
	accs, errs := make([]submit.Accepted, 50), make([]error, 50)
	var wg sync.WaitGroup
	for i := range accs {
		wg.Go(func() {
			req := request(func(r *submit.Request) { r.Key, r.Name, r.File = "k", "n", fmt.Sprint(i) })
			accs[i], errs[i] = ins[i%processes].Submit(t.Context(), req)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	runs = make(map[string]int)
	for _, acc := range accs {
		runs[acc.Run]++
		if !acc.Repeated {
			fresh++
		}
	}
	return runs, fresh
}

func TestAKeyStandsForOneRequestOfOneOwner(t *testing.T) {
	h := newHarness(storetest.NewMemory())
	in := h.newSubmitter(neverCrashes())
	send := func(change func(*submit.Request)) (submit.Accepted, error) {
		return in.Submit(t.Context(), request(func(r *submit.Request) { r.Key = "k"; change(r) }))
	}
	first, err := send(func(*submit.Request) {})
	if err != nil || first.Repeated {
		t.Fatalf("submitted: %v, repeated %t", err, first.Repeated)
	}
	_, err = send(func(r *submit.Request) { r.Descriptor = append(r.Descriptor, "# another"...) })
	var taken *submit.NotUniqueError
	if !errors.As(err, &taken) || taken.Run != first.Run || taken.Field != "idempotency_key" {
		t.Errorf("another descriptor under the key: %v", err)
	}
	other, err := send(func(r *submit.Request) { r.Owner = "bob" })
	if err != nil || other.Run == first.Run {
		t.Errorf("another owner's key: run %s, %v", other.Run, err)
	}
	h.clock = h.clock.Add(time.Hour)
	again, err := h.newSubmitter(neverCrashes()).Submit(t.Context(), request(func(r *submit.Request) { r.Key, r.File = "k", "elsewhere.toml" }))
	if err != nil || again.Run != first.Run || !again.Repeated {
		t.Errorf("an hour later: %+v, %v", again, err)
	}
	h.checkConsistent(t)
}

func TestANameIsUniquePerOwner(t *testing.T) {
	h := newHarness(storetest.NewMemory())
	in := h.newSubmitter(neverCrashes())
	named := func(owner, key string) (submit.Accepted, error) {
		return in.Submit(t.Context(), request(func(r *submit.Request) { r.Owner, r.Name, r.Key = owner, "n", key }))
	}
	first, err := named("ann", "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the same request gets the same answer
		_, err = named("ann", "k")
		var taken *submit.NotUniqueError
		if !errors.As(err, &taken) || taken.Field != "name" || taken.Run != first.Run {
			t.Errorf("the name again: %v", err)
		}
	}
	bobs, err := named("bob", "")
	if err != nil {
		t.Fatal(err)
	}
	for owner, want := range map[string]string{"ann": first.Run, "bob": bobs.Run} {
		if got, err := in.RunByName(t.Context(), owner, "n"); got != want || err != nil {
			t.Errorf("%s's n is %q, %v; want %q", owner, got, err, want)
		}
	}
	if _, err := in.RunByName(t.Context(), "eve", "n"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("eve's n: %v, want ErrNotFound", err)
	}
	h.checkConsistent(t)
}

// unresponsiveBus is a bus that never answers.
type unresponsiveBus struct{}

func (unresponsiveBus) Publish(ctx context.Context, _ ...event.Event) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestWhatCannotBePublishedMayStillBeRun(t *testing.T) {
	h := newHarness(storetest.NewMemory())
	in := submit.New(submit.Settings{PublishTimeout: time.Millisecond}, submit.Deps{
		Store: h.store, Bus: unresponsiveBus{}, IDs: h.ids, Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
	})
	_, err := in.Submit(t.Context(), request(nil))
	var unavailable *submit.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Run == "" || !strings.Contains(err.Error(), "may still be run") {
		t.Fatalf("submitted: %v", err)
	}
	if err := in.RelayOutbox(t.Context()); err != nil {
		t.Errorf("a young entry is left alone, but: %v", err)
	}
	h.clock = h.clock.Add(time.Minute)
	if err := in.RelayOutbox(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("swept: %v", err)
	}
	h.relayOutbox(t)
	if diff := cmp.Diff([]string{unavailable.Run}, h.bus.runs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h.checkConsistent(t)
}

func TestRunPublishesWhatWasLeftBehindAndStopsWhenTold(t *testing.T) {
	h := newHarness(storetest.NewMemory())
	if _, err := h.newSubmitter(crashtest.New(3, false)).Submit(t.Context(), request(nil)); err == nil {
		t.Fatal("accepted")
	}
	h.clock = h.clock.Add(time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.newSubmitter(neverCrashes()).RunOutboxRelay(ctx) }()
	for len(h.bus.runs()) == 0 && t.Context().Err() == nil {
		select {
		case err := <-done:
			t.Fatalf("stopped: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopped with %v, want nil", err)
	}
}

func TestCancelMarksBeforeItSays(t *testing.T) {
	h := newHarness(storetest.NewMemory())
	run := store.Run{ID: runID, Namespace: "default", Owner: "ann"}
	silent := submit.New(submit.Settings{PublishTimeout: time.Millisecond}, submit.Deps{
		Store: h.store, Bus: unresponsiveBus{}, IDs: h.ids, Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
	})
	if err := silent.Cancel(t.Context(), run, "ann"); err != nil {
		t.Errorf("a bus that is away: %v, but the mark holds", err)
	}
	h.clock = h.clock.Add(time.Minute)
	for range 2 {
		if err := h.newSubmitter(neverCrashes()).Cancel(t.Context(), run, "bob"); err != nil {
			t.Fatal(err)
		}
	}
	mark, _, err := store.Get[event.Command](t.Context(), h.store, store.KindCancel, runID)
	if err != nil {
		t.Fatal(err)
	}
	if mark.By != "ann" || !mark.Time.Equal(noon()) {
		t.Errorf("mark %+v, want ann's", mark)
	}
	if diff := cmp.Diff([]event.Event{mark, mark}, h.bus.published); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := h.newSubmitter(crashtest.New(1, false)).Cancel(t.Context(), store.Run{ID: "other", Namespace: "d", Owner: "o"}, "ann"); err == nil {
		t.Error("a mark that was not stored is an error")
	}
}

func TestIDsAreLowerCaseULIDsInOrder(t *testing.T) {
	ids := submit.NewIDs(rand.Reader)
	before := ""
	for i := range 1000 {
		id, err := ids.New(noon().Add(time.Duration(i/100) * time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if id != strings.ToLower(id) || !submit.IsRunID(id) || id <= before {
			t.Fatalf("%q after %q", id, before)
		}
		before = id
	}
}
