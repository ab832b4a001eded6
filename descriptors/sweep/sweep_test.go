package sweep_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
)

// base is a descriptor without its sweep.
const base = `spec_version = "1.0"

[info]
description = "what is measured" # not varied

[hardware]
strategy = "mpi"
cpus = 2

[hardware.distributed]
num_instances = 2

[env]
docker_image = "alpine:3"

[ml]
benchmark_code = "run"
`

// withSize is base with a parameter.
const withSize = base + "args = \"--size {{size}}\"\n"

func read(t *testing.T, text string) *sweep.Plan {
	t.Helper()
	p, faults := sweep.Read(parser.Parser{}, "f.toml", []byte(text))
	if p == nil {
		t.Fatal(faults)
	}
	return p
}

func names(p *sweep.Plan) []string {
	var all []string
	for i := range p.Cells() {
		all = append(all, p.Cell(i).Name)
	}
	return all
}

func TestTheCellsOfASweep(t *testing.T) {
	tests := map[string]struct {
		sweep string
		want  []string
	}{
		"every combination, the last name fastest": {
			"[sweep.product]\n\"hardware.distributed.num_instances\" = [2, 4]\nsize = ['1K', '1M']",
			[]string{"num_instances=2,size=1K", "num_instances=2,size=1M", "num_instances=4,size=1K", "num_instances=4,size=1M"},
		},
		"the lists of zip advance together, as the fastest axis": {
			"[sweep.zip]\n\"hardware.cpus\" = [1, 2]\n\"hardware.memory\" = ['1Gi', '2Gi']\n[sweep.product]\nsize = ['1K', '1M']",
			[]string{"size=1K,cpus=1,memory=1Gi", "size=1K,cpus=2,memory=2Gi", "size=1M,cpus=1,memory=1Gi", "size=1M,cpus=2,memory=2Gi"},
		},
		"explicit rows come after the combinations": {
			"[[sweep.explicit]]\nsize = '16M'\n\"hardware.cpus\" = 8\n[sweep.product]\nsize = ['1K']",
			[]string{"size=1K", "size=16M,cpus=8"},
		},
		"explicit rows are the only cells where there is no list": {
			"[[sweep.explicit]]\nsize = '1K'\n[[sweep.explicit]]\nsize = '1M'",
			[]string{"size=1K", "size=1M"},
		},
		"a cell with all values of a row of exclude is left out": {
			"[sweep.product]\nsize = ['1K', '1M']\n\"hardware.cpus\" = [1, 2]\n[[sweep.exclude]]\nsize = '1M'\n\"hardware.cpus\" = 2\n[[sweep.explicit]]\nsize = '1G'\n[[sweep.exclude]]\nsize = '1K'",
			[]string{"size=1M,cpus=1", "size=1G"},
		},
		"a name has the whole path where the last key is that of two": {
			"[sweep.product]\nsize = ['1K']\n\"hardware.cpus\" = [1]\ncpus = [2]\n\"env.vars.A\" = ['x']\n\"output.metrics.0\" = [{ name = 'a', units = 's', pattern = 'a([0-9])' }]",
			[]string{"size=1K,hardware.cpus=1,cpus=2,A=x,output.metrics.0={ name = \"a\", units = \"s\", pa…"},
		},
		"a long value is cut": {
			"[sweep.product]\nsize = ['" + strings.Repeat("ü", 40) + "']",
			[]string{"size=" + strings.Repeat("ü", 14) + "…"},
		},
		"a value that people cannot read is quoted": {
			"[sweep.product]\nsize = [\"a\\nb\", \"a#b\"]",
			[]string{`size="a\nb"`, `size="a#b"`},
		},
		"equal names get the cell's ID": {
			"[sweep.product]\nsize = [1, '1', '" + strings.Repeat("x", 50) + "', '" + strings.Repeat("x", 51) + "']",
			[]string{"size=1#e0b4162aab0c", "size=1#", "size=" + strings.Repeat("x", 29) + "…#", "size=" + strings.Repeat("x", 29) + "…#"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := names(read(t, withSize+tt.sweep))
			if sorted := slices.Sorted(slices.Values(got)); len(slices.Compact(sorted)) != len(tt.want) {
				t.Fatalf("want %d cells with names of their own: %v", len(tt.want), got)
			}
			for i, name := range got {
				if name, _, _ := strings.Cut(name, "#"); strings.HasSuffix(tt.want[i], "#") {
					got[i] = name + "#"
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestACellHasItsValuesAsTOMLAndAsGoHasThem(t *testing.T) {
	p := read(t, withSize+`[[sweep.explicit]]
size = 'a\b'
"custom_params.hyper_params" = { a = [1, 2.5, 0x1F], b = 2026-12-01 }
"env.privileged" = true
`)
	c := p.Cell(0)
	want := []sweep.Parameter{
		{"size", `'a\b'`, `a\b`},
		{"custom_params.hyper_params", "{ a = [1, 2.5, 0x1F], b = 2026-12-01 }", map[string]any{"a": []any{int64(1), 2.5, int64(31)}, "b": "2026-12-01"}},
		{"env.privileged", "true", true},
	}
	if diff := cmp.Diff(want, c.Parameters); diff != "" {
		t.Error(diff)
	}
}

func TestAnIDDependsOnTheValuesOfItsCellOnly(t *testing.T) {
	ids := func(text string) map[string]bool {
		all := map[string]bool{}
		p := read(t, text)
		for i := range p.Cells() {
			all[p.Cell(i).ID] = true
		}
		return all
	}
	want := ids(withSize + "[sweep.product]\nsize = ['1K', '1M']\n\"hardware.cpus\" = [1, 2]")
	for name, text := range map[string]string{
		"another order":       "[sweep.product]\n\"hardware.cpus\" = [2, 1]\nsize = ['1M', '1K']",
		"other repetitions":   "[sweep]\nrepetitions = 7\norder = 'random'\n[sweep.product]\nsize = ['1K', '1M']\n\"hardware.cpus\" = [1, 2]",
		"another spelling":    "[sweep.product]\nsize = [\"1K\", '''1M''']\n'hardware.cpus' = [\n 1,\n 2, # two\n]",
		"rows of the same":    "[[sweep.explicit]]\nsize = '1K'\n\"hardware.cpus\" = 1\n[[sweep.explicit]]\n\"hardware.cpus\" = 2\nsize = '1K'\n[sweep.product]\nsize = ['1M']\n\"hardware.cpus\" = [1, 2]",
		"lists that go along": "[sweep.product]\nsize = ['1M', '1K']\n[sweep.zip]\n\"hardware.cpus\" = [2, 1]",
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, ids(withSize+text)); diff != "" {
				t.Error(diff)
			}
		})
	}
	p := read(t, withSize+"[sweep.product]\nsize = ['1K']\n\"hardware.cpus\" = [1]")
	// printf 'hardware.cpus=1\nsize="1K"\n' | sha256sum | head -c 12
	if got := p.Cell(0).ID; got != "2f48c8d923f6" {
		t.Errorf("%s", got)
	}
}

func TestTheTextOfACellIsTheFileWithItsValues(t *testing.T) {
	tests := map[string]struct {
		text string
		want string // of the last cell
	}{
		"a key is set where it is": {
			"[hardware]\ncpus = 2 # two\n[sweep.product]\n\"hardware.cpus\" = [1, 4]\n",
			"[hardware]\ncpus = 4 # two\n",
		},
		"a key that is not there is added to its table": {
			"[hardware]\ncpus = 2\n[sweep.product]\n\"hardware.memory\" = ['1Gi']\n[limits]\nretries = 1\n",
			"[hardware]\ncpus = 2\nmemory = \"1Gi\"\n[limits]\nretries = 1\n",
		},
		"a table is written into an element of a list": {
			"[hardware]\ncpus = 2\n[[output.metrics]]\nname = 'a'\nunits = 's'\npattern = 'a=([0-9])'\n[sweep.product]\n\"output.metrics.0\" = [{ name = 'b', units = 's', pattern = 'b=([0-9])' }]\n",
			"[hardware]\ncpus = 2\n[[output.metrics]]\nname = \"b\"\nunits = \"s\"\npattern = \"b=([0-9])\"\n",
		},
		"names in strings of every kind": {
			"[hardware]\ncpus = 2\n[ml]\nargs = '''\n{{a}} {{A}}'''\nbenchmark_code = \"\"\"\nrun \\\n  {{a}} \\u0041\"\"\"\n[env.vars]\nX = '{{b}}'\nY = \"\\\"{{b}}\"\n[sweep.product]\na = ['x y']\nA = [0x1F]\nb = [true]\n",
			"[hardware]\ncpus = 2\n[ml]\nargs = '''\nx y 0x1F'''\nbenchmark_code = \"\"\"\nrun \\\n  x y \\u0041\"\"\"\n[env.vars]\nX = 'true'\nY = \"\\\"true\"\n",
		},
		"a string is quoted anew where its quotes cannot hold a value": {
			"[hardware]\ncpus = 2\n[env.vars]\nX = '{{b}}'\nY = \"a {{b}}\"\nZ = '''it's {{b}}'''\n[sweep.product]\nb = [\"it's\\n\"]\n",
			"[hardware]\ncpus = 2\n[env.vars]\nX = \"it's\\n\"\nY = \"a it's\\n\"\nZ = \"it's it's\\n\"\n",
		},
		"escapes in the file that make names": {
			"[hardware]\ncpus = 2\n[env.vars]\nX = \"\\u007b{b}}\"\nY = \"\\u007b\\u007b{{b}}\"\n[sweep.product]\nb = [7]\n",
			"[hardware]\ncpus = 2\n[env.vars]\nX = \"7\"\nY = \"{{b}}\"\n",
		},
		"braces that are no name": {
			"[hardware]\ncpus = 2\n[env.vars]\nX = '{{{{b}} {{ b }} {{1}} {{b} {{{b}}} {{{{{{b}}'\n[sweep.product]\nb = [7]\n",
			"[hardware]\ncpus = 2\n[env.vars]\nX = '{{b}} {{ b }} {{1}} {{b} {7} {{7'\n",
		},
		"a value is no text with names": {
			"[hardware]\ncpus = 2\n[ml]\nargs = '{{b}}'\nbenchmark_code = 'x'\n[sweep.product]\nb = ['{{c}}']\n\"ml.benchmark_code\" = ['{{b}}']\n",
			"[hardware]\ncpus = 2\n[ml]\nargs = '{{c}}'\nbenchmark_code = \"{{b}}\"\n",
		},
		"a name whose string another name replaces": {
			"[hardware]\ncpus = 2\n[ml]\nargs = '{{b}} {{nowhere}}'\nbenchmark_code = '{{b}}'\n[sweep.product]\nb = [7]\n\"ml.args\" = ['x']\n",
			"[hardware]\ncpus = 2\n[ml]\nargs = \"x\"\nbenchmark_code = '7'\n",
		},
		"a sweep of dotted keys": {
			"sweep.repetitions = 2\nsweep.product.\"hardware.cpus\" = [3]\n[hardware]\ncpus = 2\n",
			"[hardware]\ncpus = 3\n",
		},
		"a sweep on one line, in a file with a byte order mark": {
			"\ufeffsweep = { product = { \"hardware.cpus\" = [3] } }\r\n[hardware]\r\ncpus = 2\r\n",
			"\ufeff[hardware]\r\ncpus = 3\r\n",
		},
	}
	const rest = "[info]\ndescription = \"d\"\n[env]\ndocker_image = \"alpine:3\"\n"
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			version := func(text string) string {
				mark := text[:len(text)-len(strings.TrimPrefix(text, "\ufeff"))]
				return mark + "spec_version = \"1.0\"\n" + strings.TrimPrefix(text, mark)
			}
			text := strings.Replace(version(tt.text), "[hardware]", rest+"[hardware]", 1)
			p := read(t, text)
			want := strings.Replace(version(tt.want), "[hardware]", rest+"[hardware]", 1)
			got := string(p.Descriptor(p.Cells() - 1))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if d, faults := parser.Parse("cell.toml", []byte(got)); d == nil || d.Sweep != nil {
				t.Error(faults)
			}
		})
	}
}

