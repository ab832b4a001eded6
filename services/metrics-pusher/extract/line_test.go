package extract_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

func FuzzALineReadsAsTheSampleThatItWasMadeOf(f *testing.F) {
	f.Add("loss", 0.25, int64(1767323045250000001), "s", "gpu", "0", int64(3))
	f.Add("größe \" \\ \x01", math.NaN(), int64(1), "", "", "", int64(0))
	f.Add("a", math.Inf(-1), int64(0), "µs", "x", "\u2028<>&", int64(-1))
	f.Fuzz(func(t *testing.T, name string, value float64, at int64, unit, label, text string, step int64) {
		tooLong := func(s string) bool { return !utf8.ValidString(s) || len(s) > 256 }
		if slices.ContainsFunc([]string{name, unit, label, text}, tooLong) || name == "" || name[0] == '@' || at < 0 || at > 7e18 {
			return
		}
		want := event.Sample{Name: name, Time: at, Unit: unit}
		want.Set(value)
		if label != "" {
			want.Labels, want.Step = map[string]string{label: text}, &step
		}
		line := extract.AppendLine(nil, &want)
		if strings.IndexByte(string(line), '\n') != len(line)-1 {
			t.Fatalf("%q is not one line", line)
		}
		got, err := extract.Emitted(line)
		if diff := cmp.Diff([]event.Sample{want}, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", line, err, diff)
		}
	})
}
