package plot

import (
	"fmt"
	"html"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// canvas implements vg.Canvas. It writes SVG with presentation attributes only.
type canvas struct {
	height float64
	body   strings.Builder
	stack  []state // the last one is in force
}

// state is how the next thing is drawn, and where: x' = a·x + c·y + e, y' = b·x + d·y + f.
type state struct {
	a, b, c, d, e, f float64

	color  color.Color
	width  vg.Length
	dashes []vg.Length
	offset vg.Length
}

func newCanvas(height int) *canvas {
	c := &canvas{height: float64(height), stack: []state{{a: 1, d: -1, f: float64(height)}}} // up is down in SVG
	vg.Initialize(c)
	return c
}

// document is all that was drawn, with a title and a description for readers who do not
// see it.
func (c *canvas) document(title, description string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" width="%d" height="%s" viewBox="0 0 %d %s" `+
		`color="#1f2328" fill="currentColor" font-family="Liberation Sans, Arial, Helvetica, sans-serif" font-size="%d">`+"\n"+
		"<title>%s</title>\n<desc>%s</desc>\n"+`<rect class="plot-background" width="%d" height="%s" fill="#ffffff"/>`+"\n%s</svg>\n",
		width, coordinate(c.height), width, coordinate(c.height), tickSize, escape(title), escape(description), width,
		coordinate(c.height), c.body.String())
}

// escape returns a text for XML, which has no control characters.
func escape(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0xfffe || r == 0xffff {
			return '�'
		}
		return r
	}, strings.ToValidUTF8(text, "�")))
}

// coordinate is a number with two digits after the point at most. Differences that machines
// make in the last bits are rounded away first.
func coordinate(x float64) string {
	const fine = 1e6
	text := strconv.FormatFloat(math.Round(x*fine)/fine, 'f', 2, 64)
	text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	if text == "-0" || text == "" {
		return "0"
	}
	return text
}

func (c *canvas) state() *state { return &c.stack[len(c.stack)-1] }

// SetLineWidth implements vg.Canvas.
func (c *canvas) SetLineWidth(w vg.Length) { c.state().width = w }

// SetLineDash implements vg.Canvas.
func (c *canvas) SetLineDash(pattern []vg.Length, offset vg.Length) {
	c.state().dashes, c.state().offset = pattern, offset
}

// SetColor implements vg.Canvas.
func (c *canvas) SetColor(colour color.Color) { c.state().color = colour }

// Rotate implements vg.Canvas.
func (c *canvas) Rotate(angle float64) {
	sin, cos := math.Sincos(angle)
	c.transform(cos, sin, -sin, cos, 0, 0)
}

// Translate implements vg.Canvas.
func (c *canvas) Translate(by vg.Point) { c.transform(1, 0, 0, 1, float64(by.X), float64(by.Y)) }

// Scale implements vg.Canvas.
func (c *canvas) Scale(x, y float64) { c.transform(x, 0, 0, y, 0, 0) }

func (c *canvas) transform(a, b, cc, d, e, f float64) {
	s := c.state()
	s.a, s.b, s.c, s.d, s.e, s.f = s.a*a+s.c*b, s.b*a+s.d*b, s.a*cc+s.c*d, s.b*cc+s.d*d, s.a*e+s.c*f+s.e, s.b*e+s.d*f+s.f
}

// coordinates returns a point as the SVG has it.
func (s *state) coordinates(x, y float64) (string, string) {
	return coordinate(s.a*x + s.c*y + s.e), coordinate(s.b*x + s.d*y + s.f)
}

// Push implements vg.Canvas.
func (c *canvas) Push() { c.stack = append(c.stack, *c.state()) }

// Pop implements vg.Canvas.
func (c *canvas) Pop() { c.stack = c.stack[:len(c.stack)-1] }

