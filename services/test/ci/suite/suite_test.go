package suite_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/test/ci/suite"
)

// services is the module's folder, as tests see it.
const services = "../../.."

func suites(t *testing.T) []suite.Suite {
	t.Helper()
	all, err := suite.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryPackageThatNeedsRealServersIsInASuite(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, s := range suites(t) {
		listed = append(listed, s.Packages...)
	}
	needs := []string{"BAI_TEST_REAL", "EnvReal", "testbed.API(", "testbed.Kubernetes(", "testbed.Simulated(", "kafka.Start(", "elasticsearch.Start(", "s3.Start("}
	err := filepath.WalkDir(services, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // the project's
		folder, _ := filepath.Rel(services, filepath.Dir(path))
		if slices.ContainsFunc(needs, func(word string) bool { return strings.Contains(string(text), word) }) && !slices.Contains(listed, folder) && !strings.HasPrefix(folder, "test/ci") {
			t.Errorf("%s needs real servers and is in no suite of suites.toml: no check runs it", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryListedPackageHasTests(t *testing.T) {
	t.Parallel()
	for _, s := range suites(t) {
		for _, pkg := range s.Packages {
			if found, _ := filepath.Glob(filepath.Join(services, pkg, "*_test.go")); len(found) == 0 {
				t.Errorf("suite %q: %s has no tests", s.Name, pkg)
			}
		}
	}
}

func TestEveryPatternMatchesATest(t *testing.T) {
	t.Parallel()
	for _, s := range suites(t) {
		tests := testsOf(t, s)
		for pattern := range strings.SplitSeq(strings.Join([]string{s.Run, s.Skip, s.LongRun, s.LongSkip}, "|"), "|") {
			if !slices.ContainsFunc(tests, func(test string) bool { return strings.Contains(test, pattern) }) {
				t.Errorf("suite %q: no test has %q in its name", s.Name, pattern)
			}
		}
	}
}

// testsOf returns the names of the tests in the packages of a suite.
func testsOf(t *testing.T, s suite.Suite) (tests []string) {
	t.Helper()
	name := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, pkg := range s.Packages {
		files, _ := filepath.Glob(filepath.Join(services, pkg, "*_test.go"))
		for _, f := range files {
			text, err := os.ReadFile(f) //nolint:gosec // the project's
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range name.FindAllStringSubmatch(string(text), -1) {
				tests = append(tests, m[1])
			}
		}
	}
	return tests
}

func TestTheShortFormLeavesOutOnlyWhatTheListSays(t *testing.T) {
	t.Parallel()
	all := suites(t)
	for _, s := range all {
		if (s.Run != "" || s.Skip != "") && s.Long == "" {
			t.Errorf("suite %q leaves tests out of the short form, and does not say which", s.Name)
		}
	}
	if short, long := suite.Of(all, false), suite.Of(all, true); len(long) != len(all) || len(short) >= len(long) {
		t.Errorf("%d of %d suites in the short form, %d in the long one", len(short), len(all), len(long))
	}
}

func TestTheFormDecidesTheArguments(t *testing.T) {
	t.Parallel()
	s := suite.Suite{Name: "a", Run: "Short", Skip: "Slow", LongSkip: "Never", Env: map[string]string{"A": "1"}, LongEnv: map[string]string{"B": "2"}}
	for _, tt := range []struct {
		long      bool
		args, env []string
	}{
		{false, []string{"-test.run=Short", "-test.skip=Slow"}, []string{"A=1", "BAI_SHORT=1", "BAI_TEST_REAL=1", "CI=1"}},
		{true, []string{"-test.skip=Never"}, []string{"A=1", "B=2", "BAI_TEST_REAL=1", "CI=1"}},
	} {
		args := slices.DeleteFunc(s.Args(tt.long), func(a string) bool { return !strings.HasPrefix(a, "-test.run") && !strings.HasPrefix(a, "-test.skip") })
		if diff := cmp.Diff(tt.args, args); diff != "" {
			t.Errorf("long %t: %s", tt.long, diff)
		}
		if diff := cmp.Diff(tt.env, s.Environ(tt.long)); diff != "" {
			t.Errorf("long %t: %s", tt.long, diff)
		}
	}
}
