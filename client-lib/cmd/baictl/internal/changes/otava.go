package changes

import (
	"context"
	"math"
	"slices"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
	"github.com/benchmark-ai/bai/services/analyst/judge/otava"
)

// Otava is the method of Apache Otava. Its replay analyses each beginning of a series anew.
// It returns an error that names an option that is out of its range.
func Otava(o otava.Options) (Method, error) {
	if _, err := otava.Find(nil, o); err != nil {
		return Method{}, err
	}
	find := func(values []float64) ([]changepoint.Change, error) {
		found, err := otava.Find(values, o)
		all := make([]changepoint.Change, 0, len(found))
		for _, c := range found {
			all = append(all, step(c))
		}
		return all, err
	}
	return Method{
		Name: "otava/0.8.0",
		find: func(values []float64) (Finding, error) {
			all, err := find(values)
			return Finding{Events: standing(all)}, err
		},
		replay: func(ctx context.Context, values []float64) (Finding, error) {
			var h history
			for row := range values {
				if ctx.Err() != nil {
					return Finding{}, context.Cause(ctx)
				}
				all, err := find(values[:row+1])
				if err != nil {
					return Finding{}, err
				}
				h.add(row, all)
			}
			return Finding{Events: h.events}, nil
		},
	}, nil
}

// step returns a change of Otava, which gives no intervals.
func step(c otava.Change) changepoint.Change {
	none := judge.Interval{Low: math.NaN(), High: math.NaN()}
	magnitude := math.NaN()
	if c.Before != 0 {
		magnitude = c.After/c.Before - 1
	}
	return changepoint.Change{
		Index: c.Index, Kind: changepoint.Step, Before: c.Before, After: c.After, Shift: c.After - c.Before, ShiftInterval: none,
		Magnitude: magnitude, MagnitudeInterval: none, P: c.P, First: c.Index, Last: c.Index,
	}
}

// A history is all changes that the beginnings of a series have had. Changes of one row
// without a gap between their beginnings are one change.
type history struct {
	events []changepoint.Detection // in order of Seen
}

// add adds the changes of the beginning that ends with a row.
func (h *history) add(row int, all []changepoint.Change) {
	for i := range h.events {
		e := &h.events[i]
		if e.Withdrawn >= 0 {
			continue
		}
		now := slices.IndexFunc(all, func(c changepoint.Change) bool { return c.Index == e.Index })
		if now < 0 {
			e.Withdrawn = row
			continue
		}
		e.Change = all[now]
	}
	for _, c := range all {
		if !slices.ContainsFunc(h.events, func(e changepoint.Detection) bool { return e.Index == c.Index && e.Withdrawn < 0 }) {
			h.events = append(h.events, changepoint.Detection{Change: c, Seen: row, Withdrawn: -1})
		}
	}
}
