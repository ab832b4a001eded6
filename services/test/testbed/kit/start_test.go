package kit_test

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// TestWhatIsStartedOutlivesThreads: Go ends a thread with the goroutine that has
// locked it, unless it is the process's first.
func TestWhatIsStartedOutlivesThreads(t *testing.T) {
	over := make(chan error, 20)
	for range cap(over) {
		cmd := exec.CommandContext(t.Context(), "sleep", "60")
		started := make(chan error)
		go func() {
			runtime.LockOSThread()
			started <- kit.Start(cmd)
		}()
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		go func() { over <- cmd.Wait() }()
	}
	select {
	case err := <-over:
		t.Errorf("one ended with a thread: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
}
