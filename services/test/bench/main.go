// Command bench measures the platform against its bars, each next to what it is
// compared to, in one set of processes on one machine. It prints each result in
// the form that benchstat reads, then a table, and writes the table as JSON. Then
// it fails if a bar was not reached.
//
// It needs the programs in the folder of -bin, and started as "bench -emit" it
// is the benchmark that some of its measurements run.
package main

import (
	"context"
	"encoding/json"
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
	span := flag.Duration("for", 10*time.Second, "how long to emit")
	lines := flag.Int("lines", 0, "with -emit: print so many lines a second beside it, a tenth of them with a loss")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := func() error {
		if *rate > 0 {
			go write(os.Stdout, *lines)
			return emit(os.Stdout, os.Getenv("BENCHMARK_AI_FILE"), *rate, *span)
		}
		return run(ctx, bench{bin: *bin, only: *only, out: os.Stdout}, *out)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// result is one measured number. Its JSON is what bench.json lists.
type result struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Bar     string  `json:"bar"`     // what is to be reached; empty where the number is only reported
	Reached bool    `json:"reached"` // true where there is no bar
	Against string  `json:"against"` // what it is compared to, and its number
}

// most and least make a result with a bar.
func most(name string, value float64, unit string, bar float64, against string) result {
	return result{name, value, unit, fmt.Sprintf("<= %g", bar), value <= bar, against}
}

func least(name string, value float64, unit string, bar float64, against string) result {
	return result{name, value, unit, fmt.Sprintf(">= %g", bar), value >= bar, against}
}

func reported(name string, value float64, unit, against string) result {
	return result{Name: name, Value: value, Unit: unit, Reached: true, Against: against}
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
		{"start", submitToStart},
		{"idle", idle},
		{"runs", runsPerSecond},
		{"job", submitToJob},
		{"latency", emitToVisible},
		{"highest", highestRate},
		{"samples", samplesEndToEnd},
		{"extraction", extraction},
		{"sidecar", sidecar},
		{"emission", emission},
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
			fmt.Fprintf(b.out, "Benchmark%s 1 %.6g %s\n", r.Name, r.Value, r.Unit)
		}
		all = append(all, results...)
	}
	if err := table(b.out, all); err != nil {
		return err
	}
	if file != "" {
		text, err := json.MarshalIndent(all, "", "  ")
		if err := errors.Join(err, os.WriteFile(file, append(text, '\n'), 0o600)); err != nil {
			return err
		}
	}
	return missed(all)
}

// missed names the bars that were not reached.
func missed(all []result) error {
	var names []string
	for _, r := range all {
		if !r.Reached {
			names = append(names, fmt.Sprintf("%s is %.4g %s, want %s", r.Name, r.Value, r.Unit, r.Bar))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("not reached: %s", strings.Join(names, "; "))
}

func table(out io.Writer, all []result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nNAME\tVALUE\tUNIT\tBAR\tREACHED\tAGAINST\n")
	for _, r := range all {
		reached := map[bool]string{true: "yes", false: "NO"}[r.Reached]
		if r.Bar == "" {
			reached = "-"
		}
		fmt.Fprintf(w, "%s\t%.4g\t%s\t%s\t%s\t%s\n", r.Name, r.Value, r.Unit, r.Bar, reached, r.Against)
	}
	return w.Flush()
}
