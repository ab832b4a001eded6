package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestWhatIsRenderedWithoutAPlatformIsTheSameEachTime(t *testing.T) {
	examples, err := filepath.Glob(filepath.Join("..", "..", "..", "descriptors", "examples", "*.toml"))
	if err != nil || len(examples) == 0 {
		t.Fatal(examples, err)
	}
	for _, file := range examples {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			checkRendered(t, file)
		})
	}
}

// checkRendered checks the rendered objects of an example.
func checkRendered(t *testing.T, file string) {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	first, second := runPiped(t, "", "render", path), runPiped(t, "", "render", path)
	if first.out != second.out || first.code != second.code {
		t.Errorf("first\n%s\nthen\n%s", first, second)
	}
	if first.code == 2 && strings.Contains(first.err, "render ") { // the example needs a platform
		return
	}
	if kinds := kindsOf(t, first.out); first.code != 0 || kinds["Job"]+kinds["PyTorchJob"] == 0 {
		t.Errorf("exit %d, kinds %v: %s", first.code, kinds, first.err)
	}
}

// kindsOf counts the objects in YAML documents by their kinds.
func kindsOf(t *testing.T, text string) map[string]int {
	t.Helper()
	kinds := map[string]int{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string `yaml:"kind"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil || object.APIVersion == "" {
			t.Errorf("%v, %+v: %s", err, object, document)
		}
		kinds[object.Kind]++
	}
	return kinds
}

func TestOverridesAreRendered(t *testing.T) {
	got := runPiped(t, "", "render", "good.toml", "--set", "env.vars.COLOUR=teal", "--set", "env.docker_image=alpine:7")
	if got.code != 0 || !strings.Contains(got.out, "teal") || !strings.Contains(got.out, "alpine:7") {
		t.Errorf("%s", got)
	}
}

func TestEveryFaultIsExplained(t *testing.T) {
	listed := runPiped(t, "", "explain", "-o", "name")
	codes := strings.Fields(listed.out)
	if listed.code != 0 || len(codes) < 40 {
		t.Fatal(listed)
	}
	table := runPiped(t, "", "explain")
	for _, code := range codes {
		if !strings.Contains(table.out, code+"  ") {
			t.Errorf("%s is not in the table", code)
		}
	}
	completed := runPiped(t, "", "__complete", "explain", "")
	if !strings.Contains(completed.out, codes[0]+"\t") {
		t.Errorf("codes are not completed: %s", completed)
	}
}

func TestTheSameTextIsReadFromAFileAndTheStandardInput(t *testing.T) {
	text, err := os.Open(filepath.Join("testdata", "good.toml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = text.Close() }() // it was only read
	cmd := command(t, "", "render", "-")
	cmd.Stdin = text
	if got, want := finish(t, cmd), runPiped(t, "", "render", "good.toml"); got.out != want.out || got.code != 0 {
		t.Errorf("%s", got)
	}
}
