package emit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/emit"
)

// conformance is the table that all client libraries and the platform's reader pass.
type conformance struct {
	Cases     []call                  `json:"cases"`
	NoNumbers []struct{ Text string } `json:"no_numbers"`
}

type call struct {
	Name   string      `json:"name"`
	Values []value     `json:"values"` // none: the case is not for Go
	Step   *int64      `json:"step"`
	Unit   string      `json:"unit"`
	Units  [][2]string `json:"units"`
	Labels [][2]string `json:"labels"`
	Time   string      `json:"time"`
	Line   string      `json:"line"`
}

type value struct {
	Name  string  `json:"name"`
	Float *string `json:"float"`
	Int   *string `json:"int"`
	Bool  *bool   `json:"bool"`
	Text  *string `json:"text"`
}

func (v value) value(t *testing.T) any {
	t.Helper()
	switch {
	case v.Float != nil:
		f, err := strconv.ParseFloat(*v.Float, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	case v.Int != nil:
		n, err := strconv.ParseInt(*v.Int, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	case v.Bool != nil:
		return *v.Bool
	default:
		return *v.Text
	}
}

func read(t *testing.T) conformance {
	t.Helper()
	b, err := os.ReadFile("testdata/conformance.json")
	if err != nil {
		t.Fatal(err)
	}
	var c conformance
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c call) options(t *testing.T) (opts []emit.Option) {
	t.Helper()
	if c.Step != nil {
		opts = append(opts, emit.Step(*c.Step))
	}
	if c.Unit != "" {
		opts = append(opts, emit.Unit(c.Unit))
	}
	for _, u := range c.Units {
		opts = append(opts, emit.UnitOf(u[0], u[1]))
	}
	for _, l := range c.Labels {
		opts = append(opts, emit.Label(l[0], l[1]))
	}
	if c.Time != "" {
		opts = append(opts, emit.At(instant(t, c.Time)))
	}
	return opts
}

// make makes the call in each way that Go has for it, and returns the lines that
// are to come of it.
func (c call) make(t *testing.T, e *emit.Emitter) (want []string) {
	t.Helper()
	opts, values := c.options(t), map[string]any{}
	for _, v := range c.Values {
		values[v.Name] = v.value(t)
	}
	if err := e.Emit(values, opts...); err != nil {
		t.Errorf("%s: %v", c.Name, err)
	}
	if len(values) > 1 {
		return []string{c.Line}
	}
	switch v := values[c.Values[0].Name].(type) {
	case float64:
		e.Value(c.Values[0].Name, v, opts...)
	case int64:
		e.Count(c.Values[0].Name, v, opts...)
	default:
		return []string{c.Line}
	}
	return []string{c.Line, c.Line}
}

// calls makes the calls of the table and returns the lines that are to come of
// them.
func (c conformance) calls(t *testing.T, e *emit.Emitter) (want []string) {
	t.Helper()
	for _, tt := range c.Cases {
		if len(tt.Values) > 0 {
			want = append(want, tt.make(t, e)...)
		}
	}
	return want
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	sec, nsec, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(sec, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := strconv.ParseInt(nsec, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(s, ns)
}

func lines(b []byte) []string {
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func TestTheTableIsPrintedOutsideOfAPod(t *testing.T) {
	for name, env := range map[string][]string{
		"by default":                    nil,
		"when told to":                  {"BENCHMARK_AI", "stdout"},
		"when told to in capitals":      {"BENCHMARK_AI", "STDOUT", "BENCHMARK_AI_FILE", "/nowhere/metrics"},
		"when told to, also in a pod":   {"BENCHMARK_AI", "stdout", "BENCHMARK_AI_FILE", "/nowhere/metrics"},
		"where the file's name is none": {"BENCHMARK_AI_FILE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			want := read(t).calls(t, open(t, emit.Settings{Stdout: &out}, env...))
			if diff := cmp.Diff(want, lines(out.Bytes())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheTableIsAppendedToTheMetricsFileWithTheTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metrics")
	if err := os.WriteFile(file, []byte("{\"before\": 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Unix(1767323045, 1) }
	e := open(t, emit.Settings{Now: now}, "BENCHMARK_AI_FILE", file, "BENCHMARK_AI", "fifo", "BENCHMARK_AI_FIFO_FILEPATH", "/nowhere/fifo")
	want := []string{`{"before": 1}`}
	for _, line := range read(t).calls(t, e) {
		if !strings.Contains(line, `"@time"`) {
			line = strings.TrimSuffix(line, "}") + `, "@time": 1767323045.000000001}`
		}
		want = append(want, line)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, lines(b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATextThatIsNoNumberIsRefused(t *testing.T) {
	type named string
	for _, no := range read(t).NoNumbers {
		var out bytes.Buffer
		e := open(t, emit.Settings{Stdout: &out})
		for _, v := range []any{no.Text, named(no.Text), jsonNumber(no.Text)} {
			if err := e.Emit(map[string]any{"a": v}); err == nil || !strings.Contains(err.Error(), "is no number") {
				t.Errorf("%T %q: error %v", v, no.Text, err)
			}
		}
		if out.Len() > 0 {
			t.Errorf("%q: it writes %q", no.Text, out.String())
		}
	}
}

func TestTheTimeIsThatOfTheCall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metrics")
	e := open(t, emit.Settings{}, "BENCHMARK_AI_FILE", file)
	before := time.Now()
	e.Value("a", 1)
	after := time.Now()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`^{"a": 1.0, "@time": (\d+\.\d{9})}\n$`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("the line is %q", b)
	}
	if at := instant(t, strings.TrimSpace(string(m[1]))); at.Before(before.Truncate(0)) || at.After(after.Truncate(0)) {
		t.Errorf("time %s, want one from %s to %s", at, before, after)
	}
}
