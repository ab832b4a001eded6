package plot_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/internal/golden"
	"github.com/benchmark-ai/bai/client-lib/internal/plot"
)

// points returns points with intervals.
func points(xs, ys []float64) []plot.Point {
	all := make([]plot.Point, len(xs))
	for i := range xs {
		all[i] = plot.Point{X: xs[i], Y: ys[i], Low: ys[i] * 0.9, High: ys[i] * 1.2}
	}
	return all
}

// groups returns n groups of points that grow.
func groups(n int, xs ...float64) []plot.Group {
	all := make([]plot.Group, n)
	for i := range all {
		ys := make([]float64, len(xs))
		for j := range xs {
			ys[j] = float64(10*(i+1)*(j+3)) / 7
		}
		all[i] = plot.Group{Name: fmt.Sprintf("threads=%d", i+1), Points: points(xs, ys)}
	}
	return all
}

func charts() map[string]plot.Chart {
	nan := math.NaN()
	return map[string]plot.Chart{
		"line": {
			Title: "latency (ms), lower is better", Subtitle: "medians with 95 % intervals, n = 6", XLabel: "size", YLabel: "latency (ms)",
			Groups: groups(1, 1, 2, 4, 8)[:1],
		},
		"lines": {Title: "latency (ms), lower is better", Subtitle: "n = 6", XLabel: "size", YLabel: "latency (ms)", Groups: groups(12, 1, 2, 4, 8, 16)},
		"lines-log": {
			Title: "time (s)", XLabel: "size", YLabel: "time (s)",
			Groups: []plot.Group{{Name: "a", Points: points([]float64{1, 1e3, 1e6}, []float64{0.002, 0.4, 70})}, {Name: "b", Points: points([]float64{1, 1e6}, []float64{0.1, 0.1})}},
		},
		"bars":       {Title: "throughput (req/s), higher is better", Subtitle: "n = 6", XLabel: "size", YLabel: "throughput (req/s)", Categories: []string{"1K", "1M", "1G"}, Groups: groups(3, 0, 1, 2)},
		"bars-log":   {Title: "time (s)", XLabel: "code", YLabel: "time (s)", Categories: []string{"fast", "slow"}, Groups: []plot.Group{{Points: points([]float64{0, 1}, []float64{0.1, 50})}}},
		"bars-below": {Title: "gain (%)", XLabel: "code", YLabel: "gain (%)", Categories: []string{"a", "b"}, Groups: []plot.Group{{Points: []plot.Point{{X: 0, Y: -3, Low: -4, High: -2}, {X: 1, Y: 5, Low: nan, High: nan}}}}},
		"bars-long-names": {
			Title: "a title that is much too long to be shown in one line of a chart, " + strings.Repeat("and longer ", 20), XLabel: "name", YLabel: strings.Repeat("long ", 40),
			Categories: []string{"<script>alert(1)</script>", "模型-resnet", strings.Repeat("very long ", 9), "a\x1b\"&'"}, Groups: groups(2, 0, 1, 2, 3),
		},
		"nothing": {Title: "latency", XLabel: "size", YLabel: "latency", Groups: []plot.Group{{Points: []plot.Point{{X: nan, Y: 1}, {X: 1, Y: math.Inf(1)}, {X: 1e200, Y: 1}}}}},
	}
}

func svg(t *testing.T, c plot.Chart) string {
	t.Helper()
	text, err := c.SVG()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCharts(t *testing.T) {
	for name, c := range charts() {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, filepath.Join("testdata", name+".svg"), svg(t, c))
		})
	}
}

// elements returns the elements of an XML document with their attributes, and its text.
func elements(t *testing.T, text string) (all []xml.StartElement, content string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		switch e := token.(type) {
		case xml.StartElement:
			all = append(all, e.Copy())
		case xml.CharData:
			content += string(e)
		}
		if errors.Is(err, io.EOF) {
			return all, content
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestASVGHasNothingThatAStrictContentSecurityPolicyForbids(t *testing.T) {
	allowed := map[string]string{
		"svg": "xmlns class role width height viewBox color fill font-family font-size", "title": "", "desc": "", "rect": "class width height fill",
		"path": "d fill fill-opacity stroke stroke-opacity stroke-width stroke-dasharray stroke-dashoffset", "text": "x y font-size transform",
	}
	for name, c := range charts() {
		t.Run(name, func(t *testing.T) {
			all, _ := elements(t, svg(t, c))
			for _, e := range all {
				attributes, ok := allowed[e.Name.Local]
				if !ok {
					t.Errorf("element %s", e.Name.Local)
				}
				checkAttributes(t, e, attributes)
			}
		})
	}
}

// checkAttributes reports attributes that are not allowed, or not numbers.
func checkAttributes(t *testing.T, e xml.StartElement, allowed string) {
	t.Helper()
	for _, a := range e.Attr {
		if !strings.Contains(" "+allowed+" ", " "+a.Name.Local+" ") {
			t.Errorf("attribute %s of %s", a.Name.Local, e.Name.Local)
		}
		if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
			t.Errorf("%s is %q", a.Name.Local, a.Value)
		}
	}
}

func TestTextStaysText(t *testing.T) {
	c := plot.Chart{Title: "latency (ms), lower is better", Subtitle: "n = 6", XLabel: "a & b", YLabel: "latency (ms)", Categories: []string{"<b>", "2"}, Groups: groups(2, 0, 1)}
	_, content := elements(t, svg(t, c))
	for _, want := range []string{"latency (ms), lower is better", "n = 6", "a & b", "<b>", "threads=1", "threads=2", "Bars with intervals: latency (ms) by a & b. n = 6."} {
		if !strings.Contains(content, want) {
			t.Errorf("the text lacks %q", want)
		}
	}
}

func TestValuesAtTheEndsOfTheirTypesAreDrawn(t *testing.T) {
	for name, ys := range map[string][]float64{
		"one value": {5}, "equal values": {5, 5}, "zeros": {0, 0}, "no values": {}, "close values": {1.7e18, 1.7e18 + 512}, "negative values": {-3, -7}, "tiny values": {5e-324, 1e-320},
		"huge values": {1e150, -1e150}, "many powers": {1e-150, 1e150}, "zero and huge": {0, 1e149}, "tiny and large": {1e-320, 1},
	} {
		xs := make([]float64, len(ys))
		for i := range xs {
			xs[i] = ys[len(ys)-1-i]
		}
		for _, categories := range [][]string{nil, {"a", "b"}} {
			text := svg(t, plot.Chart{Categories: categories, Groups: []plot.Group{{Points: points(xs, ys)}}})
			if all, _ := elements(t, text); len(all) > 120 {
				t.Errorf("%s: %d elements", name, len(all))
			}
			if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
				t.Errorf("%s: a coordinate is not a number:\n%s", name, text)
			}
		}
	}
}

func TestTooManyGroupsOrCategoriesAreRefused(t *testing.T) {
	for want, c := range map[string]plot.Chart{
		"a plot shows 20 lines or kinds of bars at most, not 21": {Groups: groups(21, 1)},
		"a plot shows 60 categories at most, not 61":             {Categories: make([]string, 61)},
	} {
		if _, err := c.SVG(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
