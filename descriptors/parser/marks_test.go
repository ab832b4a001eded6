package parser_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

// In the files under testdata/bad, comments mark the position of each intended fault, so
// that a reader can check it:
//
//	strategy = "singlenode"
//	#          ^ BAI0013
//
// A mark refers to the last line above it that is no mark; #< stands for its first
// column. If a comment would change the fault, the first line of the file lists the
// positions: # 3:1 BAI0001, 7:12 BAI0011.
func TestEveryIntendedFaultIsReportedInItsPlaceAndNothingElse(t *testing.T) {
	unmarkable := map[string][]string{ // by line:column; a file that is not text, or is empty, has no comments
		"elf.toml": {"1:8 BAI0005"}, "utf16.toml": {"1:1 BAI0006"}, "empty.toml": {"1:1 BAI0003"}, "blank.toml": {"1:1 BAI0003"},
	}
	count := 0
	for path, text := range files(t, "testdata/bad/*.toml") {
		name := filepath.Base(path)
		want, ok := unmarkable[name]
		if !ok {
			want = marks(text)
		}
		if len(want) == 0 {
			t.Errorf("%s: no fault is intended", name)
		}
		_, faults := parser.Parse(name, text)
		var got []string
		for _, f := range faults {
			got = append(got, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Code))
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		count++
	}
	if count < 60 {
		t.Errorf("%d files", count)
	}
}

// marks are the places that the comments of text say.
func marks(text []byte) []string {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if listed := regexp.MustCompile(`\d+:\d+ BAI\d{4}`).FindAllString(string(first), -1); listed != nil {
		return listed
	}
	mark := regexp.MustCompile(`^#(<|[ ]*\^) (BAI\d{4})\r?$`)
	var all []string
	about := 0
	for i, line := range strings.Split(string(text), "\n") {
		m := mark.FindStringSubmatch(line)
		if m == nil {
			about = i + 1
			continue
		}
		column := 1
		if m[1] != "<" {
			column = utf8.RuneCountInString(m[1]) + 1
		}
		all = append(all, fmt.Sprintf("%d:%d %s", about, column, m[2]))
	}
	return all
}
