package series

import (
	"math"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/internal/plot"
)

const (
	mostVersions = 12 // that the horizontal axis names
	mostDates    = 6
)

// Chart is a plot of the points of a series in their order, with its levels and changes.
func (h History) Chart() plot.History {
	c := plot.History{Title: printer.Clean(h.Title()), Subtitle: printer.Clean(h.subtitle()), YLabel: printer.Clean(Name(h))}
	for i, p := range h.GetPoints() {
		point := plot.Point{X: float64(i), Y: p.GetValue(), Low: math.NaN(), High: math.NaN()}
		if iv := p.GetInterval(); iv != nil {
			point.Low, point.High = iv.GetLow(), iv.GetHigh()
		}
		c.Points = append(c.Points, point)
	}
	for _, l := range h.GetLevels() {
		c.Levels = append(c.Levels, plot.Level{First: float64(l.GetFirst()), Last: float64(l.GetLast()), Y: l.GetMedian()})
	}
	for _, change := range h.GetChanges() {
		m := plot.Mark{X: float64(change.GetIndex()) - 0.5, Text: printer.Clean(changeSize(change, false))}
		switch word := outcome(change); word {
		case "regression":
			m.Kind = plot.Worse
		case "improvement":
			m.Kind = plot.Better
		case "machine":
			m.Kind, m.Text = plot.Break, word+" "+m.Text
		}
		c.Changes = append(c.Changes, m)
	}
	if c.Ticks = h.versionTicks(); c.Ticks != nil {
		c.XLabel = "version"
		return c
	}
	c.XLabel, c.Ticks = "time of the run", h.dateTicks()
	return c
}

func (h History) subtitle() string {
	text := printer.Plural(len(h.GetPoints()), "run")
	if n := len(h.GetPoints()); n > 0 {
		first, last := date(h.run(0).GetTime()), date(h.run(int32(n-1)).GetTime()) //nolint:gosec // a message has fewer points
		if text += ", " + first; first != last {
			text += " to " + last
		}
	}
	return text + ", " + strings.Replace(printer.Plural(len(h.GetChanges()), "change"), "0 changes", "no change", 1)
}

// versionTicks has a tick at the first of consecutive points of one version. It is nil without
// versions, and where they are many.
func (h History) versionTicks() []plot.Tick {
	var ticks []plot.Tick
	last := ""
	for i := range h.GetPoints() {
		version := h.run(int32(i)).GetVersion() //nolint:gosec // a message has fewer points
		if version == "" || version == last {
			continue
		}
		if last = version; len(ticks) == mostVersions {
			return nil
		}
		ticks = append(ticks, plot.Tick{X: float64(i), Text: printer.Clean(version)})
	}
	return ticks
}

// dateTicks has ticks at regular distances. They have the times of the day where all points
// are of one day.
func (h History) dateTicks() []plot.Tick {
	n := len(h.GetPoints())
	if n == 0 {
		return nil
	}
	layout := "2006-01-02"
	if first, last := h.run(0).GetTime(), h.run(int32(n-1)).GetTime(); date(first) == date(last) { //nolint:gosec // a message has fewer points
		layout = "15:04"
	}
	var ticks []plot.Tick
	every := (n + mostDates - 1) / mostDates
	for i := 0; i < n; i += every {
		at := h.run(int32(i)).GetTime() //nolint:gosec // a message has fewer points
		if at == nil {
			continue
		}
		ticks = append(ticks, plot.Tick{X: float64(i), Text: at.AsTime().Local().Format(layout)})
	}
	return ticks
}
