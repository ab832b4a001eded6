package parser_test

import (
	"testing"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

const withReceivers = `spec_version = "1.0"
[info]
description = "d"
[hardware]
cpus = 1
[env]
docker_image = "alpine:3"
[[alarms]]
metric = "emitted"
when = "change"
notify = ["perf-team", "submitter"]
`

func TestAPlatformRefusesAReceiverThatItDoesNotHaveForTheNamespace(t *testing.T) {
	for name, tt := range map[string]struct {
		parser parser.Parser
		want   string
	}{
		"nothing is known of receivers":    {parser.Parser{}, ""},
		"all namespaces may notify it":     {parser.Parser{Receivers: map[string][]string{"perf-team": nil}}, ""},
		"this namespace may notify it":     {parser.Parser{Receivers: map[string][]string{"perf-team": {"perf"}}, Namespace: "perf"}, ""},
		"the run was accepted earlier":     {parser.Parser{Receivers: map[string][]string{}, Accepted: true}, ""},
		"there are none but the submitter": {parser.Parser{Receivers: map[string][]string{}}, `BAI0198 d.toml:11:11: alarms[0].notify[0]: this platform has no receiver "perf-team" for the namespace "default" (use one of submitter)`},
		"another namespace may notify it": {
			parser.Parser{Receivers: map[string][]string{"perf-team": {"perf"}, "ops": nil}},
			`BAI0198 d.toml:11:11: alarms[0].notify[0]: this platform has no receiver "perf-team" for the namespace "default" (use one of ops, submitter)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := tt.parser.Parse("d.toml", []byte(withReceivers))
			got := ""
			for _, f := range faults {
				got += f.Code + " " + f.String()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestAnAlarmWaitsForTwoRunsOverALimitAndForOneThatFails(t *testing.T) {
	three := 3
	for name, tt := range map[string]struct {
		alarm descriptors.Alarm
		want  int
	}{
		"above":                      {descriptors.Alarm{When: descriptors.OnAbove}, 2},
		"below":                      {descriptors.Alarm{When: descriptors.OnBelow}, 2},
		"beyond":                     {descriptors.Alarm{When: descriptors.OnBeyond}, 2},
		"failed":                     {descriptors.Alarm{When: descriptors.OnFailed}, 1},
		"for":                        {descriptors.Alarm{When: descriptors.OnFailed, For: &three}, 3},
		"a regression reads no for":  {descriptors.Alarm{When: descriptors.OnRegression, For: &three}, 1},
		"missing values read no for": {descriptors.Alarm{When: descriptors.OnMissing, For: &three}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.alarm.Consecutive(); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}
