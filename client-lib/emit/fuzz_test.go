package emit_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/emit"
)

// FuzzLine checks that each call makes one line of ASCII, which reads back as the emitted
// values.
func FuzzLine(f *testing.F) {
	f.Add("loss", 0.25, int64(7), "1", "gpu", "0", int64(1767323045), int64(250000001))
	f.Add("größe \"x\"\\\n\x00\x7f\xff", math.Inf(-1), int64(-1), "µs", "\u2028", "𝛼", int64(0), int64(999999999))
	f.Add("", math.NaN(), int64(math.MinInt64), "", "", "\xed\xa0\x80", int64(-1), int64(0))
	f.Fuzz(func(t *testing.T, name string, v float64, step int64, unit, key, label string, sec, nsec int64) {
		at := time.Unix(sec%1e10, nsec%1e9)
		var out bytes.Buffer
		e := open(t, emit.Settings{Stdout: &out})
		opts := []emit.Option{emit.Step(step), emit.Unit(unit), emit.Label(key, label), emit.At(at)}
		e.Value(name, v, opts...)
		line := out.String()
		if i := strings.IndexFunc(line, func(r rune) bool { return r < ' ' || r > '~' }); i != len(line)-1 || line[i] != '\n' {
			t.Fatalf("%q is not one line of ASCII", line)
		}
		if err := e.Emit(map[string]any{name: v}, opts...); err != nil || out.String() != line+line {
			t.Errorf("Emit writes %q, want %q as Value does: %v", out.String()[len(line):], line, err)
		}
		if math.IsNaN(v) || math.IsInf(v, 0) || strings.HasPrefix(name, "@") {
			return
		}
		wantMeaning(t, line, at, meaning{Step: step, Unit: valid(unit), Labels: map[string]string{valid(key): valid(label)}})
		var values map[string]any
		if err := json.Unmarshal([]byte(line), &values); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(any(v), values[valid(name)]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	})
}

// meaning is the content of a line beside its values.
type meaning struct {
	Step   int64             `json:"@step"`
	Unit   string            `json:"@unit"`
	Labels map[string]string `json:"@labels"`
	Time   json.Number       `json:"@time"`
}

func wantMeaning(t *testing.T, line string, at time.Time, want meaning) {
	t.Helper()
	var got meaning
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if at.Unix() >= 0 && !instant(t, got.Time.String()).Equal(at) {
		t.Errorf("%s: the time is %s, want %d.%d", line, got.Time, at.Unix(), at.Nanosecond())
	}
	got.Time = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", line, diff)
	}
}

func valid(s string) string {
	var b strings.Builder
	for _, r := range s { // each byte that is no UTF-8 becomes one U+FFFD
		b.WriteRune(r)
	}
	return b.String()
}
