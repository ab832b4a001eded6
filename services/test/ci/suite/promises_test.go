package suite_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/benchmark-ai/bai/services/test/ci/suite"
)

// root is the repository's folder, as tests see it.
const root = "../../../.."

// promise is a sentence of a page that a user can hold against us.
type promise struct {
	Page  string
	Text  string
	Tests []string // each the folder of a package and a function in it
}

// promises returns the entries of promises.toml.
func promises(t *testing.T) []promise {
	t.Helper()
	var file struct {
		Promise []promise
	}
	meta, err := toml.DecodeFile("promises.toml", &file)
	if err != nil {
		t.Fatal(err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		t.Errorf("an entry has page, text and tests, and not %v", unknown)
	}
	return file.Promise
}

// joined returns a text with one space for each line break and run of spaces.
func joined(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestEveryPromiseStandsOnItsPage(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	for _, p := range promises(t) {
		if pages[p.Page] == "" {
			text, err := os.ReadFile(filepath.Join(root, p.Page)) //nolint:gosec // the project's
			if err != nil {
				t.Fatal(err)
			}
			pages[p.Page] = joined(string(text))
		}
		if p.Text == "" || !strings.Contains(pages[p.Page], joined(p.Text)) {
			t.Errorf("%s does not say %q any more: correct the entry, or remove it", p.Page, p.Text)
		}
	}
}

func TestEveryPromiseIsHeldByTestsThatExist(t *testing.T) {
	t.Parallel()
	folders := map[string]map[string]bool{}
	for _, p := range promises(t) {
		if len(p.Tests) == 0 {
			t.Errorf("%s: no test holds %q", p.Page, p.Text)
		}
		for _, test := range p.Tests {
			folder, name, _ := strings.Cut(test, " ")
			if folders[folder] == nil {
				folders[folder] = testsIn(t, folder)
			}
			if !folders[folder][name] {
				t.Errorf("%s: there is no test %q, which is to hold %q", p.Page, test, p.Text)
			}
		}
	}
}

// functions finds the tests of Go and of Python in a file.
var functions = regexp.MustCompile(`(?m)^(?:func (Test\w+)\(\w+ \*testing\.T\)|    def (test_\w+)\(self\))`)

// testsIn returns the names of the tests in a folder of the repository.
func testsIn(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "test_*.py"} {
		files, err := filepath.Glob(filepath.Join(root, folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file) //nolint:gosec // the project's
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range functions.FindAllStringSubmatch(string(text), -1) {
				names[found[1]+found[2]] = true
			}
		}
	}
	return names
}

func TestNoPromiseIsThereTwice(t *testing.T) {
	t.Parallel()
	entries := map[string]bool{}
	for _, p := range promises(t) {
		key := p.Page + ": " + joined(p.Text)
		if entries[key] {
			t.Errorf("%s is there twice", key)
		}
		entries[key] = true
		tests := map[string]bool{}
		for _, test := range p.Tests {
			if tests[test] {
				t.Errorf("%s: %s is there twice", key, test)
			}
			tests[test] = true
		}
	}
}

func TestEveryPromiseIsHeldInTheShortForm(t *testing.T) {
	t.Parallel()
	short := suite.Of(suites(t), false)
	for _, p := range promises(t) {
		for _, test := range p.Tests {
			folder, name, _ := strings.Cut(test, " ")
			pkg, isService := strings.CutPrefix(folder, "services/")
			if !isService || !needsServers(pkg) {
				continue // make test runs it
			}
			if !slices.ContainsFunc(short, func(s suite.Suite) bool { return s.Has(pkg, name) }) {
				t.Errorf("%s promises %q, which %s holds, and the short form does not run that", p.Page, p.Text, test)
			}
		}
	}
}

// needsServers reports whether make test skips the tests of a package.
func needsServers(pkg string) bool {
	for _, folder := range []string{"test/real", "test/storm", "test/kibana", "test/testbed"} {
		if pkg == folder || strings.HasPrefix(pkg, folder+"/") {
			return true
		}
	}
	return false
}
