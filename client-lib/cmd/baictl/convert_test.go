package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// convertCommands are the command lines of the verb convert.
func convertCommands() map[string]string {
	return map[string]string{
		"convert-set":          "convert --from kube-perftest convert/set.yaml",
		"convert-remarks":      "convert --from kube-perftest convert/iperf.yaml",
		"convert-bad":          "convert --from kube-perftest convert/bad.yaml",
		"convert-several":      "convert --from kube-perftest convert/several.yaml",
		"convert-other-system": "convert --from kubebench convert/set.yaml",
		"convert-original":     "convert --from benchmark-ai convert/free-text.toml",
		"convert-no-system":    "convert convert/set.yaml",
		"convert-bad-system":   "convert --from perfkit convert/set.yaml",
		"convert-missing":      "convert --from eks nowhere.yaml",
		"convert-stdin":        "convert --from eks -",
		"convert-help":         "convert --help",
	}
}

// converted converts a file into one below a folder, and returns the path of that.
func converted(t *testing.T, folder, system, file string) []string {
	t.Helper()
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(folder, system, filepath.Base(file))
	got := runPiped(t, "", "convert", "--from", system, "--out-dir", dir, file)
	all, err := filepath.Glob(filepath.Join(dir, "*.toml"))
	if got.code != 0 || got.out != "" || err != nil || len(all) == 0 {
		t.Fatal(err, all, got)
	}
	return all
}

func TestConvertedFilesAreValidAndRendered(t *testing.T) {
	folder := t.TempDir()
	for _, system := range []string{"kube-perftest", "kubebench", "eks", "benchmark-ai"} {
		files, err := filepath.Glob(filepath.Join("internal", "convert", "testdata", system, "*.*"))
		if err != nil || len(files) == 0 {
			t.Fatal(err, files)
		}
		files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, ".golden") })
		for _, file := range files {
			t.Run(system+"/"+filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				for _, descriptor := range converted(t, folder, system, file) {
					checkConverted(t, descriptor)
				}
			})
		}
	}
}

// checkConverted checks that a descriptor is valid, and renders it.
func checkConverted(t *testing.T, descriptor string) {
	t.Helper()
	if got := runPiped(t, "", "validate", descriptor); got.code != 0 {
		t.Error(got)
	}
	if needsPlatform(t, descriptor) {
		return
	}
	if got := runPiped(t, "", "render", descriptor); got.code != 0 || kindsOf(t, got.out)["Job"] == 0 {
		t.Error(got)
	}
}

// needsPlatform reports whether a descriptor names what only a platform knows: zones by their IDs.
func needsPlatform(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), "aws_zone_id")
}

func TestASetHasACellForEachPermutation(t *testing.T) {
	folder := t.TempDir()
	for file, want := range map[string]string{
		"set.yaml":        "15 cells, 15 runs\n",
		"set-single.yaml": "1 cell, 5 runs\n",
	} {
		descriptor := converted(t, folder, "kube-perftest", filepath.Join("testdata", "convert", file))[0]
		if got := runPiped(t, "", "sweep", "preview", descriptor); got.code != 0 || !strings.HasSuffix(got.out, want) {
			t.Errorf("%s: %s", file, got)
		}
	}
}

func TestAFileThatIsThereIsNotReplaced(t *testing.T) {
	file, err := filepath.Abs(filepath.Join("testdata", "convert", "several.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	line := []string{"convert", "--from", "kube-perftest", "--out-dir", filepath.Join(folder, "new"), file}
	expect(t, runPiped(t, "", line...), 0, "iperf-2.toml\n")
	expect(t, runPiped(t, "", line...), 2, "iperf.toml already exists")
}