// Stroke implements vg.Canvas.
func (c *canvas) Stroke(path vg.Path) {
	s := c.state()
	if s.width <= 0 {
		return
	}
	fmt.Fprintf(&c.body, `<path d="%s" fill="none"%s stroke-width="%s"`, c.data(path), ink("stroke", s.color), coordinate(float64(s.width)))
	if len(s.dashes) > 0 {
		lengths := make([]string, len(s.dashes))
		for i, d := range s.dashes {
			lengths[i] = coordinate(float64(d))
		}
		fmt.Fprintf(&c.body, ` stroke-dasharray="%s" stroke-dashoffset="%s"`, strings.Join(lengths, " "), coordinate(float64(s.offset)))
	}
	c.body.WriteString("/>\n")
}

// Fill implements vg.Canvas.
func (c *canvas) Fill(path vg.Path) {
	fmt.Fprintf(&c.body, `<path d="%s"%s/>`+"\n", c.data(path), ink("fill", c.state().color))
}

// ink is an attribute with a colour, and one with the opacity. Black is the colour of text.
func ink(attribute string, colour color.Color) string {
	n, _ := color.NRGBAModel.Convert(colour).(color.NRGBA) // as the model promises
	value := fmt.Sprintf("#%02x%02x%02x", n.R, n.G, n.B)
	if n.R|n.G|n.B == 0 {
		value = "currentColor"
	}
	text := fmt.Sprintf(` %s="%s"`, attribute, value)
	if n.A < 0xff {
		text += fmt.Sprintf(` %s-opacity="%s"`, attribute, coordinate(float64(n.A)/0xff))
	}
	return text
}

// data is the data of a path.
func (c *canvas) data(path vg.Path) string {
	var b strings.Builder
	s := c.state()
	for _, part := range path {
		switch part.Type {
		case vg.MoveComp:
			b.WriteString("M" + s.pair(part.Pos))
		case vg.LineComp:
			b.WriteString("L" + s.pair(part.Pos))
		case vg.ArcComp:
			b.WriteString(s.arc(part, b.Len() == 0))
		case vg.CurveComp:
			b.WriteString([]string{"Q", "C"}[len(part.Control)-1])
			for _, p := range part.Control {
				b.WriteString(s.pair(p) + " ")
			}
			b.WriteString(s.pair(part.Pos))
		case vg.CloseComp:
			b.WriteByte('Z')
		}
	}
	return b.String()
}

func (s *state) pair(p vg.Point) string {
	x, y := s.coordinates(float64(p.X), float64(p.Y))
	return x + " " + y
}

// arc is an arc as two of half the angle, since SVG has none around a whole circle.
func (s *state) arc(part vg.PathComp, first bool) string {
	r := math.Abs(float64(part.Radius))
	at := func(share float64) string {
		sin, cos := math.Sincos(part.Start + share*part.Angle)
		return s.pair(vg.Point{X: part.Pos.X + vg.Length(r*cos), Y: part.Pos.Y + vg.Length(r*sin)})
	}
	to, sweep, large := "L", 0, 0
	if first {
		to = "M"
	}
	if part.Angle < 0 {
		sweep = 1
	}
	if math.Abs(part.Angle) > 2*math.Pi {
		large = 1
	}
	half := func(share float64) string {
		return fmt.Sprintf("A%s %s 0 %d %d %s", coordinate(r), coordinate(r), large, sweep, at(share))
	}
	return to + at(0) + half(0.5) + half(1)
}

// FillString implements vg.Canvas.
func (c *canvas) FillString(face font.Face, at vg.Point, text string) {
	s := c.state()
	x, y := s.coordinates(float64(at.X), float64(at.Y))
	fmt.Fprintf(&c.body, `<text x="%s" y="%s"`, x, y)
	if size := float64(face.Font.Size); size != tickSize {
		fmt.Fprintf(&c.body, ` font-size="%s"`, coordinate(size))
	}
	if angle := math.Atan2(s.b, s.a) * 180 / math.Pi; math.Abs(angle) > 1e-6 {
		fmt.Fprintf(&c.body, ` transform="rotate(%s %s %s)"`, coordinate(angle), x, y)
	}
	fmt.Fprintf(&c.body, ">%s</text>\n", escape(text))
}

// DrawImage implements vg.Canvas. No chart has images.
func (c *canvas) DrawImage(vg.Rectangle, image.Image) {}
