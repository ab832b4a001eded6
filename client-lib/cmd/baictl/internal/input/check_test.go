package input_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestAnOverrideIsAPathAndAValue(t *testing.T) {
	for text, want := range map[string]*baiv1.Override{
		"hardware.gpus=4":            {Path: "hardware.gpus", Value: "4"},
		"env.vars.A=b=c":             {Path: "env.vars.A", Value: "b=c"},
		`env.vars."A=B"=c`:           {Path: `env.vars."A=B"`, Value: "c"},
		`env.vars.'A=B'=c`:           {Path: `env.vars.'A=B'`, Value: "c"},
		`env.vars."A\"=B"= c `:       {Path: `env.vars."A\"=B"`, Value: " c "},
		"info.description=":          {Path: "info.description"},
		" info.description =x\ny=\n": {Path: "info.description", Value: "x\ny=\n"},
	} {
		got, err := input.Overrides([]string{text})
		if diff := cmp.Diff([]*baiv1.Override{want}, got, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"", "hardware.gpus", "=4", `env.vars."A=4`} {
		if got, err := input.Overrides([]string{text}); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestAStrictCheckTakesWarningsForErrors(t *testing.T) {
	text := "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\ntimezone = \"UTC\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\n"
	doc := input.Document{Name: "f", Text: []byte(text)}
	for strict, want := range map[bool]int{false: 0, true: 1} {
		got := doc.Check(nil, strict)
		if len(got.Faults) != 1 || input.CountErrors(got.Faults) != want || got.Descriptor == nil || string(got.Effective) != text {
			t.Errorf("strict %t: %+v", strict, got)
		}
	}
	got := doc.Check([]*baiv1.Override{{Path: "info.timezone", Value: ""}, {Path: "hardware.cpus", Value: "x"}}, false)
	if got.Descriptor != nil || input.CountErrors(got.Faults) == 0 {
		t.Errorf("an override that is at fault: %+v", got)
	}
}
