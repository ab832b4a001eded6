package extract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/parse"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// TestTheResultsOfParsersAreSamples has names and labels at the bounds of a line, and beyond them.
func TestTheResultsOfParsersAreSamples(t *testing.T) {
	var document, log strings.Builder
	for _, unit := range []string{"x", "é", "€", "\U0001F600", "@"} {
		for _, count := range []int{1, 64, 65, 85, 86, 128, 129, 256, 257} {
			fmt.Fprintf(&document, ", %q: 1", strings.Repeat(unit, count))
			fmt.Fprintf(&log, "Benchmark%s-2 \t 100 \t 25 ns/op\n", strings.Repeat(unit, count))
		}
	}
	p := parse.Start([]pod.Parser{{Kind: "json"}, {Kind: "gobench", Stream: "stderr"}}, parse.Spool{})
	p.Write(false, []byte("{"+strings.TrimPrefix(document.String(), ",")+"}"))
	p.Write(true, []byte(log.String()+"Benchmark\xff"+strings.Repeat("x", 254)+" 1 1 ns/op\n"))
	lines := string(parse.AppendLines(nil, p.End(nil), 1767323045.25))
	for line := range strings.Lines(lines) {
		if samples, err := extract.Emitted([]byte(line)); err != nil || len(samples) != 1 {
			t.Errorf("%s: %d samples, %v", line, len(samples), err)
		}
	}
	if n := strings.Count(lines, "\n"); n < 30 {
		t.Errorf("%d lines", n)
	}
}
