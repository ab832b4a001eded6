package confirm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/confirm"
)

var now = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

func request() confirm.Request {
	return confirm.Request{
		ID: "request", Namespace: "perf", Incidents: []string{"i"}, First: "i", Old: "old", New: "new", Pairs: 5, MaxRuns: 12, Deadline: now.Add(time.Hour),
	}
}

// ran is the progress of runs with states: s, f and r, in order of their ordinals; a dot is one that was given up.
func ran(states string) (p confirm.Progress) {
	for n, s := range states {
		if s == '.' {
			continue
		}
		state := map[rune]confirm.State{'s': confirm.Succeeded, 'f': confirm.Failed, 'r': confirm.Running}[s]
		p.Runs = append(p.Runs, confirm.SubmittedRun{Ordinal: n, Run: fmt.Sprint("run", n), State: state})
	}
	return p
}

func TestWhichRunIsNext(t *testing.T) {
	for name, tt := range map[string]struct {
		states string
		change func(*confirm.Request, *confirm.Progress)
		want   confirm.Next
	}{
		"the first one":                              {"", nil, confirm.Next{Ordinal: 0}},
		"none, while one runs":                       {"ssr", nil, confirm.Next{Ordinal: -1}},
		"the other one of the pair":                  {"sss", nil, confirm.Next{Ordinal: 3}},
		"the first of the next pair":                 {"ss", nil, confirm.Next{Ordinal: 2}},
		"another pair, if the first of one failed":   {"ssf", nil, confirm.Next{Ordinal: 4}},
		"another pair, if the second of one failed":  {"sssf", nil, confirm.Next{Ordinal: 4}},
		"another one for a pair that was given up":   {"f.ssssssss", nil, confirm.Next{Ordinal: 10}},
		"none, once all pairs are there":             {"ssssssssss", nil, confirm.Next{Ordinal: -1, Done: "all 5 pairs are there"}},
		"none, if no pair is left":                   {"ssf.f.f.ssssss", nil, confirm.Next{Ordinal: -1, Done: "no pair is left of max_runs = 12"}},
		"none after the deadline":                    {"ss", func(r *confirm.Request, _ *confirm.Progress) { r.Deadline = now }, confirm.Next{Ordinal: -1, Done: "the deadline is over"}},
		"none, if a run cannot be repeated":          {"ss", func(_ *confirm.Request, p *confirm.Progress) { p.Done = "no code" }, confirm.Next{Ordinal: -1, Done: "no code"}},
		"none, and an end, once nobody waits":        {"ssr", func(r *confirm.Request, _ *confirm.Progress) { r.Incidents = nil }, confirm.Next{Ordinal: -1, Close: true}},
		"an end also if no run could be made":        {"", func(r *confirm.Request, p *confirm.Progress) { r.Incidents, p.Done = nil, "no code" }, confirm.Next{Ordinal: -1, Close: true}},
		"a run that goes on is waited for after all": {"r", func(r *confirm.Request, _ *confirm.Progress) { r.Deadline = now }, confirm.Next{Ordinal: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			r, p := request(), ran(tt.states)
			if tt.change != nil {
				tt.change(&r, &p)
			}
			if diff := cmp.Diff(tt.want, confirm.Decide(r, p, nil, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// finish submits and ends runs until none is left; fails says which fail.
func finish(r confirm.Request, fails func(n int) bool) (p confirm.Progress) {
	for {
		next := confirm.Decide(r, p, nil, now)
		if next.Ordinal < 0 {
			p.Done = next.Done
			return p
		}
		state := confirm.Succeeded
		if fails(len(p.Runs)) {
			state = confirm.Failed
		}
		p.Runs = append(p.Runs, confirm.SubmittedRun{Ordinal: next.Ordinal, Run: fmt.Sprint("run", next.Ordinal), State: state})
	}
}

func TestNeverMoreRunsThanAreAllowedWhateverFails(t *testing.T) {
	for bits := range 1 << 12 {
		p := finish(request(), func(n int) bool { return n < 12 && bits&(1<<n) != 0 })
		if len(p.Runs) > 12 || p.Done == "" {
			t.Fatalf("%b: %d runs, %q", bits, len(p.Runs), p.Done)
		}
		if bits == 0 && len(p.Runs) != 10 {
			t.Errorf("%d runs without a failure", len(p.Runs))
		}
	}
}

func TestTheOrderIsRandomByTheRequestAndBalanced(t *testing.T) {
	blocks := make(map[string]int)
	for n := range 1000 {
		id := fmt.Sprint("request", n)
		for block := range 3 {
			var order strings.Builder
			for run := range 4 {
				side := confirm.SideOf(id, 4*block+run)
				if side != confirm.SideOf(id, 4*block+run) {
					t.Fatal("the order changes")
				}
				order.WriteString(string(side[0]))
			}
			blocks[order.String()]++
		}
	}
	if len(blocks) != 2 || blocks["onno"] < 1350 || blocks["noon"] < 1350 {
		t.Errorf("%v", blocks)
	}
}

func TestIncidentsOfOneChangeShareTheirRuns(t *testing.T) {
	rule := incident.Rule{Confirm: &incident.Confirm{Pairs: 5, MaxRuns: 15, Deadline: time.Hour}}
	one := incident.Incident{ID: "a", Rule: rule, Group: "g", Confirmation: &incident.Confirmation{Old: "old", New: "new"}}
	one.Series.Namespace, one.Series.Task, one.Series.Metric = "perf", "sums", "rate"
	other := one
	other.ID, other.Series.Metric, other.Rule.Confirm = "b", "latency", &incident.Confirm{Pairs: 8, MaxRuns: 16, Deadline: 2 * time.Hour}
	r := confirm.New(one, now).With(confirm.New(other, now.Add(time.Minute))).With(confirm.New(one, now.Add(time.Hour)))
	want := confirm.Request{
		ID: confirm.ID(other), Namespace: "perf", Incidents: []string{"a", "b"}, First: "a", Old: "old", New: "new", Pairs: 8, MaxRuns: 16, Deadline: now.Add(time.Hour),
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	r = r.Without("a").Without("b").Without("b")
	if len(r.Incidents) > 0 {
		t.Errorf("%v", r.Incidents)
	}
	if r = r.With(confirm.New(one, now.Add(3*time.Hour))); !r.Deadline.Equal(now.Add(4 * time.Hour)) {
		t.Errorf("runs that are asked for again end at %s", r.Deadline)
	}
	for name, change := range map[string]func(*incident.Incident){
		"another task": func(i *incident.Incident) { i.Series.Task = "t" }, "another cell": func(i *incident.Incident) { i.Series.Cell = "n=1" },
		"another change": func(i *incident.Incident) { i.Group = "h" }, "another team": func(i *incident.Incident) { i.Series.Namespace = "n" },
	} {
		o := one
		if change(&o); confirm.ID(o) == confirm.ID(one) {
			t.Errorf("%s shares the runs", name)
		}
	}
}
