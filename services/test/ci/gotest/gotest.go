// Package gotest reads the events of `go test -json` and test2json, and reports the
// results of the tests.
package gotest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Report says how the tests of one or several commands ended. Tests are counted
// at the top level; subtests appear among the failures and the skips only.
type Report struct {
	Passed, Failed, Skipped int
	Failures                []Failure
	Skips                   []string // PACKAGE TEST of each skipped test and subtest, in the order of their ends
	Packages                []Timed  // in the order of their ends
	Tests                   []Timed  // top level, in the order of their ends
}

// Failure is a test that failed and has no failed subtest, or a package that
// failed for a reason of its own: it did not build, panicked, or hung.
type Failure struct {
	Package string
	Test    string   // empty where the package failed outside its tests
	Why     []string // the lines that say why, at most maxFailureLines
}

// Timed is a package or a test and the time that it took.
type Timed struct {
	Name string
	Took time.Duration
}

// Add returns both reports as one.
func (r Report) Add(o Report) Report {
	return Report{
		Passed: r.Passed + o.Passed, Failed: r.Failed + o.Failed, Skipped: r.Skipped + o.Skipped,
		Failures: slices.Concat(r.Failures, o.Failures), Skips: slices.Concat(r.Skips, o.Skips),
		Packages: slices.Concat(r.Packages, o.Packages), Tests: slices.Concat(r.Tests, o.Tests),
	}
}

// testEvent is one line of test2json; see `go doc test2json`.
type testEvent struct {
	Time        time.Time
	Action      string
	Package     string
	ImportPath  string // of build-output
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string
}

// testName identifies a test, or a package where test is empty.
type testName struct{ pkg, test string }

// under reports whether n is a subtest of o, at any depth, or a test of package o.
func (n testName) under(o testName) bool {
	return n.pkg == o.pkg && n != o && (o.test == "" || strings.HasPrefix(n.test, o.test+"/"))
}

// Reader takes events and gives the report. The zero value is ready.
type Reader struct {
	rest    []byte // an unfinished line
	report  Report
	output  map[testName]*excerpt
	running map[testName]time.Time // since when, without those that wait for their turn
	paused  map[testName]bool
	failed  []testName // tests, in the order of their ends
	builds  map[string]*excerpt
}

// Write reads the output of the command. Lines that are no events, such as those of
// another test runner, are skipped. It never fails.
func (r *Reader) Write(b []byte) (int, error) {
	r.rest = append(r.rest, b...)
	for {
		line, after, found := bytes.Cut(r.rest, []byte("\n"))
		if !found {
			return len(b), nil
		}
		r.rest = slices.Clone(after)
		var e testEvent
		if len(line) > 0 && line[0] == '{' && json.Unmarshal(line, &e) == nil && e.Action != "" {
			r.handle(e)
		}
	}
}

func (r *Reader) handle(e testEvent) {
	if r.output == nil {
		r.output, r.running, r.paused, r.builds = map[testName]*excerpt{}, map[testName]time.Time{},
			map[testName]bool{}, map[string]*excerpt{}
	}
	n := testName{e.Package, e.Test}
	switch e.Action {
	case "run", "cont":
		delete(r.paused, n)
		r.running[n] = e.Time
	case "pause":
		delete(r.running, n)
		r.paused[n] = true
	case "output":
		excerptOf(r.output, n).add(e.Output)
	case "build-output":
		excerptOf(r.builds, e.ImportPath).add(e.Output)
	case "pass", "fail", "skip":
		r.end(n, e)
	}
}

func excerptOf[K comparable](all map[K]*excerpt, k K) *excerpt {
	if all[k] == nil {
		all[k] = &excerpt{}
	}
	return all[k]
}

// end takes the end of a test or of a package.
func (r *Reader) end(n testName, e testEvent) {
	delete(r.running, n)
	delete(r.paused, n)
	took := time.Duration(e.Elapsed * float64(time.Second))
	switch {
	case n.test == "":
		r.report.Packages = append(r.report.Packages, Timed{n.pkg, took})
		if e.Action == "fail" {
			r.endFailedPackage(n, e.FailedBuild)
		}
	case e.Action == "skip":
		r.report.Skips = append(r.report.Skips, n.pkg+" "+n.test)
	case e.Action == "fail":
		r.failed = append(r.failed, n)
		if !slices.ContainsFunc(r.failed, func(f testName) bool { return f.under(n) }) {
			r.report.Failures = append(r.report.Failures, Failure{n.pkg, n.test, failureLines(r.output[n])})
		}
	}
	delete(r.output, n)
	if n.test == "" || strings.Contains(n.test, "/") {
		return
	}
	r.report.Tests = append(r.report.Tests, Timed{n.pkg + " " + n.test, took})
	switch e.Action {
	case "pass":
		r.report.Passed++
	case "fail":
		r.report.Failed++
	case "skip":
		r.report.Skipped++
	}
}

// endFailedPackage adds a failure where no failed test explains the package's, and
// the tests that were cut off with it.
func (r *Reader) endFailedPackage(pkg testName, build string) {
	cut := r.cutOff(pkg)
	for _, n := range cut {
		r.report.Failures = append(r.report.Failures,
			Failure{n.pkg, n.test, slices.Concat([]string{"it had not ended when its package did"}, failureLines(r.output[n]))})
		r.report.Failed++
	}
	if len(cut) > 0 || slices.ContainsFunc(r.failed, func(f testName) bool { return f.pkg == pkg.pkg }) {
		return
	}
	reason := r.output[pkg]
	if build != "" {
		reason = r.builds[build]
	}
	r.report.Failures = append(r.report.Failures, Failure{Package: pkg.pkg, Why: failureLines(reason)})
	r.report.Failed++
}

// cutOff removes and returns the tests of a package that have begun, have not
// ended, and have no such subtest.
func (r *Reader) cutOff(pkg testName) []testName {
	var all []testName
	for n := range r.running {
		if n.under(pkg) {
			all = append(all, n)
			delete(r.running, n)
		}
	}
	for n := range r.paused {
		if n.under(pkg) {
			delete(r.paused, n)
		}
	}
	all = slices.DeleteFunc(all, func(n testName) bool {
		return slices.ContainsFunc(all, func(o testName) bool { return o.under(n) })
	})
	slices.SortFunc(all, func(a, b testName) int { return strings.Compare(a.test, b.test) })
	return all
}

// Report returns how the tests that have ended so far ended.
func (r *Reader) Report() Report { return r.report }

// Overdue is a test that runs for longer than it may.
type Overdue struct {
	Package, Test string
	Since         time.Time
}

// Overdue returns the tests that have been running since before a time, without those
// that only wait for a subtest or for their turn.
func (r *Reader) Overdue(before time.Time) []Overdue {
	var all []Overdue
	for n, since := range r.running {
		if since.Before(before) && !r.waits(n) {
			all = append(all, Overdue{n.pkg, n.test, since})
		}
	}
	slices.SortFunc(all, func(a, b Overdue) int { return strings.Compare(a.Package+a.Test, b.Package+b.Test) })
	return all
}

// waits reports whether a subtest of n has begun and not ended.
func (r *Reader) waits(n testName) bool {
	for o := range r.running {
		if o.under(n) {
			return true
		}
	}
	for o := range r.paused {
		if o.under(n) {
			return true
		}
	}
	return false
}
