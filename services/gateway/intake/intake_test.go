package intake_test

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

	"github.com/benchmark-ai/bai/services/gateway/intake"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

var errDead = errors.New("dead")

// fate decides which effects still happen: a process that dies at an effect
// has carried it out or not, and carries out no other.
type fate struct {
	mu    sync.Mutex
	left  int  // effects before the one at which it dies; negative: it lives
	after bool // that one still happens
	dead  bool
}

// meet calls effect, if that still happens.
func (f *fate) meet(effect func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return errDead
	}
	if f.left == 0 {
		f.dead = true
		if f.after {
			_ = effect() // nobody is left to hear
		}
		return errDead
	}
	f.left--
	return effect()
}

// mortal is a store whose writes meet a fate.
type mortal struct {
	intake.Store

	fate *fate
}

func (m mortal) CreateDoc(ctx context.Context, d store.Doc) error {
	return m.fate.meet(func() error { return m.Store.CreateDoc(ctx, d) })
}

func (m mortal) DeleteDoc(ctx context.Context, d store.Doc) error {
	return m.fate.meet(func() error { return m.Store.DeleteDoc(ctx, d) })
}

// bus keeps what is published.
type bus struct {
	mu   sync.Mutex
	said []event.Event
}

// voice is a bus as a process with that fate reaches it.
type voice struct {
	*bus

	fate *fate
}

func (v voice) Publish(_ context.Context, events ...event.Event) error {
	return v.fate.meet(func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.said = append(v.said, events...)
		return nil
	})
}

// runs returns the different runs that were published.
func (b *bus) runs() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var runs []string
	for _, ev := range b.said {
		if run := ev.Head().Run; !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	return runs
}

// house is a store and a bus that outlive the processes that use them.
type house struct {
	store intake.Store
	bus   *bus
	ids   *intake.IDs
	clock time.Time
}

