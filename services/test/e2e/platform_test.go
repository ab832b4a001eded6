// Package e2e drives the real programs as a user would: bai standalone in a
// process of its own, baictl, and the API.
package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
	"github.com/benchmark-ai/bai/services/test/testbed/process"
)

// bin is the folder of the programs under test.
var bin string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "bai-e2e-bin-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		bin = dir
		if err := process.Build(bin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if err := servers.end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

// platform is one `bai standalone` with a data directory of its own, which
// outlives its process.
type platform struct {
	t       *testing.T
	dir     string
	args    []string
	servers []string // further arguments: where its broker and its store are
	program string   // empty means bai
	sets    int      // that runSuite has made

	addr string
	cmd  *exec.Cmd
	log  *lockedBuffer
	api  baiv1.RunServiceClient
	conn *grpc.ClientConn
}

// start starts a platform that ends with the test, after which none of its
// processes may be left. It works with real servers where there are any.
func start(t *testing.T, args ...string) *platform {
	t.Helper()
	return startOn(t, servers.flags(t, args), filepath.Join(t.TempDir(), "data"), args...)
}

// startEmbedded is start with the broker and the store that are embedded, for
// tests that are about their files; dir is the data directory.
func startEmbedded(t *testing.T, dir string, args ...string) *platform {
	t.Helper()
	return startOn(t, nil, dir, args...)
}

func startOn(t *testing.T, servers []string, dir string, args ...string) *platform {
	t.Helper()
	p := &platform{t: t, dir: dir, args: args, servers: servers}
	p.runToEnd()
	return p
}

// runToEnd begins the platform, which ends with the test.
func (p *platform) runToEnd() {
	p.t.Helper()
	p.t.Cleanup(func() {
		p.stop()
		p.wantNothingLeft()
		if p.t.Failed() {
			p.t.Logf("the platform's log:\n%s", tail(p.log.String(), 8000))
		}
	})
	p.begin()
}

var listens = regexp.MustCompile(`\blistens on (\S+)`)

// begin starts the process, again if there was one before, at the same address.
func (p *platform) begin() {
	p.t.Helper()
	if err := p.tryBegin(); err != nil {
		p.t.Fatalf("start: %v\n%s", err, p.log)
	}
}

func (p *platform) tryBegin() error {
	if p.addr == "" {
		p.addr = port.Addr(p.t)
	}
	args := slices.Concat([]string{"standalone", "--data", p.dir, "--listen", p.addr}, p.args, p.servers)
	p.cmd = exec.Command(cmp.Or(p.program, filepath.Join(bin, "bai")), args...)
	p.cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(p.dir))
	if p.log == nil {
		p.log = &lockedBuffer{}
	}
	p.cmd.Stderr = p.log
	out, w, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.Stdout = w
	err = p.cmd.Start()
	if err := errors.Join(err, w.Close()); err != nil { // the end of the process must end out
		return err
	}
	addr, err := listening(out, p.log)
	if err != nil {
		return errors.Join(err, p.cmd.Wait())
	}
	p.addr = addr
	if p.conn != nil {
		return nil // it reconnects
	}
	p.conn, err = grpc.NewClient(p.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	p.api = baiv1.NewRunServiceClient(p.conn)
	return err
}

// listening reads the platform's output up to the address on which it listens.
func listening(out *os.File, log io.Writer) (string, error) {
	var text []byte
	b := make([]byte, 4096)
	for {
		n, err := out.Read(b)
		text = append(text, b[:n]...)
		if m := listens.FindSubmatch(text); m != nil && bytes.HasSuffix(text, []byte("\n")) {
			_, _ = log.Write(text)
			go func() { _, _ = io.Copy(log, out); _ = out.Close() }()
			return string(m[1]), nil
		}
		if err != nil {
			return "", fmt.Errorf("ended before it was ready, having printed %q", text)
		}
	}
}

// kill ends the process as a crash would.
func (p *platform) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // says that it was killed
	p.cmd = nil
}

// stop ends the process as an operator would, within a bound.
func (p *platform) stop() {
	p.t.Helper()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			p.t.Errorf("the platform ended with %v", err)
		}
	case <-time.After(5 * time.Minute):
		p.t.Error("the platform did not end within 5 min of SIGTERM")
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		if err := <-done; err != nil {
			p.t.Logf("then it ended with %v", err)
		}
	}
	p.cmd = nil
}

// wantNothingLeft checks that the platform and its pods have left no process, and no
// mount below its directory.
func (p *platform) wantNothingLeft() {
	p.t.Helper()
	eventually(p.t, func() error {
		left := processesOf(p.dir)
		mounts, _ := os.ReadFile("/proc/self/mounts")
		if strings.Contains(string(mounts), p.dir) {
			left = append(left, "a mount below "+p.dir)
		}
		if len(left) > 0 {
			return fmt.Errorf("left behind:\n%s", strings.Join(left, "\n"))
		}
		return nil
	})
}

