package comparison

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Summary counts the verdicts: "7 series: 1 worse, 4 same, 2 unclear".
func Summary(c *baiv1.CompareRunsResponse) string {
	counts := map[string]int{}
	for _, s := range c.GetSeries() {
		counts[s.GetVerdict()]++
	}
	var parts []string
	for _, verdict := range []string{Worse, Better, Changed, Same, Unclear} {
		if n := counts[verdict]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verdict))
		}
	}
	return fmt.Sprintf("%d series: %s", len(c.GetSeries()), strings.Join(parts, ", "))
}

// WorseSeries returns the names of the series that got worse.
func WorseSeries(c *baiv1.CompareRunsResponse) (names []string) {
	for _, s := range c.GetSeries() {
		if s.GetVerdict() == Worse {
			names = append(names, Name(s))
		}
	}
	return names
}

// MayBeSame reports whether a series is unclear that has enough runs: with a change that does not
// matter it may be the same.
func MayBeSame(c *baiv1.CompareRunsResponse) bool {
	return slices.ContainsFunc(c.GetSeries(), func(s *baiv1.SeriesComparison) bool { return s.GetReason() == "noise" })
}

// Sentences says whether both sides are the same runs, why series are unclear, what differs beside
// the numbers, and what limits the comparison.
func Sentences(c *baiv1.CompareRunsResponse) []string {
	all := append(sameRuns(c), unclear(c.GetSeries())...)
	for _, d := range c.GetDifferences() {
		all = append(all, difference(d))
	}
	for _, s := range []*baiv1.ComparedSide{c.GetOld(), c.GetNew()} {
		all = append(all, excluded(s)...)
	}
	for _, note := range c.GetNotes() {
		all = append(all, printer.Clean(note))
	}
	return all
}

// sameRuns returns a sentence if both sides are the same runs.
func sameRuns(c *baiv1.CompareRunsResponse) []string {
	runs := c.GetOld().GetRunIds()
	switch {
	case len(runs) == 0 || !slices.Equal(runs, c.GetNew().GetRunIds()):
		return nil
	case len(runs) == 1:
		return []string{"both sides are the same run: there is nothing to tell apart (name another one)"}
	}
	return []string{fmt.Sprintf("both sides are the same %d runs: there is nothing to tell apart (name others)", len(runs))}
}

// unclear returns a sentence for each reason why series are unclear, with their names.
func unclear(series []*baiv1.SeriesComparison) []string {
	names, order := map[string][]string{}, []string{}
	for _, s := range series {
		why := reason(s)
		if why == "" {
			continue
		}
		if names[why] == nil {
			order = append(order, why)
		}
		names[why] = append(names[why], Name(s))
	}
	for i, why := range order {
		order[i] = nameList(names[why]) + ": " + why
	}
	return order
}

// reason says why a series is unclear, and what would help; empty for another verdict.
func reason(s *baiv1.SeriesComparison) string {
	if s.GetVerdict() != Unclear {
		return ""
	}
	switch s.GetReason() {
	case "few_runs":
		return "unclear, " + lacking(s)
	case "many_metrics":
		return "unclear, of so many series one may differ as much by chance" + needed(s)
	}
	return "unclear, the difference may be noise" + needed(s)
}

// lacking says which runs a test lacks.
func lacking(s *baiv1.SeriesComparison) string {
	var parts []string
	for _, side := range []struct {
		name string
		n    int32
	}{{"old", s.GetLackingOld()}, {"new", s.GetLackingNew()}} {
		if side.n > 0 {
			parts = append(parts, fmt.Sprintf("the %s side lacks %s", side.name, printer.Plural(side.n, "run")))
		}
	}
	text := strings.Join(parts, " and ")
	if n := s.GetLackingHistory(); n > 0 {
		of := ""
		if s.GetCell() != "" {
			of = " of the cell"
		}
		text += fmt.Sprintf("; or the task needs %s%s before them", printer.Plural(n, "run"), of)
	}
	return text
}

// needed says how many runs would show which change, if that is known.
func needed(s *baiv1.SeriesComparison) string {
	if s.GetNeeded() == 0 {
		return ""
	}
	size := printer.Number(s.GetShows())
	if s.GetChange().GetRelative() {
		size = strings.TrimPrefix(printer.PercentForm(s.GetShows())(s.GetShows()), "+") + " %"
	}
	return fmt.Sprintf(": %s a side would show %s", printer.Plural(s.GetNeeded(), "run"), size)
}

// difference says what differs between the sides.
func difference(d *baiv1.SideDifference) string {
	text := fmt.Sprintf("%s differs: %s; now %s", d.GetSubject(), list(d.GetOld()), list(d.GetNew()))
	if d.GetIncomparable() {
		text += " (numbers of different machines do not compare)"
	}
	return printer.Clean(text)
}

func list(values []string) string {
	if len(values) == 0 {
		return "not known"
	}
	return strings.Join(values, " and ")
}

// excluded says which runs of a side do not count, by the reasons.
func excluded(s *baiv1.ComparedSide) []string {
	ids, order := map[string][]string{}, []string{}
	for _, e := range s.GetExcluded() {
		if ids[e.GetReason()] == nil {
			order = append(order, e.GetReason())
		}
		ids[e.GetReason()] = append(ids[e.GetReason()], e.GetRunId())
	}
	var all []string
	for _, why := range order {
		all = append(all, printer.Clean(fmt.Sprintf("%s: %s (%s) left out, %s", s.GetOperand(),
			printer.Plural(len(ids[why]), "run"), nameList(ids[why]), why)))
	}
	if more := int(s.GetExcludedCount()) - len(s.GetExcluded()); more > 0 {
		all = append(all, fmt.Sprintf("%s: %s more left out", printer.Clean(s.GetOperand()), printer.Plural(more, "run")))
	}
	return all
}
