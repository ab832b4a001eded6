package main

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// Bars of parsers.
const (
	logBar       = 100.0 // MB/s of a log
	documentBar  = 1.0   // ms for a document of documentSize
	documentSize = 64 << 10
)

// decideParsing returns a result for each kind of parser, from metrics of go test -bench.
func decideParsing(kinds []report.Kind, metrics []report.Metric) (results []result, err error) {
	type benchmark struct{ pkg, name string }
	best := make(map[benchmark]float64) // B/s
	for _, m := range metrics {
		if b := (benchmark{path.Base(m.Labels["package"]), m.Labels["benchmark"]}); m.Name == "bytes_per_sec" {
			best[b] = max(best[b], m.Value)
		}
	}
	slowest := make(map[string]float64) // by package
	for b, rate := range best {
		slowest[b.pkg] = min(rate, cmp.Or(slowest[b.pkg], rate))
	}
	for _, k := range kinds {
		rate, name := slowest[strings.ReplaceAll(k.Name, "-", "")], "Parse/"+k.Name
		switch {
		case rate <= 0:
			return nil, fmt.Errorf("no benchmark of the parser %s", k.Name)
		case k.Document:
			results = append(results, atMost(name, documentSize/rate*1e3, "ms", documentBar, "64 KiB of a document, one core"))
		default:
			results = append(results, atLeast(name, rate/1e6, "MB/s", logBar, "a log, one core"))
		}
	}
	return results, nil
}
