package document_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
)

// result is a document of a tool.
type result struct {
	Results []struct {
		Name string          `json:"name"`
		Mean document.Number `json:"mean"`
	} `json:"results"`
}

// say writes what is found in a text on one line.
func say(text string) string {
	f := document.Find([]byte(text), `"results"`, func(r *result) bool { return r.Results != nil })
	if f.Doc == nil {
		return fmt.Sprintf("nothing cut=%v around=%q", f.Cut, f.Around)
	}
	return fmt.Sprintf("%v cut=%v around=%q", f.Doc.Results, f.Cut, f.Around)
}

func TestTheLastWholeDocumentIsFoundAmongOtherText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"results": [{"name": "a", "mean": 1.5}]}`:                                                  `[{a 1.5}] cut=false around=""`,
		"warning {\n" + `{"results": [{"name": "a", "mean": 1}]}` + "\nbye\n":                        `[{a 1}] cut=false around="warning {\n\nbye\n"`,
		`{"results": [{"name": "a", "mean": 1}]}` + "\n" + `{"results": [{"name": "b", "mean": 2}]}`: `[{b 2}] cut=false around="\n"`,
		`{"results": [{"name": "a", "mean": NaN}, {"name": "b", "mean": 2}]}`:                        `[{a } {b 2}] cut=false around=""`,
		`{"results": [{"name": "a", "mean": "fast"}]}`:                                               `[{a }] cut=false around=""`,
	} {
		if got := say(text); got != want {
			t.Errorf("%s:\n%s, want\n%s", text, got, want)
		}
	}
}

func TestOfADocumentThatEndsInTheMiddleTheWholeEntriesCount(t *testing.T) {
	t.Parallel()
	text := `{"results": [{"name": "a", "mean": 1}, {"name": "b", "mea`
	f := document.Find([]byte(text), `"results"`, func(r *result) bool { return r.Results != nil })
	if f.Doc == nil || len(f.Doc.Results) != 1 || f.Doc.Results[0].Name != "a" || !f.Cut {
		t.Errorf("%+v", f)
	}
}

func TestANumberIsTakenTimesAPowerOfTenExactly(t *testing.T) {
	t.Parallel()
	for n, want := range map[document.Number]string{"1.1": "0.0011 true", "2e3": "2 true", "": "0 false", "1e999": "0 false"} {
		v, ok := n.Times(-3)
		if got := fmt.Sprint(v, ok); got != want {
			t.Errorf("%q: %s, want %s", n, got, want)
		}
	}
}

// FuzzWithoutInfinities compares the search with a regular expression.
func FuzzWithoutInfinities(f *testing.F) {
	for _, text := range []string{`{"a": NaN, "b": [-inf, +Infinity,\tinfinitys, nan_, INF]}`, ":nan,nan,inf", "nan", "- nan", ":--nan", ":\n-NAN", "{\"nan\": 1}"} {
		f.Add(text)
	}
	pattern := regexp.MustCompile(`([:\[,]\s*)[-+]?(?i:nan|infinity|inf)\b`)
	f.Fuzz(func(t *testing.T, text string) {
		want := pattern.ReplaceAllString(text, "${1}null")
		got, changed := document.WithoutInfinities([]byte(text))
		if string(got) != want || changed != pattern.MatchString(text) {
			t.Fatalf("%q: %q %t, want %q", text, got, changed, want)
		}
	})
}

// FuzzFind reads any text, and any beginning of a document.
func FuzzFind(f *testing.F) {
	f.Add(`{"results": [{"name": "a", "mean": NaN}, {"name": "b", "mea`)
	f.Add("{ {\n{\"results\": [{}]}\"]}[")
	f.Fuzz(func(t *testing.T, text string) {
		whole := `{"results": [{"name": "whole", "mean": 1}]}`
		if got := say(text + "\n" + whole); !strings.Contains(got, "whole") {
			t.Fatalf("%q: %s", text, got)
		}
	})
}
