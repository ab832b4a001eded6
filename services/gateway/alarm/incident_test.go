package alarm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/gateway/alarm"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestIncidentsAreListedTheNewestFirst(t *testing.T) {
	w := newFixture(t)
	w.put(store.KindIncident, "default-2/"+rateID, incident.Incident{ID: rateID, State: incident.Firing})
	for name, c := range map[string]struct {
		filter alarm.IncidentFilter
		want   string
	}{
		"all":               {alarm.IncidentFilter{}, "zz1b2c resolved\n0a1b2c suspected\n0a1b2c firing"},
		"open":              {alarm.IncidentFilter{Open: true}, "0a1b2c suspected\n0a1b2c firing"},
		"a task":            {alarm.IncidentFilter{Task: "sums"}, "zz1b2c resolved"},
		"a metric":          {alarm.IncidentFilter{Metric: "rate"}, "0a1b2c firing"},
		"two states":        {alarm.IncidentFilter{States: []string{"resolved", "firing"}}, "zz1b2c resolved\n0a1b2c firing"},
		"an unknown state":  {alarm.IncidentFilter{States: []string{"Firing"}}, `field: states "Firing" is unknown: use suspected, confirming, firing, acknowledged, resolved, dismissed`},
		"open and resolved": {alarm.IncidentFilter{States: []string{"resolved"}, Open: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, w.list(c.filter)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
		t.Run(name+", of the index", func(t *testing.T) {
			if diff := cmp.Diff(c.want, newFixture(t).complete().list(c.filter)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPagesOfIncidentsHaveEachIncidentOnce(t *testing.T) {
	t.Run("all documents", func(t *testing.T) { wantPages(newFixture(t)) })
	t.Run("the index", func(t *testing.T) { wantPages(newFixture(t).complete()) })
}

// wantPages checks the pages of ten incidents, of which seven are of one time.
func wantPages(w *fixture) {
	t := w.t
	t.Helper()
	for i := range 7 {
		w.putIncident(fmt.Sprintf("m%d1b2c3d4e5f6g7h8j9kamb", i), "rates", "rate", incident.Firing, 5)
	}
	w.putStaleEntry(rateID, 6)
	var ids []string
	for page := (alarm.Page{Size: 3}); ; {
		all, next, err := w.Incidents(t.Context(), "default", alarm.IncidentFilter{}, page)
		if err != nil || len(all) > 3 {
			t.Fatalf("%d incidents, %v", len(all), err)
		}
		for _, i := range all {
			ids = append(ids, i.ID[:2])
		}
		if page.Token = next; next == "" {
			break
		}
	}
	if diff := cmp.Diff("m0 m1 m2 m3 m4 m5 m6 zz 0a 0a", strings.Join(ids, " ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, _, err := w.Incidents(t.Context(), "default", alarm.IncidentFilter{}, alarm.Page{Token: "x", Size: 1})
	if text := describeError(err); text != "field: page_token is not one that this server gave: leave it empty for the first page" {
		t.Error(text)
	}
}

func TestAnIncidentIsFoundByTheBeginningOfItsID(t *testing.T) {
	w := newFixture(t)
	const form = ": give the 26 letters and digits of an ID, or at least its first 6"
	for ref, want := range map[string]string{
		rateID:                  "0a1b2c firing",
		strings.ToUpper(rateID): "0a1b2c firing",
		"0a1b2c3":               "0a1b2c firing",
		"zz1b2c":                "zz1b2c resolved",
		"0a1b2c":                `field: incident "0a1b2c" is the beginning of several IDs: give more characters`,
		"0a1b2":                 `field: incident "0a1b2" is neither an ID nor the beginning of one` + form,
		"":                      `field: incident "" is neither an ID nor the beginning of one` + form,
		"../0a1b2c3":            `field: incident "../0a1b2c3" is neither an ID nor the beginning of one` + form,
		"0a1b2d":                "missing: incident 0a1b2d of team default does not exist",
	} {
		i, err := w.Incident(t.Context(), "default", ref)
		got := describeError(err)
		if err == nil {
			got = describe(i)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", ref, diff)
		}
	}
}

func TestAnAckIsShownBeforeTheAnalystHasReadIt(t *testing.T) {
	w := newFixture(t)
	want := "0a1b2c acknowledged by ann at 02:00:00: known"
	if diff := cmp.Diff(want, w.ack(rateID, incident.Ack{By: "ann", Reason: "known"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, w.list(alarm.IncidentFilter{States: []string{"acknowledged"}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	is, _, err := store.Get[incident.Incident](t.Context(), w.store, store.KindIncident, "default/"+rateID)
	if err != nil || is.State != incident.Firing {
		t.Errorf("the analyst's document is %s, %v, want it unchanged", is.State, err)
	}
}

func TestAnAckThatIsRepeatedChangesNothing(t *testing.T) {
	for name, a := range map[string]incident.Ack{
		"known":    {By: "ann", Reason: "known", Until: start().AddDate(0, 1, 0)},
		"accepted": {By: "ann", Reason: "a price worth paying", Accept: true},
		"wrong":    {By: "ann", Reason: "a cold machine", Wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			first := w.ack(rateID, a)
			w.now = w.now.Add(time.Hour)
			if diff := cmp.Diff(first, w.ack(rateID[:7], a)); diff != "" {
				t.Errorf("(-first +second):\n%s", diff)
			}
			_, version, err := store.Get[incident.Ack](t.Context(), w.store, store.KindAck, "default/"+rateID)
			if err != nil || version != 1 {
				t.Errorf("version %d, %v, want one write", version, err)
			}
		})
	}
}

func TestAnotherAckTakesThePlaceOfTheFirst(t *testing.T) {
	w := newFixture(t)
	w.ack(rateID, incident.Ack{By: "ann", Reason: "known"})
	w.now = w.now.Add(-time.Hour) // the clock of another gateway
	got := w.ack(rateID, incident.Ack{By: "bob", Reason: "fixed soon"})
	if diff := cmp.Diff("0a1b2c acknowledged by bob at 02:00:00: fixed soon", got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnIncidentThatFiredAgainIsAcknowledgedWithTheSameWords(t *testing.T) {
	w := newFixture(t)
	a := incident.Ack{By: "ann", Reason: "known"}
	w.ack(rateID, a)
	_, err := store.Update(t.Context(), w.store, store.KindIncident, "default/"+rateID, func(is incident.Incident, _ bool) (incident.Incident, bool, error) {
		earlier := a
		earlier.At = w.now
		is.Acked, is.State = &earlier, incident.Firing
		return is, true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Hour)
	if diff := cmp.Diff("0a1b2c acknowledged by ann at 03:00:00: known", w.ack(rateID, a)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnAckIsRefusedWithWhatToDo(t *testing.T) {
	w := newFixture(t)
	for name, c := range map[string]struct {
		ref  string
		ack  incident.Ack
		want string
	}{
		"without a reason":     {rateID, incident.Ack{Reason: " "}, "field: reason is missing: say why in a sentence"},
		"a long reason":        {rateID, incident.Ack{Reason: strings.Repeat("x", 1025)}, "field: reason has 1025 bytes: take at most 1024"},
		"until yesterday":      {rateID, incident.Ack{Reason: "x", Until: w.now}, "field: until 2026-03-11T02:00:00Z is not in the future: give a later time"},
		"accepted and wrong":   {rateID, incident.Ack{Reason: "x", Accept: true, Wrong: true}, "field: accept excludes wrong: accept a change that is real, or say that it is wrong"},
		"accepted for a while": {rateID, incident.Ack{Reason: "x", Accept: true, Until: w.now.Add(1)}, "field: until has no meaning with accept and wrong, which end the incident: leave it out"},
		"one that is over":     {failedID, incident.Ack{Reason: "x"}, "state: incident " + failedID + " is resolved already: there is nothing to acknowledge"},
		"one that is not":      {"qqqqqq", incident.Ack{Reason: "x"}, "missing: incident qqqqqq of team default does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, w.ack(c.ref, c.ack)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	w.ack(rateID, incident.Ack{By: "ann", Reason: "fine", Accept: true})
	want := "state: incident " + rateID + " is resolved already: there is nothing to acknowledge"
	if diff := cmp.Diff(want, w.ack(rateID, incident.Ack{By: "bob", Reason: "known"})); diff != "" {
		t.Errorf("after it was accepted (-want +got):\n%s", diff)
	}
}

// readCounter counts what is read of documents.
type readCounter struct {
	*storetest.Memory

	reads int
}

// Doc implements store.Getter.
func (c *readCounter) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	c.reads++
	return c.Memory.Doc(ctx, kind, key)
}

func TestAPageOfIncidentsCostsTheSameHoweverManyThereAre(t *testing.T) {
	w := newFixture(t).complete()
	counter := &readCounter{Memory: w.store}
	alarms := alarm.New(alarm.Deps{Store: counter, Now: func() time.Time { return w.now }})
	cost := func() int {
		counter.reads = 0
		if _, _, err := alarms.Incidents(t.Context(), "default", alarm.IncidentFilter{}, alarm.Page{Size: 2}); err != nil {
			t.Fatal(err)
		}
		return counter.reads
	}
	before := cost()
	for i := range 1000 {
		w.putIncident(fmt.Sprintf("n%03d2c3d4e5f6g7h8j9kambncp", i), "rates", "rate", incident.Resolved, -i)
	}
	if after := cost(); after != before {
		t.Errorf("%d reads, %d with 3 incidents", after, before)
	}
}
