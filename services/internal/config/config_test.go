package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/config"
)

type settings struct {
	Name  string        `toml:"name"`
	Count int           `toml:"count"`
	Wait  time.Duration `toml:"wait"`
	Inner struct {
		On bool `toml:"on"`
	} `toml:"inner"`
	Named map[string]struct {
		Teams []string       `toml:"teams"`
		URL   string         `toml:"url"`
		Extra map[string]any `toml:"extra"`
		Lists []struct {
			At time.Time `toml:"at"`
			N  float64   `toml:"n"`
		} `toml:"lists"`
	} `toml:"named"`
}

func (s *settings) Validate() error {
	var errs []error
	if s.Name == "" {
		errs = append(errs, errors.New("name: must not be empty"))
	}
	if s.Count < 0 {
		errs = append(errs, errors.New("count: must not be negative"))
	}
	return errors.Join(errs...)
}

func TestAFileIsReadOverDefaults(t *testing.T) {
	got := settings{Name: "default", Count: 3}
	if err := config.Load(file(t, "count = 5\nwait = \"2s\"\n[inner]\non = true\n"), &got); err != nil {
		t.Fatal(err)
	}
	want := settings{Name: "default", Count: 5, Wait: 2 * time.Second}
	want.Inner.On = true
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWithoutAFileTheDefaultsAreValidated(t *testing.T) {
	if err := config.Load("", &settings{Name: "x"}); err != nil {
		t.Error(err)
	}
	if err := config.Load("", &settings{}); err == nil || !strings.Contains(err.Error(), "name: must not be empty") {
		t.Errorf("Load: %v, want the fault of the defaults", err)
	}
}

func TestFaultsAreTold(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		want []string
	}{
		"one section in two ways": {"name = \"x\"\n[Named.x]\nurl = \"u\"\n[named.x]\nteams = []\n", []string{"named: it is Named elsewhere: write both alike"}},
		"all at once":             {"count = -1\nnme = 1\ninner.of = true\n", []string{"unknown settings: inner.of, nme", "name: must not be empty", "count: must not be negative"}},
		"a wrong type":            {"count = \"many\"\n", []string{"incompatible types"}},
		"what is no TOML":         {"count == 1\n", []string{"line 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, tt.file)
			err := config.Load(path, &settings{})
			for _, part := range append(tt.want, path) {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("Load: %v, want %q in it", err, part)
				}
			}
		})
	}
	if err := config.Load("/nowhere.toml", &settings{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load: %v, want that there is no such file", err)
	}
}

func TestTheFilesOfAFolderAreReadAsOne(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.toml": "name = \"x\"\n[kafka]\nbrokers = [\"another service's\"]\n", "b.toml": "count = 5\n[executor.pods]\nimage = \"another's\"\n", "c.toml": "inner.on = true\n", "notes.md": "nothing",
	})
	got := settings{Name: "default"}
	if err := config.Load(dir, &got); err != nil {
		t.Fatal(err)
	}
	want := settings{Name: "x", Count: 5}
	want.Inner.On = true
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnEntryOfATableMayBeInSeveralFiles(t *testing.T) {
	parts := []string{
		"name = \"x\"\nwait = \"2s\"\n[named.results]\nteams = [\"a\", \"b\"]\n[named.results.extra]\nlist = [1, \"x\"]\nnone = []\n",
		"count = 5\n[named.results]\nurl = \"https://x\"\n[named.results.extra]\nday = 2026-01-02\nat = 07:32:00\n\"a b\" = 'c\"\\d'\n[named.other]\nurl = \"y\"\n",
		"[inner]\non = true\n[[named.results.lists]]\nat = 2026-01-02T03:04:05Z\nn = 1e300\n[[named.results.lists]]\nn = inf\n",
	}
	var want, got settings
	whole := "name = \"x\"\nwait = \"2s\"\ncount = 5\n[inner]\non = true\n[named.other]\nurl = \"y\"\n" +
		"[named.results]\nurl = \"https://x\"\nteams = [\"a\", \"b\"]\n[named.results.extra]\nlist = [1, \"x\"]\nnone = []\nday = 2026-01-02\nat = 07:32:00\n" +
		"\"a b\" = 'c\"\\d'\n[[named.results.lists]]\nat = 2026-01-02T03:04:05Z\nn = 1e300\n[[named.results.lists]]\nn = inf\n"
	if err := config.Load(file(t, whole), &want); err != nil {
		t.Fatal(err)
	}
	if err := config.Load(folder(t, map[string]string{"a.toml": parts[0], "b.toml": parts[1], "c.toml": parts[2]}), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-one file +three):\n%s", diff)
	}
}

func TestFaultsOfAFolderAreToldWithTheirFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"set by two files":      {map[string]string{"a.toml": "inner.on = true\n", "b.toml": "name = \"x\"\n[inner]\non = false\n"}, []string{"b.toml: inner.on: a.toml sets it too"}},
		"a section in two ways": {map[string]string{"a.toml": "[Named.x]\nurl = \"u\"\n", "b.toml": "[named.x]\nteams = []\n"}, []string{"b.toml: named: it is Named elsewhere: write both alike"}},
		"a part, and wrong":     {map[string]string{"a.toml": "[named.x]\nurl = \"u\"\n", "b.toml": "name = 1\n"}, []string{"b.toml", "line 1"}},
		"unknown, and wrong":    {map[string]string{"a.toml": "nme = 1\n", "b.toml": "count = -1\n"}, []string{"a.toml: unknown settings: nme", "count: must not be negative"}},
		"one that is no TOML":   {map[string]string{"a.toml": "count == 1\n", "b.toml": "count = 1\n"}, []string{"a.toml", "line 1"}},
		"a folder of something": {map[string]string{"notes.md": ""}, []string{"the folder has no file *.toml"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, tt.files)
			err := config.Load(dir, &settings{})
			for _, part := range append(tt.want, dir) {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("Load: %v, want %q in it", err, part)
				}
			}
		})
	}
}

func file(t *testing.T, content string) string {
	t.Helper()
	return filepath.Join(folder(t, map[string]string{"settings.toml": content}), "settings.toml")
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
