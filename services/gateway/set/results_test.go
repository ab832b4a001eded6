package set_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// summarise stores the summary of each run that has ended: metric m has the value that the
// function returns.
func (w *fixture) summarise(value func(r store.Run) float64, more ...store.Summary) {
	w.t.Helper()
	for _, r := range w.runs() {
		all := store.Summaries{Run: r.ID, Complete: true, Summaries: append([]store.Summary{
			{Metric: "m", Unit: "ms", N: 100, Median: store.Float(value(r)), Direction: event.Lower},
		}, more...)}
		if err := store.Create(w.t.Context(), w.store, store.KindSummary, r.ID, all); err != nil {
			w.t.Fatal(err)
		}
	}
}

// results returns all results of a set, and the number of their pages.
func (a apis) results(t *testing.T, req *baiv1.GetSetResultsRequest) (cells []*baiv1.CellResult, pages int) {
	t.Helper()
	for {
		page, err := a.sets.GetSetResults(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		cells, pages = append(cells, page.GetCells()...), pages+1
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			return cells, pages
		}
	}
}

func TestResultsOfASetAreTheMediansOfItsRepetitions(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	a := g.api()
	id := a.submit(t, "repetitions = 6\nwarmup = 1"+sixCells)
	g.runToEnd(id)
	w.summarise(func(r store.Run) float64 {
		if r.Warmup {
			return 1000
		}
		return float64(10*len(r.Cell) + r.Repetition)
	})
	cells, pages := a.results(t, &baiv1.GetSetResultsRequest{Set: "n", Owner: "ann", PageSize: 4})
	want(t, "pages", pages, 2)
	names := make([]string, 0, len(cells))
	for _, c := range cells {
		names = append(names, c.GetName())
	}
	want(t, "cells", strings.Join(names, " "), "size=1K,n=1 size=1K,n=2 size=1K,n=3 size=1M,n=1 size=1M,n=2 size=1M,n=3")
	c := cells[1]
	m := c.GetMetrics()[0]
	values := make([]string, 0, len(m.GetValues()))
	for _, v := range m.GetValues() {
		values = append(values, fmt.Sprintf("%d:%g", v.GetRepetition(), v.GetValue()))
	}
	want(t, "values", strings.Join(values, " "), "1:111 2:112 3:113 4:114 5:115 6:116")
	want(t, "result", fmt.Sprintln(c.GetSucceeded(), m.GetMetric(), m.GetUnit(), m.GetDirection(), m.GetN(), m.GetExcluded(), m.GetLacking(), m.GetMedian(),
		m.GetInterval().GetLow(), m.GetInterval().GetHigh(), m.GetInterval().GetLevel()), "6 m ms lower 6 0 0 113.5 111 116 0.96875\n")
	want(t, "parameters", c.GetParameters()[0].GetName()+"="+c.GetParameters()[0].GetValue(), `size="1K"`)
}

func TestResultsOfASetThatRunsAreThoseSoFar(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	a := g.api()
	id := a.submit(t, "repetitions = 2\nmax_parallel = 3"+sixCells)
	g.pass()
	cells, _ := a.results(t, &baiv1.GetSetResultsRequest{Set: id})
	want(t, "cells", len(cells), 6)
	want(t, "repetitions before any has ended", cells[0].GetSucceeded(), 0)
	w.finishRuns(event.Succeeded)
	g.pass()
	w.finishRuns(event.Failed)
	cells, _ = a.results(t, &baiv1.GetSetResultsRequest{Set: id})
	got := make([]string, 0, len(cells))
	for _, c := range cells {
		got = append(got, fmt.Sprint(c.GetSucceeded(), c.GetUnsummarised(), len(c.GetMetrics())))
	}
	want(t, "repetitions, those without a summary, and metrics", strings.Join(got, ", "), "2 2 0, 1 1 0, 0 0 0, 0 0 0, 0 0 0, 0 0 0")
}

