package analyst_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// alarmsOfSeveral are alarms that one slow run sets off together.
func alarmsOfSeveral() string {
	first := atOnce(tooSlow)
	return descriptor(first, strings.Replace(first, "100", "110", 1), strings.Replace(first, "100", "115", 1))
}

// collapse makes a task slow in one run, and returns the event of that run, which nobody has heard yet.
func (w *fixture) collapse() event.Summarised {
	w.t.Helper()
	w.deliver(nil, w.put(alarmsOfSeveral(), 120))
	return w.put(alarmsOfSeveral(), 90)
}

// strike lets the clock of a process that may be killed strike once, and ends the lease of one that was.
func (w *fixture) strike(p *crashtest.Process) {
	w.t.Helper()
	if err := analyst.Tick(w.t.Context(), w.deps(p.Store(w.store))); err != nil && !p.Dead() {
		w.t.Fatal(err)
	}
	w.endLease()
}

// endLease ends the lease of the clock, as time does.
func (w *fixture) endLease() {
	w.t.Helper()
	if err := w.store.DeleteDoc(w.t.Context(), store.Doc{Kind: store.KindLease, Key: "analyst/clock"}); err != nil {
		w.t.Fatal(err)
	}
}

// wholeNotices are those of collapse.
func wholeNotices() []string { return []string{"ops firing 3 and 0 more", "perf firing 3 and 0 more"} }

func TestANoticeHasAllIncidentsOfItsRunWhereverAnAnalystIsKilled(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		ev := w.collapse()
		w.deliver(p, ev)
		w.mend() // before the event comes again
		w.deliver(nil, ev)
		if diff := cmp.Diff(wholeNotices(), w.sizes()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", p, diff)
		}
	}
}

func TestANoticeHasAllIncidentsOfItsRunWhereverTwoAnalystsAreKilled(t *testing.T) {
	amid := func(w *fixture) event.Summarised {
		ev := w.collapse()
		for p := range crashtest.Points() { // each is killed a little later, until one incident is stored
			if w.deliver(p, ev); len(w.incidents()) == 1 {
				return ev
			}
		}
		w.t.Fatal("no incident is stored alone")
		return ev
	}
	for p := range crashtest.Points() {
		w := newFixture(t)
		ev := amid(w)
		w.now = w.now.Add(2 * time.Minute)
		w.strike(p)
		w.mend()
		w.deliver(nil, ev)
		if diff := cmp.Diff(wholeNotices(), w.sizes()); diff != "" {
			t.Fatalf("the clock %s (-want +got):\n%s", p, diff)
		}
	}
}

// goneStore is a store whose runs were deleted.
type goneStore struct{ analyst.Store }

// Run implements store.Runs.
func (goneStore) Run(context.Context, string) (store.Run, error) {
	return store.Run{}, store.ErrNotFound
}

func TestARunThatIsDeletedAmidItsAnalysisLeavesANoticeOfWhatIsKnown(t *testing.T) {
	w := newFixture(t)
	ev := w.collapse()
	for p := range crashtest.Points() {
		if w.deliver(p, ev); len(w.incidents()) == 1 {
			break
		}
	}
	w.now = w.now.Add(2 * time.Minute)
	if err := analyst.Tick(t.Context(), w.deps(goneStore{w.store})); err != nil {
		t.Fatal(err)
	}
	want(t, "notices", []string{"ops firing 1 and 0 more", "perf firing 1 and 0 more"}, w.sizes())
}

// ackAll stores what a user said of all incidents.
func (w *fixture) ackAll(a incident.Ack) {
	w.t.Helper()
	a.By, a.At = "ann", w.now
	for key := range docs[incident.Incident](w, store.KindIncident) {
		if err := store.Create(w.t.Context(), w.store, store.KindAck, key, a); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestIncidentsWhoseAcknowledgementsEndTogetherAreInOneNoticeWhateverIsKilled(t *testing.T) {
	both := append(wholeNotices(), wholeNotices()...)
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.deliver(nil, w.collapse())
		w.ackAll(incident.Ack{Reason: "a known regression", Until: w.now.Add(time.Hour)})
		w.tick()
		w.now = w.now.Add(2 * time.Hour)
		w.strike(p)
		w.tick()
		w.mend()
		if diff := cmp.Diff([]string{both[0], both[2], both[1], both[3]}, w.sizes()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", p, diff)
		}
	}
}

func TestIncidentsThatTheSameRunsConfirmAreInOneNotice(t *testing.T) {
	second := strings.Replace(confirmedAlarm, "100", "99", 1)
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.suspect(confirmedAlarm, second)
		for range 9 {
			w.deliver(nil, w.submitted(120, 90))
		}
		ev := w.submitted(120, 90)
		w.deliver(p, ev)
		w.now = w.now.Add(2 * time.Minute)
		w.tick()
		w.deliver(nil, ev)
		if diff := cmp.Diff([]string{"perf firing 2 and 0 more"}, w.sizes()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", p, diff)
		}
	}
}

