package parser_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

func TestADifferenceIsAKeyOfWhichTwoDescriptorsSayDifferentThings(t *testing.T) {
	tests := map[string]struct {
		a, b string
		want []parser.Difference
	}{
		"nothing": {"a = 1", "a = 1", nil},
		"comments, order and ways of writing": {
			"# c\n[env]\ndocker_image = 'a'\nvars.X = '1'\n[hardware]\ncpus = 2\n", "hardware = { cpus = '2' }\nenv = { vars = { X = \"1\" }, docker_image = \"a\" }", nil,
		},
		"names of one value": {
			"[hardware]\nstrategy = 'horovod'\nmemory = '16GiB'\n[[data.sources]]\npath = '/a/'\n", "[hardware]\nstrategy = 'mpi'\nmemory = '16Gi'\n[[data.sources]]\npath = '/a'\n", nil,
		},
		"a default and its absence": {"[info]\nscheduling = 'single_run'\n[hardware]\nstrategy = 'single_node'", "[info]", nil},
		"another value": {
			"[hardware]\ngpus = 1", "[hardware]\ngpus = 2", []parser.Difference{{Path: "hardware.gpus", Old: "1", New: "2"}},
		},
		"a value where none was": {
			"[hardware]", "[hardware]\nstrategy = 'mpi'", []parser.Difference{{Path: "hardware.strategy", New: `"mpi"`}},
		},
		"no value where one was": {
			"[server.env]\nports = [80, 81]", "", []parser.Difference{{Path: "server.env.ports", Old: "[80, 81]"}},
		},
		"in the order of the language": {
			"[limits]\nretries = 1\n[info]\ndescription = 'a'\nlabels = { z = '1', a = '1' }", "[limits]\nretries = 2\n[info]\ndescription = 'b'\nlabels = { z = '2', b = '1' }",
			[]parser.Difference{
				{Path: "info.description", Old: `"a"`, New: `"b"`},
				{Path: "info.labels.z", Old: `"1"`, New: `"2"`},
				{Path: "info.labels.a", Old: `"1"`},
				{Path: "info.labels.b", New: `"1"`},
				{Path: "limits.retries", Old: "1", New: "2"},
			},
		},
		"an item more": {
			"output.metrics = [{ name = 'a' }]", "[[output.metrics]]\nname = 'b'\n[[output.metrics]]\nname = 'c'\nunits = ''",
			[]parser.Difference{
				{Path: "output.metrics[0].name", Old: `"a"`, New: `"b"`},
				{Path: "output.metrics[1].name", New: `"c"`},
				{Path: "output.metrics[1].units", New: `""`},
			},
		},
		"a table whose presence says something": {
			"[output]\nmetrics = []", "[custom_params]\n", []parser.Difference{{Path: "output.metrics", Old: "[]"}, {Path: "custom_params", New: "{}"}},
		},
		"keys that there are not": {
			"b = 1\na = { x = 1 }", "c.d = [{ e = 1 }]\na.x = '1'",
			[]parser.Difference{{Path: "b", Old: "1"}, {Path: "a.x", Old: "1", New: `"1"`}, {Path: "c.d", New: "[{ e = 1 }]"}},
		},
		"values of wrong types": {
			"hardware = 1\noutput.metrics = 2\nlimits.retries = 'x'\ninfo = {labels = 3}", "hardware = {}\noutput.metrics = [1]\nlimits.retries = 'x'\ninfo = {labels={}}",
			[]parser.Difference{
				{Path: "info.labels", Old: "3", New: "{}"},
				{Path: "hardware", Old: "1", New: "{}"},
				{Path: "output.metrics", Old: "2", New: "[1]"},
			},
		},
		"what is passed on as it is": {
			"[custom_params.hyper_params]\na.b = 1.0\nc = [1]", "[custom_params.hyper_params]\na.b = 2.0\nc = [1]",
			[]parser.Difference{{Path: "custom_params.hyper_params.a.b", Old: "1.0", New: "2.0"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parser.Diff([]byte(tt.a+"\n# a"), []byte(tt.b+"\n# b"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyTOMLCanBeCompared(t *testing.T) {
	_, err := parser.Diff([]byte("a = 1"), []byte("a = 1\nb = x"))
	invalid, ok := errors.AsType[*parser.InvalidError](err)
	if !ok || invalid.Faults[0].Line != 2 || !strings.HasPrefix(err.Error(), "read the second descriptor: ") {
		t.Errorf("%v", err)
	}
	if _, err := parser.Diff([]byte("\xff"), []byte("a = 1")); err == nil {
		t.Error("what is no text")
	}
}

// With the differences as overrides one descriptor becomes the other.
func TestTheDifferencesMakeOneDescriptorOfTheOther(t *testing.T) {
	var texts []string
	for _, text := range files(t, "../examples/*.toml") {
		texts = append(texts, string(text))
	}
	rapid.Check(t, func(t *rapid.T) {
		a := []byte(rapid.SampledFrom(texts).Draw(t, "text"))
		d, b, _ := parser.ParseWith("f.toml", a, overrides(rapid.SliceOfN(rapid.SampledFrom([]string{
			"hardware.gpus=2", "hardware.cpus=500m", "info.labels.x=y", "info.description=a\"b'c", "limits.deadline=2h", "limits={}", "env.vars.'A.B'=x",
			"env.vars={ A = 'x', B = '$(A)' }", "data.sources.0.src=s3://b/k", "data.sources.0.path=/d", "output.metrics.0.direction=lower", "ml.args=x",
			"ml.framework=jax", "output.artifacts.0.path=/tmp/x", "hardware.tolerations.0.operator=Exists", "info.labels={}",
			"custom_params.hyper_params.a.b=[1, {c = 1.5}]", "env.secrets.S=a/b", "hardware.strategy=client_server", "hardware.distributed.num_instances=3",
		}), 1, 5).Draw(t, "set")...))
		if b == nil || d == nil {
			t.Skip("no descriptor")
		}
		if same, err := parser.Diff(b, b); err != nil || len(same) > 0 {
			t.Fatalf("to itself: %v %v", same, err)
		}
		all, err := parser.Diff(a, b)
		if err != nil || slices.ContainsFunc(all, func(d parser.Difference) bool { return d.New == "" }) {
			t.Skip("an override takes nothing away", err)
		}
		var set []parser.Override
		for _, difference := range all {
			set = append(set, parser.Override{Path: difference.Path, Value: difference.New})
		}
		again, _, faults := parser.ParseWith("f.toml", a, set)
		if diff := cmp.Diff(withoutOrder(d), withoutOrder(again)); diff != "" {
			t.Fatalf("%s\n%v\n%v", diff, all, faults)
		}
	})
}

// withoutOrder is d without the order of its variables, which is no difference.
func withoutOrder(d *descriptors.Descriptor) *descriptors.Descriptor {
	if d == nil {
		return nil
	}
	one := *d
	one.Env.VarOrder = nil
	if d.Server != nil {
		server := *d.Server
		server.Env.VarOrder = nil
		one.Server = &server
	}
	return &one
}
