package analysis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// onType returns the change of a run that ran on a machine of an instance type.
func onType(name string) func(*store.Run) {
	return func(r *store.Run) {
		r.Machines = map[int][]event.MachineUse{1: {{Node: "n-" + name, InstanceType: name}}}
	}
}

// rankText returns the groups of each series as text.
func rankText(r analysis.Ranking) string {
	var all []string
	for _, s := range r.Series {
		for i, g := range s.Groups {
			text := fmt.Sprintf("%s %d %s %.4g n %d best %t alike %v", s.Metric, i, g.Value, g.Summary.Median, g.Summary.N, g.Best, g.Alike)
			if g.Summary.Interval == nil {
				text += " no interval"
			}
			all = append(all, text)
		}
	}
	return strings.Join(append(all, r.Notes...), "\n")
}

func rankRequest(runs, by string) analysis.RankRequest {
	return analysis.RankRequest{Runs: runs, By: by, Scope: analysis.Scope{Owner: "ann", Namespace: "default"}, Metrics: []string{"rate"}}
}

func TestMachinesAreRankedAndThoseThatCannotBeToldApartAreNamed(t *testing.T) {
	bothWays(t, func(t *testing.T, w *fixture) {
		t.Helper()
		w.addAll("cpu", around(0.05, 9), spec{direction: "lower", change: onType("c5.9xlarge")})
		w.addAll("new", around(0.02, 9), spec{direction: "lower", change: onType("g5.xlarge")})
		w.addAll("old", around(0.02001, 9), spec{direction: "lower", change: onType("p3.2xlarge")})
		w.add(spec{name: "failed", values: []float64{1}, change: func(r *store.Run) { r.Outcome = event.Failed }})
		r, err := w.Rank(t.Context(), rankRequest("task:rates", "hardware.instance_type"))
		if err != nil {
			t.Fatal(err)
		}
		want := `rate 0 g5.xlarge 0.02 n 9 best true alike [1]
rate 1 p3.2xlarge 0.02001 n 9 best true alike [0]
rate 2 c5.9xlarge 0.05 n 9 best false alike []`
		if diff := cmp.Diff(want, rankText(r)); diff != "" || r.Runs != 27 || r.Excluded != 1 {
			t.Errorf("%d runs, %d excluded (-want +got):\n%s", r.Runs, r.Excluded, diff)
		}
	})
}

func TestRunsAreGroupedByWhatTheyHave(t *testing.T) {
	w := newFixture(t)
	w.addAll("a", around(10, 6), spec{direction: "higher", image: "one", machine: "EPYC", labels: map[string]string{"version": "v1", "model": "m1"}})
	w.addAll("b", around(20, 6), spec{direction: "higher", image: "two", labels: map[string]string{"version": "v2"}})
	for by, want := range map[string]string{
		"version":     "rate 0 v2 19.99 n 6 best true alike []\nrate 1 v1 9.995 n 6 best false alike []",
		"image":       "rate 0 two 19.99 n 6 best true alike []\nrate 1 one 9.995 n 6 best false alike []",
		"label.model": "rate 0 m1 9.995 n 6 best true alike []\n6 of 12 runs left out: their label.model is not known",
		"node":        "rate 0 node-a 9.995 n 6 best true alike []\n6 of 12 runs left out: their node is not known",
	} {
		r, err := w.Rank(t.Context(), rankRequest("task:rates@2026-03-01..2026-04-01", by))
		if got := rankText(r); err != nil || got != want {
			t.Errorf("by %s: %v\n%s\nwant\n%s", by, err, got, want)
		}
	}
}

