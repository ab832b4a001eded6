package parser_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

// files are the texts of the files that pattern names, by their paths.
func files(tb testing.TB, pattern string) map[string][]byte {
	tb.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		tb.Fatalf("no files %s: %v", pattern, err)
	}
	texts := map[string][]byte{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		texts[name] = text
	}
	return texts
}

func TestEveryExampleIsADescriptor(t *testing.T) {
	for name, text := range files(t, "../examples/*.toml") {
		t.Run(name, func(t *testing.T) {
			d, faults := parser.Parse(name, text)
			if d == nil {
				t.Fatal(faults.Err())
			}
			if len(faults) > 0 && filepath.Base(name) != "every-key.toml" {
				t.Errorf("warnings: %v", faults)
			}
		})
	}
}

// TestTheFirstDescriptorOfTheReadmeIsOne leaves out its data, as the README says.
func TestTheFirstDescriptorOfTheReadmeIsOne(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("```toml\n"))
	text, _, _ = bytes.Cut(text, []byte("```\n"))
	before, data, found := bytes.Cut(text, []byte("[[data.sources]]"))
	_, after, closed := bytes.Cut(data, []byte("\n\n"))
	if !found || !closed {
		t.Fatalf("the README has no descriptor with data:\n%s", text)
	}
	if _, faults := parser.Parse("README.md", slices.Concat(before, after)); len(faults) > 0 {
		t.Error(faults)
	}
}

// No file has a strategy and roles: those are in a file of their own.
func TestTheExamplesWithEveryKeyHaveEveryKey(t *testing.T) {
	has := map[string]bool{}
	for _, name := range []string{"../examples/every-key.toml", "../examples/roles.toml", "../examples/stop-when.toml", "../examples/steps.toml", "../examples/network.toml", "../examples/manifest.toml", "../examples/manifest-file/descriptor.toml"} {
		var tree map[string]any
		if _, err := toml.DecodeFile(name, &tree); err != nil {
			t.Fatal(err)
		}
		walk(tree, "", has)
	}
	for _, key := range parser.Keys() {
		if !has[key.Path] {
			t.Errorf("%s is not there", key.Path)
		}
	}
}

func walk(value any, path string, has map[string]bool) {
	has[path] = true
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			walk(v, strings.TrimPrefix(path+"."+name, "."), has)
		}
	case []map[string]any:
		for _, v := range value {
			walk(v, path+"[]", has)
		}
	case []any:
		for _, v := range value {
			walk(v, path+"[]", has)
		}
	}
}

func TestEveryKeyIsDescribed(t *testing.T) {
	keys := parser.Keys()
	for _, key := range keys {
		if key.Doc == "" || key.Type == "" {
			t.Errorf("%s: type %q, described as %q", key.Path, key.Type, key.Doc)
		}
	}
	i := slices.IndexFunc(keys, func(k parser.Key) bool { return k.Path == "hardware.strategy" })
	want := parser.Key{
		Path: "hardware.strategy", Type: "string", Default: "single_node", Values: []string{"single_node", "mpi", "inference", "manifest"},
		Aliases: []string{"horovod", "client_server"},
		Doc:     "strategy is the number of pods of a run and their roles: one pod; equal pods that communicate by MPI (also called horovod); a client and its server (also called client_server); or those of the objects of the table manifest.",
		Schema:  map[string]any{"type": "string", "enum": []any{"single_node", "mpi", "inference", "manifest", "horovod", "client_server"}},
	}
	if diff := cmp.Diff(want, keys[i]); diff != "" {
		t.Error(diff)
	}
}
