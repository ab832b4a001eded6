package store_test

import (
	"testing"

	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestSeriesAreEqualIfTheirIDsAre(t *testing.T) {
	all := []store.SeriesKey{
		{},
		{Namespace: "a"},
		{Task: "a"},
		{Metric: "a"},
		{Unit: "a"},
		{Cell: "a"},
		{Labels: map[string]string{}},
		{Labels: map[string]string{"a": ""}},
		{Labels: map[string]string{"a": "b"}},
		{Labels: map[string]string{"b": "a"}},
	}
	for _, a := range all {
		for _, b := range all {
			if a.Equal(b) != (a.ID() == b.ID()) {
				t.Errorf("%+v and %+v: equal %t, IDs %s and %s", a, b, a.Equal(b), a.ID(), b.ID())
			}
		}
	}
}
