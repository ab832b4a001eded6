// Command bench measures the platform against its bars, each next to its reference, in
// one set of processes on one machine. It prints each result in the form that benchstat
// reads, then a table, and writes the table as JSON. It fails if a bar was missed. A bar
// that cannot be measured on this machine is reported as not measured, never as reached.
//
// It needs the programs in the folder of -bin. Started as "bench -emit" or "bench -work"
// it is the benchmark that some of its measurements run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	bin := flag.String("bin", "../bin", "`folder` of the programs")
	out := flag.String("out", "", "`file` for the results as JSON")
	only := flag.String("only", "", "measure only what has this `word` in its name")
	rate := flag.Int("emit", 0, "emit so many samples a second, whose values are the time, for as long as -for")
	length := flag.Duration("for", 10*time.Second, "how long to emit")
	lines := flag.Int("lines", 0, "with -emit: print so many lines a second beside it, a tenth of them with a loss")
	name := flag.String("work", "", "do the `work` of this name, and print how long it took")
	amount := flag.Int("amount", 1, "with -work: how much of it")
	span := flag.Duration("observe", 0,
		"instead of the measurements, compare benchmarks with the platform and without it, so long for each")
	on := flag.String("on", "local", "with -observe: `places`, of local and bed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := func() error {
		if *rate > 0 {
			go write(os.Stdout, *lines)
			return emit(os.Stdout, os.Getenv("BENCHMARK_AI_FILE"), *rate, *length)
		}
		if *name != "" {
			return perform(os.Stdout, *name, *amount)
		}
		b := bench{bin: *bin, only: *only, out: os.Stdout}
		if *span > 0 {
			return observe(ctx, b, *on, *span, *out)
		}
		return run(ctx, b, *out)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run of all measurements.
type bench struct {
	bin, only string
	out       io.Writer
}

// measurement takes some related numbers.
type measurement struct {
	name string
	take func(context.Context, bench) ([]result, error)
}

func measurements() []measurement {
	return []measurement{
		{"validate", validate},
		{"expand", expand},
		{"start", submitToStart},
		{"idle", idle},
		{"runs", runsPerSecond},
		{"sets", sets},
		{"results", setResults},
		{"simulated", simulatedSet},
		{"job", submitToJob},
		{"tax", launchTax},
		{"latency", emitToVisible},
		{"highest", highestRate},
		{"samples", samplesEndToEnd},
		{"extraction", extraction},
		{"parsing", parsing},
		{"detectors", detectors},
		{"analyst", analysed},
		{"analyst-beside", analysedBesideSamples},
		{"sidecar", sidecar},
		{"emission", emission},
		{"points", pointsPage},
		{"index", indexed},
	}
}

func run(ctx context.Context, b bench, file string) error {
	fmt.Fprintf(b.out, "goos: %s\ngoarch: %s\npkg: github.com/benchmark-ai/bai\n", runtime.GOOS, runtime.GOARCH)
	var all []result
	for _, m := range measurements() {
		if !strings.Contains(m.name, b.only) {
			continue
		}
		results, err := m.take(ctx, b)
		if err != nil {
			return fmt.Errorf("measure %s: %w", m.name, err)
		}
		for _, r := range results {
			if r.Measured {
				fmt.Fprintf(b.out, "Benchmark%s 1 %.6g %s\n", r.Name, r.Value, r.Unit)
			}
		}
		all = append(all, results...)
	}
	if err := errors.Join(table(b.out, all), writeJSON(file, all)); err != nil {
		return err
	}
	return missed(all)
}

func table(out io.Writer, all []result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nNAME\tVALUE\tUNIT\tBAR\tREACHED\tAGAINST\n")
	for _, r := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.number(), r.Unit, r.Bar, r.state(), r.Against)
	}
	return w.Flush()
}
