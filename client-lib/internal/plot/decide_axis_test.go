package plot

import (
	"fmt"
	"image/color"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

// labels are the ticks with labels, and the number of the others.
func labels(ticks []plot.Tick) string {
	var all []string
	minor := 0
	for _, t := range ticks {
		if t.Label == "" {
			minor++
			continue
		}
		all = append(all, t.Label)
	}
	return fmt.Sprintf("%s +%d", strings.Join(all, " "), minor)
}

func TestTicks(t *testing.T) {
	for name, tt := range map[string]struct {
		xs   []float64
		want string
		log  bool
	}{
		"few values have ticks of their own":             {[]float64{1, 2, 4, 8}, "1 2 4 8 +0", false},
		"values that would overlap have even ticks":      {[]float64{1, 2, 100}, "0 20 40 60 80 100 +0", false},
		"many values have even ticks":                    {[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, "2 4 6 8 10 12 +0", false},
		"more than two powers of ten make it log":        {[]float64{1, 10, 101}, "1 10 101 +0", true},
		"exactly two powers of ten do not":               {[]float64{1, 50, 100}, "1 50 100 +0", false},
		"a value that is not positive keeps it linear":   {[]float64{0, 500, 1000}, "0 500 1000 +0", false},
		"many powers of ten have labels at some of them": {[]float64{1e-20, 1e20}, "1e-20 1e+20 +0", true},
		"large values are short":                         {[]float64{1.5e12, 2e12}, "1.5e+12 2e+12 +0", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := Chart{Groups: []Group{{}}}
			for _, x := range tt.xs {
				c.Groups[0].Points = append(c.Groups[0].Points, Point{X: x, Y: x, Low: math.NaN()})
			}
			r := c.xRange()
			if got := labels(r.ticks); got != tt.want || r.log != tt.log {
				t.Errorf("ticks %q, log %v; want %q, %v", got, r.log, tt.want, tt.log)
			}
		})
	}
}

func TestLogTicks(t *testing.T) {
	for want, values := range map[string][]float64{
		"0.01 0.1 1 10 +33":                          {0.005, 30},
		"1e-18 1e-12 1e-06 1 1000000 1e+12 1e+18 +0": {1e-20, 1e20},
		"100 10000 1000000 1e+08 +0":                 {50, 2e8},
	} {
		if got := labels(logRange(values).ticks); got != want {
			t.Errorf("ticks %q, want %q", got, want)
		}
	}
}

func TestBarsBeginAtZero(t *testing.T) {
	c := Chart{Categories: []string{"a"}, Groups: []Group{{Points: []Point{{Y: 1000, Low: 990, High: 1010}}}}}
	if r := c.yRange(); r.low != 0 || r.base() != 0 {
		t.Errorf("the axis begins at %v, bars at %v", r.low, r.base())
	}
	c.Categories = nil
	if r := c.yRange(); r.low < 900 {
		t.Errorf("the axis of a line begins at %v", r.low)
	}
}

func TestFortyGroupsLookDifferent(t *testing.T) {
	seen := map[string]int{}
	for i := range 40 {
		s := styleOf(i)
		look := fmt.Sprintf("%v %T", s.color, s.shape)
		if other, ok := seen[look]; ok {
			t.Errorf("groups %d and %d look alike: %s", other, i, look)
		}
		seen[look] = i
	}
}

// linear is a colour in linear light.
func linear(c color.NRGBA) [3]float64 {
	var out [3]float64
	for i, v := range []uint8{c.R, c.G, c.B} {
		x := float64(v) / 255
		if x <= 0.04045 {
			out[i] = x / 12.92
		} else {
			out[i] = math.Pow((x+0.055)/1.055, 2.4)
		}
	}
	return out
}

// lab is a colour in CIELAB, as somebody sees it whose eyes do this to linear light.
func lab(c color.NRGBA, eyes [3][3]float64) [3]float64 {
	v, in := [3]float64{}, linear(c)
	for i, row := range eyes {
		v[i] = min(1, max(0, row[0]*in[0]+row[1]*in[1]+row[2]*in[2]))
	}
	f := func(t float64) float64 {
		if t > 0.008856 {
			return math.Cbrt(t)
		}
		return 7.787*t + 16.0/116
	}
	x := f((0.4124*v[0] + 0.3576*v[1] + 0.1805*v[2]) / 0.9505)
	y := f(0.2126*v[0] + 0.7152*v[1] + 0.0722*v[2])
	z := f((0.0193*v[0] + 0.1192*v[1] + 0.9505*v[2]) / 1.089)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// The matrices are those of G. M. Machado, M. M. Oliveira and L. A. F. Fernandes, "A
// Physiologically-based Model for Simulation of Color Vision Deficiency", 2009.
func TestColoursCanBeToldApartWithEachKindOfColourBlindness(t *testing.T) {
	for kind, eyes := range map[string][3][3]float64{
		"none":         {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
		"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
		"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
	} {
		for i, a := range palette() {
			for j, b := range palette()[:i] {
				p, q := lab(a, eyes), lab(b, eyes)
				if d := math.Hypot(math.Hypot(p[0]-q[0], p[1]-q[1]), p[2]-q[2]); d < 25 {
					t.Errorf("%s: colours %d and %d differ by %.1f, want 25", kind, j, i, d)
				}
			}
		}
	}
}

func TestColoursCanBeSeenOnWhiteAndOnBlack(t *testing.T) {
	for i, c := range palette() {
		in := linear(c)
		light := 0.2126*in[0] + 0.7152*in[1] + 0.0722*in[2]
		if onWhite, onDark := 1.05/(light+0.05), (light+0.05)/(0.0085+0.05); onWhite < 3 || onDark < 3 { // WCAG 2.2, 1.4.11; #16181d
			t.Errorf("colour %d has contrast %.1f with white and %.1f with dark, want 3", i, onWhite, onDark)
		}
	}
}

func TestCoordinatesDoNotDependOnTheLastBits(t *testing.T) {
	for _, x := range []float64{12.125, 0.005, 100.375, -0.001, 3} {
		want := coordinate(x)
		for _, other := range []float64{x - 1e-12, x + 1e-12} {
			if got := coordinate(other); got != want {
				t.Errorf("%v is %s, and %v is %s", x, want, other, got)
			}
		}
	}
	if got := coordinate(-0.001); got != "0" {
		t.Errorf("-0.001 is %s", got)
	}
}
