// Package reporttest has the suite that each parser passes, and what the tests of parsers share.
package reporttest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// Parse parses a text, and fails the test if the report breaks a rule of report.Kind.Check.
func Parse(tb testing.TB, k report.Kind, text string, selections ...report.Selection) report.Report {
	tb.Helper()
	r, err := k.Parse(strings.NewReader(text), report.Options{Metrics: selections})
	if err != nil {
		tb.Fatal(err)
	}
	if err := k.Check(r); err != nil {
		tb.Fatalf("%v\n%+v", err, r)
	}
	return r
}

// Capture returns a file of the package's folder testdata.
func Capture(tb testing.TB, file string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// State returns the state of a report and its reason.
func State(r report.Report) string { return strings.TrimSpace(string(r.State) + " " + r.Reason) }

// Lines returns the state of a report, and a line for each metric, or for those of some names: labels, name, value, unit, and "headline".
func Lines(r report.Report, names ...string) []string {
	all := []string{State(r)}
	for _, m := range r.Metrics {
		if len(names) > 0 && !slices.Contains(names, m.Name) {
			continue
		}
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
			labels = append(labels, name+"="+m.Labels[name])
		}
		line := fmt.Sprintf("%s: %s %.15g %s", strings.Join(labels, " "), m.Name, m.Value, m.Unit)
		if m.Headline {
			line += " headline"
		}
		all = append(all, line)
	}
	return all
}

// maxSeed is how large a capture may be as a seed of a fuzz test: larger ones make it slow.
const maxSeed = 24 << 10

// Fuzz parses texts that are made from the captures in testdata and from more.
func Fuzz(f *testing.F, k report.Kind, more ...string) {
	f.Helper()
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if text := Capture(f, filepath.Base(file)); len(text) <= maxSeed {
			f.Add(text)
		}
	}
	for _, text := range more {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		Parse(t, k, text)
		k.Looks([]byte(text))
	})
}

// Benchmark measures how fast a text is parsed. Its report must have metrics.
func Benchmark(b *testing.B, k report.Kind, text string, selections ...report.Selection) {
	b.Helper()
	if r := Parse(b, k, text, selections...); len(r.Metrics) == 0 {
		b.Fatal(State(r))
	}
	data, o := []byte(text), report.Options{Metrics: selections}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := k.Parse(bytes.NewReader(data), o); err != nil {
			b.Fatal(err)
		}
	}
}
