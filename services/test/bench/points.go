package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// Sizes of the series that pages are read of, and of a page.
const (
	manyPoints = 100_000
	fewPoints  = 1000
	pagePoints = 500
)

// pointsPage measures how long it takes to store the point of a run, and to read pages of a series of 100,000 points: the newest, and those
// after a position, next to the newest page of a series of 1,000 points in the same file.
func pointsPage(ctx context.Context, _ bench) (results []result, err error) {
	dir, err := os.MkdirTemp("", "bai-bench-points-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := sqlite.Open(ctx, filepath.Join(dir, "store.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := putSeries(ctx, s, "few", fewPoints); err != nil {
		return nil, err
	}
	put, err := putSeries(ctx, s, "many", manyPoints)
	if err != nil {
		return nil, err
	}
	few, many, err := readPages(ctx, s)
	return []result{
		reported("PutPoint", put, "ms", fmt.Sprintf("the last tenth of %d runs with one metric", manyPoints)),
		atMost("PointsPage", many, "ms", 15, fmt.Sprintf("%d of %d points; of %d: %.2f ms", pagePoints, manyPoints, fewPoints, few)),
		atMost("PointsPageFlat", many/few, "ratio", 1.5, fmt.Sprintf("a series of %d points", fewPoints)),
	}, err
}

// benchPoint returns the nth point of the series of a task.
func benchPoint(task string, n int) store.RunPoints {
	v := store.Float(100 + n%7)
	return store.RunPoints{
		PointRun: store.PointRun{
			Run: fmt.Sprintf("01k8h4fzqh3v7x9y%s%06d", task, n), Namespace: "default", Task: task,
			Time: time.Unix(int64(n)*3600, 0).UTC(), Complete: true,
			Version: fmt.Sprint("v", n/10), Image: "registry.example.org/benchmarks/resnet:1", Machine: "0123456789abcdef0123456789abcdef",
			Hardware: "AMD EPYC 7763 64-Core Processor, 128 CPUs, 512 GiB", Nodes: []string{"node-1"}, Platform: "v1.2.3",
		},
		Revision: 1,
		Points: []store.Summary{{
			Metric: "rate", Unit: "images/s", N: 100, Min: v, Max: v, Median: v, P90: v, P95: v, P99: v, Mean: v, SD: 1, First: v, Last: v,
			Interval: &store.Interval{Low: v, High: v, Level: 0.95},
		}},
	}
}

// putSeries stores a series, and returns how many ms the last tenth took for each run.
func putSeries(ctx context.Context, s *sqlite.Store, task string, n int) (float64, error) {
	var begin time.Time
	for i := range n {
		if i == n-n/10 {
			begin = time.Now()
		}
		if err := s.PutPoints(ctx, benchPoint(task, i)); err != nil {
			return 0, err
		}
	}
	return ms(time.Since(begin)) / float64(n/10), nil
}

// readPages returns the medians of the times to read pages of both series, in ms. They are read in turn: other work of the machine slows
// both.
func readPages(ctx context.Context, s *sqlite.Store) (few, many float64, err error) {
	const rounds = 50
	var times [2][]float64
	for i := range rounds {
		for n, task := range []string{"few", "many"} {
			took, err := readTwoPages(ctx, s, task)
			if err != nil {
				return 0, 0, err
			}
			if i > 0 { // else the cache is empty
				times[n] = append(times[n], took)
			}
		}
	}
	return median(times[0]), median(times[1]), nil
}

// readTwoPages returns how long a page took of the newest and of the page after that, in ms.
func readTwoPages(ctx context.Context, s *sqlite.Store, task string) (float64, error) {
	const pages = 2
	p := benchPoint(task, 0)
	q := store.PointQuery{Series: p.Key(p.Points[0])}
	begin := time.Now()
	for range pages {
		points, err := s.Points(ctx, q, pagePoints)
		if err != nil {
			return 0, err
		}
		if len(points) != pagePoints {
			return 0, fmt.Errorf("a page has %d points, want %d", len(points), pagePoints)
		}
		q.After = points[pagePoints-1].Position()
	}
	return ms(time.Since(begin)) / pages, nil
}
