package rollup_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/gateway/set/results/rollup"
)

// same compares cells: numbers by their bits, and no points like none.
func same() cmp.Options {
	bits := cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
	return cmp.Options{bits, cmpopts.EquateEmpty()}
}

func TestCellsAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var cells []rollup.CellResults
		index := rapid.IntRange(0, 1e6).Draw(t, "first")
		for range rapid.IntRange(0, 5).Draw(t, "cells") {
			c := rollup.CellResults{
				Index: index, Whole: rapid.Bool().Draw(t, "whole"), Succeeded: rapid.IntRange(0, 1e4).Draw(t, "succeeded"), Unsummarised: rapid.IntRange(0, 9).Draw(t, "unsummarised"),
				Incomplete: rapid.IntRange(0, 9).Draw(t, "incomplete"), Skipped: rapid.IntRange(0, 1e4).Draw(t, "skipped"),
			}
			for range rapid.IntRange(0, 4).Draw(t, "series") {
				c.Series = append(c.Series, drawSeries(t))
			}
			cells = append(cells, c)
			index += rapid.IntRange(1, 300).Draw(t, "next")
		}
		text, err := json.Marshal(rollup.Encode(cells))
		if err != nil {
			t.Fatal(err)
		}
		var b rollup.Block
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatal(err)
		}
		got, err := b.Decode()
		if diff := cmp.Diff(cells, got, same()); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func drawSeries(t *rapid.T) series.Series {
	s := series.Series{
		Metric: rapid.SampledFrom([]string{"loss", "rate"}).Draw(t, "metric"), Unit: rapid.SampledFrom([]string{"", "s"}).Draw(t, "unit"),
		Direction: rapid.SampledFrom([]judge.Direction{"", judge.Higher}).Draw(t, "direction"),
	}
	if rapid.Bool().Draw(t, "labels") {
		s.Labels = map[string]string{"gpu": rapid.SampledFrom([]string{"0", "1"}).Draw(t, "gpu")}
	}
	for range rapid.IntRange(0, 3).Draw(t, "points") {
		s.Points = append(s.Points, series.Point{
			Index: rapid.IntRange(-1, 1e6).Draw(t, "repetition"),
			Value: rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Copysign(0, -1)})).Draw(t, "value"),
		})
	}
	return s
}

func TestABlockOfALaterFormatIsNotRead(t *testing.T) {
	b := rollup.Encode([]rollup.CellResults{{Index: 1}})
	b.Format++
	if _, err := b.Decode(); !errors.Is(err, rollup.ErrDamaged) {
		t.Errorf("error %v, want ErrDamaged", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(1, rollup.Encode([]rollup.CellResults{
		{Index: 3, Whole: true, Succeeded: 1, Series: []series.Series{{Metric: "m", Points: []series.Point{{Index: 1, Value: 2.5}}}}}, {Index: 7},
	}).Cells)
	f.Add(1, []byte{})
	f.Add(1, []byte{0x80})
	f.Add(1, []byte{1, 1, 1, 0, 0, 0, 0xff, 0xff, 0x03})
	f.Add(2, []byte{1})
	f.Fuzz(func(t *testing.T, format int, cells []byte) {
		b := rollup.Block{Format: format, Series: []rollup.SeriesKey{{Metric: "m"}, {Metric: "n", Unit: "s"}}, Cells: cells}
		got, err := b.Decode()
		if err != nil {
			if !errors.Is(err, rollup.ErrDamaged) {
				t.Error(err)
			}
			return
		}
		again, err := rollup.Encode(got).Decode()
		if diff := cmp.Diff(got, again, same()); err != nil || diff != "" {
			t.Errorf("%v (-read +read again):\n%s", err, diff)
		}
	})
}
