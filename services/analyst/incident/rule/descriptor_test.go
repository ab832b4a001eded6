package rule_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
)

const alarms = `spec_version = "1.0"
[info]
description = "d"
task_name = "train"
scheduling = "@daily"
[hardware]
cpus = 1
[env]
docker_image = "alpine:3"
[[output.metrics]]
name = "rate"
units = "images/s"
direction = "higher"
[[alarms]]
metric = "rate"
when = "regression"
min_change = "2%"
notify = ["perf-team"]
[[alarms]]
metric = "rate"
below = 100
unit = "images/s"
for = 3
statistic = "p95"
[[alarms]]
metric = "rate"
beyond = "5%"
baseline = "main"
[[alarms]]
when = "failed"
[[alarms]]
metric = "rate"
when = "missing"
`

func read(t *testing.T, text string) *descriptors.Descriptor {
	t.Helper()
	d, faults := parser.Parse("d.toml", []byte(text))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return d
}

func TestEachAlarmOfADescriptorIsARule(t *testing.T) {
	got := rule.Of("perf", read(t, alarms), start)
	ids := map[string]bool{}
	for i := range got {
		ids[got[i].ID], got[i].ID = true, ""
	}
	rate := incident.Rule{Namespace: "perf", Task: "train", Metric: "rate", Statistic: incident.Median, For: 1, Since: start}
	want := []incident.Rule{rate, rate, rate, rate, rate}
	want[0].When, want[0].MinChange, want[0].Notify = incident.Regression, 0.02, []string{"perf-team"}
	want[1].When, want[1].Limit, want[1].Unit, want[1].For, want[1].Statistic = incident.Below, 100, "images/s", 3, incident.P95
	want[2].When, want[2].Limit, want[2].Baseline, want[2].For = incident.Beyond, 0.05, "main", 2
	want[3].When, want[3].Metric, want[3].Statistic = incident.Failed, "", ""
	want[4].When, want[4].Statistic = incident.Missing, ""
	if diff := cmp.Diff(want, got); diff != "" || len(ids) != len(got) {
		t.Error(diff, ids)
	}
}

func TestTheIDOfARuleIsThatOfWhatItWatches(t *testing.T) {
	r := regression()
	r.Notify, r.Since = []string{"others"}, time.Now()
	if r.WithID().ID != regression().ID {
		t.Error("receivers or the time change the ID")
	}
	r.MinChange = 0.01
	if r.WithID().ID == regression().ID {
		t.Error("another min_change has the same ID")
	}
}

func TestADescriptorWithoutATaskHasNoRules(t *testing.T) {
	d := read(t, alarms)
	d.Info.TaskName = ""
	if got := rule.Of("perf", d, start); got != nil {
		t.Errorf("%+v", got)
	}
	if got := rule.Of("perf", nil, start); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestRulesThatStayKeepWhenTheyWereFirstSeen(t *testing.T) {
	old := incident.RuleSet{Rules: rule.Of("perf", read(t, alarms), start)}
	next := rule.Of("perf", read(t, alarms+"[[alarms]]\nmetric = \"run.duration\"\nwhen = \"regression\"\n"), at(9))
	renewed := old.Renew(next)
	if len(renewed) != 6 || !renewed[0].Since.Equal(start) || !renewed[5].Since.Equal(at(9)) {
		t.Errorf("%+v", renewed)
	}
}
