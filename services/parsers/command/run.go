package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// Limits of a parser for which nothing else is said.
const (
	DefaultDeadline = time.Minute
	DefaultMemory   = 1 << 30 // bytes
)

// linger is how long processes that a parser has left may keep its output open, and how long the end of a parser that was killed is waited
// for.
const linger = time.Second

// Process is the process of a parser.
type Process interface {
	// Wait returns once the process has ended. Run may return before that, if the kernel cannot end a process that was killed.
	Wait() (code int, signal string)
	// Kill ends the process, and what it has started, also after its end.
	Kill()
}

// Run runs a parser, and returns what it found. Start starts it, with files for its standard output and standard error; the caller sees to
// its input. A parser that runs longer than the deadline, or prints what is none of the schema, is killed, and all are once stop is closed.
func Run(start func(stdout, stderr *os.File) (Process, error), deadline time.Duration, stop <-chan struct{}) report.Report {
	var stdout, stderr pipe
	defer stdout.close()
	defer stderr.close()
	if err := errors.Join(stdout.open(), stderr.open()); err != nil {
		return conclude(printedLines{}, processEnd{Problem: "cannot be started: " + err.Error()})
	}
	p, err := start(stdout.to, stderr.to)
	if err != nil {
		return conclude(printedLines{}, processEnd{Problem: "cannot be started: " + err.Error()})
	}
	stdout.closeWriter()
	stderr.closeWriter()
	r := running{process: p, lines: make(chan printedLines, 1), tail: make(chan string, 1), ended: make(chan processEnd, 1)}
	go func() { r.lines <- readLines(stdout.from) }()
	go func() { r.tail <- readTail(stderr.from) }()
	go func() {
		code, signal := p.Wait()
		r.ended <- processEnd{Code: code, Signal: signal}
	}()
	return conclude(r.wait(deadline, stop))
}

// running is a parser that runs.
type running struct {
	process Process
	lines   chan printedLines
	tail    chan string // of standard error
	ended   chan processEnd
}

// wait waits for the end of a parser, which it brings about if the parser breaks a rule.
func (r running) wait(deadline time.Duration, stop <-chan struct{}) (printedLines, processEnd) {
	limit := time.NewTimer(deadline)
	defer limit.Stop()
	problem, l := "", printedLines{}
	var late <-chan time.Time // once it was killed
	kill := func(reason string) {
		r.process.Kill()
		problem = cmp.Or(problem, reason)
		if late == nil {
			late = time.After(linger)
		}
	}
	for {
		select {
		case e := <-r.ended:
			e.Problem = problem
			return r.rest(l, e)
		case l = <-r.lines:
			if r.lines = nil; l.Fault != "" {
				kill(l.Fault)
			}
		case <-limit.C:
			kill(fmt.Sprintf("has not ended after %s (deadline), and was killed", deadline))
		case <-late:
			return r.rest(l, processEnd{Problem: problem})
		case <-stop:
			stop = nil
			kill("was killed, because the run has to end")
		}
	}
}

// rest returns what a parser that has ended had printed that was not read before.
func (r running) rest(l printedLines, e processEnd) (printedLines, processEnd) {
	r.process.Kill() // the rest of its group
	late := make(chan struct{})
	defer time.AfterFunc(linger, func() { close(late) }).Stop()
	if r.lines != nil {
		select {
		case l = <-r.lines:
		case <-late:
			e.Problem = cmp.Or(e.Problem, "left a process that keeps its output open")
		}
	}
	select {
	case text := <-r.tail:
		e.Stderr = lastLines(text)
	case <-late:
	}
	return l, e
}

// readTail reads r to its end, and returns the last bytes.
func readTail(r io.Reader) string {
	const most = 4 << 10
	var tail []byte
	buf := make([]byte, most)
	for {
		n, err := r.Read(buf)
		tail = append(tail, buf[:n]...)
		tail = tail[max(0, len(tail)-most):]
		if err != nil {
			return string(tail)
		}
	}
}

// pipe is a pipe from a parser.
type pipe struct{ from, to *os.File }

func (p *pipe) open() (err error) {
	p.from, p.to, err = os.Pipe()
	return err
}

func (p *pipe) closeWriter() {
	_ = p.to.Close()
	p.to = nil
}

func (p *pipe) close() {
	for _, f := range []*os.File{p.from, p.to} {
		if f != nil {
			_ = f.Close()
		}
	}
}
