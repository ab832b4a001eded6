//go:build linux

package dial_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/pod/sockets"
	"github.com/benchmark-ai/bai/services/internal/pod/sockets/dial"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// network returns a network whose sockets do makes.
func network(t *testing.T, do func(func())) *dial.Network {
	t.Helper()
	giver, taker, err := sockets.Pair()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); sockets.Serve(giver, do) }()
	n, err := dial.Open(strconv.Itoa(taker))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Close(taker)
		<-done
	})
	return n
}

// elsewhere carries functions out on a thread in a network namespace of its own, whose
// loopback is up. It skips where the kernel makes none.
func elsewhere(t *testing.T) func(func()) {
	t.Helper()
	work, ready := make(chan func()), make(chan error)
	go func() { // on a thread that ends with it
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = loopback()
		}
		if ready <- err; err != nil {
			return
		}
		for f := range work {
			f()
		}
	}()
	if err := <-ready; err != nil {
		tooltest.Missing(t, "no network namespace: %v", err)
	}
	t.Cleanup(func() { close(work) })
	return func(f func()) {
		done := make(chan struct{})
		work <- func() { defer close(done); f() }
		<-done
	}
}

// loopback brings the thread's loopback up.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // only a handle
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

func TestWhoListensInANetworkIsReachedInItAlone(t *testing.T) {
	t.Parallel()
	n := network(t, elsewhere(t))
	l, err := n.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })}
	go server.Serve(l) //nolint:errcheck // it ends with the test
	t.Cleanup(func() { _ = server.Close() })

	client := &http.Client{Transport: &http.Transport{DialContext: n.DialContext}}
	for range 3 {
		client.CloseIdleConnections() // so that each is a socket of its own
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		r, err := client.Get("http://localhost:" + port)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		if _ = r.Body.Close(); err != nil || string(text) != "here" {
			t.Errorf("%q, %v", text, err)
		}
	}
	var d net.Dialer
	if c, err := d.DialContext(t.Context(), "tcp", l.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("it is reached from outside, too")
	}
}

func TestAnAddressThatNobodyAnswersIsRefusedAsUsual(t *testing.T) {
	t.Parallel()
	here := func(f func()) { f() }
	n := network(t, here)
	l, err := n.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Listen(l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listen where somebody listens: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.DialContext(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := n.DialContext(ended, "tcp", l.Addr().String()); !errors.Is(err, context.Canceled) {
		t.Errorf("dial once told not to: %v", err)
	}
	for _, address := range []string{"example.org:80", "nonsense", ":0"} {
		if _, err := n.DialContext(t.Context(), "tcp", address); err == nil {
			t.Errorf("%q is no address", address)
		}
	}
}

func TestWhoGivesNoSocketsIsSaid(t *testing.T) {
	t.Parallel()
	if _, err := dial.Open("x"); err == nil {
		t.Error("x is no descriptor")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // of this test
	if _, err := dial.Open(strconv.Itoa(int(f.Fd()))); err == nil {
		t.Error("a file gives no sockets")
	}
	giver, taker, err := sockets.Pair()
	if err != nil {
		t.Fatal(err)
	}
	n, err := dial.Open(strconv.Itoa(taker))
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(giver)
	if _, err := n.Listen("127.0.0.1:0"); err == nil {
		t.Error("who has ended gives no sockets")
	}
	_ = unix.Close(taker)
}
