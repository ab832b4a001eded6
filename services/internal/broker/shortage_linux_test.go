package broker_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// TestABrokerGoesOnAfterAMomentWithoutFileDescriptors: a client is refused meanwhile, and can connect to the same address later.
func TestABrokerGoesOnAfterAMomentWithoutFileDescriptors(t *testing.T) {
	t.Parallel()
	process, addr := spawn(t, t.TempDir())
	bus := connect(t, addr)
	if err := bus.Publish(t.Context(), status(0)); err != nil { // so that a connection is open
		t.Fatal(err)
	}
	if err := bus.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	restore := process.exhaust(t)
	if err := bus.Ready(t.Context()); err == nil {
		t.Error("it is ready although it takes no connections")
	}
	restore()
	for end := time.Now().Add(time.Minute); ; {
		err := bus.Ready(t.Context())
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a minute later still: %v", err)
		}
	}
}

// exhaust leaves the process no file descriptor until restore is called.
func (s brokerProcess) exhaust(t *testing.T) (restore func()) {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.pid))
	if err != nil {
		tooltest.Missing(t, "this system does not show the files of a process: %v", err)
	}
	least := uint64(0)
	for _, e := range open { // the lower numbers are taken, but for a few
		n, err := strconv.ParseUint(e.Name(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		least = max(least, n+1)
	}
	var before unix.Rlimit
	if err := unix.Prlimit(s.pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	limit := before
	limit.Cur = least
	if err := unix.Prlimit(s.pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	for range int(least) - len(open) + 1 { // and these by connections
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	return func() {
		if err := unix.Prlimit(s.pid, unix.RLIMIT_NOFILE, &before, nil); err != nil {
			t.Error(err)
		}
	}
}
