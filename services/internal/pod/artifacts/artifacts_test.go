package artifacts_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/artifacts"
)

// volume is a folder that a benchmark has filled, beside one that is none of its.
func volume(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	v := filepath.Join(dir, "volume")
	text := func(name, text string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	if err := errors.Join(os.MkdirAll(filepath.Join(v, "deep"), 0o700), os.Mkdir(filepath.Join(dir, "ours"), 0o700),
		text("volume/a.txt", "1"), text("volume/deep/b.txt", "22"), text("volume/[x].txt", "333"), text("ours/secret", "s"),
		os.Symlink("../ours", filepath.Join(v, "away")), os.Symlink(filepath.Join(dir, "ours/secret"), filepath.Join(v, "link")),
		os.Symlink("deep", filepath.Join(v, "inside")), os.Symlink("a.txt", filepath.Join(v, "deep/up")),
	); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNoFileOfAVolumeComesFromOutsideOfIt(t *testing.T) {
	t.Parallel()
	dir := volume(t)
	for name, tt := range map[string]struct {
		path string
		want []string
		says string
	}{
		"all that is on it":            {"/out", []string{"out/[x].txt", "out/a.txt", "out/deep/b.txt"}, `artifact "/out" holds what cannot be kept: "away" (a link that leads out, or nowhere), "deep/up" (a link that leads out, or nowhere), "inside" (a link to a folder), "link" (a link that leads out, or nowhere)`},
		"a folder":                     {"/out/deep/", []string{"out/deep/b.txt"}, `artifact "/out/deep/" holds what cannot be kept: "deep/up" (a link that leads out, or nowhere)`},
		"a folder by another name":     {"/out/inside", []string{"out/inside/b.txt"}, `artifact "/out/inside" holds what cannot be kept: "inside/up" (a link that leads out, or nowhere)`},
		"a pattern":                    {"/out/*.txt", []string{"out/[x].txt", "out/a.txt"}, ""},
		"a name that is a pattern":     {"/out/[x].txt", []string{"out/[x].txt"}, ""},
		"a folder outside":             {"/out/away", nil, `artifact "/out/away" is not kept: statat away: path escapes from parent`},
		"a file in it":                 {"/out/away/secret", nil, `artifact "/out/away/secret" is not kept: the benchmark left no such file`},
		"a pattern in it":              {"/out/away/*", nil, `artifact "/out/away/*" is not kept: the benchmark left no such file`},
		"a pattern that leads there":   {"/out/*/secret", nil, `artifact "/out/*/secret" is not kept: the benchmark left no such file`},
		"a link to a file outside":     {"/out/link", nil, `artifact "/out/link" is not kept: statat link: path escapes from parent`},
		"what is no pattern":           {"/out/[", nil, `artifact "/out/[" is not kept: it is no pattern for files`},
		"a path with more than it has": {"/out/./deep/../a.txt", []string{"out/a.txt"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, says := artifacts.FindInVolume(pod.Artifact{Path: tt.path}, "/out", dir)
			var got []string
			for _, f := range files {
				got = append(got, f.Name)
				if f.Root != dir {
					t.Errorf("%s is below %s", f.Name, f.Root)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || strings.Join(says, "; ") != tt.says {
				t.Errorf("it says %q, want %q (-want +got):\n%s", says, tt.says, diff)
			}
		})
	}
}
