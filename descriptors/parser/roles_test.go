package parser_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// withRoles is a descriptor with the given tables behind the others.
func withRoles(tables ...string) string {
	return minimal(map[string]string{
		"env": "vars = { A = '1', B = '2' }", "ml": "benchmark_code = 'run'\nargs = '-x'", "hardware": "gpus = 1\nmemory = '1GiB'",
	}) + strings.Join(tables, "\n")
}

func TestARoleHasWhatTheFileSaysWhereItSaysNothingElse(t *testing.T) {
	d := parse(t, withRoles(
		"[[roles]]\nname = 'plain'",
		"[[roles]]\nname = 'own'\ndocker_image = 'own:1'\nbenchmark_code = 'serve now'\nvars = { C = '3', A = '4' }\ngpus = 0\ncpus = 3\nmemory = '2GiB'",
		"[[roles]]\nname = 'args'\nargs = '-y'",
	))
	plain, own, args := d.ForRole(d.Roles[0]), d.ForRole(d.Roles[1]), d.ForRole(d.Roles[2])
	if diff := cmp.Diff(d.Env, plain.Env) + cmp.Diff(d.ML, plain.ML) + cmp.Diff(d.Hardware, plain.Hardware); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"A": "4", "B": "2", "C": "3"}, own.Env.Vars) + cmp.Diff([]string{"B", "C", "A"}, own.Env.VarOrder); diff != "" {
		t.Error(diff)
	}
	if h := own.Hardware; own.Env.DockerImage != "own:1" || *h.GPUs != 0 || h.CPUs != "3" || h.Memory != "2Gi" {
		t.Errorf("%s, %v", own.Env.DockerImage, h)
	}
	for of, want := range map[*descriptors.Descriptor][]string{plain: {"run", "-x"}, own: {"serve", "now"}, args: {"run", "-y"}} {
		argv, _, err := of.Command()
		if diff := cmp.Diff(want, argv); err != nil || diff != "" {
			t.Errorf("%v, %s", err, diff)
		}
	}
	if d.Env.DockerImage == "own:1" || d.ML.Args != "-x" || d.Env.Vars["A"] != "1" {
		t.Error("the descriptor itself has changed")
	}
}

func TestTheRolesWhoseEndTheRunWaitsFor(t *testing.T) {
	for name, tt := range map[string]struct {
		roles []string
		want  []string
	}{
		"the last one where none says anything":       {[]string{"", ""}, []string{"b"}},
		"those that say so":                           {[]string{"ends_run = true", ""}, []string{"a"}},
		"several":                                     {[]string{"ends_run = true", "ends_run = true"}, []string{"a", "b"}},
		"the last one where another does not":         {[]string{"ends_run = false", ""}, []string{"b"}},
		"another one where the last one says it does": {[]string{"ends_run = false", "ends_run = true"}, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, withRoles("[[roles]]\nname = 'a'\n"+tt.roles[0], "[[roles]]\nname = 'b'\n"+tt.roles[1]))
			if diff := cmp.Diff(tt.want, d.Ending()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheRolesOfEachStrategyWhichOfThemReadASourceAndWhichEndTheRun(t *testing.T) {
	const source = "[data]\nsources = [{ src = 's3://b/1', path = '/a' }]\n"
	server := "[server]\nhardware = { cpus = 1 }\nenv = { docker_image = 'a', ports = [1], start_command = '' }"
	for name, tt := range map[string]struct {
		text                 string
		roles, reads, ending []string
	}{
		"single_node": {minimal(nil) + source, []string{"benchmark"}, []string{"benchmark"}, []string{"benchmark"}},
		"mpi": {
			minimal(map[string]string{"hardware": "strategy = 'mpi'", "ml": "benchmark_code = 'x'"}) + source, []string{"worker", "launcher"}, []string{"worker"}, []string{"launcher"},
		},
		"inference": {minimal(map[string]string{"hardware": "strategy = 'inference'"}) + source + server, []string{"client", "server"}, []string{"client"}, []string{"client"}},
		"roles":     {withRoles("[[roles]]\nname = 'a'", "[[roles]]\nname = 'b'", source), []string{"a", "b"}, []string{"a", "b"}, []string{"b"}},
		"a role":    {withRoles("[[roles]]\nname = 'a'", "[[roles]]\nname = 'b'", strings.Replace(source, " }", ", role = 'b' }", 1)), []string{"a", "b"}, []string{"b"}, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, tt.text)
			if diff := cmp.Diff(tt.roles, d.RoleNames()) + cmp.Diff(tt.reads, d.Readers(d.Data.Sources[0])) + cmp.Diff(tt.ending, d.Ending()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheExampleWithRolesIsReadBack(t *testing.T) {
	d := parse(t, string(files(t, "../examples/roles.toml")["../examples/roles.toml"]))
	one := func(n int) *int { return &n }
	yes := true
	for i := range d.Roles {
		d.Roles[i].BenchmarkCode = ""
	}
	want := []descriptors.Role{
		{Name: "iperf", Replicas: 2, DockerImage: "docker.io/networkstatic/iperf3:latest", Args: "-p 5201", Ready: &descriptors.Ready{Port: one(5201)}},
		{Name: "web", Replicas: 1, DockerImage: "docker.io/library/nginx:1.27", CPUs: "4", Memory: "2Gi", GPUs: one(0), Ready: &descriptors.Ready{HTTP: ":80/"}},
		{
			Name: "load", Replicas: 1, StartsAfter: []string{"iperf", "web"}, Vars: map[string]string{"PARALLEL": "8"}, VarOrder: []string{"PARALLEL"},
			Ready: &descriptors.Ready{Log: "^load begins"}, EndsRun: &yes,
		},
		{Name: "observer", Replicas: 1, StartsAfter: []string{"load"}, Ready: &descriptors.Ready{File: "/tmp/observes"}, EndsRun: &yes},
	}
	if diff := cmp.Diff(want, d.Roles); diff != "" {
		t.Error(diff)
	}
	if d.Hardware.Strategy != descriptors.OwnRoles {
		t.Errorf("strategy %s", d.Hardware.Strategy)
	}
}

func TestTheNumberOfPodsOfARun(t *testing.T) {
	for text, want := range map[string]int{
		minimal(nil): 1,
		minimal(map[string]string{"hardware": "strategy = 'mpi'\ndistributed = { num_instances = 3 }", "ml": "benchmark_code = 'x'"}): 4,
		withRoles("[[roles]]\nname = 'a'\nreplicas = 3", "[[roles]]\nname = 'b'"):                                                     4,
	} {
		if got := parse(t, text).Pods(); got != want {
			t.Errorf("%d, want %d: %s", got, want, text)
		}
	}
}

func TestASweepAndAnOverrideReachTheKeysOfRoles(t *testing.T) {
	text := withRoles("[[roles]]\nname = 'a'\nbenchmark_code = 'x {{n}}'", "[sweep.product]\n'roles.0.replicas' = [2, 3]\nn = [5]")
	d, _, faults := parser.ParseWith("f.toml", []byte(text), []parser.Override{{Path: "roles.0.ready", Value: "{ port = 7 }"}})
	if d == nil {
		t.Fatal(faults)
	}
	if r := d.Roles[0]; r.Replicas != 2 || r.BenchmarkCode != "x 5" || r.Ready == nil || *r.Ready.Port != 7 {
		t.Errorf("%+v", r)
	}
}
