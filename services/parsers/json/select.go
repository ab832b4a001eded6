package json

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// choice is a selected metric, with what was found at its path.
type choice struct {
	report.Selection
	path  []step
	value float64
	found bool
	wrong string // what is there in place of a number
	fault error  // of the path itself
}

// selected returns the report of the metrics that are selected.
func selected(text []byte, selections []report.Selection) report.Report {
	choices := make([]choice, len(selections))
	for i, s := range selections {
		choices[i].Selection = s
		choices[i].path, choices[i].fault = parsePath(s.Path)
	}
	documents, cut := each(text, func(way []document.Step, leaf []byte) {
		for i := range choices {
			choices[i].see(way, leaf)
		}
	})
	switch {
	case documents == 0 && cut:
		return report.Of(name, "", nil, "the JSON ends early")
	case documents == 0:
		return report.Of(name, "", nil, "no JSON in the text")
	}
	metrics, missing := collect(text, choices)
	if cut {
		missing = append(missing, "the JSON ends early")
	}
	if len(metrics) == 0 {
		return report.Failure(name, "", nil, strings.Join(missing, "; "))
	}
	return report.Of(name, "", metrics, strings.Join(missing, "; "))
}

// see notes a value if it is at the path.
func (c *choice) see(way []document.Step, leaf []byte) {
	if c.fault != nil {
		return
	}
	there, within := leads(c.path, way)
	switch {
	case within && way[len(c.path)].Index >= 0:
		c.set(0, false, "an array")
	case within:
		c.set(0, false, "an object")
	case there:
		value, ok := numberOf(leaf)
		c.set(value, ok, report.Clip(string(leaf[:min(len(leaf), 100)])))
	}
}

func (c *choice) set(value float64, found bool, what string) {
	c.value, c.found, c.wrong = value, found, what
}

// numberOf returns a number, or that in a string.
func numberOf(leaf []byte) (float64, bool) {
	if text, ok := document.Text(leaf); ok {
		return report.Number(strings.TrimSpace(text))
	}
	return report.Number(string(leaf))
}

// collect returns the metrics of choices, and what is missing.
func collect(text []byte, choices []choice) (metrics []report.Metric, missing []string) {
	taken := make(map[string]bool)
	var paths []string
	for _, c := range choices {
		called := cmp.Or(c.Name, c.Path)
		switch {
		case c.fault != nil:
			missing = append(missing, c.fault.Error())
		case c.found && taken[called]:
			missing = append(missing, fmt.Sprintf("two metrics have the name %q", called))
		case c.found:
			taken[called] = true
			metrics = append(metrics, report.Metric{
				Name: called, Value: c.value, Unit: cmp.Or(c.Unit, report.Count), Direction: c.Direction, Headline: true,
			})
		case c.wrong != "":
			missing = append(missing, fmt.Sprintf("%s is no number: %s", c.Path, c.wrong))
		default:
			if paths == nil {
				paths = numbers(text)
			}
			missing = append(missing, nothingAt(c.Path, paths))
		}
	}
	return metrics, missing
}

// nothingAt says that a path leads to nothing, and names the path that was meant.
func nothingAt(path string, paths []string) string {
	nothing := "nothing is at " + path
	if nearest := document.Nearest(path, paths); nearest != "" {
		return nothing + ": did you mean " + nearest + "?"
	}
	if nearest := sameEnd(path, paths); nearest != "" {
		return nothing + ": did you mean " + nearest + "?"
	}
	return nothing
}

// sameEnd returns the first path with the same last step.
func sameEnd(path string, paths []string) string {
	last := "." + path[strings.LastIndexByte(path, '.')+1:]
	for _, p := range paths {
		if strings.HasSuffix("."+p, last) {
			return p
		}
	}
	return ""
}

// numbers returns the paths of the numbers of a text, up to as many as are worth comparing.
func numbers(text []byte) []string {
	const most = 10_000
	paths := []string{}
	seen := make(map[string]bool)
	var path []byte
	each(text, func(way []document.Step, leaf []byte) {
		if _, ok := numberOf(leaf); !ok || len(paths) == most {
			return
		}
		path = appendPath(path[:0], way)
		if !seen[string(path)] && !bytes.ContainsAny(path, "\n") {
			paths = append(paths, string(path))
			seen[paths[len(paths)-1]] = true
		}
	})
	return paths
}
