package extract_test

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

func TestEmittedLines(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 250000001, time.UTC).UnixNano()
	tests := map[string]struct {
		line string
		want []string // name=value and the other fields of the sample
		err  string
	}{
		"a metric, as in the original":    {`{"metric": 0.1}`, []string{"metric=0.1"}, ""},
		"several, in their order":         {`{"b": 1, "a": 2,"b":3}`, []string{"b=1", "a=2", "b=3"}, ""},
		"signs, fractions and exponents":  {`{"a":-1.5e3,"b":2E-2,"c":0}`, []string{"a=-1500", "b=0.02", "c=0"}, ""},
		"what Python writes":              {`{"a": NaN, "b": Infinity, "c": -Infinity}`, []string{"a=NaN", "b=+Inf", "c=-Inf"}, ""},
		"what C writes":                   {`{"a": -nan, "b": +NaN, "c": "-nan"}`, []string{"a=NaN", "b=NaN", "c=NaN"}, ""},
		"what bc writes":                  {`{"a": .5, "b": -.5}`, []string{"a=0.5", "b=-0.5"}, ""},
		"a text that is a number":         {`{"a": "0.95", "b": " 1e3 "}`, []string{"a=0.95", "b=1000"}, ""},
		"true and false":                  {`{"a": true, "b": false}`, []string{"a=1", "b=0"}, ""},
		"space wherever it may be":        {"\t{ \"a\" : 1 , \"b\" : 2 } \r", []string{"a=1", "b=2"}, ""},
		"names with anything in them":     {`{"caf\u00e9 \"x\"":1, "größe":2}`, []string{`café "x"=1`, "größe=2"}, ""},
		"an object of nothing":            {`{}`, nil, ""},
		"a line of nothing":               {"  ", nil, ""},
		"a step":                          {`{"a": 1, "@step": 7}`, []string{"a=1 step 7"}, ""},
		"a time in seconds":               {`{"@time": 1767323045.250000001, "a": 1}`, []string{fmt.Sprint("a=1 at ", at)}, ""},
		"a time as text":                  {`{"@time": "2026-01-02T04:04:05.250000001+01:00", "a": 1}`, []string{fmt.Sprint("a=1 at ", at)}, ""},
		"a time with an exponent":         {`{"@time": 1.767323045e9, "a": 1}`, []string{"a=1 at 1767323045000000000"}, ""},
		"one with a fraction":             {`{"@time": 1.767323045250000001e9, "a": 1}`, []string{fmt.Sprint("a=1 at ", at)}, ""},
		"one with a small exponent":       {`{"@time": 17673230452.50000001E-1, "a": 1}`, []string{fmt.Sprint("a=1 at ", at)}, ""},
		"one with less than a second":     {`{"@time": 25e-2, "a": 1}`, []string{"a=1 at 250000000"}, ""},
		"one with an exponent too large":  {`{"a": 1, "@time": 1e999999999}`, nil, "is not a time in seconds"},
		"one with an exponent below time": {`{"a": 1, "@time": -1e9}`, nil, "is not a time in seconds since 1970"},
		"one unit for all":                {`{"a": 1, "b": 2, "@unit": "ms"}`, []string{"a=1 in ms", "b=2 in ms"}, ""},
		"a unit for each":                 {`{"a": 1, "b": 2, "@unit": {"b": "MB/s"}}`, []string{"a=1", "b=2 in MB/s"}, ""},
		"labels":                          {`{"a": 1, "@labels": {"gpu": 0, "host": "x", "warm": true}}`, []string{"a=1 gpu:0 host:x warm:true"}, ""},
		"keys for later":                  {`{"a": 1, "@later": {"x": [1, "}"]}}`, []string{"a=1"}, ""},
		"a bad value beside a good one":   {`{"a": [1, 2], "b": 2, "c": null, "d": "x"}`, []string{"b=2"}, "\"a\": \"[1, 2]\" is not a number\n\"c\": \"null\" is not a number\n\"d\": \"\\\"x\\\"\" is not a number"},
		"a bad step beside a good value":  {`{"a": 1, "@step": 1.5}`, nil, `"@step": "1.5" is not a whole number`},
		"a time before time":              {`{"a": 1, "@time": -5}`, nil, `"@time": "-5" is not a time in seconds since 1970`},
		"a time in milliseconds":          {`{"a": 1, "@time": 1767323045000}`, nil, "from 1970 to 2200"},
		"labels that are none":            {`{"a": 1, "@labels": {"x": {}}}`, nil, `"x" is not a text`},
		"a label that is too long":        {`{"a": 1, "b": 2, "@labels": {"gpu": "0", "host": "` + strings.Repeat("x", 300) + `"}}`, nil, `"@labels": "host": name and text have 1 to 256 bytes`},
		"a unit that is too long":         {`{"a": 1, "@unit": "` + strings.Repeat("x", 300) + `"}`, nil, `"@unit": has more than 256 bytes`},
		"a metric without a name":         {`{"": 1}`, nil, "the name of a metric has 0 bytes"},
		"a name that is too long":         {`{"` + strings.Repeat("x", 300) + `": 1}`, nil, "the name of a metric has 300 bytes"},
		"no JSON":                         {`loss=5`, nil, `want a JSON object, as {"metric": 0.1}, got "loss=5"`},
		"a list":                          {`[1]`, nil, "want a JSON object"},
		"a number":                        {`5`, nil, "want a JSON object"},
		"something behind the object":     {`{"a":1}{"b":2}`, nil, `after the object: "{\"b\":2}"`},
		"a line that was torn":            {`{"a":1,"b`, nil, "closing quote"},
		"a key without a value":           {`{"a"}`, nil, "want a colon"},
		"a value without an end":          {`{"a":1`, nil, "want a comma or the end"},
		"a comma too many":                {`{"a":1,}`, nil, "want a text in quotes"},
		"a key without quotes":            {`{a:1}`, nil, "want a text in quotes"},
		"nothing where a value is wanted": {`{"a":,"b":1}`, nil, "want a value"},
		"a nest without an end":           {`{"a":[[1,"x]"]`, nil, "without its end"},
		"a control character in a text":   {"{\"a\x01\":1}", nil, "invalid character"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			samples, err := extract.Emitted([]byte(tt.line))
			got := describe(t, samples)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err == nil) != (tt.err == "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func describe(t *testing.T, samples []event.Sample) (got []string) {
	t.Helper()
	for i, s := range samples {
		if s.Sub != i {
			t.Errorf("sample %d has ordinal %d", i, s.Sub)
		}
		text := fmt.Sprint(s.Name, "=", s.Float())
		if s.Step != nil {
			text += fmt.Sprint(" step ", *s.Step)
		}
		if s.Time != 0 {
			text += fmt.Sprint(" at ", s.Time)
		}
		if s.Unit != "" {
			text += " in " + s.Unit
		}
		got = append(got, text+labels(s.Labels))
	}
	return got
}

func labels(m map[string]string) (text string) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		text += " " + k + ":" + m[k]
	}
	return text
}

func TestALineIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"a0":1`)
	for i := range 2000 {
		fmt.Fprintf(&b, `,"a%d":1,"x%d":null`, i+1, i)
	}
	b.WriteString("}")
	samples, err := extract.Emitted([]byte(b.String()))
	if len(samples) != 1000 {
		t.Errorf("%d samples, want 1000", len(samples))
	}
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("error of %d bytes, want a short one", len(fmt.Sprint(err)))
	}
}

func FuzzEmitted(f *testing.F) {
	for _, seed := range []string{
		`{"metric": 0.1}`, `{"a": NaN, "@time": 1767323045.25, "@step": 7, "@unit": {"a": "s"}, "@labels": {"gpu": "0"}}`,
		`{"a":[1,{"b":"}"}],"c":"0.5"}`, `{"@time":"2026-01-02T03:04:05Z","x":-1e5}`, `{"`, `{"a":1}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		samples, _ := extract.Emitted(line)
		for i, s := range samples {
			if s.Name == "" || s.Sub != i || s.Time < 0 {
				t.Errorf("%q: sample %+v", line, s)
			}
			if (s.Value == nil) == (s.Special == "") || (s.Value != nil && math.IsInf(*s.Value, 0)) {
				t.Errorf("%q: value of %+v", line, s)
			}
		}
	})
}

func BenchmarkEmitted(b *testing.B) {
	line := []byte(`{"loss": 0.2534, "accuracy": 0.91, "@step": 1200, "@time": 1767323045.250000001}`)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := extract.Emitted(line); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzEmissions checks that reading the usual form of lines quickly reads them
// as they are read otherwise, one after the other.
func FuzzEmissions(f *testing.F) {
	for _, line := range []string{
		`{"loss": 0.25}`, `{"loss":-1e-3,"n":12 , "@step": 7, "@time": 1767323045.123456789}`, `{"a": -0}`, `{"a": 01}`, `{"a": 1.}`, `{"a": .5}`, `{}`,
		`{"a": 1e999}`, `{"a": NaN}`, `{"": 1}`, `{"@x": 1}`, `{"@time": 0, "a": 1}`, `{"@time": 5}`, `{"@step": -3, "a": 123456789012345678}`, ` {"a": 1} `,
		`{"a": 1,}`, `{"a": 1}x`, `{"a": +1}`, `{"a": 1e5, "a": 2}`, "{\"\u00e9\": 1}", `{"a\n": 1}`, `{"@unit": "s", "a": 1}`, `{"@time": 1767323045.1234567891, "a": 1}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var e extract.Emissions
		first := event.Sample{Name: "first"}
		want, wantErr := extract.Emitted([]byte(line))
		for range 2 {
			got, err := e.Append([]event.Sample{first}, []byte(line))
			if diff := cmp.Diff(append([]event.Sample{first}, want...), got, cmpopts.EquateNaNs()); diff != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("%v, want %v; (-want +got):\n%s", err, wantErr, diff)
			}
		}
	})
}
