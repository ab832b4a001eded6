//go:build linux

package entrypoint

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/parse"
)

// pipeSize is how much a command may be ahead of the wrapper.
const pipeSize = 1 << 20

// streams are the command's two outputs; one reader reads them in the order in which they
// arrive.
type streams struct {
	stdout, stderr outputPipe
	endWriter      *os.File       // closed once the command has ended
	endReader      *os.File       // the other end of over
	drainUntil     chan time.Time // how long to read then
	done           chan struct{}  // closed when all is read
	ready          *readiness
	parsers        *parse.Parsers
}

// outputPipe is one pipe from the command.
type outputPipe struct {
	from, to *os.File
	out      *output
	isErr    bool
	passFD   int // the wrapper's descriptor that it is passed on to
	ready    *readiness
	parsers  *parse.Parsers
}

func newStreams(out *output) (*streams, error) {
	s := &streams{
		stdout: outputPipe{out: out, passFD: 1}, stderr: outputPipe{out: out, passFD: 2, isErr: true},
		drainUntil: make(chan time.Time, 1), done: make(chan struct{}),
	}
	var err1, err2, err3 error
	s.stdout.from, s.stdout.to, err1 = pipe()
	s.stderr.from, s.stderr.to, err2 = pipe()
	s.endReader, s.endWriter, err3 = pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("make pipes for the output: %w", err)
	}
	return s, nil
}

// pipe returns a pipe whose ends the runtime leaves alone.
func pipe() (from, to *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	_, _ = unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeSize) // larger reads, where the kernel allows it
	return os.NewFile(uintptr(fds[0]), "from"), os.NewFile(uintptr(fds[1]), "to"), nil
}

// startReading begins to read, and leaves the writing ends to the command.
func (s *streams) startReading() {
	_ = s.stdout.to.Close()
	_ = s.stderr.to.Close()
	go s.readAll()
}

// finish returns when both streams have ended, at most linger from now, with
// all that the command wrote before.
func (s *streams) finish(linger time.Duration) {
	s.drainUntil <- time.Now().Add(linger)
	_ = s.endWriter.Close()
	<-s.done
}

// readAll reads until both streams have ended or the time to linger is over. A process
// that outlives the command may keep a stream open, and write, for ever: when the time is
// over, readAll reads at most the content of a full pipe, which is more than the command
// had written when it ended.
func (s *streams) readAll() {
	defer close(s.done)
	buf := make([]byte, pod.RecordHeader+pod.MaxRecord)
	s.stdout.ready, s.stderr.ready = s.ready, s.ready
	s.stdout.parsers, s.stderr.parsers = s.parsers, s.parsers
	all := []*outputPipe{&s.stdout, &s.stderr}
	fds := []unix.PollFd{pollFor(s.stdout.from), pollFor(s.stderr.from), pollFor(s.endReader)}
	var until time.Time
	for fds[0].Fd >= 0 || fds[1].Fd >= 0 {
		wait := -1
		if !until.IsZero() {
			wait = int(max(0, time.Until(until).Milliseconds()))
		}
		if wait == 0 {
			drain(all, fds, buf)
			return
		}
		if _, err := unix.Poll(fds, wait); err != nil {
			continue // a signal
		}
		readSome(all, fds, buf)
		if fds[2].Revents != 0 {
			fds[2].Fd, until = -1, <-s.drainUntil
		}
	}
}

// readSome reads once from each stream that has something, and closes those
// that have ended.
func readSome(all []*outputPipe, fds []unix.PollFd, buf []byte) {
	for i, st := range all {
		if fds[i].Revents != 0 && st.readOnce(buf) == 0 {
			fds[i].Fd = -1
		}
	}
}

func pollFor(f *os.File) unix.PollFd {
	return unix.PollFd{Fd: int32(f.Fd()), Events: unix.POLLIN} //nolint:gosec // a descriptor
}

// drain reads the content of the pipes.
func drain(all []*outputPipe, fds []unix.PollFd, buf []byte) {
	for i, st := range all {
		for got := 0; fds[i].Fd >= 0 && got < pipeSize; {
			one := []unix.PollFd{pollFor(st.from)}
			if n, _ := unix.Poll(one, 0); n <= 0 {
				break
			}
			n := st.readOnce(buf)
			if n == 0 {
				break
			}
			got += n
		}
	}
}

// readOnce reads the available bytes, records them and passes them on. It returns 0 at
// the end of the stream.
func (s *outputPipe) readOnce(buf []byte) int {
	for {
		n, err := unix.Read(int(s.from.Fd()), buf[pod.RecordHeader:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return 0
		}
		s.out.record(s.isErr, buf[:pod.RecordHeader+n])
		s.ready.read(s.isErr, buf[pod.RecordHeader:pod.RecordHeader+n])
		passThrough(s.passFD, buf[pod.RecordHeader:pod.RecordHeader+n])
		s.parsers.Write(s.isErr, buf[pod.RecordHeader:pod.RecordHeader+n])
		return n
	}
}
