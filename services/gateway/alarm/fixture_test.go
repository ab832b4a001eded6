package alarm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/gateway/alarm"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// start is the time of the first incident.
func start() time.Time { return time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC) }

// IDs of incidents of team default, the oldest first.
const (
	rateID    = "0a1b2c3d4e5f6g7h8j9kambncp"
	latencyID = "0a1b2c9d4e5f6g7h8j9kambncp"
	failedID  = "zz1b2c3d4e5f6g7h8j9kambncp"
)

// fixture is a store with incidents of team default.
type fixture struct {
	*alarm.Alarms

	t     *testing.T
	store *storetest.Memory
	now   time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, store: storetest.NewMemory(), now: start().AddDate(0, 0, 10)}
	w.Alarms = alarm.New(alarm.Deps{
		Store: w.store, Receivers: map[string][]string{"chat": nil, "mail": {"other"}}, Now: func() time.Time { return w.now },
	})
	w.putIncident(rateID, "rates", "rate", incident.Firing, 0)
	w.putIncident(latencyID, "rates", "latency", incident.Suspected, 1)
	w.putIncident(failedID, "sums", "", incident.Resolved, 2)
	return w
}

// putIncident stores an incident that was opened some days after the start.
func (w *fixture) putIncident(id, task, metric string, state incident.State, days int) {
	w.t.Helper()
	at := start().AddDate(0, 0, days)
	i := incident.Incident{
		ID: id, Series: store.SeriesKey{Namespace: "default", Task: task, Metric: metric}, State: state, Group: "g-" + task, Opened: at, Updated: at,
		Became: []incident.Transition{{State: state, At: at}},
	}
	w.put(store.KindIncidentIndex, incident.IndexKey("default", at, id), incident.IndexEntryOf(i))
	w.put(store.KindOpenIncident, "default/"+id, struct{}{}) // also of one that ended a short time ago
	w.put(store.KindIncident, "default/"+id, i)
}

// putStaleEntry stores the entry of an analyst that was killed before it had stored the incident,
// which another one has opened at another time.
func (w *fixture) putStaleEntry(id string, days int) {
	w.t.Helper()
	at := start().AddDate(0, 0, days)
	w.put(store.KindIncidentIndex, incident.IndexKey("default", at, id), incident.IndexEntry{ID: id, Opened: at, Task: "rates", Metric: "rate"})
}

// complete says that all incidents are in the index.
func (w *fixture) complete() *fixture {
	w.t.Helper()
	w.put(store.KindIncidentIndex, incident.IndexComplete, incident.IndexEntry{})
	return w
}

func (w *fixture) put(kind store.Kind, key string, v any) {
	w.t.Helper()
	if err := store.Create(w.t.Context(), w.store, kind, key, v); err != nil {
		w.t.Fatal(err)
	}
}

// ack acknowledges an incident as a user, and describes what that makes of it.
func (w *fixture) ack(ref string, a incident.Ack) string {
	w.t.Helper()
	i, err := w.Acknowledge(w.t.Context(), "default", ref, a)
	if err != nil {
		return describeError(err)
	}
	return describe(i)
}

// list describes the incidents of a page.
func (w *fixture) list(f alarm.IncidentFilter) string {
	w.t.Helper()
	all, next, err := w.Incidents(w.t.Context(), "default", f, alarm.Page{Size: 50})
	if err != nil {
		return describeError(err)
	}
	var lines []string
	for _, i := range all {
		lines = append(lines, describe(i))
	}
	return strings.Join(lines, "\n") + next
}

func describe(i incident.Incident) string {
	text := fmt.Sprintf("%s %s", i.ID[:6], i.State)
	if a := i.Acked; a != nil {
		text += fmt.Sprintf(" by %s at %s: %s", a.By, a.At.Format(time.TimeOnly), a.Reason)
	}
	return text
}

func describeError(err error) string {
	var (
		field   *alarm.FieldError
		missing *alarm.MissingError
		state   *alarm.StateError
	)
	switch {
	case errors.As(err, &field):
		return "field: " + field.Error()
	case errors.As(err, &missing):
		return "missing: " + missing.Error()
	case errors.As(err, &state):
		return "state: " + state.Error()
	}
	return fmt.Sprint(err)
}

// mute makes a mute of team default, and describes it.
func (w *fixture) mute(r alarm.MuteRequest) (id, text string) {
	w.t.Helper()
	if r.Namespace == "" {
		r.Namespace = "default"
	}
	m, err := w.Mute(w.t.Context(), r)
	if err != nil {
		return "", describeError(err)
	}
	return m.ID, fmt.Sprintf("%s %v by %s %s to %s: %s", m.Task, m.Labels, m.By, m.Since.Format(time.DateOnly), m.Until.Format(time.DateOnly), m.Reason)
}

// mutes has the tasks of mutes.
func (w *fixture) mutes(ended bool) (tasks []string) {
	w.t.Helper()
	all, _, err := w.Mutes(w.t.Context(), "default", ended, alarm.Page{Size: 2000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range all {
		tasks = append(tasks, m.Task)
	}
	return tasks
}

// putNotice stores a notice that was made some minutes after the start.
func (w *fixture) putNotice(receiver string, minute int, status notice.Status, n notice.Notice) {
	w.t.Helper()
	n.ID, n.Receiver, n.Made = fmt.Sprintf("n%02d", minute), receiver, start().Add(time.Duration(minute)*time.Minute)
	w.put(store.KindDelivery, receiver+"/"+n.ID, notice.Delivery{Notice: n, Status: status})
}

// log has the IDs of notices.
func (w *fixture) log(f alarm.NoticeFilter) string {
	w.t.Helper()
	all, _, err := w.Notices(w.t.Context(), "default", f, alarm.Page{Size: 50})
	if err != nil {
		return describeError(err)
	}
	var ids []string
	for _, d := range all {
		ids = append(ids, d.Notice.Receiver+"/"+d.Notice.ID)
	}
	return strings.Join(ids, " ")
}
