package changes

import (
	"context"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
)

// A Method finds the changes of series.
type Method struct {
	Name  string  // with its version
	Level float64 // confidence of its intervals; 0 for a method without them

	find   func(values []float64) (Finding, error)
	replay func(ctx context.Context, values []float64) (Finding, error)
}

// Find finds the changes of a series. Values that are NaN are rows without a result. All
// events stand; their Seen means nothing.
func (m Method) Find(values []float64) (Finding, error) { return m.find(values) }

// Replay finds the changes of a series row by row. Those that are not withdrawn are the
// changes that Find finds. It ends early with the cause of ctx.
func (m Method) Replay(ctx context.Context, values []float64) (Finding, error) {
	return m.replay(ctx, values)
}

// Segments is the method of the platform. It returns an error that names a setting that is
// out of its range.
func Segments(confidence float64) (Method, error) {
	detector, err := changepoint.New(judge.Settings{Confidence: confidence})
	if err != nil {
		return Method{}, err
	}
	return Method{
		Name: changepoint.Method, Level: confidence,
		find: func(values []float64) (Finding, error) {
			a := detector.Analyse(values)
			return Finding{Notes: a.Notes, Events: standing(a.Changes)}, nil
		},
		replay: func(ctx context.Context, values []float64) (Finding, error) {
			r := detector.Replay()
			for _, v := range values {
				if ctx.Err() != nil {
					return Finding{}, context.Cause(ctx)
				}
				r.Add(v)
			}
			events, a := r.Detections()
			return Finding{Notes: a.Notes, Events: events}, nil
		},
	}, nil
}

// standing makes events of changes that were not withdrawn.
func standing(all []changepoint.Change) []changepoint.Detection {
	events := make([]changepoint.Detection, 0, len(all))
	for _, c := range all {
		events = append(events, changepoint.Detection{Change: c, Withdrawn: -1})
	}
	return events
}
