package group_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/group"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// begin is when a group begins to fire.
var begin = time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC)

// at is the time of a point.
func at(i int) time.Time { return time.Date(2026, 3, 1, i, 0, 0, 0, time.UTC) }

func point(i int, version string) *incident.Point {
	return &incident.Point{Run: fmt.Sprint("run-", i), Time: at(i), Version: version}
}

// change is an incident of a metric that begins with run i.
func change(task, metric string, i int, old, next string) incident.Incident {
	m := store.Float(-0.01 * float64(i))
	return incident.Incident{
		ID: metric + "/" + task, Series: store.SeriesKey{Namespace: "perf", Task: task, Metric: metric}, Kind: "step", Magnitude: &m,
		LastGood: point(i-1, old), FirstBad: point(i, next), First: point(i, next), Last: point(i, next), Opened: at(i),
	}
}

func TestIncidentsOfOneChangeAreOneGroup(t *testing.T) {
	base := change("train", "rate", 20, "1.0", "1.1")
	missing := func(task, run string) incident.Incident {
		return incident.Incident{ID: "m" + task + run, Series: store.SeriesKey{Namespace: "perf", Task: task}, LastGood: &incident.Point{Run: run}}
	}
	elsewhere := change("train", "latency", 20, "1.0", "1.1")
	elsewhere.Series.Namespace = "other"
	crossed := change("train", "memory", 21, "", "")
	crossed.Kind = ""
	for name, tt := range map[string]struct {
		a, b incident.Incident
		want bool
	}{
		"two metrics of one run":                        {base, change("train", "latency", 20, "1.0", "1.1"), true},
		"two tasks between the same versions":           {base, change("infer", "rate", 7, "1.0", "1.1"), true},
		"two tasks of one firing":                       {change("train", "rate", 20, "", ""), change("infer", "rate", 20, "", ""), true},
		"changes one run apart may be one":              {change("train", "rate", 20, "", ""), change("train", "latency", 21, "", ""), true},
		"changes further apart are two":                 {change("train", "rate", 20, "", ""), change("train", "latency", 23, "", ""), false},
		"changes of two tasks at different times":       {change("train", "rate", 20, "", ""), change("infer", "rate", 21, "", ""), false},
		"other versions":                                {base, change("infer", "rate", 7, "1.1", "1.2"), false},
		"another namespace":                             {base, elsewhere, false},
		"a limit that is crossed a run later":           {change("train", "rate", 20, "", ""), crossed, false},
		"missing values after the same run":             {missing("train", "a"), missing("train", "a"), true},
		"missing values after another run":              {missing("train", "a"), missing("train", "b"), false},
		"a missing value and a change are not the same": {missing("train", "a"), base, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := group.Assign(tt.a, nil)
			tt.b.ID += "2"
			b := group.Assign(tt.b, []incident.Incident{a})
			if (a.Group == b.Group) != tt.want || a.Group == "" {
				t.Errorf("%q and %q", a.Group, b.Group)
			}
		})
	}
}

func TestAnIncidentKeepsItsGroup(t *testing.T) {
	a := change("train", "rate", 20, "", "")
	a.Group = "g"
	if got := group.Assign(a, nil).Group; got != "g" {
		t.Error(got)
	}
}

// in returns the incident in a state that it came into at a time, after firing.
func in(i incident.Incident, states ...incident.State) incident.Incident {
	for n, s := range states {
		i = i.With(incident.Transition{State: s, At: at(30 + n)})
	}
	return i
}

// everybody is the one receiver of all incidents.
func everybody(incident.Incident) []string { return []string{"team"} }

// described returns the state and the metrics of a notice.
func described(n notice.Notice) string {
	text := string(n.Became)
	for _, i := range n.Incidents {
		text += " " + i.Series.Metric
	}
	if n.More > 0 {
		text += fmt.Sprintf(" and %d more", n.More)
	}
	return text
}

// notified are the notices of a group whose members are in states, one set after the other.
func notified(t *testing.T, steps ...[]incident.Incident) []string {
	t.Helper()
	g := group.Group{Namespace: "perf", ID: "g"}
	var got []string
	for n, members := range steps {
		now := at(40 + n)
		next, notices := group.Decide(g, members, everybody, now)
		again, repeated := group.Decide(g, members, everybody, now)
		if diff := cmp.Diff(next, again); diff != "" || len(repeated) != len(notices) {
			t.Errorf("the same decision differs: %s", diff)
		}
		if diff := cmp.Diff(notices, next.Notices(members)); diff != "" {
			t.Errorf("step %d: in the outbox (-want +got):\n%s", n, diff)
		}
		next.Outbox = nil
		if changed := !cmp.Equal(g, next); changed != group.Due(g, members, now) || group.Due(next, members, now) {
			t.Errorf("step %d: due %t before it, and %t after it, want %t and false", n, group.Due(g, members, now), group.Due(next, members, now), changed)
		}
		if after, more := group.Decide(next, members, everybody, now); len(more) > 0 || !cmp.Equal(after, next) {
			t.Errorf("step %d: a decision after it has %d notices", n, len(more))
		}
		g = next
		for _, one := range notices {
			got = append(got, described(one))
		}
	}
	return got
}

