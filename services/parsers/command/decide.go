package command

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// processEnd is how the process of a parser has ended.
type processEnd struct {
	Problem string   // why it could not be started, or was killed; empty if neither is so
	Code    int      // as a shell says it
	Signal  string   // that ended it; empty if none did
	Stderr  []string // the last lines of its standard error
}

// conclude returns the report of a parser. A parser that broke a rule has found nothing: its numbers cannot be relied on.
func conclude(l printedLines, e processEnd) report.Report {
	switch {
	case l.Fault != "":
		return failure(l.Fault, e)
	case e.Problem != "":
		return failure(e.Problem, e)
	case e.Signal != "":
		return failure("ended by "+e.Signal, e)
	case e.Code != 0:
		return failure(fmt.Sprintf("ended with exit code %d", e.Code), e)
	case l.State == report.Failed:
		return report.Failure(Kind, l.Version, l.Metrics, l.Reason)
	case l.State == report.Empty && len(l.Metrics) > 0:
		return failure("says that there are no metrics, and prints some", e)
	case l.State == report.OK && len(l.Metrics) == 0:
		return failure("says that all is there, and prints no metric", e)
	case l.State == "" && len(l.Metrics) == 0:
		return report.Of(Kind, l.Version, nil, "the parser printed no metric"+quoted(e.Stderr))
	}
	return report.Of(Kind, l.Version, l.Metrics, l.Reason)
}

// failure returns the report of a parser that failed itself.
func failure(reason string, e processEnd) report.Report {
	r := report.Of(Kind, "", nil, reason+quoted(e.Stderr))
	r.State = report.Failed
	return r
}

// quoted returns lines of standard error, each in quotes, for the end of a reason.
func quoted(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = strconv.Quote(line)
	}
	return "; its standard error ends with " + strings.Join(all, ", ")
}

// lastLines returns the last lines of a text that are not blank.
func lastLines(text string) []string {
	const most = 3
	var all []string
	for line := range strings.Lines(text) {
		if clipped := report.Clip(line); clipped != "" {
			all = append(all, clipped)
		}
	}
	return all[max(0, len(all)-most):]
}