func TestWithoutASweepBracesAreBraces(t *testing.T) {
	d, faults := parser.Parse("f.toml", []byte(withSize+"[env.vars]\nX = '{{{{x}} {{y}}'\n"))
	if d == nil || d.Env.Vars["X"] != "{{{{x}} {{y}}" || d.ML.Args != "--size {{size}}" {
		t.Error(d, faults)
	}
	if p, faults := sweep.Read(parser.Parser{}, "f.toml", []byte(withSize)); p != nil || len(faults) > 0 {
		t.Error(p, faults)
	}
}

func TestParseGivesTheFirstCellAndTheSweep(t *testing.T) {
	const text = withSize + "[sweep]\nrepetitions = 3\n[sweep.product]\nsize = ['1K', '1M']\n\"hardware.cpus\" = [4, 8]\n"
	d, faults := parser.Parse("f.toml", []byte(text))
	if d == nil || len(faults) > 0 {
		t.Fatal(faults)
	}
	if d.ML.Args != "--size 1K" || d.Hardware.CPUs != "4" || d.Sweep == nil {
		t.Errorf("%+v", d)
	}
	want := descriptors.Sweep{
		Repetitions: 3, Order: descriptors.Sequential, OnFailure: descriptors.Continue,
		Product: map[string][]any{"size": {"1K", "1M"}, "hardware.cpus": {int64(4), int64(8)}},
	}
	if diff := cmp.Diff(want, read(t, text).Sweep()); diff != "" {
		t.Error(diff)
	}
}

