package executable

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Limits of a program.
const (
	maxLine   = 8 << 20 // bytes of an answer
	maxStderr = 200     // bytes at the end of standard error that are quoted
)

// program runs copies of a command, one after the other.
type program struct {
	command []string
	timeout time.Duration // of one call

	turn chan struct{} // held by the call in progress

	// The holder of turn uses these.
	copy   *running // nil if none runs
	nextID int64
}

// running is a copy of the program.
type running struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	pipe   io.Closer     // of its standard output
	out    *bufio.Reader // of pipe
	stderr *tail
}

func newProgram(command []string, timeout time.Duration) *program {
	p := &program{command: command, timeout: timeout, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

// call makes one call, and returns its answer. A copy that does not keep to the protocol is
// killed, and quoted in the error.
func (p *program) call(ctx context.Context, q request) (answer, error) {
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	if p.copy == nil {
		if err := p.start(); err != nil {
			return answer{}, fmt.Errorf("start %s: %w", p.command[0], err)
		}
	}
	p.nextID++
	q.ID = p.nextID
	a, err := p.exchange(ctx, q)
	if err != nil {
		err = fmt.Errorf("%s: %s: %w%s", p.command[0], q.Call, err, p.kill())
	}
	return a, err
}

// start starts a copy, in a process group of its own.
func (p *program) start() error {
	cmd := exec.Command(p.command[0], p.command[1:]...) //nolint:gosec,noctx // the operator's command, which outlives a call
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	r := &running{cmd: cmd, in: in, pipe: out, out: bufio.NewReaderSize(out, 64<<10), stderr: &tail{}}
	cmd.Stderr, cmd.WaitDelay = r.stderr, time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	p.copy, p.nextID = r, 0
	return nil
}

// exchange writes a request and reads its answer, within the time of a call.
func (p *program) exchange(ctx context.Context, q request) (answer, error) {
	if n := p.copy.out.Buffered(); n > 0 {
		text, _ := p.copy.out.Peek(n)
		return answer{}, fmt.Errorf("it wrote without being asked: %s", quoted(text))
	}
	line, err := json.Marshal(q)
	if err != nil {
		return answer{}, err
	}
	done, r := make(chan error, 1), p.copy
	var got []byte
	go func() {
		if _, err := r.in.Write(append(line, '\n')); err != nil {
			done <- fmt.Errorf("it takes no request: %w", err)
			return
		}
		got, err = readLine(r.out)
		done <- err
	}()
	limit := time.NewTimer(p.timeout)
	defer limit.Stop()
	select {
	case err := <-done:
		if err != nil {
			return answer{}, err
		}
	case <-limit.C:
		return answer{}, p.abandon(done, fmt.Errorf("no answer in %s", p.timeout))
	case <-ctx.Done():
		return answer{}, p.abandon(done, ctx.Err())
	}
	a, err := readAnswer(got, q)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %s", err, quoted(got))
	}
	return a, nil
}

// abandon ends the copy so that the call in progress ends, and returns why.
func (p *program) abandon(done <-chan error, why error) error {
	p.copy.end()
	<-done //nolint:errcheck // of the call, which was cut off
	return why
}

// end kills the processes of the copy's group, and closes this side of its pipes: a descendant
// in a session of its own may hold the other side open. A call in progress ends.
func (r *running) end() {
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	_ = r.cmd.Process.Kill()                              // it may have left its group
	_ = r.in.Close()
	_ = r.pipe.Close()
}

// readLine reads a line of limited length.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case len(line) > maxLine:
			return nil, fmt.Errorf("an answer has more than %d MiB: %s", maxLine>>20, quoted(line))
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("it ended without an answer%s", after(line))
		default:
			return nil, err
		}
	}
}

// after quotes the part of a line that was written.
func after(line []byte) string {
	if len(line) == 0 {
		return ""
	}
	return ", after " + quoted(line)
}

// kill ends the copy with all of its processes, and returns the end of its standard error
// for a message.
func (p *program) kill() string {
	r := p.copy
	if r == nil {
		return ""
	}
	p.copy = nil
	r.end()
	_ = r.cmd.Wait() // that it was killed; it waits one second for those who hold standard error open
	if text := r.stderr.String(); text != "" {
		return "; standard error ends with " + quoted([]byte(text))
	}
	return ""
}

// close ends the copy: at the end of its input it may end by itself.
func (p *program) close() {
	<-p.turn // no further calls
	if p.copy != nil {
		_ = p.copy.in.Close()
		p.kill()
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if extra := len(t.text) - maxStderr; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(b), nil
}

// String returns the end of what was written.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
