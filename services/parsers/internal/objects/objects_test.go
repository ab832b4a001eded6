package objects_test

import (
	"fmt"
	"testing"

	"github.com/benchmark-ai/bai/services/parsers/internal/objects"
)

// result is a document of a tool.
type result struct {
	Results []struct {
		Name string         `json:"name"`
		Mean objects.Number `json:"mean"`
	} `json:"results"`
}

// say writes what is found in a text on one line.
func say(text string) string {
	f := objects.Find([]byte(text), `"results"`, func(r *result) bool { return r.Results != nil })
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
	f := objects.Find([]byte(text), `"results"`, func(r *result) bool { return r.Results != nil })
	if f.Doc == nil || len(f.Doc.Results) != 1 || f.Doc.Results[0].Name != "a" || !f.Cut {
		t.Errorf("%+v", f)
	}
}

func TestANumberIsTakenTimesAPowerOfTenExactly(t *testing.T) {
	t.Parallel()
	for n, want := range map[objects.Number]string{"1.1": "0.0011 true", "2e3": "2 true", "": "0 false", "1e999": "0 false"} {
		v, ok := n.Times(-3)
		if got := fmt.Sprint(v, ok); got != want {
			t.Errorf("%q: %s, want %s", n, got, want)
		}
	}
}
