package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
)

// validate measures a descriptor of 1,000 lines with 20 faults.
func validate(context.Context, bench) ([]result, error) {
	const faults, rounds = 20, 50
	var b strings.Builder
	b.WriteString("spec_version = \"0.1.0\"\n[info]\ndescription = \"many variables\"\n[hardware]\ninstance_type = \"t3.small\"\n[env]\ndocker_image = \"x\"\n[env.vars]\n")
	for i := range 1000 - 8 {
		value := `"v"`
		if i%50 == 0 && i/50 < faults {
			value = "1"
		}
		fmt.Fprintf(&b, "V%d = %s\n", i, value)
	}
	text := []byte(b.String())
	var times []float64
	for range rounds {
		begin := time.Now()
		_, found := parser.Parse("bench.toml", text)
		times = append(times, ms(time.Since(begin)))
		if len(found) != faults {
			return nil, fmt.Errorf("%d faults found, want %d: %v", len(found), faults, found)
		}
	}
	return []result{atMost("Validate", median(times), "ms", 10, "20 of 20 faults in 1,000 lines found")}, nil
}

// expand measures a sweep of 10,000 cells: their texts, names and IDs, and the order of 50,000
// runs.
func expand(context.Context, bench) ([]result, error) {
	const cells, rounds = 10_000, 20
	values := make([]string, cells/100)
	for i := range values {
		values[i] = strconv.Itoa(i + 1)
	}
	list := strings.Join(values, ", ")
	text := "spec_version = \"1.0\"\n[info]\ndescription = \"{{size}}\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"x\"\n" +
		"[sweep]\nrepetitions = 5\norder = \"random\"\n[sweep.product]\nsize = [" + list + "]\n\"hardware.cpus\" = [" + list + "]\n"
	plan, faults := sweep.Read(parser.Parser{}, "bench.toml", []byte(text))
	if plan == nil || plan.Cells() != cells {
		return nil, fmt.Errorf("read the sweep: %w", faults.Err())
	}
	var times []float64
	for range rounds {
		begin := time.Now()
		for i := range plan.Cells() {
			plan.Descriptor(i)
			plan.Cell(i)
		}
		for i := range plan.Runs() {
			plan.Run(i)
		}
		times = append(times, ms(time.Since(begin)))
	}
	return []result{atMost("Expand", median(times), "ms", 100, "a sweep of 10,000 cells and 50,000 runs")}, nil
}

// submitToStart measures from the call of SubmitRun to the first action of the
// benchmark's process, which is to print the time.
func submitToStart(ctx context.Context, b bench) ([]result, error) {
	const rounds = 50
	var ours, bare []float64
	err := withPlatform(ctx, b, func(p *platform) error {
		for range rounds {
			took, err := p.measureStart(ctx)
			if err != nil {
				return err
			}
			ours = append(ours, took)
			if took, err = bareStart(ctx); err != nil {
				return err
			}
			bare = append(bare, took)
		}
		return nil
	})
	return []result{
		atMost("SubmitToStart", median(ours), "ms", 150, fmt.Sprintf("the same process started by hand: %.2f ms", median(bare))),
		reported("SubmitToStartP99", percentile(ours, 0.99), "ms", fmt.Sprintf("by hand: %.2f ms", percentile(bare, 0.99))),
	}, err
}

// measureStart returns how many ms it takes a benchmark's process to begin.
func (p *platform) measureStart(ctx context.Context) (float64, error) {
	begin := time.Now()
	run, err := p.submit(ctx, noop("date +%s%N"))
	if err != nil {
		return 0, err
	}
	if err := p.awaitComplete(ctx, run); err != nil {
		return 0, err
	}
	lines, err := p.lines(ctx, run)
	if err != nil {
		return 0, err
	}
	return since(begin, strings.Join(lines, ""))
}

// bareStart is the start time of a process without the platform, for comparison with
// start.
func bareStart(ctx context.Context) (float64, error) {
	begin := time.Now()
	out, err := exec.CommandContext(ctx, "date", "+%s%N").Output()
	if err != nil {
		return 0, err
	}
	return since(begin, string(out))
}

// since returns the ms from begin to a time printed in ns.
func since(begin time.Time, printed string) (float64, error) {
	ns, err := strconv.ParseInt(strings.TrimSpace(printed), 10, 64)
	return float64(ns-begin.UnixNano()) / 1e6, err
}

