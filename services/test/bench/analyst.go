package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// Sizes of the load of an analyst.
const (
	analystTasks  = 20
	analystSeries = 100  // of each task
	analystPoints = 1000 // of each series
)

// analysed measures how long it takes an analyst to look at one new point of each of 2,000 series of 1,000 points, how much memory it has
// then, and how many reads a run costs it however long the history is. Tests of its package take these.
func analysed(ctx context.Context, _ bench) ([]result, error) {
	cmd := exec.CommandContext(ctx, "go", "test", ".", "-v", "-count=1", "-timeout", "1h", "-run", "^TestAnAnalystKeepsItsBar")
	cmd.Dir, cmd.Env = "analyst", append(os.Environ(), "BAI_BARS=1")
	out, failed := cmd.CombinedOutput() // it fails where a bar is not reached
	results, err := decideAnalyst(string(out))
	if err != nil {
		return nil, fmt.Errorf("measure an analyst: %w", errors.Join(failed, err))
	}
	return results, nil
}

// analysedBesideSamples measures the same on a platform that takes 10,000 samples a second meanwhile, and how much later summaries are with
// an analyst at work than without: rounds of runs of tasks with alarms, and of tasks without, in turn.
func analysedBesideSamples(ctx context.Context, b bench) (results []result, err error) {
	const rounds, rate = 3, 10_000
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	err = withPlatform(ctx, b, func(p *platform) error {
		l, err := newAnalystLoad(ctx, p)
		if err != nil {
			return err
		}
		load, err := p.submit(ctx, noop(fmt.Sprintf("%s -emit %d -for 1h", self, rate)))
		if err != nil {
			return err
		}
		var with, without, took []float64
		for round := range rounds {
			delays, _, err := l.round(ctx, round, false)
			if err != nil {
				return err
			}
			without = append(without, delays...)
			delays, seconds, err := l.round(ctx, round, true)
			if err != nil {
				return err
			}
			with, took = append(with, delays...), append(took, seconds)
		}
		results = decideBesideSamples(took, with, without)
		_, err = p.api.CancelRun(ctx, &baiv1.CancelRunRequest{Run: load})
		return err
	}, "--slots", "8")
	return results, err
}

// analystLoad runs tasks whose series have long histories.
type analystLoad struct {
	*platform

	alarms baiv1.AlarmServiceClient
	point  store.RunPoints // of a run like those that are measured
	random *rand.Rand
}

