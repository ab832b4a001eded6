package main

import (
	"fmt"
	"regexp"
	"strconv"
)

// bestTimes returns the ms of each benchmark in the output of go test -bench, by its name. The best of several repetitions counts.
func bestTimes(text string) (map[string]float64, error) {
	best := make(map[string]float64)
	for _, m := range regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`).FindAllStringSubmatch(text, -1) {
		ns, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, fmt.Errorf("read the time of benchmark %s: %w", m[1], err)
		}
		if took, found := best[m[1]]; !found || ns/1e6 < took {
			best[m[1]] = ns / 1e6
		}
	}
	if len(best) == 0 {
		return nil, fmt.Errorf("no times of benchmarks in %q", text)
	}
	return best, nil
}
