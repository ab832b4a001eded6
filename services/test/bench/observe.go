package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// side is one way to perform work. It returns the time that the work took, in
// seconds, as the work itself says.
type side func(ctx context.Context, w work, amount int) (float64, error)

// observed is the result of a case. Its JSON is an entry of observe.json.
type observed struct {
	Case string `json:"case"`
	comparison
	Seconds float64 `json:"seconds"` // median of the times without the platform
	Busy    int     `json:"busy"`    // times before which the machine did not come to rest
	Verdict string  `json:"verdict"`
	Reason  string  `json:"reason"`
}

// observer takes times in pairs.
type observer struct {
	bench

	span time.Duration // for each case
	busy int           // times before which the machine did not come to rest
}

// observe compares benchmarks without the platform and with it, on the clusters of on
// ("local", "bed"), each for span, and decides for each whether the platform changes the
// measurement. It fails if one is changed.
func observe(ctx context.Context, b bench, on string, span time.Duration, file string) error {
	var all []observed
	o := &observer{bench: b, span: span}
	for place := range strings.SplitSeq(on, ",") {
		var results []observed
		var err error
		switch place {
		case "local":
			results, err = o.onLocal(ctx)
		case "bed":
			results, err = o.onKubernetes(ctx)
		default:
			err = errors.New("want local, bed, or both with a comma")
		}
		if err != nil {
			return fmt.Errorf("observe %s: %w", place, err)
		}
		all = append(all, results...)
	}
	if err := errors.Join(verdicts(b.out, all), writeJSON(file, all)); err != nil {
		return err
	}
	return changed(all)
}

// changed names the cases that the platform changes.
func changed(all []observed) error {
	var names []string
	for _, r := range all {
		if r.Verdict == failed {
			names = append(names, r.Case+": "+r.Reason)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("the platform changes what it measures: %s", strings.Join(names, "; "))
}

// onLocal observes on this machine. Without the platform means that none runs.
func (o *observer) onLocal(ctx context.Context) ([]observed, error) {
	results, err := o.cases(ctx, "local", bare, o.local)
	if err != nil {
		return nil, err
	}
	same, err := o.observeWork(ctx, "local, cpu, no platform on either side", works()[0], bare, bare)
	return append(results, same...), err
}

// cases observes all works.
func (o *observer) cases(ctx context.Context, place string, without, with side) ([]observed, error) {
	var all []observed
	for _, w := range works() {
		results, err := o.observeWork(ctx, place+", "+w.name, w, without, with)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		all = append(all, results...)
	}
	return all, nil
}

// observeWork observes one work, if it is selected. The number of pairs is fixed after a
// first pair that does not count: a number that depended on the results would make the
// interval too narrow.
func (o *observer) observeWork(ctx context.Context, name string, w work, without, with side) ([]observed, error) {
	if !strings.Contains(name, o.only) {
		return nil, nil
	}
	o.busy = 0
	amount, err := o.amount(ctx, w, without)
	if err != nil {
		return nil, err
	}
	sides := [2]side{without, with}
	begin := time.Now()
	if _, err := o.pair(ctx, w, amount, sides); err != nil {
		return nil, err
	}
	pairs := make([]pair, min(max(int(o.span/time.Since(begin)), 6), 200))
	for i := range pairs {
		if pairs[i], err = o.pair(ctx, w, amount, sides); err != nil {
			return nil, err
		}
	}
	r := observed{Case: name, comparison: compare(pairs, resamples, rand.IntN), Busy: o.busy}
	var times []float64
	for _, p := range pairs {
		times = append(times, p.without)
	}
	r.Seconds = median(times)
	r.Verdict, r.Reason = judge(r.comparison, w.limits)
	fmt.Fprintf(o.out, "BenchmarkObserved/%s %d %.5f with/without\n", strings.ReplaceAll(name, ", ", "/"), r.Pairs, r.Ratio)
	return []observed{r}, nil
}

// amount returns how much work takes about two seconds.
func (o *observer) amount(ctx context.Context, w work, on side) (int, error) {
	const wanted = 2.0
	amount := 1
	for {
		took, err := on(ctx, w, amount)
		if err != nil {
			return 0, err
		}
		if took > wanted/4 {
			return max(1, int(math.Round(float64(amount)*wanted/took))), nil
		}
		amount *= 4
	}
}

// pair takes both times, in an order that is drawn.
func (o *observer) pair(ctx context.Context, w work, amount int, sides [2]side) (pair, error) {
	var took [2]float64
	first := rand.IntN(2) //nolint:gosec // no secret
	for _, i := range []int{first, 1 - first} {
		if err := o.awaitIdle(ctx); err != nil {
			return pair{}, err
		}
		var err error
		if took[i], err = sides[i](ctx, w, amount); err != nil {
			return pair{}, err
		}
	}
	return pair{took[0], took[1]}, nil
}

// awaitIdle waits until the machine has little to do, for 20 s at most.
func (o *observer) awaitIdle(ctx context.Context) error {
	const step, little, calm = 100 * time.Millisecond, 0.04, 3
	for end, quiet := time.Now().Add(20*time.Second), 0; quiet < calm; {
		before, err := cpuTimes()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(step):
		}
		after, err := cpuTimes()
		if err != nil {
			return err
		}
		if quiet++; after.busy-before.busy > little*(after.all-before.all) {
			quiet = 0
		}
		if time.Now().After(end) {
			o.busy++
			return nil
		}
	}
	return nil
}

// cpu is the work of all processors since the boot, in ticks.
type cpu struct{ busy, all float64 }

// cpuTimes reads the first line of /proc/stat; see proc(5).
func cpuTimes() (cpu, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpu{}, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var c cpu
	for i, field := range strings.Fields(line)[1:] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return cpu{}, err
		}
		if c.all += n; i != 3 && i != 4 { // idle, iowait
			c.busy += n
		}
	}
	return c, nil
}

