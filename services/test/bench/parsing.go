package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// parsing measures how fast each parser reads its output, by the benchmarks of its package. The best of several repetitions counts, and of
// several benchmarks of a package the slowest.
func parsing(ctx context.Context, _ bench) ([]result, error) {
	const all, repetitions = "./parsers/...", 5
	var metrics []report.Metric
	for range repetitions {
		out, err := printed(ctx, ".", "go", "test", "-run", "^$", "-bench", "^BenchmarkParse$", "-benchtime", "200ms", "-cpu", "1", all)
		if err != nil {
			return nil, err
		}
		r, err := parsers.Parse("gobench", strings.NewReader(out), report.Options{})
		if err != nil || r.State != report.OK {
			return nil, errors.Join(err, fmt.Errorf("benchmarks of %s: %s %s", all, r.State, r.Reason))
		}
		metrics = append(metrics, r.Metrics...)
	}
	return decideParsing(parsers.Kinds(), metrics)
}
