package parser_test

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

const withMetrics = `spec_version = "1.0"
[info]
description = "d"
[hardware]
cpus = 1
[env]
docker_image = "alpine:3"
[cost]
per = ["NAME"]
[[output.metrics]]
name = "NAME"
units = "s"
[[output.parsers]]
kind = "json"
metrics = { "NAME" = "a" }
`

// The platform's collector counts bytes: 128 characters may have 512.
func TestANameOfAMetricIsBoundedInCharactersAndInBytes(t *testing.T) {
	for name, want := range map[string]string{
		strings.Repeat("x", 128): "",
		strings.Repeat("é", 128): "",
		strings.Repeat("€", 86):  "has 258 bytes in UTF-8, 256 at most are taken (shorten the name)",
		strings.Repeat("x", 129): "has 129 characters, 128 at most are taken",
		strings.Repeat("€", 129): "has 129 characters, 128 at most are taken",
	} {
		_, faults := parser.Parser{}.Parse("d.toml", []byte(strings.ReplaceAll(withMetrics, "NAME", name)))
		var got []string
		for _, f := range faults {
			_, text, _ := strings.Cut(f.String(), ": "+f.Path+": ")
			got = append(got, text)
		}
		all := strings.Join(got, "; ")
		if want == "" && all != "" || strings.Count(all, want) != 2 && want != "" || want != "" && !strings.Contains(all, "is not the name of a metric (write one line of 1 to 128 characters, 256 bytes at most)") {
			t.Errorf("%d bytes: %s", len(name), all)
		}
	}
}
