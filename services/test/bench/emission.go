package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// clientLib is where the client libraries lie, from the folder of the services.
const clientLib = "../client-lib"

// emission measures the cost of a call of the client libraries for the benchmark, with
// its writer's work. It runs the benchmarks of the libraries' own module.
func emission(ctx context.Context, _ bench) (results []result, err error) {
	dir, err := os.MkdirTemp("", "bai-bench-emit-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "emit.test")
	if _, err := printed(ctx, clientLib, "go", "test", "-c", "-o", program, "./emit"); err != nil {
		return nil, err
	}
	const calls = 3_000_000
	cmd := exec.CommandContext(ctx, program, "-test.run", "NONE", "-test.bench", "BenchmarkValue/a_value",
		"-test.benchtime", strconv.Itoa(calls)+"x")
	cmd.Dir = filepath.Join(clientLib, "emit")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("measure emit: %w: %s", err, out)
	}
	wall, allocs, err := smallest(string(out), `BenchmarkValue/a_value\S*\s+\d+\s+([\d.]+) ns/op\s+(?:[\d.]+ B/op\s+)([\d.]+) allocs/op`)
	if err != nil {
		return nil, err
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	results = []result{
		atMost("EmitGo", float64(used.Nanoseconds())/calls, "ns", 1000,
			fmt.Sprintf("of the processor, a call for one value and the writer beside it; %.0f ns by the clock", wall)),
		atMost("EmitGoAllocations", allocs, "allocs", 0, "a call for one value"),
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return append(results, reported("EmitPython", -1, "us", "there is no python3 here: not measured")), nil
	}
	text, err := printed(ctx, clientLib, python, "python/bench/bench_emit.py")
	if err != nil {
		return nil, err
	}
	wall, cpu, err := smallest(text, `file: one value: ([\d.]+) \S+ a call \(best [\d.]+, ([\d.]+) of the processor\)`)
	return append(results, atMost("EmitPython", cpu, "us", 15,
		fmt.Sprintf("of the processor, a call for one value; %.1f us by the clock", wall))), err
}

// printed returns a command's output.
func printed(ctx context.Context, dir, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s in %s: %w: %s%s", name, dir, err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// smallest returns of the matches of a pattern with two numbers those of the one
// with the smallest first.
func smallest(text, pattern string) (a, b float64, err error) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		x, errX := strconv.ParseFloat(m[1], 64)
		y, errY := strconv.ParseFloat(m[2], 64)
		if err := errors.Join(errX, errY); err != nil {
			return 0, 0, err
		}
		if a == 0 || x < a {
			a, b = x, y
		}
	}
	if a == 0 {
		return 0, 0, fmt.Errorf("no result in %q", text)
	}
	return a, b, nil
}

// sidecar measures the processor time of the collector and the entrypoint while a
// benchmark writes 1,000 lines, 100 of which match a metric's pattern, and emits 100
// samples a second.
func sidecar(ctx context.Context, b bench) ([]result, error) {
	const warm, span = 3 * time.Second, 15 * time.Second
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var used float64
	err = withPlatform(ctx, b, func(p *platform) error {
		text := noop(fmt.Sprintf("%s -emit 100 -lines 1000 -for %s", self, warm+span+5*time.Second)) +
			"[output]\n[[output.metrics]]\nname = \"loss\"\nunits = \"1\"\npattern = 'loss=(\\S+)'\n"
		run, err := p.submit(ctx, text)
		if err != nil {
			return err
		}
		pid, err := p.collector(ctx)
		if err != nil {
			return err
		}
		if err := pause(ctx, warm); err != nil {
			return err
		}
		before, err := usageOf(pid)
		if err != nil {
			return err
		}
		if err := pause(ctx, span); err != nil {
			return err
		}
		after, err := usageOf(pid)
		used = 100 * float64(after.cpu-before.cpu) / float64(span)
		return errors.Join(err, p.awaitComplete(ctx, run))
	})
	return []result{atMost("SidecarCPU", used, "%", 2, "one core, at 1,000 lines and 100 samples a second")}, err
}

// collector waits for the collector of the one pod of a platform, and returns its
// process.
func (p *platform) collector(ctx context.Context) (int, error) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		found, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return 0, err
		}
		for _, path := range found {
			line, _ := os.ReadFile(path) // it may be gone
			mine, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
			if !strings.HasSuffix(string(line), "\x00collect\x00") || !strings.Contains(string(mine), p.dir) &&
				!p.ownsProcess(filepath.Dir(path)) {
				continue
			}
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, errors.New("there is no collector")
}

// ownsProcess reports whether the process of a folder in /proc was started, by
// whomever, for this platform: whether a process above it names its folder.
func (p *platform) ownsProcess(dir string) bool {
	for range 10 {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			return false
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		dir = filepath.Join("/proc", fields[1])
		if line, _ := os.ReadFile(filepath.Join(dir, "cmdline")); strings.Contains(string(line), p.dir) {
			return true
		}
	}
	return false
}
