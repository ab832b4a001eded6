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

// history returns a history of n points with a change in the middle, and a break after three
// quarters of them.
func history(n int, ticks ...plot.Tick) plot.History {
	h := plot.History{
		Title: "rate (MB/s), higher is better", Subtitle: fmt.Sprintf("%d runs, 2 changes", n), XLabel: "version", YLabel: "rate (MB/s)", Ticks: ticks,
		Levels: []plot.Level{
			{First: 0, Last: float64(n/2 - 1), Y: 102},
			{First: float64(n / 2), Last: float64(3*n/4 - 1), Y: 94},
			{First: float64(3 * n / 4), Last: float64(n - 1), Y: 98},
		},
		Changes: []plot.Mark{
			{X: float64(n/2) - 0.5, Text: "-7.8 %", Kind: plot.Worse},
			{X: float64(3*n/4) - 0.5, Text: "machine +4.3 %", Kind: plot.Break},
		},
	}
	for i := range n {
		level := h.Levels[0].Y
		for _, l := range h.Levels[1:] {
			if float64(i) >= l.First {
				level = l.Y
			}
		}
		y := level + 2*math.Sin(float64(i*i))
		h.Points = append(h.Points, plot.Point{X: float64(i), Y: y, Low: y - 1, High: y + 1.5})
	}
	return h
}

// versions returns ticks at regular distances.
func versions(n, every int) []plot.Tick {
	var ticks []plot.Tick
	for i := 0; i < n; i += every {
		ticks = append(ticks, plot.Tick{X: float64(i), Text: fmt.Sprintf("v1.%d", i/every)})
	}
	return ticks
}

func histories() map[string]plot.History {
	better := history(12, versions(12, 2)...)
	better.Changes[0] = plot.Mark{X: 5.5, Text: "+7.8 %", Kind: plot.Better}
	better.Changes[1] = plot.Mark{X: 6.5, Text: "no room for this one", Kind: plot.Neutral}
	wide := history(10)
	wide.Points[3].Y, wide.Points[4].Y = 0.1, math.NaN()
	for i := range wide.Points {
		wide.Points[i].Low = math.NaN()
	}
	wide.Levels = append(wide.Levels, plot.Level{Y: math.Inf(1)})
	return map[string]plot.History{
		"history-10":    history(10, versions(10, 3)...),
		"history-200":   history(200, plot.Tick{X: 0, Text: "2026-03-01"}, plot.Tick{X: 1, Text: "2026-03-02"}, plot.Tick{X: 2, Text: "2026-03-03"}, plot.Tick{X: 120, Text: "2026-07-01"}),
		"history-1000":  history(1000, versions(1000, 250)...),
		"history-kinds": better,
		"history-log":   wide,
		"history-none":  {Title: "nothing"},
	}
}

func TestHistoriesAreTheSameOnEachMachine(t *testing.T) {
	for name, h := range histories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Check(t, filepath.Join("testdata", name+".svg"), h.SVG())
		})
	}
}

func TestAHistoryOfManyPointsIsSmallAndWellFormed(t *testing.T) {
	for _, n := range []int{4, 200, 1000, 5000} {
		text := history(n).SVG()
		if limit := 10_000 + 200*n; len(text) > limit {
			t.Errorf("%d points have %d bytes, %d at most", n, len(text), limit)
		}
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestTextOfAHistoryStaysText(t *testing.T) {
	h := history(4, plot.Tick{Text: "<b>"})
	h.Title, h.Changes[0].Text = "<script>", "&lt;"
	text := h.SVG()
	for _, hostile := range []string{"<script>", "<b>", ">&lt;<"} {
		if strings.Contains(text, hostile) {
			t.Errorf("%q is in the SVG", hostile)
		}
	}
}

func FuzzAHistoryOfAnyNumbersIsDrawn(f *testing.F) {
	f.Add(3, 1.0, math.Inf(1), -1e300, "v1")
	f.Add(0, math.NaN(), 0.0, 1e-300, "")
	f.Fuzz(func(t *testing.T, n int, a, b, c float64, text string) {
		h := plot.History{Title: text, Levels: []plot.Level{{First: 0, Last: 2, Y: c}}, Changes: []plot.Mark{{X: 1, Text: text}}, Ticks: []plot.Tick{{X: 0, Text: text}, {X: 1, Text: text}}}
		for i := range min(max(n, 0), 100) {
			h.Points = append(h.Points, plot.Point{X: float64(i), Y: []float64{a, b, c}[i%3], Low: b, High: c})
		}
		if got := h.SVG(); strings.Contains(got, "NaN") && !strings.Contains(text, "NaN") || !strings.HasSuffix(got, "</svg>\n") {
			t.Error(got)
		}
	})
}
