// Package series describes the series of a task for people: its values over runs, its levels
// and changes, and what runs of it can show. The numbers are the platform's.
package series

import (
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Identity is how a series is told from others of its task.
type Identity interface {
	GetMetric() string
	GetUnit() string
	GetLabels() map[string]string
	GetCell() string
}

// Name is "rate {op=read} (MB/s), cell size=1K": the metric, and the labels, the unit and the
// cell if there are any.
func Name(s Identity) string {
	name := s.GetMetric()
	if labels := s.GetLabels(); len(labels) > 0 {
		name += " {" + printer.Labels(labels) + "}"
	}
	if unit := s.GetUnit(); unit != "" {
		name += " (" + unit + ")"
	}
	if cell := s.GetCell(); cell != "" {
		name += ", cell " + cell
	}
	return name
}

// Names lists the names of series.
func Names[S Identity](all []S) []string {
	names := make([]string, 0, len(all))
	for _, s := range all {
		names = append(names, Name(s))
	}
	return names
}

// MetricNames returns the names of metrics, each once. They are in the order of the series.
func MetricNames[S Identity](all []S) []string {
	var names []string
	for _, s := range all {
		if !slices.Contains(names, s.GetMetric()) {
			names = append(names, s.GetMetric())
		}
	}
	return names
}

// WithoutSystem returns the series without those of the platform's own measurements, and the
// metrics of the latter.
func WithoutSystem[S Identity](all []S) (own []S, system []string) {
	var others []S
	for _, s := range all {
		if strings.HasPrefix(s.GetMetric(), "system.") {
			others = append(others, s)
		} else {
			own = append(own, s)
		}
	}
	return own, MetricNames(others)
}

// title is the name of a series, and the better direction if there is one.
func title(s *baiv1.SeriesHistory) string {
	if d := s.GetDirection(); d == "higher" || d == "lower" {
		return Name(s) + ", " + d + " is better"
	}
	return Name(s)
}

// History is one series and the runs that its points name.
type History struct {
	*baiv1.SeriesHistory

	runs []*baiv1.HistoryRun
}

// Histories returns the series of a response.
func Histories(all *baiv1.QueryHistoryResponse) []History {
	list := make([]History, 0, len(all.GetSeries()))
	for _, s := range all.GetSeries() {
		list = append(list, History{SeriesHistory: s, runs: all.GetRuns()})
	}
	return list
}

// Title is "rate (MB/s), higher is better".
func (h History) Title() string { return title(h.SeriesHistory) }

// run returns the run of a point, an empty one for a point that there is not.
func (h History) run(point int32) *baiv1.HistoryRun {
	if point < 0 || int(point) >= len(h.GetPoints()) {
		return &baiv1.HistoryRun{}
	}
	i := h.GetPoints()[point].GetRun()
	if i < 0 || int(i) >= len(h.runs) {
		return &baiv1.HistoryRun{}
	}
	return h.runs[i]
}

// changesAt returns the changes by the first point of the new level.
func (h History) changesAt() map[int32]*baiv1.HistoryChange {
	all := make(map[int32]*baiv1.HistoryChange, len(h.GetChanges()))
	for _, c := range h.GetChanges() {
		all[c.GetIndex()] = c
	}
	return all
}

// Environment is the kind of a change between machines that differ.
const Environment = "environment"