// pruneStore is a store in which something happens before an incident is listed no longer.
type pruneStore struct {
	analyst.Store

	do func()
}

// DeleteDoc implements store.DocWriter.
func (s *pruneStore) DeleteDoc(ctx context.Context, d store.Doc) error {
	if do := s.do; do != nil && d.Kind == store.KindOpenIncident {
		s.do = nil
		do()
	}
	return s.Store.DeleteDoc(ctx, d)
}

func TestAnIncidentThatGoesOnWhileItIsAboutToBeForgottenStaysListed(t *testing.T) {
	w := newFixture(t)
	for _, rate := range []float64{120, 121, 122, 90, 91, 120, 121, 122} {
		w.deliver(nil, w.put(descriptor(tooSlow), rate))
	}
	want(t, "before", []string{"below rate resolved from r04"}, w.incidents())
	late := w.now.Add(4 * day)
	ev := w.put(descriptor(tooSlow), 92, func(r *store.Run) { r.Created = begin.Add(6*day + time.Hour) }) // between those that were good
	w.now = late
	s := &pruneStore{w.store, func() { w.deliver(nil, ev) }}
	if err := analyst.Tick(t.Context(), w.deps(s)); err != nil {
		t.Fatal(err)
	}
	if s.do != nil {
		t.Error("the incident was not about to be forgotten")
	}
	want(t, "after", []string{"below rate firing from r04"}, w.incidents())
	if n := len(docs[any](w, store.KindOpenIncident)); n != 1 {
		t.Errorf("%d incidents are listed as open", n)
	}
}

// fakeIndex has the state of each incident, as it was recorded last.
type fakeIndex struct {
	process *crashtest.Process
	states  map[string]string
	refuses bool
}

// PutIncident implements store.IncidentIndex.
func (f *fakeIndex) PutIncident(_ context.Context, r store.IncidentRecord) error {
	if f.refuses {
		return store.ErrRefused
	}
	return f.process.Do(func() error {
		f.states[r.ID] = fmt.Sprint(r.State, " since version ", r.Version)
		return nil
	})
}

// DeleteIncident implements store.IncidentIndex.
func (f *fakeIndex) DeleteIncident(_ context.Context, _, id string) error {
	return f.process.Do(func() error {
		delete(f.states, id)
		return nil
	})
}

func TestEachIncidentIsRecordedAsItIsWhateverIsKilled(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		states := map[string]string{}
		record := func(p *crashtest.Process, ev event.Summarised) {
			steps := &stepRecorder{}
			d := w.deps(p.Store(w.store))
			d.Bus, d.Index = steps, &fakeIndex{process: p, states: states}
			analyst.New(analyst.Settings{}, d)
			if err := handle(t.Context(), steps.of[event.TopicSummarised], ev); err != nil && !p.Dead() {
				t.Fatal(err)
			}
		}
		ev := w.collapse()
		record(p, ev)
		record(crashtest.New(0, false), ev)
		if len(states) != 3 {
			t.Fatalf("%s: %v", p, states)
		}
		for id, got := range states {
			if got != "firing since version 1" {
				t.Fatalf("%s: incident %s is recorded as %s", p, id, got)
			}
		}
	}
}

func TestARecordThatIsRefusedStopsNoNotice(t *testing.T) {
	w := newFixture(t)
	steps := &stepRecorder{}
	d := w.deps(w.store)
	d.Bus, d.Index = steps, &fakeIndex{refuses: true}
	analyst.New(analyst.Settings{}, d)
	if err := handle(t.Context(), steps.of[event.TopicSummarised], w.collapse()); err != nil {
		t.Fatal(err)
	}
	want(t, "notices", wholeNotices(), w.sizes())
}
