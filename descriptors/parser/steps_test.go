package parser_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
)

func TestStepsRunInTheOrderOfTheFileAsFarAsTheirNeedsAllow(t *testing.T) {
	step := func(name, when, needs string) string {
		return "[[steps]]\nname = \"" + name + "\"\nwhen = \"" + when + "\"\ncommand = \"x\"\n" + needs
	}
	d := parse(t, completeDescriptor("[ml]\nbenchmark_code = \"x\"\n"+strings.Join([]string{
		step("d", "before", "needs = [\"b\", \"c\"]\n"),
		step("a", "before", ""),
		step("late", "after", "needs = [\"later\", \"a\"]\n"),
		step("b", "before", ""),
		step("later", "after", ""),
		step("c", "before", "needs = [\"a\"]\n"),
	}, "")))
	names := func(when descriptors.When) (all []string) {
		for _, s := range d.StepsOf(when) {
			all = append(all, s.Name)
		}
		return all
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, names(descriptors.Before)); diff != "" {
		t.Errorf("before the benchmark (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"later", "late"}, names(descriptors.After)); diff != "" {
		t.Errorf("after it (-want +got):\n%s", diff)
	}
}

func TestAStepHasTheKeysOfItsTableAndElseThoseOfTheBenchmark(t *testing.T) {
	d := parse(t, string(files(t, "../examples/steps.toml")["../examples/steps.toml"]))
	first, last := d.StepsOf(descriptors.Before)[0], d.StepsOf(descriptors.After)[0]
	if first.Deadline != 30*time.Minute || d.StepsOf(descriptors.Before)[1].Deadline != 10*time.Minute || last.Deadline != time.Minute {
		t.Errorf("the deadlines of %v", d.Steps)
	}
	one, other := d.ForStep(first), d.ForStep(last)
	if diff := cmp.Diff(map[string]string{"PGDATA": "/db", "SCALE": "50"}, one.Env.Vars); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if one.Env.DockerImage != d.Env.DockerImage || other.Env.DockerImage != "docker.io/library/debian:12" {
		t.Errorf("images %q and %q", one.Env.DockerImage, other.Env.DockerImage)
	}
	if _, text, ok := one.Script(); !ok || !strings.Contains(text, "--initialize") {
		t.Errorf("the script of the first step is %q", text)
	}
	if argv, _, err := other.Command(); err != nil || len(argv) != 3 {
		t.Errorf("the command of the last step is %q, %v", argv, err)
	}
}
