package main

import (
	"fmt"
	"slices"
)

// pair is the time that a benchmark took without the platform and with it, in seconds,
// measured in quick succession.
type pair struct{ without, with float64 }

// limits bound a comparison: how far from 1 its whole interval may lie, and how near to 1
// the interval must come.
type limits struct{ within, touches float64 }

// comparison is how the times with the platform compare to those without it.
type comparison struct {
	Pairs     int     `json:"pairs"`
	Ratio     float64 `json:"ratio"`      // of the medians, with over without
	Low       float64 `json:"low"`        // of the 95 % interval of the ratio
	High      float64 `json:"high"`       // of the same
	Spread    float64 `json:"spread"`     // ratio of the interquartile ranges
	SpreadLow float64 `json:"spread_low"` // below it the ratio of spreads lies in 0.5 % of resamples
}

// resamples are enough for bounds that change by less than their last digit.
const resamples = 10_000

// compare compares paired times. Intervals are percentiles of bootstrap resamples of
// whole pairs, so that a disturbance of both runs of a pair has no effect; see Efron and
// Tibshirani, An Introduction to the Bootstrap (1993), chapters 8 and 13. The function
// draw returns a random number from 0 to n-1.
func compare(pairs []pair, resamples int, draw func(n int) int) comparison {
	ratios, spreads := make([]float64, resamples), make([]float64, resamples)
	drawn := make([]pair, len(pairs))
	for i := range resamples {
		for j := range drawn {
			drawn[j] = pairs[draw(len(pairs))]
		}
		ratios[i], spreads[i] = ratioOf(drawn)
	}
	slices.Sort(ratios)
	slices.Sort(spreads)
	c := comparison{Pairs: len(pairs), Low: quantile(ratios, 0.025), High: quantile(ratios, 0.975), SpreadLow: quantile(spreads, 0.005)}
	c.Ratio, c.Spread = ratioOf(pairs)
	return c
}

// ratioOf returns the ratio of the medians and that of the interquartile ranges.
// Times of no spread at all have the spread ratio 1.
func ratioOf(pairs []pair) (medians, spreads float64) {
	without, with := make([]float64, len(pairs)), make([]float64, len(pairs))
	for i, p := range pairs {
		without[i], with[i] = p.without, p.with
	}
	slices.Sort(without)
	slices.Sort(with)
	a, b := quantile(without, 0.75)-quantile(without, 0.25), quantile(with, 0.75)-quantile(with, 0.25)
	if a <= 0 {
		return quantile(with, 0.5) / quantile(without, 0.5), 1
	}
	return quantile(with, 0.5) / quantile(without, 0.5), b / a
}

// quantile returns a quantile of sorted values, between two of them by a straight
// line: definition 7 of Hyndman and Fan (1996).
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-2)
	if len(sorted) == 1 {
		return sorted[0]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Verdicts of a comparison.
const (
	passed   = "passed"
	failed   = "FAILED"
	notShown = "not shown"
)

// mostSpread is the ratio of spreads that is too much where it is certain.
const mostSpread = 1.1

// judge decides whether the platform changes the measured times, and why.
func judge(c comparison, l limits) (verdict, reason string) {
	switch {
	case c.SpreadLow > mostSpread:
		return failed, fmt.Sprintf("times spread %.2f times as much, at least %.2f times", c.Spread, c.SpreadLow)
	case c.Low > 1+l.within || c.High < 1-l.within:
		return failed, fmt.Sprintf("the interval lies outside 1 ± %g", l.within)
	case c.Low < 1-l.within || c.High > 1+l.within:
		return notShown, fmt.Sprintf("the interval is %.2f %% wide: more pairs are needed", 100*(c.High-c.Low))
	case c.Low > 1+l.touches || c.High < 1-l.touches:
		return notShown, fmt.Sprintf("the interval lies within 1 ± %g, and beside 1 ± %g", l.within, l.touches)
	}
	return passed, fmt.Sprintf("the interval lies within 1 ± %g", l.within)
}
