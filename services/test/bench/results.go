package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// setResults measures how long it takes to read all results of a finished set of 10,000 cells with 10 metrics from each store, as a pivot
// does, and to write a report of 1,000 cells, with its size. Tests of their packages take the times. The one of Elasticsearch is started if
// BAI_TEST_REAL is 1.
func setResults(ctx context.Context, _ bench) ([]result, error) {
	const bar, against = 300, "10,000 cells with 10 metrics"
	embedded, err := readResults(ctx, "embedded")
	if err != nil {
		return nil, err
	}
	results := []result{atMost("PivotEmbedded", embedded, "ms", bar, against)}
	if os.Getenv("BAI_TEST_REAL") == "1" {
		took, err := readResults(ctx, "Elasticsearch")
		if err != nil {
			return nil, err
		}
		results = append(results, atMost("PivotElasticsearch", took, "ms", bar, against))
	} else {
		results = append(results, unmeasuredAtMost("PivotElasticsearch", "ms", bar, "needs Elasticsearch: set BAI_TEST_REAL=1"))
	}
	text, err := printed(ctx, "../client-lib", "go", "test", "./cmd/baictl/internal/report", "-run", "^$", "-bench",
		"^BenchmarkReport$", "-benchtime", "3x")
	if err != nil {
		return nil, err
	}
	took, err := firstNumber(text, `([\d.]+) ns/op`)
	if err != nil {
		return nil, err
	}
	size, err := firstNumber(text, `([\d.]+) bytes`)
	const what = "a report of 1,000 cells with 6 repetitions and 10 metrics"
	return append(results, atMost("Report", took/1e6, "ms", 2000, what), atMost("ReportSize", size/1e6, "MB", 5, what)), err
}

// readResults returns how long it takes to read the results from a store, in ms.
func readResults(ctx context.Context, store string) (float64, error) {
	text, err := printed(ctx, "gateway/set", "env", "BAI_BARS=1", "go", "test", ".", "-v", "-count=1", "-timeout", "30m", "-run",
		"^TestTimeOfResults$/^"+store+"$")
	if err != nil {
		return 0, err
	}
	return firstNumber(text, `results of \d+ cells with \d+ metrics in ([\d.]+) ms`)
}

// simulatedSet measures a set of 10,000 runs on simulated nodes: the writes of the last runs to the API server, and their times, next to
// those of the first.
func simulatedSet(ctx context.Context, _ bench) ([]result, error) {
	if os.Getenv("BAI_TEST_REAL") != "1" {
		return []result{unmeasuredAtMost("SimulatedSetTimeFlat", "ratio", 1.5, "needs Kubernetes: set BAI_TEST_REAL=1")}, nil
	}
	text, err := printed(ctx, "test/real", "env", "BAI_SET_RUNS=10000", "go", "test", ".", "-v", "-count=1", "-timeout", "2h", "-run",
		"^TestTheLastRunsOfASetCostWhatTheFirstDo$")
	if err != nil {
		return nil, err
	}
	var n [4]float64 // writes and ms of the first, then of the last
	found := regexp.MustCompile(`([\d.]+) writes and ([\d.]+) ms a run; the last \d+: ([\d.]+) writes and ([\d.]+) ms a run`).FindStringSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("the test has printed no cost of a run: %s", text)
	}
	for i := range n {
		if n[i], err = strconv.ParseFloat(found[i+1], 64); err != nil {
			return nil, err
		}
	}
	return []result{
		atMost("SimulatedSetWritesFlat", n[2]/n[0], "ratio", 1.5,
			fmt.Sprintf("%.2f writes a run of the last 2,000 of 10,000, %.2f of the first", n[2], n[0])),
		atMost("SimulatedSetTimeFlat", n[3]/n[1], "ratio", 1.5,
			fmt.Sprintf("%.1f ms a run of the last 2,000 of 10,000, %.1f of the first", n[3], n[1])),
	}, nil
}

// firstNumber returns the number in the first match of a pattern.
func firstNumber(text, pattern string) (float64, error) {
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no %q in %s", pattern, text)
	}
	return strconv.ParseFloat(m[1], 64)
}
