package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheBarsOfAnAnalystAreReadFromItsTests(t *testing.T) {
	const text = `
    bars_test.go:99: round 1: 2000 series in 20.500 s, 60 MiB at most, 40.0 MiB after it
    bars_test.go:99: round 2: 2000 series in 19.000 s, 63 MiB at most, 42.0 MiB after it
    bars_test.go:160: 100 points: 3 reads in 18ms, map[doc:2 points:1]
    bars_test.go:160: 100000 points: 3 reads in 10ms, map[doc:2 points:1]
`
	all, err := decideAnalyst(text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range all {
		got = append(got, r.Name+" "+r.number()+" "+r.Unit+" "+r.state())
	}
	want := []string{"AnalystRound 20.5 s yes", "AnalystMemory 63 MiB yes", "AnalystMemoryFlat 1.05 ratio yes", "AnalystReads 1 ratio yes"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := decideAnalyst(strings.Replace(text, "round 2", "", 1)); err == nil {
		t.Error("one round is enough")
	}
}

func TestSummariesMayBeALittleLaterWithAnAnalyst(t *testing.T) {
	for want, with := range map[string][]float64{"yes": {100, 104, 300}, "NO": {100, 106, 106}} {
		if got := decideBesideSamples([]float64{30, 40}, with, []float64{90, 100, 500})[1].state(); got != want {
			t.Errorf("%v: %s, want %s", with, got, want)
		}
	}
}
