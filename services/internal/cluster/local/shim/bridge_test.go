//go:build linux

package shim_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shim"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

func TestABridgeReadsARequestWhateverSignalsItGetsMeanwhile(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0]) //nolint:errcheck // only a handle
	defer unix.Close(ends[1]) //nolint:errcheck // only a handle
	thread, answer := make(chan int, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		thread <- unix.Gettid()
		_, files, err := shim.ReceiveRequest(ends[0])
		for _, f := range files {
			_ = unix.Close(f)
		}
		answer <- err
	}()
	reader := <-thread
	reads := fmt.Sprintf("%d ", unix.SYS_RECVMSG)
	for waits := ""; !strings.HasPrefix(waits, reads); {
		b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", reader)) // "running" between system calls
		if err != nil {
			t.Fatal(err)
		}
		waits = string(b)
	}
	for range 3 {
		_ = unix.Tgkill(os.Getpid(), reader, unix.SIGURG) // one that has given up is gone
	}
	b, err := json.Marshal(shimapi.Request{Args: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	log, lock := int(os.Stdout.Fd()), int(os.Stderr.Fd())
	err = errors.Join(unix.Sendmsg(ends[1], b, unix.UnixRights(log, lock), nil, unix.MSG_NOSIGNAL), <-answer)
	if err != nil {
		t.Error(err)
	}
}
