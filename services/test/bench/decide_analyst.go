package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// Bars of an analyst.
const (
	analystTime   = 60.0  // s for one new point of each series
	analystMemory = 150.0 // MiB
)

// decideAnalyst returns the results of the tests of bars of an analyst, from their output.
func decideAnalyst(text string) ([]result, error) {
	rounds := regexp.MustCompile(`round (\d): \d+ series in ([\d.]+) s, (\d+) MiB at most, ([\d.]+) MiB after it`).FindAllStringSubmatch(text, -1)
	reads := regexp.MustCompile(`(\d+) points: (\d+) reads in`).FindAllStringSubmatch(text, -1)
	if len(rounds) != 2 || len(reads) != 2 {
		return nil, fmt.Errorf("the tests have printed %d rounds and %d numbers of reads, want 2 of each: %s",
			len(rounds), len(reads), text)
	}
	var n [8]float64
	var errs [8]error
	for i, s := range []string{
		rounds[0][2], rounds[1][2], rounds[0][3], rounds[1][3], reads[0][2], reads[1][2],
		rounds[0][4], rounds[1][4],
	} {
		n[i], errs[i] = strconv.ParseFloat(s, 64)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	const what = "one new point of each of 2,000 series with 1,000 points"
	return []result{
		atMost("AnalystRound", max(n[0], n[1]), "s", analystTime, what+", the slower of two rounds"),
		atMost("AnalystMemory", max(n[2], n[3]), "MiB", analystMemory, "the largest in two rounds"),
		atMost("AnalystMemoryFlat", n[7]/n[6], "ratio", 1.1,
			fmt.Sprintf("%.1f MiB after the second round, %.1f after the first", n[7], n[6])),
		atMost("AnalystReads", n[5]/n[4], "ratio", 1,
			fmt.Sprintf("%.0f reads a run with %s points in the store, %.0f with %s", n[5], reads[1][1], n[4], reads[0][1])),
	}, nil
}

// decideBesideSamples returns the results of rounds beside samples: the s of each, and the ms after which summaries were there with and
// without an analyst at work.
func decideBesideSamples(took, with, without []float64) []result {
	const beside = "beside 10,000 samples/s"
	return []result{
		atMost("AnalystRoundBesideSamples", slices.Max(took), "s", analystTime,
			fmt.Sprintf("the same on a platform, %s, from the first submit on; the rounds: %.1f", beside, took)),
		atMost("SummaryDelay", median(with)/median(without), "ratio", 1.05,
			fmt.Sprintf("%.0f ms from a run's end to its summary while an analyst works, %.0f ms without, %s, medians of %d", median(with),
				median(without), beside, len(with))),
	}
}
