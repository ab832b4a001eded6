package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// programs builds a program under the name of each of ours.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	for name, text := range map[string]string{"go.mod": "module example.org/p\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.MkdirAll(src, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, names := range ours() {
		for _, name := range names {
			cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, "bin", name), ".")
			cmd.Dir, cmd.Env = src, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	}
	return filepath.Join(dir, "bin")
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheSameProgramsGiveTheSameBytes(t *testing.T) {
	bin, dir := programs(t), t.TempDir()
	var trees []map[string]string
	for _, out := range []string{"a", "b"} {
		if err := dispatch([]string{"all", "-bin", bin, "-out", filepath.Join(dir, out), "-version", "v1+dirty"}); err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree(t, filepath.Join(dir, out)))
	}
	if len(trees[0]) != len(trees[1]) || len(trees[0]) < 3*len(ours()) {
		t.Fatalf("%d and %d files", len(trees[0]), len(trees[1]))
	}
	for name, body := range trees[0] {
		if trees[1][name] != body {
			t.Errorf("%s differs", name)
		}
	}
}

func TestImagesRunOneProgramAndNotAsRoot(t *testing.T) {
	bin, out := programs(t), filepath.Join(t.TempDir(), "out")
	if err := dispatch([]string{"all", "-bin", bin, "-out", out, "-version", "v1+dirty"}); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(out)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Manifests) != len(ours()) {
		t.Errorf("%d images, want %d", len(m.Manifests), len(ours()))
	}
	for _, d := range m.Manifests {
		name := d.Annotations["io.containerd.image.name"]
		if !strings.HasSuffix(name, ":v1-dirty") {
			t.Errorf("name %q", name)
		}
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		c, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if c.Config.User != nobody || len(c.Config.Entrypoint) != 1 || len(c.RootFS.DiffIDs) != 1 {
			t.Errorf("%s: %+v", name, c.Config)
		}
	}
}

func TestWhatImagesAreMadeOfIsListed(t *testing.T) {
	bin, out := programs(t), filepath.Join(t.TempDir(), "out")
	if err := dispatch([]string{"all", "-bin", bin, "-out", out}); err != nil {
		t.Fatal(err)
	}
	for name := range ours() {
		text, err := os.ReadFile(filepath.Join(out, name+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var b struct {
			BOMFormat  string `json:"bomFormat"`
			Components []struct{ Name, Purl string }
		}
		if err := json.Unmarshal(text, &b); err != nil || b.BOMFormat != "CycloneDX" || len(b.Components) != 1 || b.Components[0].Name != "std" {
			t.Errorf("%s: %v %+v", name, err, b)
		}
	}
}

func TestAFolderOfSomethingElseIsNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dispatch([]string{"one", "-ref", "a:1", "-out", dir}); err == nil {
		t.Error("it was")
	}
	if _, err := os.Stat(filepath.Join(dir, "mine")); err != nil {
		t.Error(err)
	}
}
