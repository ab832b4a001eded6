package points_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

func TestPointsOnOtherMachinesAreASpanOfTheirOwn(t *testing.T) {
	for name, tt := range map[string]struct {
		machines []string
		want     []points.Span
	}{
		"no points":                            {nil, nil},
		"one machine":                          {[]string{"a", "a", "a"}, []points.Span{{First: 0, Last: 2}}},
		"another machine":                      {[]string{"a", "a", "b"}, []points.Span{{First: 0, Last: 1}, {First: 2, Last: 2}}},
		"an unknown machine is that before it": {[]string{"a", "", "a", "", "b"}, []points.Span{{First: 0, Last: 3}, {First: 4, Last: 4}}},
		"unknown machines at first are those after them":   {[]string{"", "", "a"}, []points.Span{{First: 0, Last: 2}}},
		"an unknown machine does not hide that it changed": {[]string{"a", "", "b"}, []points.Span{{First: 0, Last: 1}, {First: 2, Last: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, points.Spans(tt.machines)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnImageIsDescribedWithItsDigests(t *testing.T) {
	p := store.PointRun{Image: "team/app:1", Images: []string{"sha256:0123456789abcdef", "sha256:0"}}
	if got, want := points.ImageText(p), "team/app:1 sha256:0123456789ab sha256:0"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
