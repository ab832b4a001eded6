//go:build linux

package spec_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
)

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	want := spec.State{PID: 7, Born: 8, Began: time.Unix(9, 10).UTC(), Containers: []spec.Status{
		{PID: 3, Started: time.Unix(1, 0).UTC()}, {End: &spec.End{Code: 1, Signal: 9, Started: time.Unix(2, 0).UTC(), Ended: time.Unix(3, 0).UTC()}}, {},
	}}
	for range 2 {
		if err := spec.Write(path, want); err != nil {
			t.Fatal(err)
		}
	}
	var got spec.State
	if err := spec.Read(path, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Lstat(spec.Draft(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the draft is left: %v", err)
	}
	if err := spec.Read(path+"x", &got); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("read what is not there: %v", err)
	}
}

func TestProcessesAreToldApartByTheirBirth(t *testing.T) {
	t.Parallel()
	self, err := spec.Look("self")
	if err != nil || self.PID != os.Getpid() || self.Parent != os.Getppid() || self.Born == 0 || self.Zombie {
		t.Errorf("this process is %+v (%v)", self, err)
	}
	same, err := spec.Look(strconv.Itoa(os.Getpid()))
	if err != nil || same != self {
		t.Errorf("it is %+v, then %+v (%v)", self, same, err)
	}
	if _, err := spec.Look("4194305"); !errors.Is(err, spec.ErrGone) { // more than the kernel gives
		t.Errorf("a process that cannot be: %v, want ErrGone", err)
	}
	found := false
	for _, p := range spec.Processes() {
		found = found || p == self
	}
	if !found {
		t.Error("this process is not among all")
	}
}
