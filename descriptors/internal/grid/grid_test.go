package grid_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/edit"
	"github.com/benchmark-ai/bai/descriptors/internal/grid"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/internal/types"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// file has keys in tables of every kind.
const file = `spec_version = "1.0"
info.description = "d" # dotted
info.labels = { a = "b" }
[hardware]
cpus = 2
[[hardware.tolerations]]
key = "k"
[env]
docker_image = "alpine:3"
[env.vars]
A = "1"
[[output.metrics]]
name = "m"
units = "s"
[[output.metrics]]
name = "n"
units = "s"
`

func lists() edit.Lists { return decode.Lists(&descriptors.Descriptor{}, types.All()) }

func paths() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"info.description", "info.labels.a", "info.labels.c", "info.labels", "hardware.cpus", "hardware.memory", "hardware.tolerations.0.key",
		"hardware.tolerations[0]", "hardware.tolerations", "env.vars.A", "env.vars.B", `env.vars."A.B"`, "env.vars", "env.secrets.X",
		"output.metrics.0", "output.metrics.1.units", "output.metrics.1.direction", "output.metrics.2.name", "limits.retries", "server.env.ports",
		"custom_params.hyper_params.a.b", "ml.args", "data.sources.0.src",
	})
}

func value() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		`"x"`, "'a\"b'", "4", "1.5", "true", "[1, 2]", "[]", "{}", `{ a = "b", c.d = 1 }`, "[{ name = 'n' }]", "2026-12-01", "'{{p}}'", `"ü\n"`,
	})
}

// TestACellsTextIsTheFileWithItsValuesAsOverridesSetThem compares the texts of all cells, most
// of which come from the template of another cell, with one override after the other.
func TestACellsTextIsTheFileWithItsValuesAsOverridesSetThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(drawSweep(t))
		tree, broken := syntax.Parse(text)
		if len(broken) > 0 {
			t.Fatal(broken)
		}
		g, faults := grid.Read(grid.Source{Text: text, Tree: tree, Lists: lists(), RunsPerCell: 1, MostRuns: 100})
		if g == nil {
			t.Skip(faults)
		}
		for i := range g.Len() {
			if diff := cmp.Diff(overridden(t, g.Point(i).Settings), string(g.Text(i))); diff != "" {
				t.Fatalf("%s: %s", g.Point(i).Name, diff)
			}
		}
	})
}

// drawSweep is file with lists of values for some paths.
func drawSweep(t *rapid.T) string {
	text := file + "[sweep.product]\n"
	for _, path := range rapid.SliceOfNDistinct(paths(), 1, 3, rapid.ID).Draw(t, "paths") {
		values := rapid.SliceOfNDistinct(value(), 1, 3, rapid.ID).Draw(t, "values")
		text += fmt.Sprintf("%s = [%s]\n", syntax.Key(path), strings.Join(values, ", "))
	}
	return text
}

// overridden is file with settings, each as an override sets it.
func overridden(t *rapid.T, settings []grid.Setting) string {
	want := edit.New([]byte(file))
	for n, s := range settings {
		path, err := edit.ReadPath(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		_ = want.Set(path, s.Text, n, lists()) // a path that leads nowhere is left out, and a fault of Check
	}
	return string(want.Bytes())
}

// hostileSweeps are texts with sweeps that are large in some way.
func hostileSweeps() map[string]string {
	numbers := func(n int) string { return "[" + strings.Repeat("1, ", n-1) + "1]" }
	distinct := func(n int) string {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, "%d,", i)
		}
		return "[" + s.String() + "]"
	}
	long := file + "# " + strings.Repeat("x", 100<<10) + "\n[ml]\nargs = \"{{a}}\"\n"
	keys := file + "[info.labels2]\n"
	for i := range 4000 {
		keys += fmt.Sprintf("label-%d = \"value-%d\"\n", i, i)
	}
	keys = strings.Replace(strings.Replace(keys, "info.labels = { a = \"b\" }\n", "", 1), "info.labels2", "custom_params.hyper_params", 1)
	var rows strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&rows, "[[sweep.explicit]]\na = %d\nx%d = 1\nx%d = 1\n", i, i%7, 7+i%11)
	}
	return map[string]string{
		"equal values":            long + "[sweep.product]\na = " + numbers(20_000) + "\n",
		"as much as is read":      keys + "[ml]\nargs = \"{{a}}\"\n[sweep.product]\na = " + distinct(300) + "\nb = [1]\n",
		"very many values":        long + "[sweep.product]\na = " + distinct(20_000) + "\n",
		"values that are refused": file + "[ml]\nargs = \"{{a}}\"\n[sweep.product]\na = " + distinct(300) + "\n\"hardware.cpus\" = [" + strings.Repeat("'x', ", 20_000) + "]\n",
		"rows of many parameters": long + rows.String(),
		"tables":                  long + "[sweep.product]\na = [1]\n\"output.metrics.0\" = [" + strings.Repeat("{ name = 'a' }, ", 2000) + "]\n",
		"braces":                  file + "[ml]\nargs = '" + strings.Repeat("{", 200<<10) + "'\n[sweep.product]\na = [1]\n",
		"names":                   file + "[ml]\nargs = '" + strings.Repeat("{{a}}{{b}}", 20<<10) + "'\n[sweep.product]\na = " + distinct(1000) + "\n",
		"rows of exclude":         file + "[ml]\nargs = '{{a}} {{b}}'\n[sweep.product]\na = " + distinct(300) + "\nb = " + distinct(300) + "\n" + strings.Repeat("[[sweep.exclude]]\na = 299\nb = 1\n", 900) + "[[sweep.exclude]]\nc = 1\n",
		"names without end":       file + "[sweep.product]\n" + strings.Repeat("a", 200<<10) + " = [1]\n",
		"parameters without end": file + "[sweep.product]\n" + func() (s string) {
			for i := range 10_000 {
				s += fmt.Sprintf("a%d = [1]\n", i)
			}
			return s
		}(),
		"a product that is too big": file + "[sweep.product]\n" + func() (s string) {
			for i := range 49 {
				s += fmt.Sprintf("a%d = [1, 2, 3, 4]\n", i)
			}
			return s
		}(),
	}
}

func TestNoSweepTakesLong(t *testing.T) {
	for name, text := range hostileSweeps() {
		t.Run(name, func(t *testing.T) {
			if len(text) > parser.MaxSize {
				t.Fatalf("%d bytes", len(text))
			}
			start := time.Now()
			_, faults := parser.Parse("f.toml", []byte(text))
			if took := time.Since(start); took > time.Minute {
				t.Error(took)
			}
			if len(faults) == 0 {
				t.Error("no fault")
			}
		})
	}
}
