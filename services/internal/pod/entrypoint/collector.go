//go:build linux

package entrypoint

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// waitForFile waits until a file exists, but no longer than d. The collector makes its
// pipe when it is ready: from then on it ships all output, and the target of client
// libraries exists.
func waitForFile(path string, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Lstat(path); err == nil {
			return
		}
	}
}

// waitForReader waits until a process holds the FIFO open for reading: the collector does while it runs. It waits no longer than timeout,
// and not once ending is closed.
//
// Kubernetes restarts a sidecar only while one of the pod's containers runs. If the collector were dead when the last container ends, what
// it had not shipped would be lost.
func waitForReader(fifo string, timeout time.Duration, ending <-chan struct{}) {
	end := time.After(timeout)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for warned := false; !hasReader(fifo); {
		if !warned {
			printWarning("the collector does not run: the end waits until it has been restarted")
			warned = true
		}
		select {
		case <-tick.C:
		case <-ending:
			printWarning("the collector does not run: output may be lost")
			return
		case <-end:
			printWarning(fmt.Sprintf("the collector was not restarted within %s: output may be lost", timeout))
			return
		}
	}
}

// hasReader reports whether a process holds the FIFO open for reading, or there is no FIFO that this process may write to.
func hasReader(fifo string) bool {
	fd, err := unix.Open(fifo, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return !errors.Is(err, unix.ENXIO)
	}
	_ = unix.Close(fd)
	return true
}
