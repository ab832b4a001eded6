package sarif_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/sarif"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// log is the part of SARIF 2.1.0 that readers use.
type log struct {
	Version string
	Runs    []struct {
		Tool struct {
			Driver struct {
				Name  string
				Rules []struct {
					ID               string
					ShortDescription struct{ Text string }
				}
			}
		}
		ColumnKind string
		Results    []result
	}
}

type result struct {
	RuleID    string
	RuleIndex *int
	Level     string
	Message   struct{ Text string }
	Locations []struct {
		PhysicalLocation struct {
			ArtifactLocation struct{ URI string }
			Region           *struct{ StartLine, StartColumn int }
		}
	}
}

func marshal(t *testing.T, faults []*baiv1.Fault) log {
	t.Helper()
	text, err := sarif.Marshal("v1", faults)
	if err != nil {
		t.Fatal(err)
	}
	var got log
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != "2.1.0" || len(got.Runs) != 1 || got.Runs[0].Tool.Driver.Name != "baictl" || got.Runs[0].ColumnKind != "unicodeCodePoints" || got.Runs[0].Results == nil {
		t.Fatalf("the head is %+v", got)
	}
	return got
}

func TestEachFaultIsAResultWithItsRule(t *testing.T) {
	got := marshal(t, []*baiv1.Fault{
		{File: "a.toml", Line: 3, Column: 7, Path: "info.x", Code: "BAI0010", Message: "unknown key", Remedy: "leave it out"},
		{File: "a.toml", Line: 4, Column: 1, Code: "BAI0012", Message: "is missing"},
		{File: "b.toml", Line: 5, Column: 1, Code: "BAI0010", Message: "unknown key", Warning: true},
		{File: "c.toml", Message: "cannot be read"},
		{File: "d.toml", Line: 1, Column: 1, Code: "BAI7777", Message: "of tomorrow"},
	}).Runs[0]
	var ids []string
	for _, r := range got.Tool.Driver.Rules {
		ids = append(ids, r.ID)
		if r.ShortDescription.Text == "" {
			t.Errorf("%s has no description", r.ID)
		}
	}
	if diff := cmp.Diff([]string{"BAI0010", "BAI0012"}, ids); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	for i, want := range []struct {
		rule, level, message string
		index, line          int
	}{
		{"BAI0010", "error", "info.x: unknown key (leave it out)", 0, 3},
		{"BAI0012", "error", "is missing", 1, 4},
		{"BAI0010", "warning", "unknown key", 0, 5},
		{"", "error", "cannot be read", -1, 0},
		{"BAI7777", "error", "of tomorrow", -1, 1},
	} {
		r := got.Results[i]
		index, line := -1, 0
		if r.RuleIndex != nil {
			index = *r.RuleIndex
		}
		if region := r.Locations[0].PhysicalLocation.Region; region != nil {
			line = region.StartLine
		}
		if r.RuleID != want.rule || r.Level != want.level || r.Message.Text != want.message || index != want.index || line != want.line {
			t.Errorf("result %d: %+v, rule %d, line %d, want %+v", i, r, index, line, want)
		}
	}
}

func TestFilesAreReferences(t *testing.T) {
	for file, want := range map[string]string{
		"a b/ü.toml": "a%20b/%C3%BC.toml", "/abs/x.toml": "file:///abs/x.toml", "<stdin>": "%3Cstdin%3E", "c:d.toml": "./c:d.toml",
		"https://h/x.toml": "https://h/x.toml", "stored:x@1": "stored:x@1", "--set hardware.gpus": "--set%20hardware.gpus", "50%.toml": "50%25.toml",
	} {
		got := marshal(t, []*baiv1.Fault{{File: file, Message: "m"}}).Runs[0].Results[0].Locations[0].PhysicalLocation.ArtifactLocation.URI
		if _, err := url.Parse(got); err != nil || got != want {
			t.Errorf("%q is %q, %v, want %q", file, got, err, want)
		}
	}
}

func TestNoFaultsAreADocumentToo(t *testing.T) {
	if got := marshal(t, nil).Runs[0]; len(got.Results) != 0 || got.Tool.Driver.Rules == nil {
		t.Errorf("%+v", got)
	}
}
