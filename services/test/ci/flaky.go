//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/benchmark-ai/bai/services/test/ci/flake"
	"github.com/benchmark-ai/bai/services/test/ci/gotest"
	"github.com/benchmark-ai/bai/services/test/ci/stage"
)

// flaky runs the suites repeatedly, in turn on the machine as it is, with one core kept
// busy, and with one core for each program, and reports how often each test failed.
// Servers begin once.
func (c *check) flaky(ctx context.Context, o options) error {
	plain := func(ctx context.Context) stage.Result { return c.plainTests(ctx, "-count=1", "-run="+o.run) }
	stages := append([]stage.Stage{
		{Name: "build", Lane: laneServers, Setup: true, Run: c.command("build", "make", "--silent", "build")},
		{Name: "make test", Lane: laneServers, Run: plain},
	}, c.realStages(o)...)
	p, err := planTurns(stages, o.only)
	if err != nil {
		return err
	}
	before, suites, after := p.before, p.suites, p.after
	for _, name := range p.excluded {
		fmt.Fprintf(o.out, "left out: %s, which boots clusters, of which there is one already: run it with SUITE='%s'\n", name, name)
	}
	if r := stage.Run(ctx, before, o.out); !stage.Ok(r) {
		fmt.Fprint(o.out, stage.Report(r, 0, c.logs))
		return errors.New("the servers did not begin")
	}
	var all flake.Record
	for n := range o.times {
		mode := flake.Modes()[n%len(flake.Modes())]
		fmt.Fprintf(o.out, "turn %d of %d, %s\n", n+1, o.times, mode)
		if err := c.takeTurn(ctx, o, turn{n + 1, mode}, suites, &all); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
	}
	r := stage.Run(context.WithoutCancel(ctx), after, o.out)
	text := all.Table()
	fmt.Fprint(o.out, text)
	if err := os.WriteFile(filepath.Join(c.logs, "flaky.txt"), []byte(text), 0o600); err != nil {
		return err
	}
	if all.Failed() || !stage.Ok(r) {
		return errors.New("not every turn passed")
	}
	return nil
}

// turn is one run of all suites.
type turn struct {
	number int
	mode   flake.Mode
}

// takeTurn runs the suites once, with logs of its own.
func (c *check) takeTurn(ctx context.Context, o options, t turn, suites []stage.Stage, all *flake.Record) error {
	c.turn = filepath.Join(c.logs, fmt.Sprintf("turn-%02d", t.number))
	if err := os.MkdirAll(c.turn, 0o750); err != nil {
		return err
	}
	defer func() { c.turn = c.logs }()
	end := c.enterMode(t.mode)
	defer end()
	var tests gotest.Report
	for _, outcome := range stage.Run(ctx, suites, o.out) {
		if err := outcome.Result.Err; err != nil {
			tests.Failures = append(tests.Failures, gotest.Failure{Package: outcome.Stage.Name, Why: []string{err.Error()}})
		}
		tests = tests.Add(outcome.Result.Tests)
	}
	all.Add(t.mode, tests)
	return nil
}

// enterMode has programs of the check run in a mode until end is called.
func (c *check) enterMode(mode flake.Mode) (end func()) {
	switch mode {
	case flake.OneCore:
		c.env = []string{"GOMAXPROCS=1"}
		return func() { c.env = nil }
	case flake.Busy:
		var stop atomic.Bool
		go keepBusy(&stop)
		return func() { stop.Store(true) }
	case flake.Idle:
	}
	return func() {}
}

// keepBusy computes on one core until it is to stop.
func keepBusy(stop *atomic.Bool) {
	for n := uint64(0); !stop.Load(); n++ {
		_ = n * n
	}
}
