// Package flake counts how often tests fail when they run again and again, and in
// which ways.
package flake

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/benchmark-ai/bai/services/test/ci/gotest"
)

// Mode is the state of the machine in which tests run.
type Mode string

// Modes.
const (
	Idle    Mode = "as it is"
	Busy    Mode = "one core busy"
	OneCore Mode = "GOMAXPROCS=1"
)

// Modes returns all modes, in the order in which turns take them.
func Modes() []Mode { return []Mode{Idle, Busy, OneCore} }

// Record holds the results of several rounds. The zero value is empty.
type Record struct {
	turns  map[Mode]int
	failed map[string]*record // by test
}

// record is how one test failed.
type record struct {
	name         string
	inMode       map[Mode]int
	failureModes []failureMode
}

// failureMode is one way in which a test fails: other numbers do not make another way.
type failureMode struct {
	key   string
	count int
	lines []string
}

// Add counts one turn.
func (r *Record) Add(mode Mode, tests gotest.Report) {
	if r.turns == nil {
		r.turns, r.failed = map[Mode]int{}, map[string]*record{}
	}
	r.turns[mode]++
	for _, f := range tests.Failures {
		name := strings.TrimSpace(strings.TrimPrefix(f.Package, "github.com/benchmark-ai/bai/") + " " + f.Test)
		if r.failed[name] == nil {
			r.failed[name] = &record{name: name, inMode: map[Mode]int{}}
		}
		r.failed[name].add(mode, f.Why)
	}
}

func (r *record) add(mode Mode, lines []string) {
	r.inMode[mode]++
	key := keyOf(lines)
	if i := slices.IndexFunc(r.failureModes, func(w failureMode) bool { return w.key == key }); i >= 0 {
		r.failureModes[i].count++
		return
	}
	r.failureModes = append(r.failureModes, failureMode{key, 1, lines})
}

// keyOf is the first line that locates a failure, without the parts that differ between
// rounds.
func keyOf(lines []string) string {
	place := regexp.MustCompile(`\w+\.go:\d+`)
	for _, line := range lines {
		if found := place.FindString(line); found != "" {
			return found
		}
	}
	return regexp.MustCompile(`[0-9a-f]{4,}|\d+`).ReplaceAllString(strings.Join(lines[:min(1, len(lines))], ""), "N")
}

// Failed reports whether a test failed in any turn.
func (r *Record) Failed() bool { return len(r.failed) > 0 }

// linesPerMode is how many lines of each way the table has.
const linesPerMode = 5

// Table says which tests failed how often, the most frequent first, with the first
// lines of each way in which they failed.
func (r *Record) Table() string {
	var b strings.Builder
	turns := 0
	for _, m := range Modes() {
		turns += r.turns[m]
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "\nFAILED")
	for _, m := range Modes() {
		fmt.Fprintf(table, "\t%s", strings.ToUpper(string(m)))
	}
	fmt.Fprintln(table, "\tTEST")
	all := make([]*record, 0, len(r.failed))
	for _, f := range r.failed {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *record) int {
		return cmp.Or(cmp.Compare(b.total(), a.total()), strings.Compare(a.name, b.name))
	})
	for _, f := range all {
		fmt.Fprintf(table, "%d of %d", f.total(), turns)
		for _, m := range Modes() {
			fmt.Fprintf(table, "\t%d of %d", f.inMode[m], r.turns[m])
		}
		fmt.Fprintf(table, "\t%s\n", f.name)
	}
	_ = table.Flush() // into memory
	for _, f := range all {
		b.WriteString(f.describe())
	}
	fmt.Fprintf(&b, "\n%d turns, %d tests failed in some of them\n", turns, len(all))
	return b.String()
}

func (r *record) total() (n int) {
	for _, k := range r.inMode {
		n += k
	}
	return n
}

// describe are the ways in which a test failed.
func (r *record) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", r.name)
	for _, w := range r.failureModes {
		fmt.Fprintf(&b, "  %d times:\n", w.count)
		for _, line := range w.lines[:min(linesPerMode, len(w.lines))] {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	return b.String()
}
