//go:build linux

package link_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/pod/link"
)

// The local cluster's tests set the MTU of a real link.
func TestAPodWithoutALinkHasNoMTU(t *testing.T) {
	t.Parallel()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine, and its namespace with it
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			_, _, err = link.SetMTU(9000)
		}
		done <- err
	}()
	err := <-done
	if os.IsPermission(err) {
		t.Skip("needs root for a network namespace")
	}
	if err == nil || !strings.Contains(err.Error(), "the pod has no link to a network") {
		t.Error(err)
	}
}
