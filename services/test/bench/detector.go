package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/judge/otava"
)

// detectors measures how long it takes to find where series change, on one core, by the benchmarks of the packages of both methods, and how
// much faster than Apache Otava the package with its method is. The best of several repetitions counts.
func detectors(ctx context.Context, _ bench) ([]result, error) {
	own, err := detectorTimes(ctx, "changepoint")
	if err != nil {
		return nil, err
	}
	otavas, err := detectorTimes(ctx, "otava")
	if err != nil {
		return nil, err
	}
	ratio, err := otavaRatio(ctx)
	return []result{
		atMost("DetectManySeries", own["AThousandSeriesOf200Points"], "ms", 400, "1,000 series of 200 points, one core"),
		atMost("DetectLongSeries", own["TenThousandPoints"], "ms", 25, "one series of 10,000 points"),
		atMost("DetectOneMore", own["OneMorePoint"], "ms", 1, "one more point after 10,000"),
		atMost("DetectManySeriesOtava", otavas["FindInManySeries"], "ms", 150,
			"1,000 series of 200 points, one core, by the method of Otava"),
		ratio,
	}, err
}

// detectorTimes returns the ms that the benchmarks of a package take at best, by name.
func detectorTimes(ctx context.Context, pkg string) (map[string]float64, error) {
	text, err := printed(ctx, "analyst/judge/"+pkg, "go", "test", ".", "-run", "^$", "-bench",
		"^Benchmark(AThousandSeriesOf200Points|TenThousandPoints|OneMorePoint|FindInManySeries)$",
		"-benchtime", "300ms", "-count", "5", "-cpu", "1")
	if err != nil {
		return nil, err
	}
	return bestTimes(text)
}

//go:embed testdata/otava.py
var otavaProgram string

// otavaRatio measures how many times as fast as Apache Otava the package otava is, with a series of a year, and compares their answers. The
// variable BAI_OTAVA names a Python that has Apache Otava.
func otavaRatio(ctx context.Context) (result, error) {
	const name, bar, rows = "OtavaOverApacheOtava", 40, 365
	python := os.Getenv("BAI_OTAVA")
	if python == "" {
		return unmeasured(name, "ratio", bar, "needs apache-otava 0.8.0: set BAI_OTAVA to a Python that has it"), nil
	}
	values := yearOfValues(rows)
	ours, found, err := ourOtava(values)
	if err != nil {
		return result{}, err
	}
	theirs, want, err := apacheOtava(ctx, python, values)
	if err != nil {
		return result{}, err
	}
	if !slices.Equal(found, want) {
		return result{}, fmt.Errorf("the method of Otava finds changes at %v, and Apache Otava at %v", found, want)
	}
	return atLeast(name, theirs/ours, "ratio", bar,
		fmt.Sprintf("%d points: %.3f ms, by Apache Otava %.1f ms, with the same %d changes", rows, ours, theirs, len(want))), nil
}

// yearOfValues returns a series whose level changes every 100 rows.
func yearOfValues(rows int) []float64 {
	r := rand.New(rand.NewPCG(20240607, 1))
	values := make([]float64, rows)
	for i := range values {
		values[i] = 100 + 2*float64(i/100%2) + r.NormFloat64()
	}
	return values
}

// ourOtava returns the ms that the package otava takes for values at best, and the rows of the changes.
func ourOtava(values []float64) (best float64, rows []int, err error) {
	for range 50 {
		begin := time.Now()
		changes, err := otava.Find(values, otava.Options{})
		took := ms(time.Since(begin))
		if err != nil {
			return 0, nil, err
		}
		if best == 0 || took < best {
			best = took
		}
		rows = rows[:0]
		for _, c := range changes {
			rows = append(rows, c.Index)
		}
	}
	return best, rows, nil
}

// apacheOtava is ourOtava by Apache Otava.
func apacheOtava(ctx context.Context, python string, values []float64) (best float64, rows []int, err error) {
	text, err := json.Marshal(values)
	if err != nil {
		return 0, nil, err
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, python, "-c", otavaProgram)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), &stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, nil, fmt.Errorf("run Apache Otava by %s: %w: %s", python, err, stderr.String())
	}
	var answer struct {
		MS   float64 `json:"ms"`
		Rows []int   `json:"rows"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return 0, nil, fmt.Errorf("read the answer %q of %s: %w", out, python, err)
	}
	return answer.MS, answer.Rows, nil
}
