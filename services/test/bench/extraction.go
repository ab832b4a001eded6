package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// patterns are the stated set: as descriptors have them, with a literal each.
func patterns() []pod.Metric {
	return []pod.Metric{
		{Name: "loss", Pattern: `train_loss=([-+]?[\d.]+(?:e[-+]?\d+)?)`},
		{Name: "accuracy", Pattern: `accuracy=(\S+)`},
		{Name: "speed", Pattern: `Speed: (?P<value>[\d.]+) samples/sec`},
		{Name: "epoch", Pattern: `Epoch\[(\d+)\]`},
		{Name: "elapsed", Pattern: `elapsed (?P<value>[\d.]+) ?(?P<unit>ms|s)`, Unit: "ms"},
		{Name: "throughput", Pattern: `throughput\s*[:=]\s*([\d.]+)`},
		{Name: "p99", Pattern: `p99=([\d.]+)us`},
		{Name: "bandwidth", Pattern: `bandwidth (\S+) MB/s`},
	}
}

// alternatives are patterns without a text that every match has, as people write them for output of several forms.
func alternatives() []pod.Metric {
	return []pod.Metric{
		{Name: "loss", Pattern: `(?:loss|Loss|LOSS)\s*[:=]\s*([\d.]+)`},
		{Name: "columns", Pattern: `^\s*(?P<step>\d+)\s+([\d.]+)\s*$`},
		{Name: "elapsed", Pattern: `(?:elapsed|took)\s+([\d.]+)\s*(?P<unit>ms|us|s)\b`},
		{Name: "pair", Pattern: `^(\d+)[,;]([\d.]+)$`},
		{Name: "rate", Pattern: `(?:throughput|rate)\s+([\d.]+)`},
		{Name: "images", Pattern: `\b(\d+) (?:img|images)/s`},
		{Name: "accuracy", Pattern: `(?:acc|top1)[@:=]([\d.]+)`},
		{Name: "percentile", Pattern: `[pP]\d{2}\s*[:=]\s*([\d.]+)`},
	}
}

// extraction measures how much of a log goes through the patterns a second of
// one processor, by the processor's own clock.
func extraction(context.Context, bench) ([]result, error) {
	hits := []string{
		"2026-01-02 03:04:05,678 INFO worker-3 step 1200 of 90000 train_loss=2.3456e-01 lr=0.001 grad_norm=1.25",
		"2026-01-02 03:04:05,678 INFO worker-3 validation after step 1200 of 90000: accuracy=0.9534 top5=0.991",
		"INFO:root:Epoch[12] Batch [120] Speed: 1234.56 samples/sec accuracy of the batch is not shown here at all",
		"request 123456 of 9999999 to http://127.0.0.1:8080/predict took: elapsed 12.5 ms, status 200, 512 bytes",
	}
	misses := make([]string, len(hits))
	for i, h := range hits {
		misses[i] = strings.NewReplacer("=", " ", ":", " ", "[", " ", "elapsed", "needed").Replace(h)
	}
	bare := patterns()
	for i := range bare {
		bare[i].Pattern = "(?:" + bare[i].Pattern + "|@@@)"
	}
	var rates [4]float64
	var errs [4]error
	rates[0], errs[0] = extractionRate(patterns(), misses, 0)
	rates[1], errs[1] = extractionRate(patterns(), hits, 5) // one line has two
	rates[2], errs[2] = extractionRate(bare, misses, 0)
	rates[3], errs[3] = extractionRate(alternatives(), misses, 0)
	const set = "8 patterns, one core"
	return []result{
		atLeast("ExtractMisses", rates[0], "MB/s", 100, set+", lines that do not match"),
		atLeast("ExtractHits", rates[1], "MB/s", 20, set+", lines that all match"),
		atLeast("ExtractMissesWithoutLiterals", rates[2], "MB/s", 50, set+" without a literal, lines that do not match"),
		atLeast("ExtractMissesOfAlternatives", rates[3], "MB/s", 50, set+" of alternatives and numbers, lines that do not match"),
	}, errors.Join(errs[:]...)
}

// extractionRate returns the MB of lines that patterns take a second of a processor.
// Going through all lines once finds so many samples.
func extractionRate(patterns []pod.Metric, lines []string, found int) (float64, error) {
	p, err := extract.Compile(patterns)
	if err != nil {
		return 0, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var samples []event.Sample
	size, best := 0, 0.0
	for _, l := range lines {
		size += len(l) + 1
	}
	for range 5 {
		begin, rounds := processor(), 0
		for processor()-begin < 200*time.Millisecond {
			for range 100 {
				samples = samples[:0]
				for _, l := range lines {
					samples, _ = p.Append(samples, extract.Line{Text: l})
				}
			}
			rounds += 100
		}
		if len(samples) != found {
			return 0, fmt.Errorf("%d samples found, want %d", len(samples), found)
		}
		best = max(best, float64(rounds*size)/1e6/(processor()-begin).Seconds())
	}
	return best, nil
}

// processor returns how much of a processor this thread has used.
func processor() time.Duration {
	var u syscall.Rusage
	const thread = 1 // RUSAGE_THREAD
	if syscall.Getrusage(thread, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
