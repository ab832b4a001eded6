package analysis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// historyText describes the history of task rates.
func (w *fixture) historyText(change ...func(*analysis.HistoryRequest)) string {
	w.t.Helper()
	req := analysis.HistoryRequest{Task: "rates", Namespace: "default"}
	for _, c := range change {
		c(&req)
	}
	h, err := w.History(w.t.Context(), req)
	if err != nil {
		return describeError(err)
	}
	lines := []string{fmt.Sprintf("%d runs, %d excluded, truncated %t", len(h.Runs), h.Excluded, h.Truncated)}
	for _, s := range h.Series {
		var levels []string
		for _, l := range s.Levels {
			levels = append(levels, fmt.Sprintf("%d-%d at %.0f", l.First, l.Last, l.Median))
		}
		text := s.Metric
		if s.Cell != "" {
			text += " of " + s.Cell
		}
		lines = append(lines, text+": "+strings.Join(levels, ", "))
		for _, c := range s.Changes {
			lines = append(lines, fmt.Sprintf("%s %s at %d, %s to %s, %+.0f %%, %s", c.Kind, c.Verdict(s.Direction), c.Index, c.VersionBefore, c.VersionAfter, 100*c.Magnitude, c.Subjects))
		}
		lines = append(lines, s.Notes...)
	}
	return strings.Join(lines, "\n")
}

