package rule_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
)

func missing(within time.Duration) incident.Rule {
	return incident.Rule{Namespace: "perf", Task: task, Metric: metric, When: incident.Missing, For: 1, Within: within, Since: start}.WithID()
}

func TestAGapIsOneIncidentUntilTheNextValue(t *testing.T) {
	w := watch(t, missing(3*time.Hour)).add(series(1, 1)...)
	for _, now := range []int{2, 3, 4} {
		w.decide(at(now))
	}
	if len(w.all()) > 0 {
		t.Fatalf("in time: %v", w.became())
	}
	for _, now := range []int{5, 6, 100} {
		w.decide(at(now))
	}
	i := w.only()
	if want := "a value of rate of checksums was due at 2026-03-01 06:00:00 UTC, and the newest is that of run run-0001, of 2026-03-01 03:00:00"; i.Message != want || i.State != incident.Firing {
		t.Errorf("%s", i.Message)
	}
	if w.add(point(101, 1)); w.only().State != incident.Resolved || w.only().Became[1].Why != "run run-0101 has a value" {
		t.Errorf("%+v", w.only().Became)
	}
	w.decide(at(200))
	if diff := cmp.Diff([]string{"? firing resolved", "? firing"}, w.became()); diff != "" {
		t.Error(diff)
	}
}

func TestAPointWithoutANumberEndsNoGapAndBeginsNone(t *testing.T) {
	w := watch(t, missing(3*time.Hour)).add(series(1, 1)...)
	none := point(3, math.NaN())
	w.add(none)
	w.decide(at(6))
	if i := w.only(); i.State != incident.Firing || i.LastGood.Run != "run-0001" {
		t.Errorf("%s since %+v", i.State, i.LastGood)
	}
	w.add(point(7, math.NaN()))
	if i := w.only(); i.State != incident.Firing {
		t.Errorf("%+v", i.Became)
	}
}

func TestNoValueAtAllIsMissingSinceTheRuleExists(t *testing.T) {
	w := watch(t, missing(3*time.Hour))
	w.decide(at(3))
	if len(w.all()) > 0 {
		t.Error(w.became())
	}
	w.decide(at(4))
	if w.only().State != incident.Firing {
		t.Error(w.became())
	}
}

func TestTheScheduleSaysWhenAValueIsDue(t *testing.T) {
	w := watch(t, missing(0)).add(series(1)...)
	w.edit = func(in *rule.Input) { in.Expected = at(26) }
	for now, want := range map[int]int{20: 0, 26: 0, 27: 1} {
		fresh := watch(t, missing(0))
		fresh.points, fresh.edit = w.points, w.edit
		if fresh.decide(at(now)); len(fresh.all()) != want {
			t.Errorf("at %d: %v", now, fresh.became())
		}
	}
}

func TestNothingIsMissingOfAPausedScheduleAndItIsAgainOnceItIsResumed(t *testing.T) {
	w := watch(t, missing(3*time.Hour)).add(series(1)...)
	w.decide(at(10))
	w.edit = func(in *rule.Input) { in.Paused = true }
	w.decide(at(11))
	w.decide(at(50))
	w.edit = func(in *rule.Input) { in.Resumed = at(60) }
	w.decide(at(62))
	if diff := cmp.Diff([]string{"? firing resolved"}, w.became()); diff != "" {
		t.Error(diff)
	}
	w.decide(at(64))
	if diff := cmp.Diff([]string{"? firing resolved", "? firing"}, w.became()); diff != "" {
		t.Error(diff)
	}
}

func TestAPlatformThatWasAwaySaysOnceWhatIsMissing(t *testing.T) {
	w := watch(t, missing(3*time.Hour)).add(series(1)...)
	w.decide(at(24 * 30))
	w.decide(at(24*30 + 1))
	if w.only().State != incident.Firing {
		t.Error(w.became())
	}
}