func TestResultsHaveTheMetricsThatWereAskedFor(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	a := g.api()
	id := a.submit(t, sixCells)
	g.runToEnd(id)
	w.summarise(func(store.Run) float64 { return 1 }, store.Summary{Metric: "other", Median: 2}, store.Summary{Metric: "third", Median: 3})
	cells, _ := a.results(t, &baiv1.GetSetResultsRequest{Set: id, Metrics: []string{"third", "m", "none"}})
	for _, c := range cells {
		got := make([]string, 0, len(c.GetMetrics()))
		for _, m := range c.GetMetrics() {
			got = append(got, m.GetMetric())
		}
		want(t, "metrics of "+c.GetName(), strings.Join(got, " "), "m third")
	}
}

func TestAPageOfLargeResultsEndsEarlyAndNoCellIsLost(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	a := g.api()
	id := a.submit(t, sixCells)
	g.runToEnd(id)
	var more []store.Summary
	for n := range 400 {
		more = append(more, store.Summary{Metric: "other", Labels: map[string]string{"a": strings.Repeat("x", 1000), "n": fmt.Sprint(n)}})
	}
	w.summarise(func(store.Run) float64 { return 1 }, more...)
	cells, pages := a.results(t, &baiv1.GetSetResultsRequest{Set: id})
	want(t, "cells", len(cells), 6)
	want(t, "pages", pages, 3) // 0.4 MB a cell
	names := make([]string, 0, len(cells))
	for _, c := range cells {
		names = append(names, c.GetName())
	}
	slices.Sort(names)
	want(t, "different cells", len(slices.Compact(names)), 6)
}

func TestResultsOfACellThatFitIntoNoResponseAreRefused(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	a := g.api()
	id := a.submit(t, "repetitions = 3\n[sweep.product]\nsize = [\"1K\"]\nn = [1]")
	g.runToEnd(id)
	for i, r := range w.runs() {
		all := store.Summaries{Run: r.ID, Complete: true, Summaries: []store.Summary{{Metric: "m", Median: 1}}}
		for n := range 800 { // labels that differ from run to run
			all.Summaries = append(all.Summaries, store.Summary{Metric: "other", Labels: map[string]string{"a": strings.Repeat("x", 1000), "n": fmt.Sprint(i, n)}})
		}
		if err := store.Create(t.Context(), w.store, store.KindSummary, r.ID, all); err != nil {
			t.Fatal(err)
		}
	}
	_, err := a.sets.GetSetResults(t.Context(), &baiv1.GetSetResultsRequest{Set: id})
	want(t, "code", status.Code(err), codes.InvalidArgument)
	want(t, "message", status.Convert(err).Message(), `metrics: the results of cell "size=1K,n=1" are too large for a response`)
	cells, _ := a.results(t, &baiv1.GetSetResultsRequest{Set: id, Metrics: []string{"m"}})
	want(t, "repetitions with metric m", cells[0].GetMetrics()[0].GetN(), 3)
}

func TestRequestsForResultsThatAreRefused(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	a := g.api()
	id := a.submit(t, "repetitions = 2"+sixCells)
	g.runToEnd(id)
	for name, tt := range map[string]struct {
		req  *baiv1.GetSetResultsRequest
		want codes.Code
	}{
		"a set that does not exist":        {&baiv1.GetSetResultsRequest{Set: "none"}, codes.NotFound},
		"no set":                           {&baiv1.GetSetResultsRequest{}, codes.InvalidArgument},
		"a size of a page":                 {&baiv1.GetSetResultsRequest{Set: id, PageSize: -1}, codes.InvalidArgument},
		"a token of another list":          {&baiv1.GetSetResultsRequest{Set: id, PageToken: "x"}, codes.InvalidArgument},
		"a token of cells with their runs": {&baiv1.GetSetResultsRequest{Set: id, PageToken: "1.x"}, codes.InvalidArgument},
		"a cell that does not exist":       {&baiv1.GetSetResultsRequest{Set: id, PageToken: "6."}, codes.InvalidArgument},
	} {
		_, err := a.sets.GetSetResults(t.Context(), tt.req)
		want(t, name, status.Code(err), tt.want)
	}
}
