//go:build linux

package shimapi_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// envFirstThreadEnds has this program end its first thread and go on until its input ends.
const envFirstThreadEnds = "BAI_TEST_FIRST_THREAD_ENDS"

func TestMain(m *testing.M) {
	if os.Getenv(envFirstThreadEnds) == "" {
		os.Exit(m.Run())
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for range 64 {
		go endIfFirstThread()
	}
	endIfFirstThread()
}

// endIfFirstThread keeps a thread to itself, and ends it if it is the first one.
func endIfFirstThread() {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
	select {}
}

func TestAProcessWhoseFirstThreadHasEndedIsNoZombieWhileOthersRun(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envFirstThreadEnds+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	eventually(t, "the first thread has ended", func() bool {
		b, _ := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "stat"))
		return bytes.Contains(b, []byte(") Z "))
	})
	if p, err := shimapi.ReadProcess(pid); err != nil || p.Zombie {
		t.Errorf("the process is %+v (%v), want that it runs", p, err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process is a zombie", func() bool {
		p, err := shimapi.ReadProcess(pid)
		return err == nil && p.Zombie
	})
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for late := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

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

// envNoDescriptors has a test read a process without a descriptor left.
const envNoDescriptors = "BAI_TEST_NO_DESCRIPTORS"

func TestAProcessThatCannotBeReadIsNotOneThatDoesNotExist(t *testing.T) {
	if os.Getenv(envNoDescriptors) != "" {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{}); err != nil {
			t.Fatal(err)
		}
		if _, err := shimapi.ReadProcess("self"); !errors.Is(err, unix.EMFILE) || errors.Is(err, shimapi.ErrNoProcess) {
			t.Errorf("without a descriptor left: %v, want EMFILE", err)
		}
		return
	}
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$") //nolint:gosec // this test
	child.Env = append(os.Environ(), envNoDescriptors+"=1")
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// notEnded returns the processes that have not ended.
func notEnded(pids []string) []shimapi.Process {
	var all []shimapi.Process
	for _, pid := range pids {
		if p, err := shimapi.ReadProcess(pid); err == nil && !p.Zombie {
			all = append(all, p)
		}
	}
	return all
}

func TestProcessesAreStoppedBeforeTheyAreKilled(t *testing.T) {
	t.Parallel()
	var pids []string
	var children []*exec.Cmd
	for range 2 {
		c := exec.CommandContext(t.Context(), "sleep", "300")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		children, pids = append(children, c), append(pids, strconv.Itoa(c.Process.Pid))
	}
	left := func() []shimapi.Process { return notEnded(pids) }
	if !shimapi.KillRound(left(), 0) || len(left()) != 2 {
		t.Fatalf("after the first round: %+v, want both", left())
	}
	for slices.ContainsFunc(left(), func(p shimapi.Process) bool { return !p.Frozen }) {
		runtime.Gosched() // a signal takes its time
	}
	if !shimapi.KillRound(left(), 1) {
		t.Error("the second round reached no process")
	}
	for _, c := range children {
		_ = c.Wait()
		if got := c.ProcessState.String(); got != "signal: killed" {
			t.Errorf("a process ended as %q, want killed", got)
		}
	}
	if shimapi.KillRound(left(), 2) {
		t.Error("a round without processes reached one")
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
		t.Errorf("a process that cannot be: %v, want ErrNoProcess", err)
	}
	found := false
	for _, p := range shimapi.Processes() {
		found = found || p == self
	}
	if !found {
		t.Error("this process is not among all")
	}
}
