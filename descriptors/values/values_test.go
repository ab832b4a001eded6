package values_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/values"
)

const base = `spec_version = "1.0"
[info]
description = "x"
[hardware]
cpus = 2
[env]
docker_image = "alpine:3"
[ml]
benchmark_code = "run"
args = "--size {{size}}"
`

func TestAValuesFileIsTheOverridesOfItsKeys(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		want []string
	}{
		"the keys of tables are laid over one by one": {
			"[hardware]\ncpus = 4\n[hardware.distributed]\nnum_instances = 2\n[env.vars]\n\"A.B\" = 'x'\n",
			[]string{"hardware.cpus=4", "hardware.distributed.num_instances=2", `env.vars."A.B"='x'`},
		},
		"dotted keys and tables in braces are tables": {
			"hardware.cpus = 4\nenv = { vars = { A = \"1\" } }\n", []string{"hardware.cpus=4", `env.vars.A="1"`},
		},
		"a name in quotes with a dot is a path": {
			"\"output.metrics[0].units\" = 's'\n", []string{"output.metrics[0].units='s'"},
		},
		"a list is laid over as a whole, as the file has it": {
			"data.sources = [\n  1, # one\n]\n", []string{"data.sources=[\n  1, # one\n]"},
		},
		"a list of tables is on one line": {
			"[[output.metrics]]\nname = 'a'\n[[output.metrics]]\nname = 'b'\n", []string{`output.metrics=[{ name = "a" }, { name = "b" }]`},
		},
		"a name that is no key of a descriptor is a parameter": {
			"spec_version = '1.0'\nsize = '1K'\n[parameters]\nthreads = 2\n",
			[]string{"spec_version='1.0'", "sweep.product.size=['1K']", "sweep.product.threads=[2]"},
		},
		"of two values with one path the later one stays": {
			"hardware.cpus = 4\n\"hardware.cpus\" = 5\n", []string{"hardware.cpus=5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all, faults := values.Read("v.toml", []byte(tt.file))
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			var got []string
			for _, o := range values.Overrides(all) {
				got = append(got, o.Path+"="+o.Value)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfValuesHaveTheirPlacesInTheFile(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		want []string
	}{
		"a key that is none is at the key":        {"[hardware]\nspeed = 3\n", []string{"v.toml:2:1: hardware.speed"}},
		"a value of another type is at the value": {"[hardware]\ncpus = \"many\"\n", []string{"v.toml:2:8: hardware.cpus"}},
		"a place in a list of several lines":      {"[output]\nmetrics = [\n  { name = 'a', units = 's', pattern = 3 },\n]\n", []string{"v.toml:3:40: output.metrics[0].pattern"}},
		"a place in a list of tables":             {"[[output.metrics]]\nname = 'a'\nunits = 's'\npattern = 3\n", []string{"v.toml:4:11: output.metrics[0].pattern"}},
		"a path that leads nowhere":               {"\n\"info.description.x\" = 3\n", []string{"v.toml:2:1: info.description.x"}},
		"a parameter that nothing uses":           {"threads = 2\nsize = 1\n", []string{"v.toml:1:1: sweep.product.threads"}},
		"a parameter of a wrong type":             {"size = [1]\n", []string{"v.toml:1:8: sweep.product.size"}},
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := values.Read("v.toml", []byte(tt.file))
			_, _, faults := parser.ParseWith("f.toml", []byte(base), values.Overrides(all))
			var got []string
			for _, f := range faults {
				got = append(got, strings.Join(strings.SplitN(values.Locate(f, all).String(), ":", 5)[:4], ":"))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, faults)
			}
		})
	}
}

func TestFaultsOfOtherOverridesKeepTheirPlaces(t *testing.T) {
	all, _ := values.Read("v.toml", []byte("[hardware]\ncpus = 4\n"))
	for _, f := range []parser.Fault{{File: "--set info.timezone", Line: 1, Column: 1}, {File: "f.toml", Line: 7, Column: 2}} {
		if got := values.Locate(f, all); got != f {
			t.Errorf("got %v, want %v", got, f)
		}
	}
}

func TestOverrideRemediesAreThoseOfAFile(t *testing.T) {
	all, _ := values.Read("v.toml", []byte("env.vars.N = 2\n"))
	_, _, faults := parser.ParseWith("f.toml", []byte(strings.ReplaceAll(base, "{{size}}", "1")), values.Overrides(all))
	if len(faults) != 1 || values.Locate(faults[0], all).Remedy != `write "2"` {
		t.Errorf("%v", faults)
	}
}

func TestAFileThatIsNoTOMLHasFaultsOfItsOwn(t *testing.T) {
	for text, want := range map[string]string{"x = \n": "v.toml:1:", "\x00": "v.toml:1:1"} {
		all, faults := values.Read("v.toml", []byte(text))
		if len(all) > 0 || len(faults) == 0 || !strings.HasPrefix(faults[0].String(), want) {
			t.Errorf("%q: %v", text, faults)
		}
	}
}

func TestAnEmptyFileHasNoValues(t *testing.T) {
	if all, faults := values.Read("v.toml", []byte("# later\n")); len(all)+len(faults) > 0 {
		t.Errorf("%v, %v", all, faults)
	}
	if all, faults := values.Read("v.toml", nil); len(all)+len(faults) > 0 {
		t.Errorf("%v, %v", all, faults)
	}
}

func TestValuesOfALaterFileWin(t *testing.T) {
	lower, _ := values.Read("a.toml", []byte("[hardware]\ncpus = 4\ngpus = 1\n"))
	upper, _ := values.Read("b.toml", []byte("[hardware]\ncpus = 8\n"))
	want := []parser.Override{{Path: "hardware.gpus", Value: "1"}, {Path: "hardware.cpus", Value: "8"}}
	if diff := cmp.Diff(want, values.Overrides(values.Merge(lower, upper))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOfManyValuesTheLastOfAPathCounts has values of which each replaces an earlier one with its path, and takes minutes where each is
// compared with those before it.
func TestOfManyValuesTheLastOfAPathCounts(t *testing.T) {
	const n = 20_000
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "'info.labels.a%d' = '1'\n", i)
	}
	text.WriteString("[info.labels]\n")
	for i := range n {
		fmt.Fprintf(&text, "a%d = '2'\n", i)
	}
	tree, broken := syntax.Parse([]byte(text.String()))
	if len(broken) > 0 {
		t.Fatal(broken)
	}
	all := values.Of("f.toml", []byte(text.String()), tree)
	if len(all) != n || all[0].Path != "info.labels.a0" || all[0].Value != "'2'" {
		t.Errorf("%d values, the first is %+v", len(all), all[0].Override)
	}
}
