package email

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"

	"github.com/benchmark-ai/bai/services/analyst/incident"
)

// The size of the picture, and what is free around the points.
const (
	width  = 480
	height = 120
	margin = 8
)

// The colors of the picture, by their index.
const (
	paper = iota
	frame
	before
	after
)

// picture returns a PNG of the newest values of the first incident that has two or more, those of it in red; false if none has.
func picture(incidents []incident.Incident) ([]byte, bool) {
	for _, i := range incidents {
		points := finite(i.Recent)
		if len(points) < 2 {
			continue
		}
		var b bytes.Buffer
		if err := png.Encode(&b, draw(points, i.FirstBad)); err != nil {
			return nil, false
		}
		return b.Bytes(), true
	}
	return nil, false
}

// finite returns the points whose values can be drawn.
func finite(all []incident.Point) (points []incident.Point) {
	for _, p := range all {
		if math.Abs(p.Value) < math.MaxFloat64/4 { // not for NaN either
			points = append(points, p)
		}
	}
	return points
}

func draw(points []incident.Point, bad *incident.Point) image.Image {
	low, high := points[0].Value, points[0].Value
	for _, p := range points {
		low, high = min(low, p.Value), max(high, p.Value)
	}
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{
		paper: color.White, frame: color.Gray{Y: 0xc0}, before: color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff},
		after: color.RGBA{R: 0xc0, G: 0x28, B: 0x28, A: 0xff},
	})
	for x := range width {
		img.SetColorIndex(x, 0, frame)
		img.SetColorIndex(x, height-1, frame)
	}
	for y := range height {
		img.SetColorIndex(0, y, frame)
		img.SetColorIndex(width-1, y, frame)
	}
	for n, p := range points {
		x := margin + n*(width-2*margin)/(len(points)-1)
		y := height / 2
		if high > low {
			y = height - margin - int((p.Value-low)/(high-low)*(height-2*margin))
		}
		dot(img, x, y, colorOf(p, bad))
	}
	return img
}

func colorOf(p incident.Point, bad *incident.Point) uint8 {
	if bad != nil && !p.Time.Before(bad.Time) {
		return after
	}
	return before
}

func dot(img *image.Paletted, x, y int, c uint8) {
	for dx := -2; dx <= 2; dx++ {
		for dy := -2; dy <= 2; dy++ {
			img.SetColorIndex(x+dx, y+dy, c)
		}
	}
}