// idle measures a platform that does nothing, new and after 1,000 runs.
func idle(ctx context.Context, b bench) ([]result, error) {
	var results []result
	err := withPlatform(ctx, b, func(p *platform) error {
		fresh, err := p.measureIdle(ctx, "")
		if err != nil {
			return err
		}
		if err := p.submitMany(ctx, 1000); err != nil {
			return err
		}
		used, err := p.measureIdle(ctx, "After1000Runs")
		results = slices.Concat(fresh, used)
		return err
	}, "--slots", "16")
	return results, err
}

// measureIdle measures 10 idle seconds.
func (p *platform) measureIdle(ctx context.Context, when string) ([]result, error) {
	const span = 10 * time.Second
	if err := pause(ctx, 15*time.Second); err != nil { // time for the last runs' clean-up and summaries
		return nil, err
	}
	before, err := p.usage()
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, span); err != nil {
		return nil, err
	}
	after, err := p.usage()
	percent := 100 * float64(after.cpu-before.cpu) / float64(span)
	return []result{
		atMost("IdleMemory"+when, after.rss, "MiB", 150, "-"),
		atMost("IdleCPU"+when, percent, "%", 2, "one core"),
	}, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// submitMany runs n no-op runs, submitted as fast as 8 clients can.
func (p *platform) submitMany(ctx context.Context, n int) error {
	runs := make([]string, n)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i := range n {
		g.Go(func() (err error) {
			runs[i], err = p.submit(gctx, noop("true"))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, run := range runs {
		if err := p.awaitEnd(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

// runsPerSecond measures no-op runs from submit to the terminal state, with few
// and with many in the queue.
func runsPerSecond(ctx context.Context, b bench) ([]result, error) {
	rates := make(map[int]float64)
	for _, n := range []int{10, 1000} {
		err := withPlatform(ctx, b, func(p *platform) error {
			if err := p.submitMany(ctx, 10); err != nil { // warm
				return err
			}
			begin := time.Now()
			if err := p.submitMany(ctx, n); err != nil {
				return err
			}
			rates[n] = float64(n) / time.Since(begin).Seconds()
			return nil
		}, "--slots", "16")
		if err != nil {
			return nil, err
		}
	}
	bare, err := bareRuns(ctx, b)
	return []result{
		atLeast("RunsPerSecond", rates[1000], "runs/s", 40, fmt.Sprintf("sequential fork and exec of the same command: %.0f/s", bare)),
		atLeast("RunsPerSecondFlat", rates[1000]/rates[10], "ratio", 0.8, fmt.Sprintf("%.0f runs/s with 10 in the queue", rates[10])),
	}, err
}

// bareRuns returns how often a second the no-op command can be run at all.
func bareRuns(ctx context.Context, _ bench) (float64, error) {
	const n = 200
	begin := time.Now()
	for range n {
		if err := exec.CommandContext(ctx, "true").Run(); err != nil {
			return 0, err
		}
	}
	return n / time.Since(begin).Seconds(), nil
}

// sentLine is the last line of emit's output.
const sentLine = "emitted %d samples"

// emit appends samples to the metrics file at a steady rate; each value is the
// time at which it was emitted, in ns. In the end it prints how many these were.
func emit(to io.Writer, file string, rate int, span time.Duration) (err error) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	const step = time.Millisecond
	var line []byte
	sent, begin := 0, time.Now()
	for now := begin; now.Sub(begin) < span; now = time.Now() {
		for due := int(now.Sub(begin).Seconds() * float64(rate)); sent < due; sent++ {
			line = fmt.Appendf(line[:0], "{\"t\": %d}\n", time.Now().UnixNano())
			if _, err := f.Write(line); err != nil {
				return err
			}
		}
		time.Sleep(step)
	}
	_, err = fmt.Fprintf(to, sentLine+"\n", sent)
	return err
}

// write prints lines at a steady rate, for ever. Every tenth has a loss.
func write(to io.Writer, rate int) {
	if rate <= 0 {
		return
	}
	const step = 10 * time.Millisecond
	sent, begin := 0, time.Now()
	for ticks := time.NewTicker(step); ; <-ticks.C {
		for due := int(time.Since(begin).Seconds() * float64(rate)); sent < due; sent++ {
			text := "INFO worker-3 step %d of 90000 lr=0.001 grad_norm=1.25 of the batch that is not shown here\n"
			if sent%10 == 0 {
				text = "INFO worker-3 step %d of 90000 loss=0.2534 after the batch that is not shown here at all\n"
			}
			_, _ = fmt.Fprintf(to, text, sent) // whoever reads is gone: the run ends
		}
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(v []float64) float64 { return percentile(v, 0.5) }

// percentile returns the value at rank p of v, by the nearest rank.
func percentile(v []float64, p float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return s[min(len(s)-1, int(p*float64(len(s))))]
}