func TestGroupsWithRunsOfDifferentCellsAreRankedWithANote(t *testing.T) {
	const lacking = "not all groups have values of the same cells, so that their medians do not compare: "
	type cells map[string][]string // of the runs with a label, by its value
	for name, tt := range map[string]struct {
		by    string
		cells cells
		want  string
	}{
		"the same cells beside what is ranked": {"label.type", cells{
			"small": {"type=small,batch=1", "type=small,batch=64"}, "large": {"type=large,batch=1", "type=large,batch=64"},
		}, ""},
		"a cell that failed on one machine": {"label.type", cells{
			"small": {"type=small,batch=1"}, "large": {"type=large,batch=1", "type=large,batch=64"},
		}, lacking + "small lacks batch=64"},
		"cells that each machine has alone": {"label.type", cells{
			"small": {"batch=1,type=small"}, "large": {"batch=64,type=large"},
		}, lacking + "large lacks batch=1; 1 more group lacks some"},
		"many cells": {"label.type", cells{
			"a": {"n=1"}, "b": {"n=1", "n=2", "n=3", "n=4", "n=5", "n=6", "n=7"}, "c": {"n=1"}, "d": {"n=2"},
		}, lacking + "a lacks n=2, n=3, n=4, n=5, n=6 and 1 more; 2 more groups lack some"},
		"a parameter that the attribute is made of": {"label.type", cells{
			"t-1": {"n=1,size=1", "n=1,size=2"}, "t-2": {"n=2,size=1", "n=2,size=2"},
		}, ""},
		"entries of a suite": {"label.type", cells{
			"a": {"plain", "swept/path=x/y,n=1"}, "b": {"plain", "swept/path=x/y,n=2"},
		}, lacking + "a lacks swept/path=x/y,n=2; 1 more group lacks some"},
		"lists as values":             {"label.type", cells{"a": {`l=["x", "y"],type=a`}, "b": {`l=["x", "y"],type=b`}}, ""},
		"runs of cells, and of none":  {"label.type", cells{"a": {"", "n=1"}, "b": {"n=1"}}, lacking + "b lacks runs of no cell"},
		"cells themselves are ranked": {"cell", cells{"a": {"n=1,m=1"}, "b": {"n=2,m=1", "n=2,m=3"}}, ""},
		"runs without a value":        {"label.type", cells{"": {"n=9"}, "b": {"n=1"}, "c": {"n=1"}}, "5 of 15 runs left out: their label.type is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			for value, all := range tt.cells {
				for i, cell := range all {
					w.addAll(fmt.Sprint(value, i), around(10, 5), spec{direction: "higher", set: "s", cell: cell, labels: map[string]string{"type": value}})
				}
			}
			r, err := w.Rank(t.Context(), rankRequest("task:rates", tt.by))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, strings.Join(r.Notes, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGroupsWithoutAMetricInACellAreRankedWithOneNote(t *testing.T) {
	w := newFixture(t)
	rate := func(names ...string) func(*store.Summaries) {
		return func(all *store.Summaries) {
			for _, name := range names {
				all.Summaries = append(all.Summaries, store.Summary{Metric: name, Direction: event.Lower, Median: 1})
			}
		}
	}
	for _, value := range []string{"a", "b"} {
		w.addAll(value, around(10, 5), spec{direction: "higher", set: "s", cell: "n=1", labels: map[string]string{"type": value}, summaries: rate("loss", "time")})
	}
	w.addAll("c", around(10, 5), spec{direction: "higher", set: "s", cell: "n=2", labels: map[string]string{"type": "a"}, summaries: rate("loss", "time")})
	w.addAll("d", around(10, 5), spec{direction: "higher", set: "s", cell: "n=2", labels: map[string]string{"type": "b"}})
	req := rankRequest("task:rates", "label.type")
	req.Metrics = nil
	r, err := w.Rank(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"not all groups have values of the same cells, so that their medians do not compare: b lacks n=2"}, r.Notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeRankedSaysWhy(t *testing.T) {
	w := newFixture(t)
	w.addAll("a", around(10, 5), spec{change: onType("t3.small")})
	for name, tt := range map[string]struct{ runs, by, want string }{
		"an unknown attribute":  {"task:rates", "color", `by is "color", which is no attribute of runs: give one of cell, code, data, descriptor, hardware.instance_type, image, machine, node, platform, version, or label.KEY`},
		"a label without a key": {"task:rates", "label.", `by is "label.", which is no attribute of runs: give one of cell, code, data, descriptor, hardware.instance_type, image, machine, node, platform, version, or label.KEY`},
		"no direction":          {"task:rates", "hardware.instance_type", "task:rates has nothing to rank by hardware.instance_type: rate is not ranked: it has no direction (give it one in [[output.metrics]])"},
		"no runs":               {"task:other", "version", "task:other has no runs (name another)"},
		"no task":               {"task:", "version", `run or set "" of owner "ann" does not exist`},
	} {
		_, err := w.Rank(t.Context(), rankRequest(tt.runs, tt.by))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
		if operand := (*analysis.OperandError)(nil); strings.HasPrefix(tt.want, "by ") != errors.As(err, &operand) {
			t.Errorf("%s: %T", name, err)
		}
	}
}

func TestARunCostsWhatTheNewestRunsDid(t *testing.T) {
	w := newFixture(t)
	for i := range 12 {
		w.add(spec{values: []float64{10}, change: onType("t3.small"), costs: 1.5 + 0.01*float64(i%3)})
	}
	p, err := w.Power(t.Context(), analysis.PowerRequest{Task: "rates", Namespace: "default", Metrics: []string{"rate"}})
	if err != nil || len(p.Series) != 1 || p.Series[0].Metric != "rate" {
		t.Fatalf("%+v, %v", p, err)
	}
	if diff := cmp.Diff(&analysis.RunCost{Amount: 1.51, Currency: "USD", Runs: 12}, p.Cost); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
