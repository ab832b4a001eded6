package convert_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// addFiles adds the files of a folder below testdata to the corpus.
func addFiles(f *testing.F, folder string) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if !strings.HasSuffix(file, ".golden") {
			f.Add(text)
		}
	}
}

// checkResult checks that a result has faults, or descriptors that are valid.
func checkResult(t *testing.T, r convert.Result) {
	t.Helper()
	if (len(r.Faults) > 0) != (len(r.Files) == 0) {
		t.Fatalf("%d descriptors, faults %v", len(r.Files), r.Faults)
	}
	for _, d := range r.Files {
		if _, faults := parser.Parse(d.Name, []byte(d.Text)); len(faults.Errors()) > 0 {
			t.Errorf("%v\n%s", faults, d.Text)
		}
	}
}

// FuzzConvert gives any text to each converter. None panics, and the parser of descriptors
// takes each descriptor that comes without a fault. Equal texts give equal results.
func FuzzConvert(f *testing.F) {
	for _, folder := range append(convert.Systems(), "bad") {
		addFiles(f, folder)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, system := range convert.Systems() {
			r := convert.Convert(system, text)
			checkResult(t, r)
			if again := convert.Convert(system, text); cmp.Diff(r, again) != "" {
				t.Errorf("%s: %s", system, cmp.Diff(r, again))
			}
		}
	})
}
