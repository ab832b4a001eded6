//go:build linux

package shimapi_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	want := shimapi.State{PID: 7, StartTicks: 8, StartedAt: time.Unix(9, 10).UTC(), Containers: []shimapi.ContainerStatus{
		{PID: 3, Started: time.Unix(1, 0).UTC()}, {Termination: &shimapi.Termination{Code: 1, Signal: 9, Started: time.Unix(2, 0).UTC(), Ended: time.Unix(3, 0).UTC()}}, {},
	}}
	for range 2 {
		if err := shimapi.Write(path, want); err != nil {
			t.Fatal(err)
		}
	}
	var got shimapi.State
	if err := shimapi.Read(path, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Lstat(shimapi.TempPath(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the draft is left: %v", err)
	}
	if err := shimapi.Read(path+"x", &got); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("read what is not there: %v", err)
	}
}

func TestProcessesAreToldApartByTheirBirth(t *testing.T) {
	t.Parallel()
	self, err := shimapi.ReadProcess("self")
	if err != nil || self.PID != os.Getpid() || self.Parent != os.Getppid() || self.StartTicks == 0 || self.Zombie {
		t.Errorf("this process is %+v (%v)", self, err)
	}
	same, err := shimapi.ReadProcess(strconv.Itoa(os.Getpid()))
	if err != nil || same != self {
		t.Errorf("it is %+v, then %+v (%v)", self, same, err)
	}
	if _, err := shimapi.ReadProcess("4194305"); !errors.Is(err, shimapi.ErrNoProcess) { // more than the kernel's highest ID
		t.Errorf("a process that cannot be: %v, want ErrGone", err)
	}
	found := false
	for _, p := range shimapi.Processes() {
		found = found || p == self
	}
	if !found {
		t.Error("this process is not among all")
	}
}