// processesOf returns the processes that name dir in their command line,
// environment or working directory.
func processesOf(dir string) []string {
	var found []string
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		if proc == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		cmdline, _ := os.ReadFile(proc + "/cmdline")
		environ, _ := os.ReadFile(proc + "/environ")
		cwd, _ := os.Readlink(proc + "/cwd")
		if bytes.Contains(cmdline, []byte(dir)) || bytes.Contains(environ, []byte(dir)) || strings.HasPrefix(cwd, dir) {
			found = append(found, filepath.Base(proc)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

// eventually waits until check has nothing to say, for some minutes: how long a
// thing takes says more of the machine than of the thing.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	const within = 5 * time.Minute
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("after %s still: %v", within, err)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// oneLine is a text without the breaks by which it fits 80 columns.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// baictl runs baictl against the platform.
func (p *platform) baictl(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	return baictl(p.t, p.addr, args...)
}

func baictl(t *testing.T, addr string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "baictl"), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "BAI_SERVER="+addr, "HOME="+t.TempDir(), "BAI_OWNER=tester")
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("baictl %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// submit submits a descriptor and returns the run's ID. It asks again under the same
// key while the servers are busy, as clients do.
func (p *platform) submit(descriptor string) string {
	p.t.Helper()
	req := &baiv1.SubmitRunRequest{DescriptorToml: []byte(descriptor), Owner: "tester", IdempotencyKey: rand.Text()}
	ctx, cancel := context.WithTimeout(p.t.Context(), 8*time.Minute)
	defer cancel()
	for {
		r, err := p.api.SubmitRun(ctx, req, grpc.WaitForReady(true))
		switch code := status.Code(err); {
		case err == nil:
			return r.GetRunId()
		case ctx.Err() != nil, code != codes.Unavailable && code != codes.DeadlineExceeded:
			p.t.Fatalf("submit: %v", err)
		}
	}
}

// get returns a run. It asks again while the store does not answer, as clients do.
func (p *platform) get(run string) *baiv1.Run {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 8*time.Minute)
	defer cancel()
	for {
		r, err := p.api.GetRun(ctx, &baiv1.GetRunRequest{Run: run}, grpc.WaitForReady(true))
		switch {
		case err == nil:
			return r.GetRun()
		case status.Code(err) != codes.Unavailable:
			p.t.Fatalf("get %s: %v", run, err)
		}
		time.Sleep(100 * time.Millisecond) // a store on a busy machine has created its indices, and not yet their shards
	}
}

// awaitPhase waits until the run is in one of the phases, or finished.
func (p *platform) awaitPhase(run string, phases ...baiv1.Phase) *baiv1.Run {
	p.t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for {
		r := p.get(run)
		for _, phase := range append(phases, baiv1.Phase_PHASE_FINISHED) {
			if r.GetPhase() == phase {
				return r
			}
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("run %s is still %s: %s", run, r.GetPhase(), r.GetMessage())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// awaitEnd waits until the run is over.
func (p *platform) awaitEnd(run string) *baiv1.Run {
	p.t.Helper()
	return p.awaitPhase(run)
}

// awaitReady waits until a run has printed that it is ready.
func (p *platform) awaitReady(run string) {
	p.t.Helper()
	eventually(p.t, func() error {
		if lines := p.lines(run); !slices.Contains(lines, "out ready") {
			return fmt.Errorf("run %s has not printed that it is ready, but %q", run, lines)
		}
		return nil
	})
}

// awaitComplete waits until all that a finished run wrote is in the store: as long as
// more of it comes, and a minute.
func (p *platform) awaitComplete(run string) *baiv1.Run {
	p.t.Helper()
	p.awaitEnd(run)
	stored, late := int64(-1), time.Now()
	for {
		r := p.get(run)
		c := r.GetCompleteness()
		if c.GetComplete() {
			return r
		}
		if n := c.GetLines() + c.GetSamples(); n != stored {
			stored, late = n, time.Now().Add(time.Minute)
		}
		if time.Now().After(late) {
			p.t.Errorf("run %s is not complete: %v", run, c)
			return r
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// lines returns the whole log of a run, each line with its stream.
func (p *platform) lines(run string) []string {
	p.t.Helper()
	stream, err := p.api.StreamLogs(p.t.Context(), &baiv1.StreamLogsRequest{Run: run})
	if err != nil {
		p.t.Fatal(err)
	}
	var lines []string
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			p.t.Fatalf("logs of %s: %v", run, err)
		}
		for _, l := range r.GetLines() {
			lines = append(lines, map[bool]string{false: "out ", true: "err "}[l.GetStderr()]+l.GetText())
		}
	}
}

// samples returns the values of each metric of a run.
func (p *platform) samples(run string) map[string][]float64 {
	p.t.Helper()
	stream, err := p.api.QueryMetrics(p.t.Context(), &baiv1.QueryMetricsRequest{Run: run})
	if err != nil {
		p.t.Fatal(err)
	}
	samples := make(map[string][]float64)
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return samples
		}
		if err != nil {
			p.t.Fatalf("metrics of %s: %v", run, err)
		}
		for _, s := range r.GetSamples() {
			samples[s.GetMetric()] = append(samples[s.GetMetric()], s.GetValue())
		}
	}
}

// script returns a descriptor that runs a shell script; more is appended to it.
func script(text string, more ...string) string {
	return `spec_version = "0.1.0"
[info]
description = "a test"
[hardware]
instance_type = "t3.small"
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = '''
#!/bin/sh
` + text + `
'''
` + strings.Join(more, "\n") + "\n"
}

// command returns a descriptor that runs a command, without a shell.
func command(line string) string {
	return fmt.Sprintf(`spec_version = "0.1.0"
[info]
description = "a test"
[hardware]
instance_type = "t3.small"
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = %q
`, line)
}

// lockedBuffer is a buffer that one process writes and a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns the text written so far.
func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tail returns the last n bytes of s.
func tail(s string, n int) string { return s[max(0, len(s)-n):] }