func TestAFaultOfACellIsAtItsValueEvenIfAnOverrideHasIt(t *testing.T) {
	const text = withSize + "[sweep.product]\nsize = ['1K']\n\"hardware.cpus\" = [1, 2]\n"
	_, _, faults := parser.ParseWith("f.toml", []byte(text), []parser.Override{
		{Path: `sweep.product."hardware.cpus"`, Value: "[1, 'x']"}, {Path: "sweep.repetitions", Value: "0"},
	})
	var got []string
	for _, f := range faults {
		got = append(got, f.Code+" "+f.String())
	}
	want := []string{`BAI0015 --set sweep.repetitions:1:1: sweep.repetitions: 0 is less than 1`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, _, faults = parser.ParseWith("f.toml", []byte(text), []parser.Override{{Path: `sweep.product."hardware.cpus"`, Value: "[1, 'x']"}})
	if got, want := fmt.Sprint(faults), `[--set sweep.product."hardware.cpus":1:5: hardware.cpus: in cell size=1K,cpus=x: "x" is not a number of CPUs (write 4, 0.5 or "500m")]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestASweepGivesARequiredKey(t *testing.T) {
	text := strings.Replace(withSize, `docker_image = "alpine:3"`, "", 1) + "[sweep.product]\nsize = [1]\n\"env.docker_image\" = ['alpine:3', 'debian:12']\n"
	if p := read(t, text); p.Cells() != 2 {
		t.Error(p.Cells())
	}
}

func TestTheLimitOfRunsIsThePlatforms(t *testing.T) {
	const text = withSize + "[sweep]\nrepetitions = 9\nwarmup = 1\n[sweep.product]\nsize = [1, 2, 3]\n"
	for most, want := range map[int]bool{29: false, 30: true, 0: true} {
		p, faults := sweep.Read(parser.Parser{MaxRuns: most}, "f.toml", []byte(text))
		if (p != nil) != want {
			t.Errorf("%d: %v", most, faults)
		}
	}
	if p, faults := sweep.Read(parser.Parser{MaxRuns: 2, Accepted: true}, "f.toml", []byte(text)); p == nil {
		t.Errorf("of an accepted one: %v", faults)
	}
	for name, lists := range map[string]string{
		"combinations": "a = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n",
		"a product that no number holds": strings.Join([]string{
			"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u",
		}, " = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n") + " = [1]\n",
	} {
		_, faults := sweep.Read(parser.Parser{MaxRuns: 9}, "f.toml", []byte(withSize+"[sweep.product]\n"+lists))
		if errs := faults.Errors(); len(errs) != 1 || errs[0].Code != "BAI0099" {
			t.Errorf("%s: %v", name, faults)
		}
	}
}

func TestEveryCellIsCheckedOfAFewAndEveryValueOfMany(t *testing.T) {
	numbers := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprint(i + 1)
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	// GPUs and processes on each of them: a fault of one combination.
	of := func(n int, gpus string) string {
		return withSize + "[sweep.product]\nsize = " + numbers(n) + "\n\"hardware.gpus\" = " + gpus + "\n\"hardware.distributed.processes_per_instance\" = [1, 'gpus']\n"
	}
	_, faults := parser.Parse("f.toml", []byte(of(4, "[1, 0]")))
	if len(faults) != 1 || !strings.Contains(faults[0].Message, "in cell size=1,gpus=0,processes_per_instance=gpus") {
		t.Errorf("of a few: %v", faults)
	}
	if _, faults := parser.Parse("f.toml", []byte(of(2000, "[1, 2]"))); len(faults) > 0 {
		t.Errorf("of many: %v", faults)
	}
	if _, faults := parser.Parse("f.toml", []byte(of(2000, "[1, 'x']"))); len(faults) != 1 {
		t.Errorf("a value of many: %v", faults)
	}
}

func TestASweepIsRefusedForTheTextOfItsCellsAndNotForItsOwn(t *testing.T) {
	values := make([]string, 10_000)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	text := withSize + "[sweep]\n[sweep.product]\nsize = [" + strings.Join(values, ", ") + "]\n"
	if p, faults := sweep.Read(parser.Parser{}, "f.toml", []byte(text)); p == nil || p.Cells() != len(values) {
		t.Errorf("a list of %d values: %v", len(values), faults)
	}
	long := strings.Replace(text, "[sweep]", "# "+strings.Repeat("x", 10_000)+"\n[env.vars]\nLONG = \""+strings.Repeat("x", 10_000)+"\"\n[sweep]", 1)
	_, faults := sweep.Read(parser.Parser{}, "f.toml", []byte(long))
	if errs := faults.Errors(); len(errs) != 1 || errs[0].Code != "BAI0099" || !strings.Contains(errs[0].Message, "32 MiB at most") {
		t.Errorf("cells of 20 kB: %v", faults)
	}
}

func TestParametersStandInTheObjectsOfAManifest(t *testing.T) {
	const text = `spec_version = "1.0"
[info]
description = "x"
[hardware]
cpus = 1
strategy = "manifest"
[env]
docker_image = "alpine:3"
[manifest]
objects = '''
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: flow}
spec: {arguments: {parameters: [{name: size, value: "{{size}}"}, {name: own, value: "{{{{workflow.name}}"}]}}
'''
[sweep.product]
size = [1, 2]
`
	p := read(t, text)
	for i := range p.Cells() {
		cell := string(p.Descriptor(i))
		if want := fmt.Sprintf(`value: "%d"}, {name: own, value: "{{workflow.name}}"`, i+1); !strings.Contains(cell, want) {
			t.Errorf("cell %d: %s", i, cell)
		}
	}
}
