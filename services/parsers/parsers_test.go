package parsers_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/parsers"
	"github.com/benchmark-ai/bai/services/parsers/command"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

func TestTheManualAndTheTableAreCurrent(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]byte{"../../docs/parsers.md": manual(), "../../descriptors/parsers.tsv": table()} {
		if os.Getenv("GOLDEN") == "write" {
			if err := os.WriteFile(file, want, 0o644); err != nil { //nolint:gosec // everybody may read what is in a repository
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is old, which make generate mends: %s", file, diff)
		}
	}
}

// TestDescriptorsNameEveryKind compares the values of output.parsers.kind with the kinds.
func TestDescriptorsNameEveryKind(t *testing.T) {
	t.Parallel()
	f, _ := reflect.TypeFor[descriptors.Parser]().FieldByName("Kind")
	want := append(parsers.Names(), command.Kind)
	slices.Sort(want)
	if diff := cmp.Diff(strings.Join(want, " "), f.Tag.Get("one")); diff != "" {
		t.Error(diff)
	}
}

func TestKindsAndMetricsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	names := parsers.Names()
	if sorted := slices.Sorted(slices.Values(names)); len(slices.Compact(sorted)) != len(names) {
		t.Errorf("kinds: %q, want each once", names)
	}
	word := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for _, k := range parsers.Kinds() {
		seen := map[string]bool{}
		for _, m := range k.Metrics {
			if m.Name != "*" && !word.MatchString(m.Name) || seen[m.Name] || m.Meaning == "" || m.Unit == "" {
				t.Errorf("%s: %+v, want a name of its own, a unit and a meaning", k.Name, m)
			}
			seen[m.Name] = true
		}
	}
}

// TestAutoFindsTheKindOfEveryCapture parses the captures of all kinds.
func TestAutoFindsTheKindOfEveryCapture(t *testing.T) {
	t.Parallel()
	for _, k := range parsers.Kinds() {
		for file, text := range captures(t, k.Name) {
			own, err := k.Parse(strings.NewReader(text), report.Options{})
			if err != nil || own.State == report.Empty || own.State == report.Failed {
				continue
			}
			if got, err := parsers.Parse(parsers.Auto, strings.NewReader(text), report.Options{}); err != nil || got.Kind != k.Name {
				t.Errorf("%s: kind %s, error %v", file, got.Kind, err)
			}
		}
	}
}

// captures returns the captures of a kind, by the names of their files.
func captures(t *testing.T, kind string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(strings.ReplaceAll(kind, "-", ""), "testdata", "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %d captures", kind, err, len(files))
	}
	all := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) != "README.txt" {
			all[file] = string(text)
		}
	}
	return all
}

func TestATextOfNoKindIsEmpty(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"hello\nworld\n": "auto empty no kind of parser recognises the text",
		" \n":            "auto empty there is no text",
	} {
		r, err := parsers.Parse(parsers.Auto, strings.NewReader(text), report.Options{})
		if got := fmt.Sprint(r.Kind, " ", r.State, " ", r.Reason); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestAKindThatIsNoneIsNamedWithThoseThatAre(t *testing.T) {
	t.Parallel()
	_, err := parsers.Parse("iperf4", strings.NewReader(""), report.Options{})
	if _, ok := errors.AsType[*parsers.UnknownKindError](err); !ok || !strings.Contains(err.Error(), `"iperf4": use auto, `) {
		t.Errorf("%v, want the kinds", err)
	}
}

func TestAnErrorOfTheReaderIsReturned(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, name := range parsers.Names() {
		if _, err := parsers.Parse(name, iotest.ErrReader(broken), report.Options{}); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
