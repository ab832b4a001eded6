package index_test

import (
	"fmt"
	"slices"
	"testing"
)

// ratio is what index reaches of a bare BulkIndexer at least.
const ratio = 0.8

// steady is how much faster than its slowest turn the fastest turn of a bare
// BulkIndexer may be where the machine has nothing else to do.
const steady = 1.3

// turn is one turn of each: how many documents a second.
type turn struct{ indexed, bare float64 }

// judge says what turns have shown of index: of several the best counts, as all
// share the machine with the server. Where the bare BulkIndexer, which always does
// the same, is not steady, they have shown how busy the machine was.
func judge(turns []turn) (best float64, told bool, fault error) {
	var bare []float64
	for _, t := range turns {
		best = max(best, t.indexed/t.bare)
		bare = append(bare, t.bare)
	}
	slowest, fastest := slices.Min(bare), slices.Max(bare)
	switch {
	case best >= ratio:
		return best, true, nil
	case fastest > steady*slowest:
		return best, false, fmt.Errorf("the machine is busy: a bare BulkIndexer brought %.0f to %.0f documents a second", slowest, fastest)
	}
	return best, true, fmt.Errorf("index reaches %.3f of a bare BulkIndexer at the best, want %.1f", best, ratio)
}

func TestARaceIsLostOnlyOnAMachineThatIsSteady(t *testing.T) {
	for name, tt := range map[string]struct {
		turns []turn
		fails bool
		told  bool
	}{
		"one turn that reaches the bar is enough":          {[]turn{{500, 1000}, {810, 1000}, {600, 1000}}, false, true},
		"below the bar on a steady machine it is lost":     {[]turn{{700, 1000}, {790, 1000}, {750, 1200}}, true, true},
		"below the bar on a busy machine nothing is told":  {[]turn{{700, 1000}, {600, 2000}}, true, false},
		"above the bar on a busy machine it is fast there": {[]turn{{900, 1000}, {600, 2000}}, false, true},
	} {
		if best, told, err := judge(tt.turns); (err != nil) != tt.fails || told != tt.told {
			t.Errorf("%s: %.2f, %v, told %v", name, best, err, told)
		}
	}
}
