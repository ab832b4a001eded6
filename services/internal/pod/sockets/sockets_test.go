//go:build linux

package sockets_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/pod/sockets"
)

// client returns a client of a server whose sockets do makes.
func client(t *testing.T, timeout time.Duration, do func(func())) *sockets.Client {
	t.Helper()
	server, fd, err := sockets.Pair()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); sockets.Serve(server, do) }()
	t.Cleanup(func() {
		_ = unix.Close(fd)
		<-done
	})
	c, err := sockets.NewClient(fd, timeout)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantSocket checks that a socket is of the version that was asked for, and closes it.
func wantSocket(t *testing.T, fd int, err error, v6 bool) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd) //nolint:errcheck // of this test
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || (domain == unix.AF_INET6) != v6 {
		t.Errorf("a socket of domain %d (%v), of version 6 is wanted: %v", domain, err, v6)
	}
}

// openSockets counts the sockets of this process.
func openSockets(t *testing.T) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if to, err := os.Readlink(path); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

func TestASocketThatComesTooLateIsClosedByTheNextRequest(t *testing.T) {
	release, late := make(chan struct{}), true
	c := client(t, 100*time.Millisecond, func(f func()) {
		if late {
			<-release
		}
		late = false
		f()
	})
	before := openSockets(t)
	if _, err := c.Request(false); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("a request without a reply: %v", err)
	}
	close(release)
	for i := range 10 {
		for fd, err := c.Request(i%2 == 0); ; fd, err = c.Request(i%2 == 0) {
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ETIMEDOUT) {
				continue // a busy machine
			}
			wantSocket(t, fd, err, i%2 == 0)
			break
		}
	}
	for end := time.Now().Add(time.Minute); openSockets(t) != before; runtime.Gosched() { // the server closes its own after it has passed them on
		if time.Now().After(end) {
			t.Fatalf("%d sockets are open, %d before", openSockets(t), before)
		}
	}
}

func TestARequestGoesOnAfterASignal(t *testing.T) {
	thread := make(chan int, 1)
	c := client(t, time.Minute, func(f func()) {
		tid := <-thread
		awaitSleep(t, tid)
		if err := unix.Tgkill(os.Getpid(), tid, unix.SIGURG); err != nil {
			t.Error(err)
		}
		awaitSleep(t, tid)
		f()
	})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i := range 20 {
		thread <- unix.Gettid()
		fd, err := c.Request(i%2 == 0)
		wantSocket(t, fd, err, i%2 == 0)
	}
}

// awaitSleep waits until a thread of this process sleeps in the kernel.
func awaitSleep(t *testing.T, tid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); runtime.Gosched() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", tid))
		if err != nil {
			t.Error(err)
			return
		}
		if _, state, _ := strings.Cut(string(text), ") "); strings.HasPrefix(state, "S") {
			return
		}
	}
	t.Error("the thread does not sleep")
}
