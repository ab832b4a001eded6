package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// History is a plot of values in their order, with the levels between the changes. It may have
// any number of points.
type History struct {
	Title    string
	Subtitle string
	XLabel   string
	YLabel   string
	Points   []Point // X is the number of the point, from 0
	Levels   []Level
	Changes  []Mark
	Ticks    []Tick // of the horizontal axis, from left to right; those without room have no text
}

// Level is a horizontal line from one point to another. One whose Y is NaN, infinite or beyond
// 1e150 is left out.
type Level struct{ First, Last, Y float64 }

// Mark is a vertical line with a text at its upper end, which is left out where it has no room.
type Mark struct {
	X    float64
	Text string
	Kind MarkKind
}

// MarkKind is how a mark looks.
type MarkKind int

// Kinds of marks. The texts say the same as the colours.
const (
	Neutral MarkKind = iota // a change that is neither better nor worse
	Worse
	Better
	Break // values on both sides do not compare
)

// Tick is a text at a point of the horizontal axis.
type Tick struct {
	X    float64
	Text string
}

// SVG draws a history.
func (h History) SVG() string {
	h.Points = drawable([]Group{{Points: h.Points}})[0].Points
	h.Levels = slices.DeleteFunc(slices.Clone(h.Levels), func(l Level) bool { return !isDrawable(l.Y) })
	on := newCanvas(baseHeight)
	all := draw.NewCanvas(on, width, baseHeight)
	h.plot().Draw(draw.Crop(all, margin, -margin, margin, -margin))
	return on.document(h.Title, h.description())
}

// description says in words what is drawn, for those who do not see it.
func (h History) description() string {
	text := fmt.Sprintf("Points with intervals, levels and changes: %s by %s.", h.YLabel, h.XLabel)
	if h.Subtitle != "" {
		text += " " + h.Subtitle + "."
	}
	return text
}

// plot is axes and data.
func (h History) plot() *plot.Plot {
	p := Chart{Title: h.Title, Subtitle: h.Subtitle, XLabel: h.XLabel, YLabel: h.YLabel}.axes()
	p.X.Min, p.X.Max = h.ends()
	h.scaleX(&p.X)
	y := rangeOf(heights(h.Points))
	if len(h.Changes) > 0 {
		y = y.withHeadroom()
	}
	y.set(&p.Y)
	p.Add(grid{}, dots{points: h.Points}, levels(h.Levels), marks(h.Changes))
	return p
}

// ends returns the ends of the horizontal axis.
func (h History) ends() (low, high float64) {
	last := 0.0
	for _, p := range h.Points {
		last = max(last, p.X)
	}
	room := max(0.5, 0.01*last)
	return -room, last + room
}

// tickRoom is the width of the horizontal axis, at least.
const tickRoom = width - 100

// scaleX makes the ticks. Texts that would overlap stand upright, and those that overlap then
// are left out.
func (h History) scaleX(a *plot.Axis) {
	style := a.Tick.Label
	unit := tickRoom / (a.Max - a.Min)
	texts := make([]string, len(h.Ticks))
	upright, end := false, math.Inf(-1)
	for i, t := range h.Ticks {
		texts[i] = shorten(t.Text, tickSize, maxLabel)
		half := float64(style.Width(texts[i])) / 2
		upright = upright || t.X*unit-half < end
		end = t.X*unit + half + 6
	}
	ticks := make([]plot.Tick, 0, len(h.Ticks))
	end = math.Inf(-1)
	for i, t := range h.Ticks {
		tick := plot.Tick{Value: t.X, Label: texts[i]}
		if upright && t.X*unit < end {
			tick.Label = ""
		} else {
			end = t.X*unit + tickSize + 2
		}
		ticks = append(ticks, tick)
	}
	a.Tick.Marker = plot.ConstantTicks(ticks)
	if upright {
		a.Tick.Label.Rotation = math.Pi / 2
		a.Tick.Label.XAlign, a.Tick.Label.YAlign = draw.XRight, draw.YCenter
	}
}

// dots are points with their intervals. Many points are drawn smaller.
type dots struct{ points []Point }

// Plot implements plot.Plotter.
func (d dots) Plot(c draw.Canvas, p *plot.Plot) {
	size, thin := vg.Length(radius), 1.25
	switch n := len(d.points); {
	case n > 300:
		size, thin = 1.25, 0.5
	case n > 60:
		size, thin = 2, 0.75
	}
	x, y := p.Transforms(&c)
	ink := styleOf(0).color
	faint := ink
	faint.A = 0x66
	var whiskers, circles vg.Path
	for _, one := range d.points {
		at := vg.Point{X: x(one.X), Y: y(one.Y)}
		if !math.IsNaN(one.Low) {
			whiskers.Move(vg.Point{X: at.X, Y: y(one.Low)})
			whiskers.Line(vg.Point{X: at.X, Y: y(one.High)})
		}
		circles.Move(vg.Point{X: at.X + size, Y: at.Y})
		circles.Arc(at, size, 0, 2*math.Pi)
		circles.Close()
	}
	if len(whiskers) > 0 {
		c.SetLineStyle(draw.LineStyle{Color: faint, Width: vg.Length(thin)})
		c.Stroke(whiskers)
	}
	if len(circles) > 0 {
		c.SetColor(ink)
		c.Fill(circles)
	}
}

// levels are horizontal lines, half a point longer at both ends.
type levels []Level

// Plot implements plot.Plotter.
func (l levels) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, one := range l {
		c.StrokeLine2(draw.LineStyle{Color: color.Black, Width: 1.5}, x(one.First-0.5), y(one.Y), x(one.Last+0.5), y(one.Y))
	}
}

// marks are vertical lines with texts.
type marks []Mark

// Plot implements plot.Plotter.
func (m marks) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	style := textStyle(tickSize)
	style.XAlign, style.YAlign = draw.XCenter, draw.YTop
	end := vg.Length(math.Inf(-1))
	for _, one := range m {
		at := x(one.X)
		c.StrokeLine2(one.Kind.line(), at, c.Min.Y, at, c.Max.Y-tickSize-4)
		half := style.Width(one.Text) / 2
		middle := min(max(at, c.Min.X+half), c.Max.X-half)
		if middle-half < end {
			continue
		}
		end = middle + half + 4
		c.FillText(style, vg.Point{X: middle, Y: c.Max.Y}, one.Text)
	}
}

// line is how marks of a kind are drawn.
func (k MarkKind) line() draw.LineStyle {
	dashes := []vg.Length{4, 3}
	switch k {
	case Worse:
		return draw.LineStyle{Color: styleOf(1).color, Width: 1.25, Dashes: dashes}
	case Better:
		return draw.LineStyle{Color: color.NRGBA{G: 0x8a, B: 0x66, A: 0xff}, Width: 1.25, Dashes: dashes}
	case Break:
		return draw.LineStyle{Color: color.Black, Width: 1, Dashes: []vg.Length{1, 2}}
	case Neutral:
	}
	return draw.LineStyle{Color: color.Black, Width: 1.25, Dashes: dashes}
}
