package parser_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

const withDestination = `spec_version = "1.0"
[info]
description = "d"
[hardware]
cpus = 1
[env]
docker_image = "alpine:3"
[[output.destinations]]
name = "warehouse"
`

func TestAPlatformRefusesADestinationThatItDoesNotHaveForTheNamespace(t *testing.T) {
	for name, tt := range map[string]struct {
		parser parser.Parser
		want   string
	}{
		"nothing is known of destinations": {parser.Parser{}, ""},
		"all namespaces may use it":        {parser.Parser{Destinations: map[string][]string{"warehouse": nil}}, ""},
		"this namespace may use it": {
			parser.Parser{Destinations: map[string][]string{"warehouse": {"perf"}}, Namespace: "perf"}, "",
		},
		"another namespace may use it": {
			parser.Parser{Destinations: map[string][]string{"warehouse": {"perf"}, "lake": nil}},
			`BAI0130 d.toml:9:8: output.destinations[0].name: this platform has no destination "warehouse" for the namespace "default" (use one of lake)`,
		},
		"there are none": {
			parser.Parser{Destinations: map[string][]string{}},
			`BAI0130 d.toml:9:8: output.destinations[0].name: this platform has no destination "warehouse" for the namespace "default" ` +
				`(leave it out: the settings have no destination for this namespace)`,
		},
		"it was there when the run was submitted": {parser.Parser{Destinations: map[string][]string{}, Accepted: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := tt.parser.Parse("d.toml", []byte(withDestination))
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

func TestTheValuesOfColumns(t *testing.T) {
	for text, want := range map[string]descriptors.ColumnValue{
		"run.id":                  {From: descriptors.FromRun, Field: "id"},
		"label.a.b":               {From: descriptors.FromLabel, Name: "a.b"},
		"summary.p99":             {From: descriptors.FromSummary, Field: "p99"},
		"metric.train.rate.first": {From: descriptors.FromMetric, Name: "train.rate", Field: "first"},
		"sample.value":            {From: descriptors.FromSample, Field: "value"},
	} {
		got, ok := descriptors.ParseColumnValue(text)
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %t %s", text, ok, diff)
		}
	}
	for _, text := range []string{"", "run", "run.password", "label.", "metric..mean", "metric.mean", "sample.median", "cluster.name"} {
		if v, ok := descriptors.ParseColumnValue(text); ok {
			t.Errorf("%q is %+v", text, v)
		}
	}
}

func TestTheDefaultColumnsAreValuesOfTheirRows(t *testing.T) {
	for rows, other := range map[string]descriptors.ColumnSource{
		descriptors.SummaryRows: descriptors.FromSample, descriptors.SampleRows: descriptors.FromSummary,
	} {
		for name, text := range (descriptors.Destination{Rows: rows}).ColumnsOrDefault() {
			if v, ok := descriptors.ParseColumnValue(text); !ok || v.From == other {
				t.Errorf("%s of %s: %s", name, rows, text)
			}
		}
	}
}