func TestTheHistoryOfATask(t *testing.T) {
	version := func(v string) map[string]string { return map[string]string{"version": v} }
	for name, tt := range map[string]struct {
		store  func(w *fixture)
		change func(*analysis.HistoryRequest)
		want   string
	}{
		"a change of the level lies between two levels": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 15), spec{labels: version("v1"), direction: event.Higher})
				w.addAll("b", around(90, 15), spec{labels: version("v2"), direction: event.Higher})
			},
			want: "30 runs, 0 excluded, truncated false\nrate: 0-14 at 100, 15-29 at 90\nstep regression at 15, v1 to v2, -10 %, []",
		},
		"what else changed there is listed": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 15), spec{image: "img:1", machine: "EPYC", direction: event.Lower})
				w.addAll("b", around(90, 15), spec{image: "img:2", machine: "EPYC", direction: event.Lower})
			},
			want: "30 runs, 0 excluded, truncated false\nrate: 0-14 at 100, 15-29 at 90\nstep improvement at 15,  to , -10 %, [image descriptor]",
		},
		"other machines begin a level without a test": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 15), spec{machine: "EPYC", direction: event.Higher})
				w.addAll("b", around(50, 4), spec{machine: "Xeon", direction: event.Higher})
			},
			want: "19 runs, 0 excluded, truncated false\nrate: 0-14 at 100, 15-18 at 50\nenvironment change at 15,  to , -50 %, [machine]\nthe machines are others from point 15 on: no change is seen before 6 more",
		},
		"a run whose machine is not known belongs to the level before it": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 12), spec{machine: "EPYC"})
				w.addAll("b", around(100, 2), spec{})
				w.addAll("c", around(100, 2), spec{machine: "EPYC"})
			},
			want: "16 runs, 0 excluded, truncated false\nrate: 0-15 at 100",
		},
		"runs are in the order of their firings, and of what they measure": {
			store: func(w *fixture) {
				values := append(around(90, 15), around(100, 15)...)
				for i, v := range values {
					at := start().AddDate(0, 0, -i)
					s := spec{values: []float64{v}, labels: map[string]string{"version_time": at.Format(time.RFC3339)}}
					if i%2 == 0 {
						s.labels, s.change = nil, func(r *store.Run) { r.Firing = &at }
					}
					w.add(s)
				}
			},
			want: "30 runs, 0 excluded, truncated false\nrate: 0-14 at 100, 15-29 at 90\nstep change at 15,  to , -10 %, []",
		},
		"cells are series of their own": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 3), spec{set: "s", cell: "n=1"})
				w.addAll("b", around(90, 3), spec{set: "s", cell: "n=2"})
			},
			want: "6 runs, 0 excluded, truncated false\nrate of n=1: 0-2 at 100\n3 rows have a value: at least 10 are needed to say that something changed\nrate of n=2: 0-2 at 90\n3 rows have a value: at least 10 are needed to say that something changed",
		},
		"runs that confirm an incident are left out": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 3), spec{})
				w.addAll("b", around(90, 3), spec{change: func(r *store.Run) { r.Confirms = "i" }})
			},
			want: "3 runs, 0 excluded, truncated false\nrate: 0-2 at 100\n3 rows have a value: at least 10 are needed to say that something changed",
		},
		"runs that do not count are counted": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 3), spec{})
				w.add(spec{change: func(r *store.Run) { r.Outcome = event.Canceled }})
			},
			want: "3 runs, 1 excluded, truncated false\nrate: 0-2 at 100\n3 rows have a value: at least 10 are needed to say that something changed",
		},
		"runs that failed take no place of the newest": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 5), spec{})
				for range 9 {
					w.add(spec{change: func(r *store.Run) { r.Outcome = event.Failed }})
				}
			},
			change: func(r *analysis.HistoryRequest) { r.Limit = 3 },
			want:   "3 runs, 9 excluded, truncated true\nrate: 0-2 at 100\n3 rows have a value: at least 10 are needed to say that something changed",
		},
		"the newest runs are taken": {
			store:  func(w *fixture) { w.addAll("a", slices.Concat(around(100, 300), around(90, 5)), spec{}) },
			change: func(r *analysis.HistoryRequest) { r.Limit = 5 },
			want:   "5 runs, 0 excluded, truncated true\nrate: 0-4 at 90\n5 rows have a value: at least 10 are needed to say that something changed",
		},
		"labels select runs": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 2), spec{labels: version("v1")})
				w.addAll("b", around(90, 2), spec{labels: version("v2")})
			},
			change: func(r *analysis.HistoryRequest) { r.Labels = version("v2") },
			want:   "2 runs, 0 excluded, truncated false\nrate: 0-1 at 90\n2 rows have a value: at least 10 are needed to say that something changed",
		},
		"a range of time selects runs": {
			store: func(w *fixture) { w.addAll("a", around(100, 9), spec{}) },
			change: func(r *analysis.HistoryRequest) {
				r.Since, r.Until = start().AddDate(0, 0, 2), start().AddDate(0, 0, 4)
			},
			want: "2 runs, 0 excluded, truncated false\nrate: 0-1 at 100\n2 rows have a value: at least 10 are needed to say that something changed",
		},
		"a task without runs is missing": {
			store: func(*fixture) {}, want: "missing: task \"rates\" of team default has no runs of that kind that succeeded (baictl list --label task_name=rates)",
		},
		"a task is needed": {
			store: func(*fixture) {}, change: func(r *analysis.HistoryRequest) { r.Task = "" }, want: "operand: task is empty: give the task_name of a descriptor",
		},
		"a number of runs that is too large is refused": {
			store: func(*fixture) {}, change: func(r *analysis.HistoryRequest) { r.Limit = 1001 }, want: "operand: limit is 1001: give 1 to 1000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.change == nil {
				tt.change = func(*analysis.HistoryRequest) {}
			}
			bothWays(t, func(t *testing.T, w *fixture) {
				t.Helper()
				tt.store(w)
				if diff := cmp.Diff(tt.want, w.historyText(tt.change)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestThePowerOfATask(t *testing.T) {
	w := newFixture(t)
	took := func(r *store.Run) {
		ended := r.Created.Add(90 * time.Second)
		r.Started, r.Ended = &r.Created, &ended
	}
	w.addAll("a", around(500, 5), spec{machine: "EPYC"})
	w.addAll("b", around(100, 30), spec{machine: "Xeon", change: took})
	p, err := w.Power(t.Context(), analysis.PowerRequest{Task: "rates", Namespace: "default", Metrics: []string{"rate"}, Effect: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	if p.Duration != 90*time.Second || len(p.Series) != 1 {
		t.Fatalf("%+v", p)
	}
	s := p.Series[0]
	if s.History.Summary.N != 30 || s.Spread() < 0.001 || s.Spread() > 0.002 {
		t.Errorf("%d points with spread %v: want the 30 of the newest level", s.History.Summary.N, s.Spread())
	}
	for i, n := range []int{3, 5, 10, 20} {
		d := s.Detectable[i]
		if d.Runs != n || (d.Change == nil) != (n == 3) {
			t.Errorf("%+v", d)
		}
	}
	if n := s.Needed.Runs; n < 10 || n > 100 {
		t.Errorf("%d runs show 0.1 %%", n)
	}
	for want, req := range map[string]analysis.PowerRequest{
		"operand: runs are [0]: give at most 20 numbers of 1 to 10000":                                                  {Task: "rates", Namespace: "default", Runs: []int{0}},
		"operand: effect is -1: give at least 0, and less than 10: 0.02 is 2 %":                                         {Task: "rates", Namespace: "default", Effect: -1},
		"missing: task \"x\" of team default has no runs of that kind that succeeded (baictl list --label task_name=x)": {Task: "x", Namespace: "default"},
	} {
		if _, err := w.Power(t.Context(), req); describeError(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
