package analyst_test

import (
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/group"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const day = 24 * time.Hour

// kept returns how many incidents, groups and acknowledgements there are.
func (w *fixture) kept() [3]int {
	w.t.Helper()
	all := docs[incident.IndexEntry](w, store.KindIncidentIndex)
	delete(all, incident.IndexComplete)
	if listed, stored := len(all), len(docs[incident.Incident](w, store.KindIncident)); listed != stored {
		w.t.Errorf("%d incidents are listed, of %d", listed, stored)
	}
	return [3]int{
		len(docs[incident.Incident](w, store.KindIncident)), len(docs[group.Group](w, store.KindIncidentGroup)), len(docs[incident.Ack](w, store.KindAck)),
	}
}

// endOne opens an incident, which a user knows, and ends it with the alarm, or with good values.
func (w *fixture) endOne(alarms ...string) {
	w.t.Helper()
	w.slow()
	w.ack(incident.Ack{Reason: "a known regression"})
	w.tick()
	for range 3 {
		w.run(descriptor(alarms...), 120)
	}
}

func TestIncidentsOfARuleThatIsGoneAreForgottenAfterThreeMonths(t *testing.T) {
	w := newFixture(t).listen()
	w.endOne(fails)
	w.now = w.now.Add(80 * day)
	w.tick()
	if got := w.kept(); got != [3]int{1, 1, 1} {
		t.Errorf("after 80 days %v are kept", got)
	}
	w.now = w.now.Add(11 * day)
	w.tick()
	if got := w.kept(); got != [3]int{} {
		t.Errorf("after 91 days %v are kept", got)
	}
	if n := len(docs[any](w, store.KindRuleState)); n != 0 {
		t.Errorf("%d states are kept", n)
	}
}

func TestIncidentsStayAsLongAsTheirRuleLooksAtTheirPoints(t *testing.T) {
	w := newFixture(t).listen()
	w.endOne(tooSlow)
	w.now = w.now.Add(1000 * day)
	w.tick()
	if got := w.kept(); got != [3]int{1, 1, 1} || len(docs[any](w, store.KindRuleState)) != 1 {
		t.Errorf("%v are kept", got)
	}
}

func TestIncidentsAreForgottenOnceTheirAlarmLooksAtLaterRunsAlone(t *testing.T) {
	w := newFixture(t)
	for _, rate := range []float64{120, 90, 91, 120, 121, 122} {
		w.deliver(nil, w.put(descriptor(tooSlow), rate))
	}
	last := w.put(descriptor(tooSlow), 120)
	w.history(last.Run, rule.MaxPoints, 1, 120, 121)
	w.deliver(nil, w.put(descriptor(tooSlow), 120))
	w.now = w.now.Add(91 * day)
	w.tick()
	if got := w.kept(); got != [3]int{} {
		t.Errorf("%v are kept", got)
	}
}

func TestAnOpenIncidentIsNeverForgotten(t *testing.T) {
	w := newFixture(t).listen()
	w.slow()
	w.now = w.now.Add(1000 * day)
	w.tick()
	if got := w.kept(); got != [3]int{1, 1, 0} {
		t.Errorf("%v are kept", got)
	}
}

// putGroup stores an incident that ended long ago, with what belongs to it, and a group whose members a kill has left no documents of.
func (w *fixture) putGroup() {
	w.t.Helper()
	i := incident.Incident{
		ID: "i1", Rule: incident.Rule{ID: "r1", Namespace: "pets", Task: "rates"}, Series: store.SeriesKey{Namespace: "pets", Task: "rates"}, Group: "g1",
		State: incident.Resolved, Became: []incident.Transition{{State: incident.Resolved, At: w.now.Add(-100 * day)}},
	}
	for kind, one := range map[store.Kind]any{store.KindIncident: i, store.KindAck: incident.Ack{Reason: "known"}} {
		if err := store.Create(w.t.Context(), w.store, kind, "pets/i1", one); err != nil {
			w.t.Fatal(err)
		}
	}
	for id, member := range map[string]string{"g1": "i1", "g2": "gone"} {
		g := group.Group{Namespace: "pets", ID: id, State: incident.Resolved, Members: []string{member}}
		if err := store.Create(w.t.Context(), w.store, store.KindIncidentGroup, "pets/"+id, g); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestAClockThatIsKilledWhileItForgetsLeavesNothingForEver(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.putGroup()
		if err := analyst.Tick(t.Context(), w.deps(p.Store(w.store))); err != nil && !p.Dead() {
			t.Fatal(err)
		}
		if err := w.store.DeleteDoc(t.Context(), store.Doc{Kind: store.KindLease, Key: "analyst/clock"}); err != nil { // as if it had ended
			t.Fatal(err)
		}
		w.tick()
		if got := w.kept(); got != [3]int{} {
			t.Fatalf("%s: %v are kept", p, got)
		}
	}
}

func TestIncidentsThatAreOlderThanTheListAreAddedToIt(t *testing.T) {
	w := newFixture(t).listen()
	w.slow()
	for key := range docs[incident.IndexEntry](w, store.KindIncidentIndex) { // as if an older analyst had stored them
		if err := w.store.DeleteDoc(t.Context(), store.Doc{Kind: store.KindIncidentIndex, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	w.tick()
	if got := w.kept(); got != [3]int{1, 1, 0} {
		t.Errorf("%v are kept", got)
	}
	if n := len(docs[incident.IndexEntry](w, store.KindIncidentIndex)); n != 2 {
		t.Errorf("%d documents, want that of the incident and that all are listed", n)
	}
}
