package input_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func write(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func names(dir string, all []input.Entry) []string {
	var got []string
	for _, e := range all {
		name := strings.TrimPrefix(e.Name, dir+"/")
		if len(e.Fault) > 0 {
			name += ": " + e.Fault[0].GetMessage()
		}
		got = append(got, name)
	}
	return got
}

func TestAFolderIsItsDescriptorsInOrder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "b.toml", "a/z.toml", "a/y.txt", ".git/x.toml", ".x.toml", "c.TOML", "empty/readme")
	for link, to := range map[string]string{"loop.toml": dir, "dangling.toml": "nowhere", "link.toml": "b.toml", "folder": "a"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	got := names(dir, input.Expand([]string{dir, "-", dir + "/b.toml", "-", "stored:x", dir + "/none.toml", dir + "/empty"}))
	want := []string{"a/z.toml", "b.toml", "link.toml", "-", "-", "stored:x", "none.toml", "empty: there is no *.toml file in it"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsClearlyNoDescriptor(t *testing.T) {
	for text, want := range map[string]bool{
		"[project]\nname = \"x\"\n": true,
		"[tool.ruff]\n":             true,
		"":                          false, // an empty descriptor is a faulty one
		"# nothing\n":               false,
		"spec_version = 1\n":        false,
		"[info]\n":                  false,
		"[hardware]\n[x]\n":         false,
		"[project\n":                false, // ambiguous
		"\xff":                      false,
	} {
		if got := input.IsForeign([]byte(text)); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

func TestWhereADescriptorIsReadFrom(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "f.toml")
	origin := &baiv1.Origination{Uri: "stored:x@3", Sha256: "ab"}
	r := input.Reader{
		In: strings.NewReader("stdin"),
		Fetch: func(_ context.Context, uri string) ([]byte, *baiv1.Origination, error) {
			if uri == "stored:x" {
				return []byte("kept"), origin, nil
			}
			return nil, nil, errors.New("no " + uri)
		},
	}
	for name, tt := range map[string]struct {
		want  input.Document
		fault string
		err   string
	}{
		"-":                {want: input.Document{Name: input.Stdin, Text: []byte("stdin")}},
		dir + "/f.toml":    {want: input.Document{Name: dir + "/f.toml", Text: []byte{}}},
		dir + "/none.toml": {want: input.Document{Name: dir + "/none.toml"}, fault: "cannot be read: no such file or directory"},
		dir:                {want: input.Document{Name: dir}, fault: "cannot be read: is a directory"},
		"stored:x":         {want: input.Document{Name: "stored:x@3", Text: []byte("kept"), Origin: origin}},
		"https://h/x.toml": {err: "no https://h/x.toml"},
		"s3://b/x.toml":    {err: "no s3://b/x.toml"},
	} {
		t.Run(name, func(t *testing.T) {
			got, faults, err := r.Read(t.Context(), name)
			message := ""
			if err != nil {
				message = err.Error()
			}
			fault := ""
			if len(faults) > 0 {
				fault = faults[0].GetMessage()
			}
			if diff := cmp.Diff([]string{tt.err, tt.fault}, []string{message, fault}); diff != "" {
				t.Errorf("error and fault (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
