package parser_test

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
)

func TestAFaultIsOneLine(t *testing.T) {
	tests := map[string]struct {
		fault parser.Fault
		want  string
	}{
		"an error with a remedy": {
			parser.Fault{File: "f.toml", Line: 3, Column: 7, Path: "ml.args", Message: "is wrong", Remedy: "mend it"},
			"f.toml:3:7: ml.args: is wrong (mend it)",
		},
		"a warning": {
			parser.Fault{File: "f.toml", Line: 3, Column: 7, Path: "ml.args", Message: "is odd", Warning: true},
			"f.toml:3:7: ml.args: warning: is odd",
		},
		"about the file": {
			parser.Fault{File: "f.toml", Line: 1, Column: 1, Message: "the file is empty"},
			"f.toml:1:1: the file is empty",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.fault.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyErrorsMakeAnError(t *testing.T) {
	warning, fault := parser.Fault{Message: "odd", Warning: true}, parser.Fault{Message: "wrong"}
	if err := (parser.Faults{warning}).Err(); err != nil {
		t.Errorf("a warning: %v", err)
	}
	all := parser.Faults{warning, fault}
	invalid, ok := errors.AsType[*parser.InvalidError](all.Err())
	if !ok {
		t.Fatal("no InvalidError")
	}
	if diff := cmp.Diff(parser.Faults{fault}, invalid.Faults); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(parser.Faults{warning}, all.Warnings()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(":0:0: wrong", invalid.Error()); diff != "" {
		t.Error(diff)
	}
}

// completeDescriptor is a piece of a descriptor with all that it lacks.
func completeDescriptor(piece string) string {
	text := piece + "\n"
	if !strings.Contains(piece, "spec_version") {
		text = "spec_version = \"1.0\"\n" + text
	}
	for table, keys := range map[string]string{
		"[info]": `description = "x"`, "[hardware]": `cpus = 1`, "[env]": `docker_image = "alpine:3"`,
	} {
		if !strings.Contains("\n"+piece, "\n"+table) {
			text += table + "\n" + keys + "\n"
		}
	}
	return text
}

func TestEveryCodeIsExplainedByAnExampleThatHasItAndOneThatHasNot(t *testing.T) {
	for _, code := range parser.Codes() {
		t.Run(code, func(t *testing.T) {
			e, ok := parser.Explain(code)
			if !ok || e.Code != code || e.Title == "" || e.Text == "" || e.Example == "" || e.Mended == "" {
				t.Fatalf("not explained: %+v", e)
			}
			faults := read(t, code, e.Example)
			if len(faults) == 0 || slices.ContainsFunc(faults, func(f parser.Fault) bool { return f.Code != code }) {
				t.Errorf("the example has not this fault alone: %v", faults)
			}
			if faults := read(t, code, e.Mended); len(faults) > 0 {
				t.Errorf("the mended example has faults: %v", faults)
			}
		})
	}
}

// read are the faults of an example of a code: of a piece of a descriptor, of a command's
// output, or of an override.
func read(t *testing.T, code, example string) parser.Faults {
	t.Helper()
	if set, ok := strings.CutPrefix(example, "--set "); ok {
		_, _, faults := parser.ParseWith("example.toml", []byte(completeDescriptor("")), overrides(set))
		return faults
	}
	if code >= "BAI0150" && code <= "BAI0159" {
		return readSuite(t, example)
	}
	text := []byte(completeDescriptor(example))
	if command, ok := strings.CutPrefix(example, "$ "); ok {
		text = outputOf(t, command)
	}
	allowed := descriptors.Allowlists{"*": {Secrets: []string{"registry", "my-secret"}, Rights: descriptors.Rights()}}
	if code == "BAI0162" {
		allowed = descriptors.Allowlists{}
	}
	p := parser.Parser{Zones: []string{"use1-az1"}, Allow: allowed, NodeSelector: map[string]string{"pool": "benchmarks"}, PullPolicy: "Never", Placements: []string{"spread"}}
	if code == "BAI0029" { // the platform knows it, and BAI0105 does not
		p.Engines = []string{"default", "local"}
	}
	if code == "BAI0198" {
		p.Receivers = map[string][]string{"perf-team": nil}
	}
	if code == "BAI0221" {
		p.Manifests = []string{}
	}
	p.OneMachine = code == "BAI0224"
	if code == "BAI0130" {
		p.Destinations = map[string][]string{"lake": nil}
	}
	_, faults := p.Parse("example.toml", text)
	return faults
}

// readSuite are the faults of a suite, or of the one that a command writes. It may name the
// descriptor iperf.toml.
func readSuite(t *testing.T, example string) parser.Faults {
	t.Helper()
	text := []byte(example)
	if command, ok := strings.CutPrefix(example, "$ "); ok {
		text = outputOf(t, command)
	}
	text, faults := suite.Embed("suite.toml", text, []suite.Source{{Name: "iperf.toml", File: "iperf.toml", Text: []byte(completeDescriptor(""))}})
	if len(faults) == 0 {
		_, _, faults = suite.Parse(parser.Parser{}, "suite.toml", text)
	}
	return faults
}

func outputOf(t *testing.T, command string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestACodeThatThereIsNotIsNotExplained(t *testing.T) {
	if _, ok := parser.Explain("BAI9999"); ok {
		t.Error("explained")
	}
}
