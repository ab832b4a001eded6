package emit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// ErrDropped says that a line was dropped because the buffer was full for as long
// as a call may wait.
var ErrDropped = errors.New("emit: the buffer is full: dropped")

// ErrClosed says that a line was dropped because the emitter was closed before.
var ErrClosed = errors.New("emit: closed: dropped")

// Settings configure an Emitter. Their zero values are the settings of the package's
// functions.
type Settings struct {
	Getenv func(string) string // the environment; nil means that of the process
	Stdout io.Writer           // where lines are printed; nil means standard output
	Stderr io.Writer           // for messages; nil means standard error
	Now    func() time.Time    // the clock of "@time"; nil means the machine's

	Every time.Duration // how long a line waits for others to be written with it; zero means 10 ms
	// How long a call waits for a full buffer; zero means 100 ms, a negative one no wait.
	// Printed lines are not buffered.
	Block  time.Duration
	Drain  time.Duration // how long Close goes on trying; zero means 2 s
	Buffer int           // bytes that wait to be written, about; twice as many while some are being written; zero means 4 MiB
}

// Emitter emits to one place. Its methods may be called from any goroutine.
type Emitter struct {
	settings Settings
	sink     sink
	openErr  error // why nothing can be emitted at all

	wake     chan struct{}      // there is something to write
	full     chan struct{}      // there is much to write
	flushes  chan chan struct{} // to be closed when all is written
	closing  chan struct{}
	done     chan struct{} // the writer has ended
	cancel   func()        // ends the writer
	closed   sync.Once
	closeErr error

	mu            sync.Mutex
	buf           []byte // lines to be written
	freeBuf       []byte
	started       bool
	ended         bool
	stalled       bool          // a call has timed out since lines were last taken
	freed         chan struct{} // closed when lines are taken, if a call waits for room
	lines         int64
	dropped       int64
	dropCause     error // for the first that was dropped
	closeReported bool  // a value after Close was reported
}

// Open returns an emitter to the place that the environment names. It writes
// nothing and starts nothing yet: a file or FIFO that is not there, or cannot be
// written, is waited for while the buffer fills. The error is about the
// environment.
func Open(s Settings) (*Emitter, error) {
	if s.Getenv == nil {
		s.Getenv = os.Getenv
	}
	if s.Stderr == nil {
		s.Stderr = os.Stderr
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	s.Every = cmp.Or(s.Every, 10*time.Millisecond)
	s.Block = cmp.Or(s.Block, 100*time.Millisecond)
	s.Drain = cmp.Or(s.Drain, 2*time.Second)
	s.Buffer = cmp.Or(s.Buffer, 4<<20)
	w, err := choose(s.Getenv)
	if err != nil {
		return nil, err
	}
	return &Emitter{
		settings: s, sink: sink{destination: w}, cancel: func() {},
		wake: make(chan struct{}, 1), full: make(chan struct{}, 1),
		flushes: make(chan chan struct{}), closing: make(chan struct{}), done: make(chan struct{}),
	}, nil
}

// newBrokenEmitter returns an emitter that drops everything, for the reason given.
func newBrokenEmitter(err error) *Emitter {
	return &Emitter{
		settings: Settings{Stderr: os.Stderr}, openErr: err, cancel: func() {}, closing: make(chan struct{}), done: make(chan struct{}),
	}
}

// Emit is as the function Emit.
func (e *Emitter) Emit(values map[string]any, opts ...Option) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.waitForRoom(); err != nil {
		return err
	}
	b, err := appendValues(append(e.buf, '{'), values)
	if err != nil {
		e.drop(1, err)
		return err
	}
	_, stamped := values["@time"]
	return e.finish(b, opts, stamped)
}

// Value is as the function Value.
func (e *Emitter) Value(name string, v float64, opts ...Option) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waitForRoom() == nil {
		b := append(appendText(append(e.buf, '{'), name), ": "...)
		_ = e.finish(appendFloat(b, v), opts, false) // counted
	}
}

// Count is as the function Count.
func (e *Emitter) Count(name string, n int64, opts ...Option) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waitForRoom() == nil {
		b := append(appendText(append(e.buf, '{'), name), ": "...)
		_ = e.finish(strconv.AppendInt(b, n, 10), opts, false) // counted
	}
}

// Duration is as the function Duration.
func (e *Emitter) Duration(name string, d time.Duration, opts ...Option) {
	e.Value(name, d.Seconds(), append(slices.Clip(opts), Unit("s"))...)
}

