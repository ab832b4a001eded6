package parse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

func TestAMetricThatTheCollectorWouldRefuseIsMissing(t *testing.T) {
	t.Parallel()
	long, longest := strings.Repeat("é", 129), strings.Repeat("é", 128)
	for name, tt := range map[string]struct{ output, want string }{
		"a name":            {fmt.Sprintf(`{%q: 1, "b": 2}`, long), `partial b=2 metric "` + long + `" is not stored: its name has 258 bytes, and the platform takes 256`},
		"the longest name":  {fmt.Sprintf(`{%q: 1}`, longest), "ok " + longest + "=1 "},
		"what is no metric": {`{"@time": 1, "b": 2}`, `partial b=2 metric "@time" is not stored: its name is empty or begins with @`},
		"all":               {fmt.Sprintf(`{%q: 1}`, long), `empty  metric "` + long + `" is not stored: its name has 258 bytes, and the platform takes 256`},
		"several":           {fmt.Sprintf(`{%q: 1, "@a": 2, "@b": 2, "c": 3}`, long), `partial c=3 metric "` + long + `" is not stored: its name has 258 bytes, and the platform takes 256; nor are 2 others`},
	} {
		r := parseAll([]pod.Parser{{Kind: "json"}}, piece{false, tt.output})[0].Report
		if diff := cmp.Diff(tt.want, string(r.State)+" "+values(r)+" "+r.Reason); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLabelsThatTheCollectorWouldRefuseAreMissing(t *testing.T) {
	t.Parallel()
	const format = "Benchmark%s-2 \t 100 \t 25 ns/op\n"
	text := fmt.Sprintf(format, "A") + fmt.Sprintf(format, strings.Repeat("B", 257)) + "PASS\n"
	r := parseAll([]pod.Parser{{Kind: "gobench"}}, piece{false, text})[0].Report
	want := `partial sec_per_op=2.5e-8 metric "sec_per_op" is not stored: its label "benchmark" has 257 bytes, and the platform takes 256`
	if diff := cmp.Diff(want, string(r.State)+" "+values(r)+" "+r.Reason); diff != "" {
		t.Error(diff)
	}
}
