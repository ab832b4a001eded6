package document_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
)

func all(text string) (found []string, cut int) {
	found = []string{}
	cut = document.All([]byte(text), func(doc []byte) { found = append(found, string(doc)) })
	return found, cut
}

func TestDocumentsAreFoundInText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                                  {},
		"{}":                                {"{}"},
		"a {\"b\": [1]} c":                  {`{"b": [1]}`},
		"[1]\n[2] \r\n":                     {"[1]", "[2]"},
		"[  3] 0.0-1.0 sec\n":               {},
		"x [1]\n":                           {},
		"{x} {\"a\": 1}{\"b\": 2}":          {`{"a": 1}`, `{"b": 2}`},
		"{ \"a\": {\"b\": 01}} {\"c\": {}}": {`{"c": {}}`},
		`{"a": "}\"{"}`:                     {`{"a": "}\"{"}`},
	} {
		if got, cut := all(text); !cmp.Equal(got, want) || cut != -1 {
			t.Errorf("%s: %q, cut %d, want %q", text, got, cut, want)
		}
	}
	if got, cut := all("{\"a\": 1} {\"b\": [2"); len(got) != 1 || cut != 9 {
		t.Errorf("%q, cut %d, want one document, and a cut at 9", got, cut)
	}
}

func TestTextThatIsReadInVainIsLimited(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	for many, want := range map[int]int{100: 1, 100_000: 0} { // each is read with the 1000 that follow
		text := strings.Repeat("{\"a\":[", many) + "}\n{}"
		found := 0
		if document.AllWithin([]byte(text), most, func([]byte) { found++ }); found != want {
			t.Errorf("behind %d brackets %d documents are found, want %d", many, found, want)
		}
	}
}

func TestWaysLeadToValues(t *testing.T) {
	t.Parallel()
	var got []string
	document.Walk([]byte(`{"a": {"b\u0020c": [1, "x", {}, []]}, "": null}`), func(way []document.Step, value []byte) {
		line := ""
		for _, s := range way {
			if s.Key != nil {
				line += fmt.Sprintf("%q", s.Key)
			} else {
				line += fmt.Sprint(s.Index)
			}
		}
		got = append(got, line+" "+string(value))
	})
	want := []string{`"a""b c"0 1`, `"a""b c"1 "x"`, `"a""b c"2 {}`, `"a""b c"3 []`, `"" null`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestANumberAtTheCutIsNone(t *testing.T) {
	t.Parallel()
	count := 0
	document.Walk([]byte(`{"a": 1, "b": 12`), func([]document.Step, []byte) { count++ })
	if count != 1 {
		t.Errorf("%d values, want 1", count)
	}
}

func TestTheNearestNameIsFound(t *testing.T) {
	t.Parallel()
	names := []string{"throughput", "latency", "a"}
	for name, want := range map[string]string{
		"thruput": "throughput", "Latency": "latency", "b": "", "zzz": "", "throughputs": "throughput", "": "",
	} {
		if got := document.Nearest(name, names); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// FuzzValueEnd holds the grammar to that of encoding/json.
func FuzzValueEnd(f *testing.F) {
	for _, text := range []string{
		`{"a": [1, -0.5e+3, "\u00e9\n", true, false, null, {}]}`, "[1,]", "01", `"\x"`, "{\"a\":1", "tru", "\"\x7f\xff\"", "-", "1.e1", " 1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end, ok := document.ValueEnd([]byte(text))
		if end > len(text) || ok && !json.Valid([]byte(text[:end])) {
			t.Fatalf("%q: %d %t", text, end, ok)
		}
		bare := strings.Trim(text, " \t\r\n") == text && strings.Count(text, "[")+strings.Count(text, "{") < 1000
		if bare && json.Valid([]byte(text)) && (!ok || end != len(text)) {
			t.Fatalf("%q is JSON: %d %t", text, end, ok)
		}
	})
}
