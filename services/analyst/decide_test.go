package analyst

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

var midnight = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)

func TestWhatARunHasLookedAt(t *testing.T) {
	above := incident.Rule{ID: "above", Namespace: "pets", Task: "rates", Metric: "rate", When: incident.Above}
	other := incident.Rule{ID: "other", Namespace: "pets", Task: "rates", Metric: "latency", When: incident.Below}
	failed := incident.Rule{ID: "failed", Namespace: "pets", Task: "rates", When: incident.Failed}
	missing := incident.Rule{ID: "missing", Namespace: "pets", Task: "rates", Metric: "rate", When: incident.Missing}
	rates := []store.Summary{{Metric: "rate", Unit: "B/s"}, {Metric: "rate", Unit: "B/s", Labels: map[string]string{"gpu": "0"}}, {Metric: "run.duration", Unit: "s"}}
	for name, tt := range map[string]struct {
		excluded  store.Exclusion
		points    []store.Summary
		scheduled bool
		want      string
	}{
		"each series with a value that a rule watches, and the rules about the task": {
			points: rates, scheduled: true, want: "above rate[] above rate[gpu:0] failed [] missing rate[]",
		},
		"no series of a run that is no point": {excluded: store.ExcludedFailed, points: rates, want: "failed [] missing rate[]"},
		"a run of a schedule that ended without a value": {
			excluded: store.ExcludedFailed, scheduled: true, want: "failed [] missing rate[] without a value",
		},
		"a run of a schedule that succeeded without the metric": {
			points: []store.Summary{{Metric: "run.duration", Unit: "s"}}, scheduled: true, want: "failed [] missing rate[] without a value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := store.RunPoints{PointRun: store.PointRun{Namespace: "pets", Task: "rates", Excluded: tt.excluded, Time: midnight}, Points: tt.points}
			var got []string
			for _, o := range targetsOf([]incident.Rule{above, other, failed, missing, above}, p, tt.scheduled) {
				text := fmt.Sprintf("%s %s%s", o.rule.ID, o.series.Metric, strings.TrimPrefix(fmt.Sprint(o.series.Labels), "map"))
				if !o.without.IsZero() {
					text += " without a value"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(strings.Fields(tt.want), strings.Fields(strings.Join(sorted(got), " "))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func sorted(all []string) []string { return union(all, nil) }

func TestTheRulesOfATaskAreThoseOfItsNewestRun(t *testing.T) {
	rules := func(ids ...string) (all []incident.Rule) {
		for _, id := range ids {
			all = append(all, incident.Rule{ID: id})
		}
		return all
	}
	is := incident.RuleSet{Rules: rules("a", "b"), Newest: midnight}
	for name, tt := range map[string]struct {
		created time.Time
		changed bool
		want    string
		removed string
	}{
		"a newer run replaces them":                {midnight.Add(time.Second), true, "b c", "a"},
		"the same run again changes nothing":       {midnight, false, "a b", ""},
		"a run that is heard late changes nothing": {midnight.Add(-time.Hour), false, "a b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			next, removed, changed := renewed(is, store.Run{Created: tt.created}, "digest", rules("b", "c"))
			if changed != tt.changed || ids(next.Rules) != tt.want || ids(removed) != tt.removed {
				t.Errorf("rules %q, removed %q, changed %t", ids(next.Rules), ids(removed), changed)
			}
		})
	}
}

func ids(rules []incident.Rule) string {
	all := make([]string, len(rules))
	for i, r := range rules {
		all[i] = r.ID
	}
	return strings.Join(all, " ")
}

func TestARunWhoseTaskIsNotThatOfItsDescriptorHasRulesOfItsTask(t *testing.T) {
	one := incident.Rule{Task: "written", Metric: "rate"}.WithID()
	got := ofTask([]incident.Rule{one}, "given")[0]
	if got.Task != "given" || got.ID == one.ID || got.ID != (incident.Rule{Task: "given", Metric: "rate"}).WithID().ID {
		t.Errorf("%+v", got)
	}
}

func TestThePointOfTheRunIsAmongThoseOfItsSeries(t *testing.T) {
	key := store.SeriesKey{Namespace: "pets", Task: "rates", Metric: "rate"}
	at := func(run string, hour int, value float64) store.Point {
		return store.Point{
			PointRun: store.PointRun{Run: run, Namespace: "pets", Task: "rates", Time: midnight.Add(time.Duration(hour) * time.Hour)},
			Summary:  store.Summary{Metric: "rate", Median: store.Float(value)},
		}
	}
	fresh := func(p store.Point, excluded store.Exclusion) *store.RunPoints {
		p.Excluded = excluded
		return &store.RunPoints{PointRun: p.PointRun, Points: []store.Summary{p.Summary}}
	}
	for name, tt := range map[string]struct {
		fresh *store.RunPoints
		want  string
	}{
		"no run":                           {nil, "a1 c3"},
		"the newest":                       {fresh(at("d", 4, 4), ""), "a1 c3 d4"},
		"a late one lies where it belongs": {fresh(at("b", 2, 2), ""), "a1 b2 c3"},
		"a later value replaces it":        {fresh(at("c", 3, 9), ""), "a1 c9"},
		"a run that is no point":           {fresh(at("d", 4, 4), store.ExcludedWarmup), "a1 c3"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range withPoint([]store.Point{at("a", 1, 1), at("c", 3, 3)}, tt.fresh, key) {
				got = append(got, fmt.Sprint(p.Run, float64(p.Median)))
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHowRunsEnded(t *testing.T) {
	run := func(id string, hour int, outcome event.Outcome) store.Run {
		r := store.Run{ID: id, Created: midnight.Add(time.Duration(hour) * time.Hour), Outcome: outcome, Message: "exit code 1"}
		if outcome != "" {
			r.Phase = event.PhaseFinished
		}
		return r
	}
	warmup := run("warm-up", 5, event.Failed)
	warmup.Warmup = true
	runs := []store.Run{run("newest", 4, ""), run("canceled", 3, event.Canceled), run("good", 2, event.Succeeded), run("bad", 1, event.Failed), warmup}
	ended := run("newest", 4, event.Failed)
	ended.Message = "out of memory"
	other := run("another", 6, event.Succeeded)
	for name, tt := range map[string]struct {
		known *store.Run
		want  string
	}{
		"those that have ended, the oldest first": {nil, "bad failed: exit code 1; good"},
		"with an end that the list lacks yet":     {&ended, "bad failed: exit code 1; good; newest failed: out of memory"},
		"with a run that the list lacks yet":      {&other, "bad failed: exit code 1; good; another"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range endings(withRun(slices.Clone(runs), tt.known)) {
				text := r.Run
				if r.Failed {
					text += " failed: " + r.Reason
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhenTheNextValueIsExpected(t *testing.T) {
	nightly := func(change func(*firings)) firings {
		var s firings
		s.Rules.Cron, s.Rules.Zone = "0 2 * * *", "Europe/Berlin"
		if change != nil {
			change(&s)
		}
		return s
	}
	for name, tt := range map[string]struct {
		schedule firings
		want     string
	}{
		"at its next firing, in its zone":             {nightly(nil), "2026-05-04 02:00 CEST"},
		"not before the schedule begins":              {nightly(func(s *firings) { s.From = midnight.Add(30 * time.Hour) }), "2026-05-06 02:00 CEST"},
		"never after its end":                         {nightly(func(s *firings) { s.Rules.End = midnight.Add(-time.Hour) }), "never"},
		"never if the schedule has no time":           {nightly(func(s *firings) { s.Rules.Cron = "every night" }), "an error"},
		"never in a zone that this machine has not":   {nightly(func(s *firings) { s.Rules.Zone = "Moon/Tycho" }), "an error"},
		"at a time that clocks skip, the first after": {nightly(func(s *firings) { s.Rules.Cron = "30 2 29 3 *" }), "2027-03-29 02:30 CEST"},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := tt.schedule.next(midnight.Add(-time.Hour))
			got := at.Format("2006-01-02 15:04 MST")
			switch {
			case err != nil:
				got = "an error"
			case at.IsZero():
				got = "never"
			}
			if got != tt.want {
				t.Errorf("%s (%v), want %s", got, err, tt.want)
			}
		})
	}
	ended := midnight.Add(time.Hour)
	runs := []store.Run{{Created: midnight}, {Created: midnight, Ended: &ended}}
	if got, want := nightly(func(s *firings) { s.Rules.Delay = time.Minute }).allowance(runs), 106*time.Minute; got != want {
		t.Errorf("a value may take %s, want %s", got, want)
	}
}

func TestWhichIncidentsARuleKeepsInASeries(t *testing.T) {
	of := func(id string, state incident.State, hour int) versioned {
		return versioned{Incident: incident.Incident{ID: id, State: state, Opened: midnight.Add(time.Duration(hour) * time.Hour)}}
	}
	had := []versioned{of("open", incident.Firing, -9), of("ended", incident.Resolved, 1), of("outlived", incident.Resolved, -1)}
	is := ruleState{Incidents: []string{"ended", "open", "outlived", "unstored"}}
	for pending, want := range map[bool][]string{false: {"ended", "new", "open"}, true: {"ended", "new", "open", "outlived", "unstored"}} {
		is.Pending = pending
		if diff := cmp.Diff(want, retained(is, had, []incident.Incident{{ID: "new"}, {ID: "open"}}, midnight)); diff != "" {
			t.Errorf("pending %t (-want +got):\n%s", pending, diff)
		}
	}
}

func TestWhichAcknowledgementsAreDue(t *testing.T) {
	acked := func(state incident.State, ack *incident.Ack) incident.Incident {
		return incident.Incident{State: state, Acked: ack}
	}
	first := incident.Ack{At: midnight, Until: midnight.Add(time.Hour)}
	for name, tt := range map[string]struct {
		incident incident.Incident
		ack      incident.Ack
		after    time.Duration
		want     bool
	}{
		"the first of an incident":                  {acked(incident.Firing, nil), first, 0, true},
		"one that the incident has":                 {acked(incident.Acknowledged, &first), first, time.Minute, false},
		"one whose time is over":                    {acked(incident.Acknowledged, &first), first, time.Hour, true},
		"one without an end":                        {acked(incident.Acknowledged, &incident.Ack{At: midnight}), incident.Ack{At: midnight}, 900 * time.Hour, false},
		"a later one":                               {acked(incident.Acknowledged, &first), incident.Ack{At: midnight.Add(time.Minute)}, time.Minute, true},
		"one that is over, of one that fires again": {acked(incident.Firing, &first), first, time.Hour, false},
		"one of an incident that is over":           {acked(incident.Resolved, nil), first, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := acknowledgementDue(tt.incident, tt.ack, midnight.Add(tt.after)); got != tt.want {
				t.Errorf("due %t, want %t", got, tt.want)
			}
		})
	}
}

func TestHowLongAnIncidentIsListedAsOpen(t *testing.T) {
	ended := incident.Incident{State: incident.Resolved, Became: []incident.Transition{{State: incident.Resolved, At: midnight}}}
	for name, tt := range map[string]struct {
		incident incident.Incident
		found    bool
		after    time.Duration
		want     bool
	}{
		"while it is open":                    {incident.Incident{State: incident.Firing}, true, 1000 * time.Hour, false},
		"shortly after its end":               {ended, true, retention, false},
		"no longer than that":                 {ended, true, retention + 1, true},
		"while it may be about to be stored":  {incident.Incident{}, false, time.Hour, false},
		"not for ever if it was never stored": {incident.Incident{}, false, retention + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outdated(tt.incident, tt.found, midnight, midnight.Add(tt.after)); got != tt.want {
				t.Errorf("outdated %t, want %t", got, tt.want)
			}
		})
	}
}

func TestTheHeadlinesOfARun(t *testing.T) {
	summary := func(names ...string) (all []store.Summary) {
		for _, name := range names {
			all = append(all, store.Summary{Metric: name})
		}
		return all
	}
	d := &descriptors.Descriptor{
		Alarms: []descriptors.Alarm{{Metric: "p99"}}, Output: &descriptors.Output{Metrics: []descriptors.Metric{{Name: "rate"}, {Name: "loss"}}},
	}
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("m%02d", i)
	}
	for name, tt := range map[string]struct {
		all  []store.Summary
		of   *descriptors.Descriptor
		want string
	}{
		"what alarms watch, what is declared, others, times": {summary("run.queued", "run.duration", "a", "loss", "rate", "p99"), d, "p99 rate loss a run.duration run.queued +0"},
		"what the machine did is left out":                   {summary("system.cpu", "rate"), d, "rate +0"},
		"ten at most":                                        {summary(many...), &descriptors.Descriptor{}, "m00 m01 m02 m03 m04 m05 m06 m07 m08 m09 +2"},
		"none":                                               {nil, &descriptors.Descriptor{}, " +0"},
	} {
		t.Run(name, func(t *testing.T) {
			numbers, more := headlines(tt.all, tt.of)
			var names []string
			for _, n := range numbers {
				names = append(names, n.Metric)
			}
			if got := fmt.Sprintf("%s +%d", strings.Join(names, " "), more); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAnAnalystWorksForItsShareOfTheTime(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		worked time.Duration
		share  float64
		want   time.Duration
	}{
		"all of it":          {4 * time.Millisecond, 1, 0},
		"a quarter":          {4 * time.Millisecond, 0.25, 12 * time.Millisecond},
		"the store was slow": {10 * time.Second, 0.25, maxPause},
		"no work":            {0, 0.25, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := pauseAfter(tt.worked, tt.share); got != tt.want {
				t.Errorf("a pause of %s, want %s", got, tt.want)
			}
		})
	}
}
