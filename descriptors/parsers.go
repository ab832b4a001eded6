package descriptors

import (
	_ "embed"
	"strings"
)

// parsedMetrics are the metrics of the parsers, which make generate writes from their own
// tables.
//
//go:embed parsers.tsv
var parsedMetrics string

// A ParsedMetric is a metric that a parser finds.
type ParsedMetric struct {
	Kind string // of the parser
	Name string // * where the output gives it
	Unit string // * where the output gives it
}

// ParsedMetrics are the metrics of all parsers, those of a kind together.
func ParsedMetrics() []ParsedMetric {
	var all []ParsedMetric
	for line := range strings.Lines(parsedMetrics) {
		if columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(columns) == 3 {
			all = append(all, ParsedMetric{columns[0], columns[1], columns[2]})
		}
	}
	return all
}
