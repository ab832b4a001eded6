package plot

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
)

// axisRange is the values of an axis.
type axisRange struct {
	low, high float64
	log       bool
	ticks     []plot.Tick
}

// base is where bars begin: at 0, or NaN if bars have no beginning.
func (r axisRange) base() float64 {
	if r.log {
		return math.NaN()
	}
	return 0
}

// set makes an axis of it.
func (r axisRange) set(a *plot.Axis) {
	a.Min, a.Max = r.low, r.high
	a.Tick.Marker = plot.ConstantTicks(r.ticks)
	if r.log {
		a.Scale = plot.LogScale{}
	}
}

// yRange is the axis of the metric. It is logarithmic if the values are positive and span
// more than two powers of ten. It begins or ends at 0 if there are bars from there.
func (c Chart) yRange() axisRange {
	var values []float64
	for _, g := range c.Groups {
		values = append(values, heights(g.Points)...)
	}
	if isLog(values) {
		return logRange(values)
	}
	if c.Categories != nil {
		values = append(values, 0)
	}
	return linearRange(values)
}

// heights returns the values of points, and the ends of their intervals.
func heights(points []Point) []float64 {
	var values []float64
	for _, p := range points {
		values = append(values, p.Y)
		if !math.IsNaN(p.Low) {
			values = append(values, p.Low, p.High)
		}
	}
	return values
}

// rangeOf is an axis that is logarithmic if the values are positive and span more than two
// powers of ten.
func rangeOf(values []float64) axisRange {
	if isLog(values) {
		return logRange(values)
	}
	return linearRange(values)
}

// withHeadroom returns the axis with room for a line of text above the values.
func (r axisRange) withHeadroom() axisRange {
	const share = 0.08
	if r.log {
		r.high *= math.Pow(r.high/r.low, share)
		return r
	}
	r.high += share * (r.high - r.low)
	return r
}

// xRange is the axis of a numeric parameter. It has a tick at each value, unless these are
// many or close to each other.
func (c Chart) xRange() axisRange {
	var values []float64
	for _, g := range c.Groups {
		for _, p := range g.Points {
			values = append(values, p.X)
		}
	}
	r := rangeOf(values)
	if ticks := ticksAt(values, r); ticks != nil {
		r.ticks = ticks
	}
	return r
}

func isLog(values []float64) bool {
	return len(values) > 0 && slices.Min(values) >= 1/largest && slices.Max(values)/slices.Min(values) > decades
}

// ticksAt returns a tick at each value, nil if the labels would not have room.
func ticksAt(values []float64, r axisRange) []plot.Tick {
	const most = 12
	distinct := slices.Compact(slices.Sorted(slices.Values(values)))
	if len(distinct) == 0 || len(distinct) > most {
		return nil
	}
	const room = width - maxLegend - 100 // of the axis, at least
	ticks := make([]plot.Tick, len(distinct))
	end := math.Inf(-1) // of the last label
	for i, v := range distinct {
		ticks[i] = plot.Tick{Value: v, Label: number(v)}
		at, half := room*r.share(v), float64(textStyle(tickSize).Width(ticks[i].Label))/2
		if at-half < end {
			return nil
		}
		end = at + half + 4
	}
	return ticks
}

// share is the place of a value on the axis, from 0 to 1.
func (r axisRange) share(v float64) float64 {
	if r.log {
		return math.Log(v/r.low) / math.Log(r.high/r.low)
	}
	return (v - r.low) / (r.high - r.low)
}

// linearRange is a linear axis with room beside the smallest and the largest value, unless
// these are 0, and ticks at multiples of 1, 2 or 5.
func linearRange(values []float64) axisRange {
	low, high := 0.0, 0.0
	if len(values) > 0 {
		low, high = slices.Min(values), slices.Max(values)
	}
	size := max(math.Abs(low), math.Abs(high))
	if size < 1/largest {
		low, high = -1, 1
	} else if narrow := 1e-5 * size; high-low < narrow { // fewer digits than a label has
		low, high = low-narrow, high+narrow
	}
	room := 0.05 * (high - low)
	r := axisRange{low: low, high: high}
	if low != 0 {
		r.low -= room
	}
	if high != 0 {
		r.high += room
	}
	step := niceStep((r.high - r.low) / 8)
	for i := math.Ceil(r.low / step); i*step <= r.high; i++ {
		r.ticks = append(r.ticks, plot.Tick{Value: i * step, Label: number(i * step)})
	}
	return r
}

// niceStep is the smallest of 1, 2 and 5 times a power of ten that is not below a step.
func niceStep(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, times := range []float64{1, 2, 5} {
		if times*power >= step {
			return times * power
		}
	}
	return 10 * power
}

// logRange is a logarithmic axis. It has a tick with a label at each power of ten, or at
// every second or third and so on if there are more than 8, and else small ones between.
func logRange(values []float64) axisRange {
	low, high := slices.Min(values), slices.Max(values)
	room := math.Pow(high/low, 0.04)
	r := axisRange{low: low / room, high: high * room, log: true}
	first, last := int(math.Floor(math.Log10(r.low))), int(math.Ceil(math.Log10(r.high)))
	every := (last-first)/8 + 1
	for power := first; power <= last; power++ {
		at := math.Pow10(power)
		if at >= r.low && at <= r.high && power%every == 0 {
			r.ticks = append(r.ticks, plot.Tick{Value: at, Label: number(at)})
		}
		if every == 1 {
			r.ticks = append(r.ticks, minorTicks(r, at)...)
		}
	}
	return r
}

// minorTicks returns the ticks between a power of ten and the next one.
func minorTicks(r axisRange, power float64) []plot.Tick {
	var ticks []plot.Tick
	for i := 2.0; i < 10; i++ {
		if v := i * power; v >= r.low && v <= r.high {
			ticks = append(ticks, plot.Tick{Value: v})
		}
	}
	return ticks
}

// number is a value with 7 digits at most.
func number(v float64) string {
	size := math.Abs(v)
	if size < 1e-300 {
		return "0"
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 6, 64), 64) // its own output
	if size < 1e-4 || size >= 1e7 {
		return strconv.FormatFloat(rounded, 'e', -1, 64)
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
