package rule

import (
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
)

// missing opens an incident for a value that is overdue, and ends those whose gap is over.
func (w *decision) missing() {
	var newest *incident.Point
	for _, p := range newestPoints(w.in.Points) {
		if HasValue(p.Summary, w.in.Rule.Statistic) {
			newest = &incident.Point{Run: p.Run, Time: p.Time, Version: p.Version, Value: bounded(valueOf(&p.Summary, w.in.Rule.Statistic))}
		}
	}
	since := w.in.Rule.Since
	if w.in.Resumed.After(since) {
		since = w.in.Resumed
	}
	if newest != nil && newest.Time.After(since) {
		since = newest.Time
	}
	goesOn := false
	for i := range w.is {
		if !w.is[i].State.Over() {
			w.is[i] = w.missingStill(w.is[i], newest)
			goesOn = goesOn || !w.is[i].State.Over()
		}
	}
	due := w.in.Expected
	if w.in.Rule.Within > 0 {
		due = since.Add(w.in.Rule.Within)
	}
	if goesOn || w.in.Paused || due.IsZero() || !w.in.Now.After(due) {
		return
	}
	w.overdue(newest, since, due)
}

// missingStill returns an open incident after a look at the newest value.
func (w *decision) missingStill(i incident.Incident, newest *incident.Point) incident.Incident {
	switch {
	case newest != nil && (i.LastGood == nil || positionOf(newest).compare(positionOf(i.LastGood)) > 0):
		return i.With(w.transition(incident.Resolved, "run "+newest.Run+" has a value"))
	case w.in.Paused:
		return i.With(w.transition(incident.Resolved, "the schedule is paused"))
	}
	return w.still(i, episode{})
}

// overdue opens an incident for a gap, unless there was one for it.
func (w *decision) overdue(newest *incident.Point, since, due time.Time) {
	id := incident.ID("missing", w.in.Rule.ID, w.in.Series.ID(), since.UTC().Format(time.RFC3339Nano))
	for _, i := range w.is {
		if i.ID == id {
			return
		}
	}
	i := incident.Incident{
		ID: id, Rule: w.in.Rule, Series: w.in.Series, Unit: w.in.Series.Unit, LastGood: newest,
		Opened: w.in.Now, Updated: w.in.Now,
	}
	last := "no run has a value yet"
	if newest != nil {
		i.Recent = []incident.Point{*newest}
		last = fmt.Sprintf("the newest is that of run %s, of %s", newest.Run, newest.Time.UTC().Format(time.DateTime))
	}
	i.Message = fmt.Sprintf("a value of %s was due at %s UTC, and %s", name(w.in.Series), due.UTC().Format(time.DateTime), last)
	w.made = append(w.made, i.With(w.transition(incident.Firing, i.Message)))
}