func newHouse(s intake.Store) *house {
	return &house{store: s, bus: &bus{}, ids: intake.NewIDs(rand.Reader), clock: noon()}
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

func (h *house) process(f *fate) *intake.Intake {
	return intake.New(intake.Settings{}, intake.Deps{
		Store: mortal{h.store, f}, Bus: voice{h.bus, f}, IDs: h.ids, Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
	})
}

func lives() *fate { return &fate{left: -1} }

func (h *house) docs(t *testing.T, kind store.Kind) []string {
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

// sweep looks into the outbox after everybody who was at it has given up.
func (h *house) sweep(t *testing.T) {
	t.Helper()
	h.clock = h.clock.Add(time.Hour)
	if err := h.process(lives()).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// consistent checks what must hold whenever nobody is at it.
func (h *house) consistent(t *testing.T) {
	t.Helper()
	if left := h.docs(t, store.KindOutbox); len(left) > 0 {
		t.Errorf("left in the outbox: %v", left)
	}
	submitted, published := h.docs(t, store.KindSubmission), h.bus.runs()
	slices.Sort(published)
	if diff := cmp.Diff(submitted, published); diff != "" {
		t.Errorf("submissions and published runs differ (-submitted +published):\n%s", diff)
	}
}

// TestADeathBetweenAnyTwoLinesLosesNothingAndMakesNothingTwice kills a submit
// before and after each of its effects. Then the client sends its request again,
// or the outbox is swept, or both in either order.
func TestADeathBetweenAnyTwoLinesLosesNothingAndMakesNothingTwice(t *testing.T) {
	requests := map[string]intake.Request{
		"key and name": request(func(r *intake.Request) { r.Key, r.Name = "k", "n" }),
		"key":          request(func(r *intake.Request) { r.Key = "k" }),
		"name":         request(func(r *intake.Request) { r.Name = "n" }),
		"neither":      request(nil),
	}
	const effects = 6 // of the first request; the others have fewer
	for what, req := range requests {
		for at := range effects + 1 {
			for _, after := range []bool{false, true} {
				for _, next := range []string{"retry", "sweep", "sweep retry", "retry sweep"} {
					t.Run(fmt.Sprintf("%s/%d %t/%s", what, at, after, next), func(t *testing.T) {
						t.Parallel()
						dies(t, req, &fate{left: at, after: after}, strings.Fields(next))
					})
				}
			}
		}
	}
}

// submission is what a client knows of its first try.
type submission struct {
	req      intake.Request
	accepted bool
	run      string // accepted, or said to be run perhaps; may be empty
}

func dies(t *testing.T, req intake.Request, f *fate, next []string) {
	t.Helper()
	h := newHouse(storetest.NewMemory())
	acc, err := h.process(f).Submit(t.Context(), req)
	first := submission{req, err == nil, acc.Run}
	if unavailable, ok := errors.AsType[*intake.UnavailableError](err); ok {
		first.run = unavailable.Run
	} else if err != nil {
		t.Fatalf("died with %v, want *UnavailableError", err)
	}
	for _, step := range next {
		if step == "sweep" {
			h.sweep(t)
		} else {
			h.retry(t, first)
		}
	}
	h.sweep(t) // somebody else's entry
	h.consistent(t)
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
func (h *house) retry(t *testing.T, first submission) {
	t.Helper()
	again, err := h.process(lives()).Submit(t.Context(), first.req)
	var taken *intake.TakenError
	switch {
	case first.req.Key == "" && first.req.Name != "" && errors.As(err, &taken): // the name is that of the first
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
			h := newHouse(openSQLite(t))
			runs, fresh := fifty(t, h, processes)
			if len(runs) != 1 || fresh != 1 {
				t.Errorf("runs %v, %d of them new", runs, fresh)
			}
			h.consistent(t)
			if diff := cmp.Diff(slices.Repeat(h.bus.said[:1], len(h.bus.said)), h.bus.said); diff != "" {
				t.Errorf("said differently:\n%s", diff)
			}
			if processes == 1 && len(h.bus.said) != 1 {
				t.Errorf("published %d times", len(h.bus.said))
			}
		})
	}
}

// fifty submits one request from files of fifty names, through so many
// processes, and returns the runs that were accepted and how many answers said
// that theirs was new.
func fifty(t *testing.T, h *house, processes int) (runs map[string]int, fresh int) {
	t.Helper()
	ins := make([]*intake.Intake, processes)
	for i := range ins {
		ins[i] = h.process(lives())
	}
	accs, errs := make([]intake.Accepted, 50), make([]error, 50)
	var wg sync.WaitGroup
	for i := range accs {
		wg.Go(func() {
			req := request(func(r *intake.Request) { r.Key, r.Name, r.File = "k", "n", fmt.Sprint(i) })
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
	h := newHouse(storetest.NewMemory())
	in := h.process(lives())
	submit := func(change func(*intake.Request)) (intake.Accepted, error) {
		return in.Submit(t.Context(), request(func(r *intake.Request) { r.Key = "k"; change(r) }))
	}
	first, err := submit(func(*intake.Request) {})
	if err != nil || first.Repeated {
		t.Fatalf("submitted: %v, repeated %t", err, first.Repeated)
	}
	_, err = submit(func(r *intake.Request) { r.Descriptor = append(r.Descriptor, "# another"...) })
	var taken *intake.TakenError
	if !errors.As(err, &taken) || taken.Run != first.Run || taken.Field != "idempotency_key" {
		t.Errorf("another descriptor under the key: %v", err)
	}
	other, err := submit(func(r *intake.Request) { r.Owner = "bob" })
	if err != nil || other.Run == first.Run {
		t.Errorf("another owner's key: run %s, %v", other.Run, err)
	}
	h.clock = h.clock.Add(time.Hour)
	again, err := h.process(lives()).Submit(t.Context(), request(func(r *intake.Request) { r.Key, r.File = "k", "elsewhere.toml" }))
	if err != nil || again.Run != first.Run || !again.Repeated {
		t.Errorf("an hour later: %+v, %v", again, err)
	}
	h.consistent(t)
}

func TestANameIsUniquePerOwner(t *testing.T) {
	h := newHouse(storetest.NewMemory())
	in := h.process(lives())
	named := func(owner, key string) (intake.Accepted, error) {
		return in.Submit(t.Context(), request(func(r *intake.Request) { r.Owner, r.Name, r.Key = owner, "n", key }))
	}
	first, err := named("ann", "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the same request gets the same answer
		_, err = named("ann", "k")
		var taken *intake.TakenError
		if !errors.As(err, &taken) || taken.Field != "name" || taken.Run != first.Run {
			t.Errorf("the name again: %v", err)
		}
	}
	bobs, err := named("bob", "")
	if err != nil {
		t.Fatal(err)
	}
	for owner, want := range map[string]string{"ann": first.Run, "bob": bobs.Run} {
		if got, err := in.Named(t.Context(), owner, "n"); got != want || err != nil {
			t.Errorf("%s's n is %q, %v; want %q", owner, got, err, want)
		}
	}
	if _, err := in.Named(t.Context(), "eve", "n"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("eve's n: %v, want ErrNotFound", err)
	}
	h.consistent(t)
}

// away is a bus that does not answer.
type away struct{}

func (away) Publish(ctx context.Context, _ ...event.Event) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestWhatCannotBePublishedMayStillBeRun(t *testing.T) {
	h := newHouse(storetest.NewMemory())
	in := intake.New(intake.Settings{PublishTimeout: time.Millisecond}, intake.Deps{
		Store: h.store, Bus: away{}, IDs: h.ids, Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
	})
	_, err := in.Submit(t.Context(), request(nil))
	var unavailable *intake.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Run == "" || !strings.Contains(err.Error(), "may still be run") {
		t.Fatalf("submitted: %v", err)
	}
	if err := in.Sweep(t.Context()); err != nil {
		t.Errorf("a young entry is left alone, but: %v", err)
	}
	h.clock = h.clock.Add(time.Minute)
	if err := in.Sweep(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("swept: %v", err)
	}
	h.sweep(t)
	if diff := cmp.Diff([]string{unavailable.Run}, h.bus.runs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h.consistent(t)
}

func TestRunPublishesWhatWasLeftBehindAndStopsWhenTold(t *testing.T) {
	h := newHouse(storetest.NewMemory())
	if _, err := h.process(&fate{left: 2}).Submit(t.Context(), request(nil)); err == nil {
		t.Fatal("accepted")
	}
	h.clock = h.clock.Add(time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.process(lives()).Run(ctx) }()
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
	h := newHouse(storetest.NewMemory())
	run := store.Run{ID: runID, Namespace: "default", Owner: "ann"}
	silent := intake.New(intake.Settings{PublishTimeout: time.Millisecond}, intake.Deps{
		Store: h.store, Bus: away{}, IDs: h.ids, Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
	})
	if err := silent.Cancel(t.Context(), run, "ann"); err != nil {
		t.Errorf("a bus that is away: %v, but the mark holds", err)
	}
	h.clock = h.clock.Add(time.Minute)
	for range 2 {
		if err := h.process(lives()).Cancel(t.Context(), run, "bob"); err != nil {
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
	if diff := cmp.Diff([]event.Event{mark, mark}, h.bus.said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := h.process(&fate{}).Cancel(t.Context(), store.Run{ID: "other", Namespace: "d", Owner: "o"}, "ann"); err == nil {
		t.Error("a mark that was not stored is an error")
	}
}

func TestIDsAreLowerCaseULIDsInOrder(t *testing.T) {
	ids := intake.NewIDs(rand.Reader)
	before := ""
	for i := range 1000 {
		id, err := ids.New(noon().Add(time.Duration(i/100) * time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if id != strings.ToLower(id) || !intake.IsRun(id) || id <= before {
			t.Fatalf("%q after %q", id, before)
		}
		before = id
	}
}
