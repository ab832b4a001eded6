package comparison

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// RankingTitle says of which series a ranking is: "cost.per.images (USD), lower is better".
func RankingTitle(s *baiv1.SeriesRanking) string {
	text := printer.Clean(s.GetMetric())
	if len(s.GetLabels()) > 0 {
		text += " {" + printer.Clean(printer.Labels(s.GetLabels())) + "}"
	}
	if s.GetUnit() != "" {
		text += " (" + printer.Clean(s.GetUnit()) + ")"
	}
	return text + ", " + printer.Clean(s.GetDirection()) + " is better"
}

// RankingTable has a line for each group; by is the attribute that the runs are grouped by.
func RankingTable(s *baiv1.SeriesRanking, by string) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "PLACE", Right: true},
		{Title: strings.ToUpper(by), Flex: true},
		{Title: "RUNS", Right: true},
		{Title: "MEDIAN", Right: true},
		{Title: "INTERVAL"},
		{Title: "LIKE PLACES"},
	}}
	for i, g := range s.GetGroups() {
		t.Rows = append(t.Rows, []string{
			rankOf(g, i), printer.Clean(g.GetValue()), fmt.Sprint(g.GetValues().GetN()),
			values(g.GetValues(), false), rankingInterval(g), alike(g),
		})
	}
	return t
}

// rankOf is the rank of a group, from 1; a group that is not compared has none.
func rankOf(g *baiv1.RankedGroup, i int) string {
	if g.GetLacking() > 0 {
		return "-"
	}
	return strconv.Itoa(i + 1)
}

func rankingInterval(g *baiv1.RankedGroup) string {
	i := g.GetValues().GetInterval()
	if i == nil {
		return "-"
	}
	return fmt.Sprintf("[%s, %s]", printer.Number(i.GetLow()), printer.Number(i.GetHigh()))
}

// alike are the places of the groups that cannot be told from a group.
func alike(g *baiv1.RankedGroup) string {
	var places []string
	for _, at := range g.GetAlike() {
		places = append(places, strconv.Itoa(int(at)+1))
	}
	if len(places) == 0 {
		return "-"
	}
	return strings.Join(places, ", ")
}

// RankingSentences say which groups cannot be told apart, and which have too few runs.
func RankingSentences(s *baiv1.SeriesRanking) []string {
	var all []string
	groups := s.GetGroups()
	for i, g := range groups {
		for _, at := range g.GetAlike() {
			if int(at) > i && int(at) < len(groups) {
				all = append(all, fmt.Sprintf("%s and %s cannot be told apart", printer.Clean(g.GetValue()),
					printer.Clean(groups[at].GetValue())))
			}
		}
		if g.GetLacking() > 0 {
			all = append(all, fmt.Sprintf("%s is not compared: it needs %s more", printer.Clean(g.GetValue()),
				printer.Plural(g.GetLacking(), "run")))
		}
	}
	if few := fewest(s); few < s.GetNeeded() && len(groups) > 1 {
		all = append(all, fmt.Sprintf("groups can be told apart from %d runs of each on", s.GetNeeded()))
	}
	return all
}

// fewest is the smallest number of runs of a group that is compared.
func fewest(s *baiv1.SeriesRanking) int32 {
	least := s.GetNeeded()
	for _, g := range s.GetGroups() {
		if g.GetLacking() == 0 {
			least = min(least, g.GetValues().GetN())
		}
	}
	return least
}

// RankingNotes are sentences about all series.
func RankingNotes(r *baiv1.RankRunsResponse) []string {
	var all []string
	for _, note := range r.GetNotes() {
		all = append(all, printer.Clean(note))
	}
	if n := r.GetExcluded(); n > 0 {
		all = append(all, fmt.Sprintf("%s left out: only runs that succeeded count, and no warm-ups", printer.Plural(n, "run")))
	}
	return all
}

// RankingCSV is a header, and a row for each group of each series.
func RankingCSV(r *baiv1.RankRunsResponse) [][]string {
	rows := [][]string{{
		"metric", "unit", "labels", "direction", "place", "value", "runs", "median", "low", "high",
		"level", "best", "alike", "lacking",
	}}
	for _, s := range r.GetSeries() {
		for i, g := range s.GetGroups() {
			row := []string{
				s.GetMetric(), s.GetUnit(), printer.Labels(s.GetLabels()), s.GetDirection(), rankOf(g, i), g.GetValue(),
				fmt.Sprint(g.GetValues().GetN()),
				printer.Exact(g.GetValues().GetMedian()),
			}
			if i := g.GetValues().GetInterval(); i != nil {
				row = append(row, printer.Exact(i.GetLow()), printer.Exact(i.GetHigh()), printer.Exact(i.GetLevel()))
			} else {
				row = append(row, "", "", "")
			}
			rows = append(rows, append(row, strconv.FormatBool(g.GetBest()),
				strings.ReplaceAll(alike(g), ", ", " "), fmt.Sprint(g.GetLacking())))
		}
	}
	return rows
}
