package parser_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/templates"
)

func TestEveryTemplateIsADescriptorWithoutWarnings(t *testing.T) {
	for _, kind := range templates.Kinds() {
		t.Run(kind, func(t *testing.T) {
			text, ok := templates.Text(kind)
			if !ok {
				t.Fatal("there is none")
			}
			d, faults := parser.Parse(kind+".toml", text)
			if d == nil || len(faults) > 0 {
				t.Fatal(faults)
			}
			if strings.Count(string(text), "# ") < 8 {
				t.Error("it has few comments")
			}
		})
	}
}

func TestATemplateIsOfItsKind(t *testing.T) {
	for kind, is := range map[string]func(*descriptors.Descriptor) bool{
		"single_node": func(d *descriptors.Descriptor) bool { return d.Hardware.Strategy == descriptors.SingleNode },
		"gpu":         func(d *descriptors.Descriptor) bool { n, ok := d.GPUCount(); return ok && n > 0 },
		"mpi":         func(d *descriptors.Descriptor) bool { return d.Hardware.Strategy == descriptors.MPI },
		"inference":   func(d *descriptors.Descriptor) bool { return d.Hardware.Strategy == descriptors.Inference },
		"scheduled":   func(d *descriptors.Descriptor) bool { return d.Info.Scheduled() },
		"sweep":       func(d *descriptors.Descriptor) bool { return d.Sweep != nil },
	} {
		text, _ := templates.Text(kind)
		if d, faults := parser.Parse(kind, text); d == nil || !is(d) {
			t.Errorf("%s: %v", kind, faults)
		}
	}
}

// A template is also accepted with its commented keys enabled.
func TestWhatATemplateHasInCommentsIsTaken(t *testing.T) {
	for _, kind := range templates.Kinds() {
		t.Run(kind, func(t *testing.T) {
			text, _ := templates.Text(kind)
			var lines []string
			for line := range strings.Lines(string(text)) {
				bare := strings.TrimPrefix(line, "# ")
				if strings.HasPrefix(bare, "[[") || strings.Contains(bare, " = ") && !strings.Contains(bare, "…") {
					line = bare
				}
				lines = append(lines, line)
			}
			if _, faults := parser.Parse(kind+".toml", []byte(strings.Join(lines, ""))); len(faults) > 0 {
				t.Error(faults)
			}
		})
	}
}

func TestEveryFileOfTheTemplatesIsOne(t *testing.T) {
	var names []string
	for name := range files(t, "../templates/*.toml") {
		names = append(names, strings.TrimSuffix(filepath.Base(name), ".toml"))
	}
	slices.Sort(names)
	want := templates.Kinds()
	slices.Sort(want)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestATemplateIsFoundByItsAliasesAndNoOthers(t *testing.T) {
	for alias, kind := range map[string]string{"horovod": "mpi", "client_server": "inference"} {
		got, ok := templates.Text(alias)
		want, _ := templates.Text(kind)
		if diff := cmp.Diff(string(want), string(got)); !ok || diff != "" {
			t.Errorf("%s: %s", alias, diff)
		}
	}
	for _, none := range []string{"", "singlenode", "../examples/minimal", "mpi.toml"} {
		if _, ok := templates.Text(none); ok {
			t.Errorf("there is %q", none)
		}
	}
}