func TestPeopleHearOnceOfEachTransitionOfAGroup(t *testing.T) {
	a, b := change("train", "rate", 20, "", ""), change("train", "latency", 21, "", "")
	silent := in(b, incident.Firing)
	silent.Silent = true
	const (
		suspected = incident.Suspected
		firing    = incident.Firing
		acked     = incident.Acknowledged
		resolved  = incident.Resolved
		dismissed = incident.Dismissed
	)
	many := func(s ...incident.State) []incident.Incident {
		var all []incident.Incident
		for i := range 12 {
			all = append(all, in(change("train", fmt.Sprint("m", i), 20+i, "", ""), s...))
		}
		return all
	}
	type members = []incident.Incident
	for name, tt := range map[string]struct {
		steps []members
		want  []string
	}{
		"a suspicion":                        {[]members{{in(a, suspected)}}, nil},
		"a suspicion that passes":            {[]members{{in(a, suspected)}, {in(a, suspected, dismissed)}}, nil},
		"an incident":                        {[]members{{in(a, suspected)}, {in(a, suspected, firing)}}, []string{"firing rate"}},
		"two of one run, the worst first":    {[]members{{in(a, firing), in(b, firing)}}, []string{"firing latency rate"}},
		"one that joins":                     {[]members{{in(a, firing)}, {in(a, firing), in(b, firing)}}, []string{"firing rate"}},
		"ten at most":                        {[]members{many(firing)}, []string{"firing m11 m10 m9 m8 m7 m6 m5 m4 m3 m2 and 2 more"}},
		"one of two is over":                 {[]members{{in(a, firing), in(b, firing)}, {in(a, firing, resolved), in(b, firing)}}, []string{"firing latency rate"}},
		"both are over":                      {[]members{{in(a, firing), in(b, firing)}, {in(a, firing, resolved), in(b, firing, dismissed)}}, []string{"firing latency rate", "resolved latency rate"}},
		"it was none":                        {[]members{{in(a, firing)}, {in(a, firing, dismissed)}}, []string{"firing rate", "dismissed rate"}},
		"an acknowledgement":                 {[]members{{in(a, firing)}, {in(a, firing, acked)}}, []string{"firing rate"}},
		"fires again":                        {[]members{{in(a, firing)}, {in(a, firing, acked)}, {in(a, firing, acked, firing)}}, []string{"firing rate", "firing rate"}},
		"one joins after an acknowledgement": {[]members{{in(a, firing)}, {in(a, firing, acked)}, {in(a, firing, acked), in(b, firing)}}, []string{"firing rate", "firing latency"}},
		"a silent one":                       {[]members{{silent}, {in(a, firing), silent}}, []string{"firing rate"}},
		"over before anybody heard of it":    {[]members{{in(a, firing, resolved)}}, nil},
		"over, and there again":              {[]members{{in(a, firing)}, {in(a, firing, dismissed)}, {in(a, firing, dismissed, firing)}}, []string{"firing rate", "dismissed rate", "firing rate"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, notified(t, tt.steps...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheIDsOfANoticeFollowFromGroupTransitionAndReceiver(t *testing.T) {
	a := change("train", "rate", 20, "", "")
	both := func(incident.Incident) []string { return []string{"slack", "email"} }
	g, first := group.Decide(group.Group{Namespace: "perf", ID: "g"}, []incident.Incident{in(a, incident.Firing)}, both, at(40))
	_, second := group.Decide(g, []incident.Incident{in(a, incident.Firing, incident.Resolved)}, both, at(41))
	if len(first) != 2 || len(second) != 2 {
		t.Fatalf("%d and %d notices", len(first), len(second))
	}
	other, one, end := first[0], first[1], second[1]
	if one.Receiver != "slack" || other.Receiver != "email" || end.Receiver != "slack" {
		t.Errorf("for %s, %s and %s", one.Receiver, other.Receiver, end.Receiver)
	}
	if one.ID == other.ID || one.ID == end.ID || one.First != one.ID || end.First != one.ID || len(one.ID) != 26 {
		t.Errorf("%s %s %s, first %s and %s", one.ID, other.ID, end.ID, one.First, end.First)
	}
}

func TestEachReceiverHearsOfTheGroupsThatItsIncidentsFireIn(t *testing.T) {
	own := func(i incident.Incident) []string { return []string{i.Series.Task + "-team"} }
	train, infer := change("train", "rate", 20, "1.0", "1.1"), change("infer", "rate", 21, "1.0", "1.1")
	silent := in(infer, incident.Firing)
	silent.Silent = true
	const (
		firing   = incident.Firing
		acked    = incident.Acknowledged
		resolved = incident.Resolved
	)
	type members = []incident.Incident
	for name, tt := range map[string]struct {
		steps []members
		want  []string
	}{
		"both fire": {[]members{{in(train, firing), in(infer, firing)}}, []string{"firing: infer-team train-team"}},
		"a team whose incident joins later": {
			[]members{{in(train, firing)}, {in(train, firing), in(infer, firing)}},
			[]string{"firing: train-team", "firing: infer-team"},
		},
		"a team whose incident is silent":           {[]members{{in(train, firing), silent}}, []string{"firing: train-team"}},
		"a team whose incident is only a suspicion": {[]members{{in(train, firing), in(infer, incident.Suspected)}}, []string{"firing: train-team"}},
		"a team whose incident is over": {
			[]members{{in(train, firing), in(infer, firing, resolved)}}, []string{"firing: train-team"},
		},
		"the end goes to those who know of the beginning": {
			[]members{{in(train, firing)}, {in(train, firing, resolved), in(infer, firing, resolved)}},
			[]string{"firing: train-team", "resolved: train-team"},
		},
		"the end goes to all of them": {
			[]members{{in(train, firing), in(infer, firing)}, {in(train, firing, acked), in(infer, firing)}, {in(train, firing, resolved), in(infer, firing, resolved)}},
			[]string{"firing: infer-team train-team", "resolved: infer-team train-team"},
		},
		"an end is that of the last beginning": {
			[]members{{in(train, firing)}, {in(train, firing, resolved)}, {in(train, firing, resolved), in(infer, firing)}, {in(train, firing, resolved), in(infer, firing, resolved)}},
			[]string{"firing: train-team", "resolved: train-team", "firing: infer-team", "resolved: infer-team"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := group.Group{Namespace: "perf", ID: "g"}
			var got []string
			for n, members := range tt.steps {
				var notices []notice.Notice
				g, notices = group.Decide(g, members, own, at(40+n))
				if len(notices) == 0 {
					continue
				}
				text := string(notices[0].Became) + ":"
				for _, one := range notices {
					text += " " + one.Receiver
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestANoticeHasTheIncidentsThatNameItsReceiver(t *testing.T) {
	own := func(i incident.Incident) []string { return []string{i.Series.Metric + "-team", "all"} }
	rate, latency := change("train", "rate", 20, "1.0", "1.1"), change("train", "latency", 21, "1.0", "1.1")
	const (
		firing   = incident.Firing
		acked    = incident.Acknowledged
		resolved = incident.Resolved
	)
	g := group.Group{Namespace: "perf", ID: "g"}
	for n, tt := range []struct {
		of      func(incident.Incident) []string
		members []incident.Incident
		want    []string
	}{
		{own, []incident.Incident{in(rate, firing), in(latency, firing)}, []string{"all: firing latency rate", "latency-team: firing latency", "rate-team: firing rate"}},
		{own, []incident.Incident{in(rate, firing, acked), in(latency, firing)}, nil},
		{own, []incident.Incident{in(rate, firing, acked).With(incident.Transition{State: firing, At: at(41)}), in(latency, firing)}, []string{"all: firing latency rate", "rate-team: firing rate"}},
		{own, []incident.Incident{in(rate, firing, resolved), in(latency, firing, resolved)}, []string{"all: resolved latency rate", "latency-team: resolved latency", "rate-team: resolved rate"}},
	} {
		var notices []notice.Notice
		g, notices = group.Decide(g, tt.members, tt.of, at(40+n))
		var got []string
		for _, one := range notices {
			text := one.Receiver + ": " + string(one.Became)
			for _, i := range one.Incidents {
				text += " " + i.Series.Metric
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("step %d: %s", n, diff)
		}
	}
}

func TestAReceiverThatNoIncidentNamesAnyMoreHearsThatAllOfThemAreOver(t *testing.T) {
	rate := change("train", "rate", 20, "1.0", "1.1")
	g, _ := group.Decide(group.Group{Namespace: "perf", ID: "g"}, []incident.Incident{in(rate, incident.Firing)}, everybody, at(40))
	_, notices := group.Decide(g, []incident.Incident{in(rate, incident.Firing, incident.Resolved)}, func(incident.Incident) []string { return []string{"other"} }, at(41))
	if len(notices) != 1 || notices[0].Receiver != "team" || len(notices[0].Incidents) != 1 {
		t.Errorf("%+v", notices)
	}
}

func TestAReceiverHearsOfATaskThatJoinsAGroupAnHourAfterItsNotice(t *testing.T) {
	train, infer := in(change("train", "rate", 20, "1.0", "1.1"), incident.Firing), in(change("infer", "rate", 30, "1.0", "1.1"), incident.Firing)
	tune, latency := in(change("tune", "rate", 31, "1.0", "1.1"), incident.Firing), in(change("train", "latency", 21, "1.0", "1.1"), incident.Firing)
	g := group.Group{Namespace: "perf", ID: "g"}
	var got []string
	decide := func(at time.Time, members ...incident.Incident) {
		var notices []notice.Notice
		g, notices = group.Decide(g, members, everybody, at)
		if _, repeated := group.Decide(g, members, everybody, at); len(repeated) > 0 {
			t.Errorf("%d notices are repeated", len(repeated))
		}
		text := ""
		for _, n := range notices {
			for _, i := range n.Incidents {
				text += i.ID + " "
			}
			if n.Became != incident.Firing || n.First != incident.ID("notice", g.Notified[0].Notice, "team") {
				t.Errorf("%+v", n)
			}
		}
		if !g.Update.IsZero() {
			text += "due " + g.Update.Sub(begin).String()
		}
		got = append(got, text)
	}
	decide(begin, train)
	decide(begin.Add(time.Minute), train, latency)
	decide(begin.Add(2*time.Minute), train, latency, infer)
	decide(begin.Add(59*time.Minute), train, latency, infer, tune)
	decide(begin.Add(time.Hour), train, latency, infer, tune)
	decide(begin.Add(3*time.Hour), train, latency, infer, tune)
	want := []string{"rate/train ", "", "due 1h0m0s", "due 1h0m0s", "rate/tune rate/infer ", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAReceiverThatHasHeardOfAllWhenItJoinedHasNoUpdate(t *testing.T) {
	train, infer := in(change("train", "rate", 20, "1.0", "1.1"), incident.Firing), in(change("infer", "rate", 30, "1.0", "1.1"), incident.Firing)
	own := func(i incident.Incident) []string { return []string{i.Series.Task + "-team"} }
	g, _ := group.Decide(group.Group{Namespace: "perf", ID: "g"}, []incident.Incident{train}, own, begin)
	g, joined := group.Decide(g, []incident.Incident{train, infer}, own, begin.Add(time.Minute))
	g, later := group.Decide(g, []incident.Incident{train, infer}, own, begin.Add(2*time.Hour))
	if len(joined) != 1 || len(later) != 0 || !g.Update.IsZero() {
		t.Errorf("%d and %d notices, due %s", len(joined), len(later), g.Update)
	}
	older := group.Group{Namespace: "perf", ID: "g", State: incident.Firing, Receivers: []string{"infer-team", "train-team"}, Notified: g.Notified}
	if _, notices := group.Decide(older, []incident.Incident{train, infer}, own, begin.Add(2*time.Hour)); len(notices) != 0 {
		t.Errorf("a group of an older version has %d notices", len(notices))
	}
}

func TestANoticeInTheOutboxHasTheIncidentsThatAreLeft(t *testing.T) {
	a, b := in(change("train", "rate", 20, "", ""), incident.Firing), in(change("train", "latency", 21, "", ""), incident.Firing)
	g, _ := group.Decide(group.Group{Namespace: "perf", ID: "g"}, []incident.Incident{a, b}, everybody, at(40))
	b = in(b, incident.Resolved)
	if got := g.Notices([]incident.Incident{b}); len(got) != 1 || len(got[0].Incidents) != 1 || got[0].Incidents[0].State != incident.Resolved || got[0].Became != incident.Firing {
		t.Errorf("with one of two incidents: %+v", got)
	}
	if got := g.Notices(nil); len(got) != 0 {
		t.Errorf("without incidents: %+v", got)
	}
}

func TestTheOrderOfMembersDoesNotMatter(t *testing.T) {
	a, b := in(change("train", "rate", 20, "", ""), incident.Firing), in(change("train", "latency", 21, "", ""), incident.Firing)
	one, n1 := group.Decide(group.Group{ID: "g"}, []incident.Incident{a, b}, everybody, at(40))
	two, n2 := group.Decide(group.Group{ID: "g"}, []incident.Incident{b, a}, everybody, at(40))
	if diff := cmp.Diff(one, two) + cmp.Diff(n1, n2); diff != "" {
		t.Error(diff)
	}
}
