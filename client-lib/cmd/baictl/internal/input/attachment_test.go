package input_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// withFile is a descriptor that names a file on its line 10.
func withFile(name string) string {
	return "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\nstrategy = \"manifest\"\n[env]\ndocker_image = \"alpine:3\"\n" +
		"[manifest]\nfile = \"" + name + "\" # beside it\ncopies = 2\n"
}

const objects = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: a, image: b}]}}}\n"

// folder is one with files, and the path of its descriptor d.toml.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "d.toml")
}

func TestADescriptorIsReadWithTheFileOfItsManifest(t *testing.T) {
	file := folder(t, map[string]string{"d.toml": withFile("sub/objects.yaml"), "sub/objects.yaml": objects})
	doc, faults, err := input.Reader{}.Read(t.Context(), file)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	checked := doc.Check(nil, true)
	if len(checked.Faults) > 0 || checked.Descriptor == nil || checked.Descriptor.Manifest.File.Text != objects || checked.Descriptor.Manifest.Copies != 2 {
		t.Errorf("%+v\n%s", checked, doc.Text)
	}
	if strings.Count(string(doc.Text), "\n") != strings.Count(withFile("x"), "\n") || !strings.Contains(string(doc.Text), "} # beside it\n") {
		t.Errorf("its lines have moved:\n%s", doc.Text)
	}
}

func TestAFaultOfTheFileNamesItsOwnLine(t *testing.T) {
	file := folder(t, map[string]string{"d.toml": withFile("objects.yaml"), "objects.yaml": objects + "---\na: \"ä\"\na: 2\n"})
	doc, faults, err := input.Reader{}.Read(t.Context(), file)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	var got []string
	for _, f := range doc.Check(nil, false).Faults {
		got = append(got, strings.TrimPrefix(f.GetFile(), filepath.Dir(file)+"/")+" "+f.GetPath()+" "+f.GetCode())
		if f.GetLine() < 6 {
			t.Errorf("%+v", f)
		}
	}
	if !slices.Contains(got, "objects.yaml manifest.file BAI0215") {
		t.Errorf("%v", got)
	}
}

// hostileFolder is a folder with a descriptor and files that are not read, among them links to another folder.
func hostileFolder(t *testing.T, descriptor, outside string) string {
	t.Helper()
	file := folder(t, map[string]string{
		"d.toml": descriptor, "sub/x": "", "large.yaml": strings.Repeat("# \n", 100_000), "quotes.yaml": strings.Repeat("\"\n", 80_000), "binary.yaml": "a\x00b",
	})
	dir := filepath.Dir(file)
	err := errors.Join(
		os.Symlink(filepath.Join(outside, "secret.yaml"), filepath.Join(dir, "out.yaml")), os.Symlink(outside, filepath.Join(dir, "far")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFilesThatAreNotReadAreFaultsOfTheDescriptor(t *testing.T) {
	outside := folder(t, map[string]string{"secret.yaml": objects, "d.toml": ""})
	for name, row := range map[string]struct{ file, want string }{
		"one that is not there":          {"none.yaml", `"none.yaml" cannot be read: no such file or directory`},
		"a folder":                       {"sub", `"sub" is not a regular file`},
		"a link out of the folder":       {"out.yaml", `"out.yaml" cannot be read: path escapes from parent`},
		"a folder that is a link out":    {"far/secret.yaml", `"far/secret.yaml" cannot be read: path escapes from parent`},
		"a pipe":                         {"pipe", `"pipe" is not a regular file`},
		"one that is too large":          {"large.yaml", `"large.yaml" is larger than 256 KiB, the most that is taken`},
		"one that is too large in TOML":  {"quotes.yaml", `"quotes.yaml" makes the descriptor larger than 256 KiB, the most that is taken`},
		"one that is no text":            {"binary.yaml", "the file holds a NUL byte: it is no text"},
		"a path that leaves the folder":  {"../secret.yaml", `"../secret.yaml" leaves the folder of the descriptor`},
		"a path from the root":           {"/etc/passwd", `"/etc/passwd" leaves the folder of the descriptor`},
		"a name that is none":            {"sub/", `"sub/" is not the path of a file`},
		"a path of another system":       {`c:x`, `"c:x" holds "\" or ":"`},
		"a path that leaves it by a way": {"sub/../../secret.yaml", `"sub/../../secret.yaml" leaves the folder of the descriptor`},
	} {
		t.Run(name, func(t *testing.T) {
			file := hostileFolder(t, withFile(row.file), filepath.Dir(outside))
			doc, faults, err := input.Reader{}.Read(t.Context(), file)
			if err == nil && len(faults) == 0 {
				faults = doc.Check(nil, false).Faults
			}
			if err != nil || len(faults) != 1 || faults[0].GetMessage() != row.want {
				t.Errorf("%v %v", err, faults)
			}
		})
	}
}

func TestADescriptorThatIsNoFileHasNoFileBesideIt(t *testing.T) {
	r := input.Reader{Fetch: func(context.Context, string) ([]byte, *baiv1.Origination, error) {
		return []byte(withFile("objects.yaml")), &baiv1.Origination{Uri: "https://example.com/d.toml"}, nil
	}}
	_, faults, err := r.Read(t.Context(), "https://example.com/d.toml")
	if err != nil || len(faults) != 1 || faults[0].GetMessage() != `"objects.yaml" is a file, and the descriptor is not` || faults[0].GetLine() != 10 {
		t.Errorf("%v %v", err, faults)
	}
}

func TestTheDescriptorsOfASuiteHaveTheirFilesBesideThem(t *testing.T) {
	file := folder(t, map[string]string{"d.toml": suiteOf("sub/one.toml"), "sub/one.toml": withFile("objects.yaml"), "sub/objects.yaml": objects})
	doc, faults, err := input.Reader{}.Read(t.Context(), file)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	if checked := doc.Check(nil, true); len(checked.Faults) > 0 || checked.Plan() == nil {
		t.Errorf("%+v", checked)
	}
	file = folder(t, map[string]string{"d.toml": suiteOf("sub/one.toml"), "sub/one.toml": withFile("none.yaml")})
	_, faults, err = input.Reader{}.Read(t.Context(), file)
	if err != nil || len(faults) != 1 || !strings.HasSuffix(faults[0].GetFile(), "sub/one.toml") || faults[0].GetLine() != 10 {
		t.Errorf("%v %v", err, faults)
	}
}
