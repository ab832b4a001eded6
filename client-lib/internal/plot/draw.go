package plot

import (
	"cmp"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// style is how a group looks. No two of the first 40 groups look alike.
type style struct {
	color  color.NRGBA
	dashes []vg.Length
	shape  draw.GlyphDrawer
}

// styleOf returns the style of a group by its number.
func styleOf(i int) style {
	palette := palette()
	dashes := [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 3, 2, 3}}
	shapes := []draw.GlyphDrawer{
		draw.CircleGlyph{},
		draw.BoxGlyph{},
		draw.PyramidGlyph{},
		draw.CrossGlyph{},
		draw.RingGlyph{},
		draw.SquareGlyph{},
		draw.TriangleGlyph{},
		draw.PlusGlyph{},
	}
	return style{color: palette[i%len(palette)], dashes: dashes[i/len(palette)%len(dashes)], shape: shapes[i%len(shapes)]}
}

// palette are colours that people with each kind of colour blindness can tell apart, and
// that can be seen on white and on black.
func palette() []color.NRGBA {
	return []color.NRGBA{
		{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
		{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
		{R: 0xbf, G: 0x7c, B: 0x97, A: 0xff},
		{R: 0x9f, G: 0x24, B: 0xf2, A: 0xff},
		{R: 0x8c, G: 0x8c, B: 0x5b, A: 0xff},
	}
}

const radius = 3.5 // of a marker

func (s style) line(width vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: s.color, Width: width, Dashes: s.dashes}
}

func (s style) solid() draw.LineStyle { return draw.LineStyle{Color: s.color, Width: 1.25} }

func (s style) marker(c *draw.Canvas, at vg.Point) { drawGlyph(c, s.shape, s.color, at) }

func drawGlyph(c *draw.Canvas, shape draw.GlyphDrawer, colour color.Color, at vg.Point) {
	c.DrawGlyph(draw.GlyphStyle{Color: colour, Radius: radius, Shape: shape}, at)
}

// grid is a faint line at each tick of the vertical axis with a label.
type grid struct{}

// Plot implements plot.Plotter.
func (grid) Plot(c draw.Canvas, p *plot.Plot) {
	faint := draw.LineStyle{Color: color.NRGBA{A: 0x26}, Width: 1}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if y := p.Y.Norm(t.Value); !t.IsMinor() && y >= 0 && y <= 1 {
			c.StrokeLine2(faint, c.Min.X, c.Y(y), c.Max.X, c.Y(y))
		}
	}
}

// line is a line through points, with their markers and intervals.
type line struct {
	points []Point
	style  style
}

// Plot implements plot.Plotter.
func (l line) Plot(c draw.Canvas, p *plot.Plot) {
	points := slices.SortedStableFunc(slices.Values(l.points), func(a, b Point) int { return cmp.Compare(a.X, b.X) })
	x, y := p.Transforms(&c)
	places := make([]vg.Point, len(points))
	for i, one := range points {
		places[i] = vg.Point{X: x(one.X), Y: y(one.Y)}
		whisker(c, l.style.solid(), places[i].X, y, one)
	}
	c.StrokeLines(l.style.line(1.5), places)
	for _, at := range places {
		l.style.marker(&c, at)
	}
}

// whisker draws the interval of a point, if there is one.
func whisker(c draw.Canvas, style draw.LineStyle, x vg.Length, y func(float64) vg.Length, p Point) {
	if math.IsNaN(p.Low) {
		return
	}
	const half = 4 // of its ends
	low, high := y(p.Low), y(p.High)
	var path vg.Path
	path.Move(vg.Point{X: x - half, Y: low})
	path.Line(vg.Point{X: x + half, Y: low})
	path.Move(vg.Point{X: x, Y: low})
	path.Line(vg.Point{X: x, Y: high})
	path.Move(vg.Point{X: x - half, Y: high})
	path.Line(vg.Point{X: x + half, Y: high})
	c.SetLineStyle(style)
	c.Stroke(path)
}

// bars are the bars of one group, beside those of the others, with intervals and, at the
// medians, markers. Without a base there are no bars, only markers.
type bars struct {
	points    []Point
	style     style
	place, of int
	base      float64
}

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	const share = 0.8 // of a category's width
	x, y := p.Transforms(&c)
	wide := share / float64(b.of)
	for _, one := range b.points {
		left := one.X - share/2 + wide*float64(b.place)
		middle := x(left + wide/2)
		ink := b.style.solid()
		if !math.IsNaN(b.base) {
			c.SetColor(b.style.color)
			c.Fill(vg.Rectangle{Min: vg.Point{X: x(left), Y: y(b.base)}, Max: vg.Point{X: x(left + wide*0.94), Y: y(one.Y)}}.Path())
			ink.Color = color.Black
		}
		whisker(c, ink, middle, y, one)
		if b.of > 1 || math.IsNaN(b.base) {
			drawGlyph(&c, b.style.shape, ink.Color, vg.Point{X: middle, Y: y(one.Y)})
		}
	}
}

// thumbnail is a group in the legend.
type thumbnail struct {
	style style
	bar   bool
}

// Thumbnail implements plot.Thumbnailer.
func (t thumbnail) Thumbnail(c *draw.Canvas) {
	middle := c.Center()
	if t.bar {
		c.SetColor(t.style.color)
		c.Fill(vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: middle.Y - 5}, Max: vg.Point{X: c.Max.X, Y: middle.Y + 5}}.Path())
		drawGlyph(c, t.style.shape, color.Black, middle)
		return
	}
	c.StrokeLine2(t.style.line(1.5), c.Min.X, middle.Y, c.Max.X, middle.Y)
	t.style.marker(c, middle)
}
