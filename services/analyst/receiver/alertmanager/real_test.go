package alertmanager_test

import (
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver/alertmanager"
	"github.com/benchmark-ai/bai/services/analyst/receiver/receivertest"
	"github.com/benchmark-ai/bai/services/internal/post"
	bed "github.com/benchmark-ai/bai/services/test/testbed/alertmanager"
)

// notified returns the next notification of an Alertmanager.
func notified(t *testing.T, s *bed.Server) bed.Notification {
	t.Helper()
	select {
	case n := <-s.Notified:
		return n
	case <-time.After(5 * time.Minute):
		t.Fatal("no notification within 5 min")
		return bed.Notification{}
	}
}

func TestARealAlertmanagerOpensRepeatsAndEndsAnAlert(t *testing.T) {
	s := bed.Start(t)
	now := time.Now()
	to, err := alertmanager.New(post.Settings{URL: s.URL}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	send := func(n notice.Notice) {
		t.Helper()
		if _, err := to.Send(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	firing := receivertest.Notice("firing")
	send(firing)
	first := notified(t, s)
	if first.Status != "firing" || len(first.Alerts) != 1 || first.Alerts[0].Labels["incident"] != "i1" || first.Alerts[0].Annotations["summary"] == "" {
		t.Fatalf("notified of %+v", first)
	}
	opened := s.Alerts(t)
	now = now.Add(alertmanager.Repeat)
	firing.Again = true
	send(firing)
	repeated := s.Alerts(t)
	if len(opened) != 1 || len(repeated) != 1 || !repeated[0].EndsAt.After(opened[0].EndsAt) || !repeated[0].StartsAt.Equal(opened[0].StartsAt) {
		t.Errorf("after the repetition the alerts are %+v, before they were %+v", repeated, opened)
	}
	now = time.Now()
	over := receivertest.Notice("resolved")
	over.Became, over.Incidents[0].State = incident.Resolved, incident.Resolved
	send(over)
	if last := notified(t, s); last.Status != "resolved" || len(last.Alerts) != 1 || last.Alerts[0].Labels["incident"] != "i1" {
		t.Errorf("notified of %+v: want the end of the alert, and nothing before it", last)
	}
	if left := s.Alerts(t); len(left) > 0 {
		t.Errorf("%+v is left", left)
	}
}

func TestARealAlertmanagerTakesHostileTextsAndTests(t *testing.T) {
	s := bed.Start(t)
	to, err := alertmanager.New(post.Settings{URL: s.URL}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	for _, n := range []notice.Notice{receivertest.Hostile(), notice.NewTest("perf-team", "perf", "ann", "key", time.Now())} {
		if _, err := to.Send(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if got := notified(t, s); got.Status != "firing" || len(got.Alerts) != 1 {
			t.Errorf("notified of %+v", got)
		}
	}
}
