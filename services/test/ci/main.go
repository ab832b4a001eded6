//go:build linux

// Command ci runs the checks that a change must pass, and shows failures and their
// reasons on one screen.
//
//	ci check [-long] [-only STAGE,…]      every stage: format, generated files, lint, build, tests, suites on real servers
//	ci real [-long] [-only SUITE,…]       the suites on real servers alone
//	ci flaky [-n 10] [-run RE] [-only …]  the suites repeatedly, also on a busy machine and on one core; counts failures
//	ci sweep                              removes leftovers of killed checks from this machine
//
// The whole logs are in bin/ci. It runs in the folder of the services' module.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/benchmark-ai/bai/services/test/ci/scratch"
	"github.com/benchmark-ai/bai/services/test/ci/stage"
	"github.com/benchmark-ai/bai/services/test/testbed/kubecluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	err := dispatch(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ci:", err)
		os.Exit(1)
	}
}

// options are those of every verb.
type options struct {
	out   io.Writer // for people
	long  bool
	only  []string // stages or suites; none means all
	times int
	run   string // pattern of tests, for flaky
}

func dispatch(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("usage: ci check | real | flaky | sweep")
	}
	o := options{out: out}
	flags := flag.NewFlagSet("ci "+args[0], flag.ContinueOnError)
	flags.BoolVar(&o.long, "long", false, "the long form of the suites")
	only := flags.String("only", "", "only these stages or suites, with commas between `names`")
	flags.IntVar(&o.times, "n", 10, "how many `times`, for flaky")
	flags.StringVar(&o.run, "run", "", "only tests that match the `pattern`, for flaky")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	switch args[0] {
	case "check":
		return withCheck(ctx, out, func(ctx context.Context, c *check) error { return c.runStages(ctx, c.everyStage(o), o) })
	case "real":
		return withCheck(ctx, out, func(ctx context.Context, c *check) error { return c.runStages(ctx, c.realStages(o), o) })
	case "flaky":
		return withCheck(ctx, out, func(ctx context.Context, c *check) error { return c.flaky(ctx, o) })
	case "sweep":
		return sweep(ctx, out)
	}
	return fmt.Errorf("unknown verb %q: want check, real, flaky or sweep", args[0])
}

// withCheck gives a check its folder, and clears the machine before and after it.
func withCheck(ctx context.Context, out io.Writer, do func(context.Context, *check) error) (err error) {
	if err := sweep(ctx, out); err != nil {
		return err
	}
	folder, err := scratch.New(scratch.Root())
	if err != nil {
		return err
	}
	c, err := newCheck(folder)
	if err == nil {
		err = do(ctx, c)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	_, errClear := folder.Clear(ctx) // the last stage has reported leftovers
	return errors.Join(err, errClear, kubecluster.SweepAbandoned(ctx))
}

// sweep removes the leftovers of killed checks, and lists them.
func sweep(ctx context.Context, out io.Writer) error {
	found, err := scratch.Sweep(ctx, scratch.Root())
	if len(found) > 0 {
		fmt.Fprintf(out, "cleared after a check that was killed:\n  %s\n", strings.Join(found, "\n  "))
	}
	clusters := kubecluster.Abandoned()
	if len(clusters) > 0 {
		fmt.Fprintf(out, "clearing after clusters whose keepers were killed: %s\n", strings.Join(clusters, ", "))
	}
	return errors.Join(err, kubecluster.SweepAbandoned(ctx))
}

// runStages runs stages and prints the report, which is kept beside the logs.
func (c *check) runStages(ctx context.Context, stages []stage.Stage, o options) error {
	stages, err := selectStages(stages, o.only)
	if err != nil {
		return err
	}
	began := time.Now()
	outcomes := stage.Run(ctx, stages, o.out)
	text := stage.Report(outcomes, time.Since(began), c.logs)
	fmt.Fprint(o.out, text)
	if err := os.WriteFile(filepath.Join(c.logs, "report.txt"), []byte(text), 0o600); err != nil {
		return err
	}
	if !stage.Ok(outcomes) {
		return errors.New("the check failed")
	}
	return nil
}

// selectStages are the stages of the given names, without conditions on those that are
// not among them.
func selectStages(all []stage.Stage, names []string) ([]stage.Stage, error) {
	if len(names) == 0 {
		return all, nil
	}
	want, some := map[string]bool{}, []stage.Stage(nil)
	for _, name := range names {
		want[name] = true
	}
	for _, s := range all {
		if !want[s.Name] && !s.Always {
			continue
		}
		delete(want, s.Name)
		s.After = nil
		some = append(some, s)
	}
	for name := range want {
		return nil, fmt.Errorf("there is no stage %q", name)
	}
	return some, nil
}
