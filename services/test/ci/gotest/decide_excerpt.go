package gotest

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// maxFailureLines is how many lines of a failure are shown; head is how many of these are
// the first where there are more.
const (
	maxFailureLines = 12
	head            = 7
	width           = 240 // of a line that is shown
)

// excerpt keeps the beginning and the end of an output, and the place where it
// speaks of a crash.
type excerpt struct {
	first, last []string
	crash       []string // from the line on that reports a crash
	partial     string
}

const (
	keepFirst = 60
	keepLast  = 60
	keepCrash = 400
)

func (x *excerpt) add(text string) {
	x.partial += text
	for {
		line, after, found := strings.Cut(x.partial, "\n")
		if !found {
			return
		}
		x.partial = after
		x.line(line)
	}
}

func (x *excerpt) line(line string) {
	if isFrame(line) {
		return
	}
	switch {
	case len(x.crash) > 0 || isCrash(line):
		if len(x.crash) < keepCrash {
			x.crash = append(x.crash, line)
		}
	case len(x.first) < keepFirst:
		x.first = append(x.first, line)
	default:
		x.last = append(x.last, line)
		if len(x.last) > keepLast {
			x.last = x.last[1:]
		}
	}
}

// isFrame reports whether the line is the test runner's own, or empty.
func isFrame(line string) bool {
	line = strings.TrimSpace(line)
	for _, prefix := range []string{"=== ", "--- ", "PASS", "FAIL", "ok  \t", "exit status "} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return line == ""
}

func isCrash(line string) bool {
	for _, prefix := range []string{"panic: ", "fatal error: ", "WARNING: DATA RACE", "SIGQUIT: ", "SIGSEGV", "unexpected fault"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// failureLines returns the lines with the reason of a failure: of a crash its beginning
// and the lines of the tests' own stack, else the first and the last lines of the test.
func failureLines(x *excerpt) []string {
	if x == nil {
		return nil
	}
	if x.partial != "" {
		x.line(x.partial)
		x.partial = ""
	}
	if len(x.crash) > 0 {
		return shorten(slices.Concat(x.ends(4), crashLines(x.crash)))
	}
	return shorten(x.ends(maxFailureLines))
}

// ends returns at most n lines of the output before a crash: the last ones are more
// useful than those in the middle.
func (x *excerpt) ends(n int) []string {
	all := slices.Concat(x.first, x.last)
	if len(all) <= n {
		return all
	}
	begin := min(head, n/2)
	return slices.Concat(all[:begin], []string{"…"}, all[len(all)-(n-begin-1):])
}

// frames matches the place of a test's or the project's own code in a stack.
var frames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s+\S+\.go:\d+`) }) //nolint:gochecknoglobals // a constant

// crashLines returns the beginning of a crash's report, and the first places of test
// files in the stacks after it.
func crashLines(lines []string) []string {
	begin := lines[:min(4, len(lines))]
	var places []string
	for _, line := range lines[len(begin):] {
		if len(places) < 3 && frames().MatchString(line) && strings.Contains(line, "_test.go:") && !slices.Contains(places, line) {
			places = append(places, line)
		}
	}
	return slices.Concat(begin, places)
}

func shorten(lines []string) []string {
	short := make([]string, 0, len(lines))
	for _, line := range lines {
		line = strings.TrimRight(line, " \t\r")
		if runes := []rune(line); len(runes) > width {
			line = string(runes[:width]) + "…"
		}
		short = append(short, line)
	}
	return short
}
