package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/gateway/series"
)

// groupedRun is a run in its group of a ranking.
type groupedRun struct {
	group string // empty for none
	cell  []setting
}

// setting is a parameter of a cell, with its value.
type setting struct{ name, value string }

// entryName is the name of the setting that has the entry of a suite.
const entryName = ""

// settingsOf reads the name of a cell, as n=2,size=1K, or entry/n=2,size=1K in a suite. A comma of a
// value begins no setting.
func settingsOf(cell string) []setting {
	var all []setting
	if entry, rest, inSuite := strings.Cut(cell, "/"); inSuite && !strings.Contains(entry, "=") {
		all, cell = append(all, setting{entryName, entry}), rest
	}
	for part := range strings.SplitSeq(cell, ",") {
		name, value, ok := strings.Cut(part, "=")
		switch {
		case ok:
			all = append(all, setting{name, value})
		case len(all) > 0:
			all[len(all)-1].value += "," + part
		case part != "":
			all = append(all, setting{entryName, part})
		}
	}
	return all
}

// value returns the value of a parameter.
func (r groupedRun) value(name string) (value string, ok bool) {
	i := slices.IndexFunc(r.cell, func(s setting) bool { return s.name == name })
	if i < 0 {
		return "", false
	}
	return r.cell[i].value, true
}

// otherCell returns the name of the cell without some parameters.
func (r groupedRun) otherCell(without []string) string {
	text, separator := "", ""
	for _, s := range r.cell {
		switch {
		case slices.Contains(without, s.name):
		case s.name == entryName:
			text, separator = s.value, "/"
		default:
			text, separator = text+separator+s.name+"="+s.value, ","
		}
	}
	return text
}

// otherCells returns, for each run, its cell without the parameters that the attribute is, or is made of.
// These are the parameters whose values are the names of the groups or, if there is none, those that have
// one value in each group, and another one in each.
func otherCells(runs []groupedRun) []string {
	var named, apart []string
	for _, name := range parameters(runs) {
		values, ok := valuesOf(runs, name)
		if !ok {
			continue
		}
		apart = append(apart, name)
		if !slices.ContainsFunc(sortedKeys(values), func(group string) bool { return values[group] != group }) {
			named = append(named, name)
		}
	}
	if len(named) > 0 {
		apart = named
	}
	cells := make([]string, len(runs))
	for i, r := range runs {
		cells[i] = r.otherCell(apart)
	}
	return cells
}

// parameters returns the names of the parameters of all cells.
func parameters(runs []groupedRun) []string {
	names := make(map[string]bool)
	for _, r := range runs {
		for _, s := range r.cell {
			names[s.name] = true
		}
	}
	return sortedKeys(names)
}

// valuesOf returns the values of a parameter by group. It is not ok if a run lacks it, a group has two, or
// two groups have the same.
func valuesOf(runs []groupedRun, name string) (values map[string]string, ok bool) {
	values = make(map[string]string)
	for _, r := range runs {
		if r.group == "" {
			continue
		}
		value, ok := r.value(name)
		if is, seen := values[r.group]; !ok || seen && is != value {
			return nil, false
		}
		values[r.group] = value
	}
	different := slices.Compact(slices.Sorted(maps.Values(values)))
	return values, len(different) == len(values)
}

// cellsNote returns the note that not all groups have values of the same cells in a series, or "": the
// groups and the cells are those of the runs, by the index of points.
func cellsNote(s series.Series, groups, cells []string) string {
	has, all := make(map[string]map[string]bool), make(map[string]bool)
	for _, p := range s.Points {
		group, cell := groups[p.Index], cells[p.Index]
		if group == "" {
			continue
		}
		if has[group] == nil {
			has[group] = make(map[string]bool)
		}
		has[group][cell], all[cell] = true, true
	}
	text, more := "", 0
	for _, group := range sortedKeys(has) {
		lacking := slices.DeleteFunc(sortedKeys(all), func(cell string) bool { return has[group][cell] })
		switch {
		case len(lacking) == 0:
		case text != "":
			more++
		default:
			text = fmt.Sprintf("not all groups have values of the same cells, so that their medians do not compare: %s lacks %s",
				group, listed(cellTexts(lacking)))
		}
	}
	switch more {
	case 0:
		return text
	case 1:
		return text + "; 1 more group lacks some"
	}
	return text + fmt.Sprintf("; %d more groups lack some", more)
}

// cellTexts returns the names of cells for people.
func cellTexts(names []string) []string {
	if i := slices.Index(names, ""); i >= 0 {
		names[i] = "runs of no cell"
	}
	return names
}