// waitForRoom waits, without the lock, for room for a line, no longer than a call may.
// After a timeout, calls do not wait until lines are taken again.
func (e *Emitter) waitForRoom() error {
	if e.openErr != nil || e.ended {
		return e.dropRefused()
	}
	if len(e.buf) < e.settings.Buffer {
		return nil
	}
	timer := time.NewTimer(e.settings.Block)
	defer timer.Stop()
	for len(e.buf) >= e.settings.Buffer && !e.stalled {
		if e.freed == nil {
			e.freed = make(chan struct{})
		}
		freed := e.freed
		e.mu.Unlock()
		timedOut := false
		select {
		case <-freed:
		case <-timer.C:
			timedOut = true
		}
		e.mu.Lock()
		if e.ended {
			return e.dropRefused()
		}
		e.stalled = timedOut && len(e.buf) >= e.settings.Buffer
	}
	if e.stalled {
		e.drop(1, ErrDropped)
		return ErrDropped
	}
	return nil
}

// dropRefused drops a line of an emitter that takes none.
func (e *Emitter) dropRefused() error {
	if e.openErr != nil {
		e.drop(1, e.openErr)
		return e.openErr
	}
	if e.dropped++; !e.closeReported {
		e.closeReported = true
		e.warnf("emitted after Close: dropped")
	}
	return ErrClosed
}

// finish ends the line at the end of b and keeps it.
func (e *Emitter) finish(b []byte, opts []Option, stamped bool) error {
	b = appendOptions(b, opts)
	if e.sink.stamp && !stamped && !has(opts, kindAt) {
		now := e.settings.Now()
		b = appendTime(b, now.Unix(), now.Nanosecond())
	}
	b = append(b, "}\n"...)
	e.lines++
	if e.sink.path == "" {
		return e.print(b)
	}
	before := len(e.buf)
	e.buf = b
	if before == 0 {
		signal(e.wake)
	}
	if half := e.settings.Buffer / 2; before < half && len(b) >= half {
		signal(e.full)
	}
	if !e.started {
		e.started = true
		ctx, cancel := context.WithCancel(context.Background())
		e.cancel = cancel
		go e.run(ctx)
	}
	return nil
}

// print prints the line b at once, to keep its order with the program's own output. It
// takes as long as Stdout does, and other calls wait.
func (e *Emitter) print(b []byte) error {
	e.buf = b[:0]
	out := e.settings.Stdout
	if out == nil {
		out = os.Stdout
	}
	if _, err := out.Write(b); err != nil {
		err = fmt.Errorf("emit: %w", err)
		e.drop(1, err)
		return err
	}
	return nil
}

func (e *Emitter) drop(n int64, why error) {
	if e.dropped += n; e.dropCause == nil {
		e.dropCause = why
	}
}

func (e *Emitter) warnf(format string, args ...any) {
	_, _ = fmt.Fprintf(e.settings.Stderr, "emit: "+format+"\n", args...) // an error here cannot be reported anywhere
}

// signal sends to c if nothing is in it.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Flush is as the function Flush.
func (e *Emitter) Flush(ctx context.Context) error {
	e.mu.Lock()
	idle := !e.started
	e.mu.Unlock()
	if idle {
		return nil
	}
	flushed := make(chan struct{})
	select {
	case e.flushes <- flushed:
	case <-e.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-flushed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close is like the function Close, with the time limit of Settings. A second Close
// returns the result of the first.
func (e *Emitter) Close() error {
	e.closed.Do(func() { e.closeErr = e.end() })
	return e.closeErr
}

func (e *Emitter) end() error {
	e.mu.Lock()
	e.ended = true
	started := e.started
	e.mu.Unlock()
	close(e.closing)
	if started {
		e.drain()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := int64(bytes.Count(e.buf, []byte{'\n'})); n > 0 {
		e.drop(n, fmt.Errorf("could not be written to %s in time", e.sink.path))
	}
	if e.dropped == 0 {
		return nil
	}
	e.warnf("%d of %d dropped: %v", e.dropped, max(e.lines, e.dropped), e.dropCause)
	return fmt.Errorf("emit: %d dropped: %w", e.dropped, e.dropCause)
}

// drain waits until the writer has ended, for a while.
func (e *Emitter) drain() {
	timer := time.AfterFunc(e.settings.Drain, e.cancel)
	defer timer.Stop()
	select {
	case <-e.done:
		e.cancel()
	case <-time.After(e.settings.Drain + time.Second): // a disk that hangs cannot be called off
	}
}
