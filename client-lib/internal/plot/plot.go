// Package plot draws charts of medians with their intervals as SVG.
//
// The SVG has presentation attributes only: no styles, no scripts, no links, no identifiers
// and no fonts, so that a page can contain it under any content security policy. Text stays
// text. The same chart has the same bytes on every machine.
//
// A viewer shows it dark on white. A page that has other colours sets the property color of
// svg.plot, and the property fill of rect.plot-background.
package plot

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Chart is what is drawn: a line for each group, or bars if there are categories.
type Chart struct {
	Title      string
	Subtitle   string
	XLabel     string
	YLabel     string
	Categories []string // of a chart with bars, from left to right
	Groups     []Group
}

// Group is points that belong together. A single group without a name has no legend.
type Group struct {
	Name   string
	Points []Point
}

// Point is a median. X of a chart with bars is the number of the category. Low and High are
// the ends of the interval, and both NaN if there is none. A point with an X or Y that is
// NaN, infinite or beyond 1e150 is left out.
type Point struct{ X, Y, Low, High float64 }

// A chart can show at most so many groups and categories.
const (
	MaxGroups     = 20
	MaxCategories = 60
)

const (
	width      = 720
	baseHeight = 400
	margin     = 10
	maxLegend  = 240 // width of a legend
	maxLabel   = 140 // width of a category
	maxTitle   = width - 2*margin

	typeface     = "Liberation"
	titleSize    = 14
	labelSize    = 12
	tickSize     = 11
	largest      = 1e150
	decades      = 100 // ratio of values from which on an axis is logarithmic
	legendMargin = 14
)

// SVG draws a chart. It has an error if there are too many groups or categories.
func (c Chart) SVG() (string, error) {
	if len(c.Groups) > MaxGroups {
		return "", fmt.Errorf("a plot shows %d lines or kinds of bars at most, not %d", MaxGroups, len(c.Groups))
	}
	if len(c.Categories) > MaxCategories {
		return "", fmt.Errorf("a plot shows %d categories at most, not %d", MaxCategories, len(c.Categories))
	}
	c.Groups = drawable(c.Groups)
	height := max(baseHeight, 90+18*len(c.Groups))
	on := newCanvas(height)
	all := draw.NewCanvas(on, width, vg.Length(height))
	area := draw.Crop(all, margin, -margin, margin, -margin)
	if legend, need := c.legend(); need > 0 {
		legend.Draw(draw.Crop(area, area.Size().X-need, 0, 0, -40))
		area = draw.Crop(area, 0, -need-legendMargin, 0, 0)
	}
	c.plot().Draw(area)
	return on.document(c.Title, c.description()), nil
}

// drawable returns the groups without the points that cannot be drawn.
func drawable(groups []Group) []Group {
	kept := make([]Group, 0, len(groups))
	for _, g := range groups {
		one := Group{Name: g.Name}
		for _, p := range g.Points {
			if isDrawable(p.X) && isDrawable(p.Y) {
				if !isDrawable(p.Low) || !isDrawable(p.High) {
					p.Low, p.High = math.NaN(), math.NaN()
				}
				one.Points = append(one.Points, p)
			}
		}
		kept = append(kept, one)
	}
	return kept
}

func isDrawable(x float64) bool { return math.Abs(x) <= largest }

// axes is titles and axes, without ranges.
func (c Chart) axes() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.Text = c.heading()
	p.Title.TextStyle = textStyle(titleSize)
	p.Title.TextStyle.XAlign, p.Title.TextStyle.YAlign = draw.XCenter, draw.YTop
	p.Title.Padding = 8
	p.X.Label.Text, p.Y.Label.Text = shorten(c.XLabel, labelSize, maxTitle/2), shorten(c.YLabel, labelSize, baseHeight*3/4)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Tick.Label.Font = sans(labelSize), sans(tickSize)
		a.Label.Padding, a.Tick.Length, a.Padding = 4, 5, 0
		a.Width, a.Tick.Width = 1, 1
	}
	return p
}

// plot is axes and data.
func (c Chart) plot() *plot.Plot {
	p := c.axes()
	c.scaleX(&p.X)
	y := c.yRange()
	y.set(&p.Y)
	p.Add(grid{})
	for i, g := range c.Groups {
		if c.Categories != nil {
			p.Add(bars{points: g.Points, style: styleOf(i), place: i, of: len(c.Groups), base: y.base()})
		} else {
			p.Add(line{points: g.Points, style: styleOf(i)})
		}
	}
	return p
}

// heading is the title and the line below it.
func (c Chart) heading() string {
	return strings.TrimSpace(shorten(c.Title, titleSize, maxTitle*3/4) + "\n" + shorten(c.Subtitle, titleSize, maxTitle*3/4))
}

// description says in words what is drawn, for those who do not see it.
func (c Chart) description() string {
	kind := "Lines with intervals"
	if c.Categories != nil {
		kind = "Bars with intervals"
	}
	text := fmt.Sprintf("%s: %s by %s.", kind, c.YLabel, c.XLabel)
	if c.Subtitle != "" {
		text += " " + c.Subtitle + "."
	}
	return text
}

// scaleX makes the axis of the parameter.
func (c Chart) scaleX(a *plot.Axis) {
	if c.Categories == nil {
		r := c.xRange()
		r.set(a)
		return
	}
	a.Min, a.Max = -0.5, float64(len(c.Categories))-0.5
	ticks := make([]plot.Tick, len(c.Categories))
	var longest vg.Length
	style := a.Tick.Label
	for i, name := range c.Categories {
		ticks[i] = plot.Tick{Value: float64(i), Label: shorten(name, tickSize, maxLabel)}
		longest = max(longest, style.Width(ticks[i].Label))
	}
	a.Tick.Marker = plot.ConstantTicks(ticks)
	if longest+6 > (width-maxLegend)/vg.Length(max(1, len(ticks))) { // the labels would overlap
		a.Tick.Label.Rotation = math.Pi / 2
		a.Tick.Label.XAlign, a.Tick.Label.YAlign = draw.XRight, draw.YCenter
	}
}

// legend names the groups. Its width is 0 if there is nothing to name.
func (c Chart) legend() (plot.Legend, vg.Length) {
	l := plot.NewLegend()
	l.Left, l.Top, l.Padding, l.ThumbnailWidth, l.YPosition = true, true, 4, 28, draw.PosCenter
	l.TextStyle = textStyle(tickSize)
	if len(c.Groups) == 0 || len(c.Groups) == 1 && c.Groups[0].Name == "" {
		return l, 0
	}
	var widest vg.Length
	for i, g := range c.Groups {
		name := shorten(g.Name, tickSize, maxLegend)
		widest = max(widest, l.TextStyle.Width(name))
		l.Add(name, thumbnail{style: styleOf(i), bar: c.Categories != nil})
	}
	return l, widest + l.ThumbnailWidth + 8
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: typeface, Variant: "Sans", Size: size}
}

func textStyle(size vg.Length) text.Style {
	s := plot.New().Title.TextStyle
	s.Font, s.XAlign, s.YAlign = sans(size), draw.XLeft, draw.YBottom
	return s
}

// shorten returns a text that is at most so wide, with an ellipsis where it was cut.
func shorten(s string, size, width vg.Length) string {
	style := textStyle(size)
	if style.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && style.Width(string(runes)+"…") > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}
