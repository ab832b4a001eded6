package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

func TestEachLineIsAMetric(t *testing.T) {
	t.Parallel()
	text := `{"name": "bandwidth", "value": 72465125000, "unit": "bits/s", "direction": "higher", "labels": {"stream": "sum"}, "headline": true}

{"name": "bandwidth", "value": 1.5e9, "labels": {"stream": "1"}}
{"version": "2.1", "state": "partial", "reason": "no second half"}
{"name": "loss", "value": -0.25}`
	want := printedLines{
		Metrics: []report.Metric{
			{Name: "bandwidth", Value: 72465125000, Unit: "bits/s", Direction: report.Higher, Labels: map[string]string{"stream": "sum"}, Headline: true},
			{Name: "bandwidth", Value: 1.5e9, Unit: "1", Labels: map[string]string{"stream": "1"}},
			{Name: "loss", Value: -0.25, Unit: "1", Labels: map[string]string{}},
		},
		State: report.Partial, Reason: "no second half", Version: "2.1",
	}
	if diff := cmp.Diff(want, readLines(strings.NewReader(text))); diff != "" {
		t.Error(diff)
	}
}

func TestMetricsMayBePrintedAsAReportHasThem(t *testing.T) {
	t.Parallel()
	m := report.Metric{Name: "t", Value: 2, Unit: "s", Labels: map[string]string{}}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(printedLines{Metrics: []report.Metric{m}}, readLines(strings.NewReader(string(text)))); diff != "" {
		t.Error(diff)
	}
}

// refusals are lines that are none of the schema, with the reasons.
func refusals() map[string]string {
	return map[string]string{
		`hello`:                         "it is not a JSON object",
		`null`:                          "it is not a JSON object",
		`[1]`:                           "it is not a JSON object",
		`{"name": "a"`:                  "it is not a JSON object",
		`{"name": "a", "value": NaN}`:   "it is not a JSON object",
		"{\"name\": \"\xff\"}":          "it is not UTF-8",
		`{}`:                            "it has neither a name, a state nor a version",
		`{"nam": "a"}`:                  `"nam" is none of state, reason, version`,
		`{"name": "a"}`:                 "value is missing",
		`{"name": "a", "value": "1"}`:   "value is not a number",
		`{"name": "a", "value": null}`:  "value is not a number",
		`{"name": "a", "value": 1e999}`: "value is not a number",
		`{"value": 1}`:                  "name has to be one line of 1 to 128 characters, without a blank around it or @ before it",
		`{"name": "@time", "value": 1}`: "name has to be one line of 1 to 128 characters, without a blank around it or @ before it",
		`{"name": "a\n", "value": 1}`:   "name has to be one line of 1 to 128 characters, without a blank around it or @ before it",
		`{"name": "` + strings.Repeat("x", 129) + `", "value": 1}`:              "name has to be one line of 1 to 128 characters, without a blank around it or @ before it",
		`{"name": "a", "value": 1, "units": "s"}`:                               `"units" is none of name, value, unit, direction, labels, headline`,
		`{"name": "a", "value": 1, "unit": "` + strings.Repeat("x", 257) + `"}`: "unit has more than 256 bytes",
		`{"name": "a", "value": 1, "direction": "up"}`:                          "direction is neither higher nor lower",
		`{"name": "a", "value": 1, "labels": {"n": 1}}`:                         "labels is not an object of texts",
		`{"name": "a", "value": 1, "labels": {"": "x"}}`:                        "a label has to have a name, and 256 bytes at most",
		`{"name": "a", "value": 1, "headline": "yes"}`:                          "headline is not true or false",
		`{"state": "good"}`:              "state is none of ok, partial, failed and empty",
		`{"state": "partial"}`:           "a state other than ok has a reason, and no other line has one",
		`{"state": "ok", "reason": "x"}`: "a state other than ok has a reason, and no other line has one",
	}
}

func TestALineThatIsNoneOfTheSchemaIsQuoted(t *testing.T) {
	t.Parallel()
	for line, reason := range refusals() {
		l := readLines(strings.NewReader("\n" + line + "\n" + `{"name": "later", "value": 1}`))
		want := fmt.Sprintf("line 2 of its output is refused: %s: %q", reason, report.Clip(line))
		if l.Fault != want || len(l.Metrics) > 0 {
			t.Errorf("%s:\n got %s, %d metrics\nwant %s", line, l.Fault, len(l.Metrics), want)
		}
	}
}

