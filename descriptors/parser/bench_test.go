package parser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

// longDescriptor is a descriptor of 1,000 lines with 20 faults, and the lines of these.
func longDescriptor() (text string, lines []int) {
	var out []string
	add := func(good string, faulty bool, bad string) {
		if faulty {
			good = bad
			lines = append(lines, len(out)+1)
		}
		out = append(out, good)
	}
	out = append(out, `spec_version = "1.0"`, `[info]`, `description = "long"`, `[info.labels]`)
	for i := range 100 {
		add(fmt.Sprintf(`label-%d = "value-%d"`, i, i), i%25 == 7, fmt.Sprintf(`label-%d = "-"`, i)) // 4 faults
	}
	out = append(out, `[hardware]`)
	add(`strategy = "single_node"`, true, `strategy = "singlenode"`) // 1
	out = append(out, `cpus = 4`, `[env]`, `docker_image = "alpine:3"`, `[env.vars]`)
	for i := range 198 {
		add(fmt.Sprintf(`VAR_%d = "value"`, i), i%40 == 11, fmt.Sprintf(`VAR_%d = %d`, i, i)) // 5
	}
	for i := range 60 {
		out = append(out, `[[data.sources]]`)
		add(fmt.Sprintf(`src = "https://example.org/%d"`, i), i%20 == 3, fmt.Sprintf(`src = "ftp://example.org/%d"`, i)) // 3
		add(fmt.Sprintf(`path = "/data/%d"`, i), i%30 == 5, `path = "/data/1"`)                                          // 2
		out = append(out, `read_only = true`)
	}
	for i := range 90 {
		out = append(out, `[[output.metrics]]`, fmt.Sprintf(`name = "metric-%d"`, i))
		add(`units = "s"`, i%45 == 9, `unit = "s"`)                                       // 2
		add(fmt.Sprintf(`pattern = 'm%d=([0-9.]+)'`, i), i%45 == 20, `pattern = '(?=x)'`) // 2
		out = append(out, `direction = "lower"`)
	}
	out = append(out, `[limits]`)
	add(`retries = 1`, true, `retries = "1"`) // 1
	for len(out) < 1000 {
		out = append(out, "# a comment")
	}
	return strings.Join(out, "\n") + "\n", lines
}

func TestTwentyFaultsOfAThousandLinesAreAllReportedInTheirPlaces(t *testing.T) {
	text, want := longDescriptor()
	if lines := strings.Count(text, "\n"); lines != 1000 || len(want) != 20 {
		t.Fatalf("%d lines with %d faults", lines, len(want))
	}
	_, faults := parser.Parse("long.toml", []byte(text))
	var got []int
	for _, f := range faults {
		got = append(got, f.Line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff, faults)
	}
}

// BenchmarkValidate reads a descriptor of 1,000 lines and reports its 20 faults.
// The bar is 10 ms.
func BenchmarkValidate(b *testing.B) {
	text, want := longDescriptor()
	bytes := []byte(text)
	b.SetBytes(int64(len(bytes)))
	b.ReportAllocs()
	for b.Loop() {
		if _, faults := parser.Parse("long.toml", bytes); len(faults) != len(want) {
			b.Fatalf("%d of %d faults", len(faults), len(want))
		}
	}
}