// newAnalystLoad stores the histories of all tasks on a platform. They are made of the points of one run of it, so that the machine is the
// same.
func newAnalystLoad(ctx context.Context, p *platform) (l *analystLoad, err error) {
	s, err := sqlite.Open(ctx, filepath.Join(p.dir, "store.db"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }() // the platform has the file
	l = &analystLoad{platform: p, alarms: baiv1.NewAlarmServiceClient(p.conn), random: rand.New(rand.NewPCG(20240607, 1))}
	run, err := l.start(ctx, "probe", "done", false)
	if err != nil {
		return nil, err
	}
	if err := p.awaitComplete(ctx, run); err != nil {
		return nil, err
	}
	for len(l.point.Points) == 0 {
		all, err := s.RunPoints(ctx, []string{run}, []string{"rate"})
		if err != nil {
			return nil, err
		}
		if len(all) > 0 {
			l.point = all[0]
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
	if len(l.point.Points) != analystSeries {
		return nil, fmt.Errorf("the run has %d series, want %d", len(l.point.Points), analystSeries)
	}
	begin := time.Now().Add(-analystPoints * time.Hour)
	for n := range analystTasks * analystPoints {
		if err := s.PutPoints(ctx,
			l.history(taskName(n%analystTasks, true), n, begin.Add(time.Duration(n/analystTasks)*time.Hour))); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// taskName returns the name of a task with or without alarms.
func taskName(n int, alarms bool) string { return fmt.Sprintf("task%02d-%t", n, alarms) }

// history returns the points of a run of the past.
func (l *analystLoad) history(task string, n int, at time.Time) store.RunPoints {
	p := l.point
	p.Run, p.Task, p.Time, p.Points = fmt.Sprintf("%s-%06d", task, n), task, at, nil
	for _, s := range l.point.Points {
		v := store.Float(100 + l.random.NormFloat64())
		s.Min, s.Max, s.Median, s.P90, s.P95, s.P99, s.Mean, s.First, s.Last = v, v, v, v, v, v, v, v, v
		p.Points = append(p.Points, s)
	}
	return p
}

// start submits a run of a task that emits a value in each series, and one of a metric that says that the run was analysed.
func (l *analystLoad) start(ctx context.Context, task, done string, alarms bool) (run string, err error) {
	var values strings.Builder
	for n := range analystSeries {
		fmt.Fprintf(&values, "{\"rate\": %.4f, \"@labels\": {\"n\": \"%d\"}}\n", 100+l.random.NormFloat64(), n)
	}
	fmt.Fprintf(&values, "{%q: 1}\n", done)
	file := filepath.Join(filepath.Dir(l.dir), task+"-"+done)
	if err := os.WriteFile(file, []byte(values.String()), 0o600); err != nil {
		return "", err
	}
	const metric = "[[output.metrics]]\nname = %q\nunits = \"B/s\"\ndirection = \"higher\"\n"
	text := noop(fmt.Sprintf("#!/bin/sh\ncat %s >> \"$BENCHMARK_AI_FILE\"\n", file)) +
		fmt.Sprintf("[info.labels]\ntask_name = %q\n[output]\n"+metric+metric, task, "rate", done)
	if alarms {
		text += fmt.Sprintf("[[alarms]]\nmetric = \"rate\"\nwhen = \"regression\"\nmin_change = \"2%%\"\n[[alarms]]\nmetric = %q\nabove = 0\nfor = 1\n", done)
	}
	return l.submit(ctx, text)
}

// round runs each task once, and returns how many ms after the end of each run its summary was there, and with alarms how many s it took
// until all runs were analysed.
func (l *analystLoad) round(ctx context.Context, round int, alarms bool) (delays []float64, seconds float64, err error) {
	begin := time.Now()
	var all errgroup.Group
	all.SetLimit(4)
	delays = make([]float64, analystTasks)
	last := make([]string, analystTasks)
	for n := range analystTasks {
		task := taskName(n, alarms)
		last[n] = l.lastMetric(task, round)
		run, err := l.start(ctx, task, last[n], alarms)
		if err != nil {
			return nil, 0, err
		}
		all.Go(func() (err error) {
			delays[n], err = l.summaryDelay(ctx, run)
			return err
		})
	}
	if err := all.Wait(); err != nil || !alarms {
		return delays, 0, err
	}
	for n, metric := range last {
		if err := l.awaitIncident(ctx, taskName(n, alarms), metric); err != nil {
			return nil, 0, err
		}
	}
	return delays, time.Since(begin).Seconds(), nil
}

// lastMetric returns the name of a metric whose series an analyst looks at after all others of a task.
func (l *analystLoad) lastMetric(task string, round int) string {
	p, last := l.point.PointRun, ""
	p.Task = task
	for _, s := range l.point.Points {
		last = max(last, p.Key(s).ID())
	}
	for n := 0; ; n++ {
		name := fmt.Sprintf("done%d_%d", round, n)
		if p.Key(store.Summary{Metric: name, Unit: l.point.Points[0].Unit}).ID() > last {
			return name
		}
	}
}

// summaryDelay returns how many ms after its end a run has a complete summary.
func (l *analystLoad) summaryDelay(ctx context.Context, run string) (float64, error) {
	if err := l.awaitEnd(ctx, run); err != nil {
		return 0, err
	}
	begin := time.Now()
	results := baiv1.NewResultServiceClient(l.conn)
	for {
		r, err := results.GetSummaries(ctx, &baiv1.GetSummariesRequest{Run: run})
		if err != nil || r.GetComplete() {
			return ms(time.Since(begin)), err
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// awaitIncident waits until a task has an incident of a metric.
func (l *analystLoad) awaitIncident(ctx context.Context, task, metric string) error {
	for {
		r, err := l.alarms.ListIncidents(ctx, &baiv1.ListIncidentsRequest{Task: task, Metric: metric})
		if err != nil || len(r.GetIncidents()) > 0 {
			return err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
