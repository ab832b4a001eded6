// Package suite holds the list of the suites that need real servers.
package suite

import (
	"bytes"
	_ "embed" // the list
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/BurntSushi/toml"
)

//go:embed suites.toml
var list []byte

// Servers that a suite may need.
const (
	Servers = "servers" // one Kafka and one Elasticsearch
	Cluster = "cluster" // two nodes
)

// Suite is a set of test binaries.
type Suite struct {
	Name     string
	Needs    string
	Cluster  bool     // it boots clusters, or needs the one: such suites run one after the other, beside the others
	Packages []string // folders below services, or a module of its own as ../FOLDER
	Form     string   // "long" where the short form leaves the suite out
	Short    string   // content of the short form
	Long     string   // content of the long form only
	Run      string
	Skip     string
	LongRun  string            `toml:"long_run"`
	LongSkip string            `toml:"long_skip"`
	Env      map[string]string // in both forms
	LongEnv  map[string]string `toml:"long_env"`
	Beside   int               // how many of the packages run at a time; 0 is one
	Parallel int
	Budget   Duration // how long the suite should take
	Limit    Duration // how long one test may run
}

// Duration is a time.Duration that TOML writes as "6m".
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	*d = Duration(parsed)
	return err
}

// defaultLimit is how long one test may run where its suite says nothing.
const defaultLimit = 6 * time.Minute

// All returns every suite, in the order in which they run.
func All() ([]Suite, error) { return parse(list) }

func parse(text []byte) ([]Suite, error) {
	var file struct{ Suite []Suite }
	meta, err := toml.NewDecoder(bytes.NewReader(text)).Decode(&file)
	if err != nil {
		return nil, fmt.Errorf("suites.toml: %w", err)
	}
	var errs []error
	for _, key := range meta.Undecoded() {
		errs = append(errs, fmt.Errorf("suites.toml: unknown key %s", key))
	}
	names := map[string]bool{}
	for i, s := range file.Suite {
		errs = append(errs, s.check(names[s.Name]))
		names[s.Name] = true
		if s.Limit == 0 {
			file.Suite[i].Limit = Duration(defaultLimit)
		}
	}
	return file.Suite, errors.Join(errs...)
}

func (s Suite) check(twice bool) error {
	switch {
	case s.Name == "" || twice:
		return fmt.Errorf("suites.toml: suite %q: every suite needs a name of its own", s.Name)
	case len(s.Packages) == 0:
		return fmt.Errorf("suites.toml: suite %q: packages is empty", s.Name)
	case !slices.Contains([]string{"", Servers, Cluster}, s.Needs):
		return fmt.Errorf("suites.toml: suite %q: needs = %q: want servers, cluster or nothing", s.Name, s.Needs)
	case s.Needs == Cluster && !s.Cluster:
		return fmt.Errorf("suites.toml: suite %q: what needs the cluster has cluster = true", s.Name)
	case s.Form != "" && s.Form != "long":
		return fmt.Errorf("suites.toml: suite %q: form = %q: want long or nothing", s.Name, s.Form)
	case s.Budget == 0:
		return fmt.Errorf("suites.toml: suite %q: budget is missing", s.Name)
	case s.Form == "" && s.Short == "":
		return fmt.Errorf("suites.toml: suite %q: short does not say what the short form has", s.Name)
	}
	return nil
}

// Of returns the suites of a form.
func Of(all []Suite, long bool) []Suite {
	return slices.DeleteFunc(slices.Clone(all), func(s Suite) bool { return s.Form == "long" && !long })
}

// Has reports whether the short form runs a test of a package.
func (s Suite) Has(pkg, test string) bool {
	return slices.Contains(s.Packages, pkg) && regexp.MustCompile(s.Run).MatchString(test) &&
		(s.Skip == "" || !regexp.MustCompile(s.Skip).MatchString(test))
}

// Args are the arguments of the suite's test binaries.
func (s Suite) Args(long bool) []string {
	run, skip := s.Run, s.Skip
	if long {
		skip = s.LongSkip
		if s.Form != "long" || s.LongRun != "" {
			run = s.LongRun
		}
	}
	args := []string{"-test.v=test2json", "-test.timeout=0", "-test.count=1"}
	for flag, value := range map[string]string{"-test.run=": run, "-test.skip=": skip} {
		if value != "" {
			args = append(args, flag+value)
		}
	}
	if s.Parallel > 0 {
		args = append(args, fmt.Sprintf("-test.parallel=%d", s.Parallel))
	}
	slices.Sort(args)
	return args
}

// Environ are the variables of the suite's test binaries, beside those of the
// servers.
func (s Suite) Environ(long bool) []string {
	vars := map[string]string{"BAI_TEST_REAL": "1", "CI": "1"}
	maps.Copy(vars, s.Env)
	if !long {
		vars["BAI_SHORT"] = "1"
	} else {
		maps.Copy(vars, s.LongEnv)
	}
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}