// TestANameIsBoundedInBytesToo has names as long as may be, and longer ones: the platform's collector counts bytes.
func TestANameIsBoundedInBytesToo(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		strings.Repeat("é", 128): "",
		strings.Repeat("€", 85):  "",
		strings.Repeat("€", 86):  "line 1 of its output is refused: name has more than 256 bytes: ",
	} {
		l := readLines(strings.NewReader(`{"name": "` + name + `", "value": 1}`))
		if want == "" && l.Fault != "" || !strings.HasPrefix(l.Fault, want) {
			t.Errorf("%d bytes: %s, want %s", len(name), l.Fault, want)
		}
	}
}

func TestALineThatComesTwiceIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"name": "a", "value": 1}` + "\n" + `{"name": "a", "value": 2, "labels": {}}`: "a line before it has the same name and labels",
		`{"version": "1"}` + "\n" + `{"state": "ok"}`:                                  "a line before it has a state or a version",
	} {
		if l := readLines(strings.NewReader(text)); !strings.HasPrefix(l.Fault, "line 2 of its output is refused: "+want+": ") {
			t.Errorf("%s: %s, want %s", text, l.Fault, want)
		}
	}
}

// endless gives a text again and again, and counts the bytes.
type endless struct {
	text string
	size int
}

func (e *endless) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		n += copy(b[n:], e.text[(e.size+n)%len(e.text):])
	}
	e.size += n
	return n, nil
}

func TestAFloodIsReadToALimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"x":  "it has more than 64 KiB",
		"\n": "with it there are more than 4 MiB",
	} {
		in := &endless{text: text}
		if l := readLines(in); !strings.Contains(l.Fault, want) || in.size > MaxOutput+2*MaxLine {
			t.Errorf("%q: %.100s, %d bytes read, want %s", text, l.Fault, in.size, want)
		}
	}
	var many strings.Builder
	for i := range MaxMetrics + 1 {
		fmt.Fprintf(&many, "{\"name\": \"m%d\", \"value\": 1}\n", i)
	}
	if l := readLines(strings.NewReader(many.String())); len(l.Metrics) != MaxMetrics || !strings.Contains(l.Fault, "more than 10000 metrics") {
		t.Errorf("%d metrics, %s", len(l.Metrics), l.Fault)
	}
}

// FuzzRead checks that each text gives a report that keeps the rules of all kinds.
func FuzzRead(f *testing.F) {
	for line := range refusals() {
		f.Add(line)
	}
	f.Add("{\"name\": \"a\", \"value\": 1, \"labels\": {\"b\": \"c\"}, \"headline\": true}\n{\"state\": \"partial\", \"reason\": \"r\", \"version\": \"v\"}\n")
	kind := report.Kind{Name: Kind, Metrics: []report.Definition{{Name: "*", Unit: "*", Headline: true, Labels: []string{"*"}}}}
	f.Fuzz(func(t *testing.T, text string) {
		r := conclude(readLines(strings.NewReader(text)), processEnd{})
		for i := range r.Metrics {
			kind.Metrics[0].Direction = r.Metrics[i].Direction
		}
		if err := kind.Check(r); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func TestTheSchemaRefusesWhatIsRefused(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile("../../../docs/parser-lines.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(line string) bool {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		return err == nil && schema.Validate(value) == nil
	}
	for line := range refusals() {
		ofGo := strings.Contains(line, "1e999") || strings.HasPrefix(line, `{"state": "partial"}`) || strings.HasPrefix(line, `{"state": "ok", "reason"`) // which the schema cannot say
		if valid(line) && !ofGo && utf8.ValidString(line) {
			t.Errorf("the schema takes %s", line)
		}
	}
	for _, line := range []string{
		`{"name": "a b", "value": -1.5e-3}`, `{"name": "é", "value": 0, "unit": "s", "direction": "lower", "labels": {"a": ""}, "headline": false}`, `{"name": "a", "value": 1, "direction": ""}`,
		`{"version": "1"}`, `{"state": "ok"}`, `{"state": "failed", "reason": "r", "version": "1"}`,
	} {
		if l := readLines(strings.NewReader(line)); l.Fault != "" || !valid(line) {
			t.Errorf("%s: %s, the schema takes it: %t", line, l.Fault, valid(line))
		}
	}
}