// bare performs work in a process of its own, whose output is read.
func bare(ctx context.Context, w work, amount int) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, "-work", w.name, "-amount", strconv.Itoa(amount)) //nolint:gosec // this program
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	text, err := io.ReadAll(out)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return 0, err
	}
	return tookIn(text)
}

var took = regexp.MustCompile(`took=([0-9.]+)`)

// tookIn finds the time in a work's output.
func tookIn(text []byte) (float64, error) {
	m := took.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("the work printed no time; its last words are %q", text[max(0, len(text)-200):])
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// local performs work as a run of a platform of its own, which collects the time
// and system metrics, as it does for everybody.
func (o *observer) local(ctx context.Context, w work, amount int) (seconds float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	return seconds, withPlatform(ctx, o.bench, func(p *platform) error {
		if err := o.awaitIdle(ctx); err != nil {
			return err
		}
		seconds, err = p.perform(ctx, noop(fmt.Sprintf("%s -work %s -amount %d", self, w.name, amount))+tookMetric)
		return err
	})
}

const tookMetric = `
[output]
[[output.metrics]]
name = "took"
pattern = 'took=([0-9.]+)'
units = "s"
`

// perform submits work, and returns the time that it took.
func (p *platform) perform(ctx context.Context, descriptor string) (float64, error) {
	run, err := p.submit(ctx, descriptor)
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
	return tookIn([]byte(strings.Join(lines, "\n")))
}

// verdicts prints the results as a table.
func verdicts(out io.Writer, all []observed) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nCASE\tPAIRS\tSECONDS\tRATIO\t95 % INTERVAL\tSPREAD\tVERDICT\tWHY\n")
	for _, r := range all {
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.4f\t%.4f to %.4f\t%.2f\t%s\t%s\n", r.Case, r.Pairs, r.Seconds, r.Ratio, r.Low, r.High,
			r.Spread, r.Verdict, r.Reason)
	}
	return w.Flush()
}

// writeJSON writes results into a file, if one is named.
func writeJSON(file string, results any) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}
