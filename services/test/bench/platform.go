package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// platform is a `bai standalone` with an empty data directory of its own.
type platform struct {
	dir  string
	addr string
	cmd  *exec.Cmd
	log  *os.File
	conn *grpc.ClientConn
	api  baiv1.RunServiceClient
	sets baiv1.SetServiceClient
}

// withPlatform starts a platform, gives it to use, and ends it.
func withPlatform(ctx context.Context, b bench, use func(*platform) error, args ...string) (err error) {
	dir, err := os.MkdirTemp("", "bai-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p := &platform{dir: filepath.Join(dir, "data")}
	if p.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return err
	}
	args = append([]string{"standalone", "--data", p.dir, "--listen", "127.0.0.1:0"}, args...)
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(b.bin, "bai"), args...)
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, p.cmd.Process.Signal(syscall.SIGTERM), p.cmd.Wait(), p.log.Close())
	}()
	addr, err := listening(out)
	if err != nil {
		text, _ := os.ReadFile(p.log.Name())
		return fmt.Errorf("%w:\n%s", err, text)
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	p.addr, p.conn = addr, conn
	p.api, p.sets = baiv1.NewRunServiceClient(conn), baiv1.NewSetServiceClient(conn)
	return use(p)
}

func listening(out io.Reader) (string, error) {
	pattern := regexp.MustCompile(`\blistens on (\S+)`)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := pattern.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return m[1], nil
		}
	}
	return "", errors.New("the platform ended before it was ready")
}

// submit submits a descriptor and returns the run's ID.
func (p *platform) submit(ctx context.Context, descriptor string) (string, error) {
	r, err := p.api.SubmitRun(ctx, &baiv1.SubmitRunRequest{DescriptorToml: []byte(descriptor)})
	return r.GetRunId(), err
}

// awaitEnd waits until a run is over, and returns an error unless it succeeded.
func (p *platform) awaitEnd(ctx context.Context, run string) error {
	stream, err := p.api.WatchRun(ctx, &baiv1.WatchRunRequest{Run: run})
	if err != nil {
		return err
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("watch %s: %w", run, err)
		}
		switch r.GetChange().GetOutcome() {
		case baiv1.Outcome_OUTCOME_SUCCEEDED:
			return nil
		case baiv1.Outcome_OUTCOME_FAILED, baiv1.Outcome_OUTCOME_CANCELED:
			return fmt.Errorf("run %s: %s", run, r.GetChange().GetMessage())
		case baiv1.Outcome_OUTCOME_UNSPECIFIED:
		}
	}
}

// awaitComplete waits until all that a run wrote is in the store.
func (p *platform) awaitComplete(ctx context.Context, run string) error {
	if err := p.awaitEnd(ctx, run); err != nil {
		return err
	}
	for ctx.Err() == nil {
		r, err := p.api.GetRun(ctx, &baiv1.GetRunRequest{Run: run})
		if err != nil || r.GetRun().GetCompleteness().GetComplete() {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return ctx.Err()
}

// lines returns the log of a run.
func (p *platform) lines(ctx context.Context, run string) ([]string, error) {
	stream, err := p.api.StreamLogs(ctx, &baiv1.StreamLogsRequest{Run: run})
	if err != nil {
		return nil, err
	}
	var lines []string
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return nil, err
		}
		for _, l := range r.GetLines() {
			lines = append(lines, l.GetText())
		}
	}
}

// usage is the use of resources by the platform's process so far.
type usage struct {
	cpu time.Duration
	rss float64 // MiB
}

// usage returns the use of resources by the platform's process.
func (p *platform) usage() (usage, error) { return usageOf(p.cmd.Process.Pid) }

// usageOf reads the use of resources by a process; see proc(5), stat fields 14 and 15.
func usageOf(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return usage{}, err
		}
		ticks += n
	}
	pages, err := strconv.Atoi(fields[21])
	const hz = 100 // of the clock of stat on every Linux that Go runs on
	return usage{time.Duration(ticks) * time.Second / hz, float64(pages*os.Getpagesize()) / (1 << 20)}, err
}

// noop returns a descriptor of a benchmark that does the command.
func noop(command string) string {
	return fmt.Sprintf(`spec_version = "0.1.0"
[info]
description = "a measurement"
[hardware]
instance_type = "t3.small"
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = %q
`, command)
}
