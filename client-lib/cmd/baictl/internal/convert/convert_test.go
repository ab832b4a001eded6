package convert_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert"
	"github.com/benchmark-ai/bai/client-lib/internal/golden"
)

// files returns the files of a folder below testdata that are converted.
func files(t *testing.T, folder string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", folder, "*.*"))
	all = slices.DeleteFunc(all, func(file string) bool { return strings.HasSuffix(file, ".golden") })
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	return all
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// show returns a result as the verb prints it.
func show(r convert.Result) string {
	var s strings.Builder
	for _, d := range r.Files {
		fmt.Fprintf(&s, "## %s\n%s\n", d.Name, d.Text)
	}
	for title, notes := range map[string][]convert.Note{"remarks": r.Remarks, "faults": r.Faults} {
		if len(notes) == 0 || title == "remarks" && len(r.Faults) > 0 {
			continue
		}
		fmt.Fprintf(&s, "## %s\n", title)
		for _, n := range notes {
			fmt.Fprintf(&s, "%d:%d: %s: %s (%s)\n", n.Line, n.Column, n.Path, n.Message, n.Remedy)
		}
	}
	return strings.TrimRight(s.String(), "\n") + "\n"
}

func TestEachSystemsFilesBecomeDescriptors(t *testing.T) {
	for _, system := range convert.Systems() {
		for _, file := range files(t, system) {
			t.Run(system+"/"+filepath.Base(file), func(t *testing.T) {
				r := convert.Convert(system, read(t, file))
				golden.Check(t, file+".golden", show(r))
				checkResult(t, r)
				if len(r.Faults) > 0 {
					t.Error(r.Faults)
				}
			})
		}
	}
}

func TestBadFilesHaveFaultsWithTheirPlaces(t *testing.T) {
	for _, file := range files(t, "bad") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var s strings.Builder
			for _, system := range convert.Systems() {
				r := convert.Convert(system, read(t, file))
				if len(r.Faults) == 0 {
					t.Errorf("%s: no fault", system)
				}
				fmt.Fprintf(&s, "# --from %s\n%s", system, show(r))
			}
			golden.Check(t, file+".golden", s.String())
		})
	}
}
