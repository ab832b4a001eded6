//go:build linux

package proc

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command is a process to start. It ends with the process that starts it.
type Command struct {
	Path  string // within Root
	Args  []string
	Env   []string
	Dir   string    // within Root; empty means that of the starter
	Root  string    // its root directory; empty means that of the starter
	Files []uintptr // standard input, output and error, then others
	// Session makes it the leader of a session of its own, otherwise it is the
	// leader of a process group of its own.
	Session    bool
	Namespaces uintptr   // of its own, as flags of clone
	Ambient    []uintptr // capabilities that it keeps in a user namespace

	Groups []string // folders of cgroups in which it begins
}

// Exit is how a process ended.
type Exit struct {
	PID    int
	Code   int            // as a shell would say it
	Signal syscall.Signal // that ended it, or zero
	User   time.Duration
	System time.Duration
	MaxRSS int64 // bytes
	At     time.Time
}

// Table starts processes and reaps them. There can be one in a process, and
// nothing else there may wait for children: the table takes the exits of all, also of
// those that package os/exec started. See Run.
type Table struct {
	*Starter

	ends chan Exit

	mu          sync.Mutex
	children    map[int]chan<- Exit // where the exit of each goes
	startedCond *sync.Cond          // a process was started
	startCount  int                 // how many were
}

// Starter starts the processes of a table from one thread, whose namespaces they
// begin with.
type Starter struct {
	table  *Table
	starts chan start
}

type start struct {
	command Command
	exits   chan<- Exit // where the exit of its process goes
	do      func()      // instead of a command
	done    chan<- started
}

type started struct {
	pid int
	err error
}

// NewTable returns a table without processes. It lives as long as its process.
func NewTable() *Table {
	t := &Table{ends: make(chan Exit, 16), children: make(map[int]chan<- Exit)}
	t.startedCond = sync.NewCond(&t.mu)
	t.Starter, _ = t.Within(func() error { return nil }) // it does not fail
	go t.reapAll()
	return t
}

// Within returns a starter on a thread of its own, which enter has brought to
// where its processes are to begin. Its error is that of enter.
func (t *Table) Within(enter func() error) (*Starter, error) {
	s, entered := &Starter{table: t, starts: make(chan start)}, make(chan error, 1)
	go s.startAll(enter, entered)
	if err := <-entered; err != nil {
		return nil, err
	}
	return s, nil
}

// Start starts c and returns its process ID. The error is the kernel's.
func (s *Starter) Start(c Command) (int, error) {
	return s.start(start{command: c, exits: s.table.ends})
}

func (s *Starter) start(c start) (int, error) {
	done := make(chan started, 1)
	c.done = done
	s.starts <- c
	r := <-done
	return r.pid, r.err
}

// Do carries f out on the starter's thread, in its namespaces.
func (s *Starter) Do(f func()) {
	done := make(chan started, 1)
	s.starts <- start{do: f, done: done}
	<-done
}

// Ends sends the exit of each process that Start started.
func (t *Table) Ends() <-chan Exit { return t.ends }

// startAll starts every process from one thread that never ends: the kernel
// ends a child with the thread that made it, not with the process.
func (s *Starter) startAll(enter func() error, entered chan<- error) {
	runtime.LockOSThread()
	err := enter()
	// Children do not inherit this thread's capabilities in a user namespace.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if entered <- err; err != nil {
		return // and the thread with it
	}
	for c := range s.starts {
		if c.do != nil {
			c.do()
			c.done <- started{}
			continue
		}
		pid, err := s.table.fork(c.command, c.exits)
		c.done <- started{pid, err}
	}
}

func (t *Table) fork(c Command, exits chan<- Exit) (int, error) {
	t.mu.Lock() // or reapAll could see its end before it is known
	defer t.mu.Unlock()
	sys := &syscall.SysProcAttr{
		Chroot: c.Root, Setsid: c.Session, Setpgid: !c.Session, Pdeathsig: syscall.SIGKILL,
		Cloneflags: c.Namespaces, AmbientCaps: c.Ambient,
	}
	leave, err := join(c.Groups, sys)
	defer leave()
	if err != nil {
		return 0, fmt.Errorf("enter its cgroup: %w", err)
	}
	pid, err := syscall.ForkExec(c.Path, c.Args, &syscall.ProcAttr{Dir: c.Dir, Env: c.Env, Files: c.Files, Sys: sys})
	if err != nil {
		return 0, err
	}
	t.children[pid] = exits
	t.startCount++
	t.startedCond.Broadcast()
	return pid, nil
}

func (t *Table) reapAll() {
	for {
		t.mu.Lock()
		begun := t.startCount
		t.mu.Unlock()
		var (
			status unix.WaitStatus
			usage  unix.Rusage
		)
		pid, err := unix.Wait4(-1, &status, 0, &usage)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			t.awaitStart(begun)
		default:
			if exits := t.forget(pid); exits != nil {
				exits <- exit(pid, status, &usage)
			}
		}
	}
}

// awaitStart returns once more than begun processes were started.
func (t *Table) awaitStart(startCount int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.startCount == startCount {
		t.startedCond.Wait()
	}
}

// forget returns where the exit of a process goes, nil if Start has not started it.
func (t *Table) forget(pid int) chan<- Exit {
	t.mu.Lock()
	defer t.mu.Unlock()
	exits := t.children[pid]
	delete(t.children, pid)
	return exits
}

func exit(pid int, status unix.WaitStatus, usage *unix.Rusage) Exit {
	e := Exit{
		PID: pid, Code: status.ExitStatus(), At: time.Now(), MaxRSS: usage.Maxrss << 10,
		User: time.Duration(usage.Utime.Nano()), System: time.Duration(usage.Stime.Nano()),
	}
	if status.Signaled() {
		e.Signal = status.Signal()
		e.Code = 128 + int(e.Signal)
	}
	return e
}

// SignalName returns the name of s, or its number.
func SignalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}
