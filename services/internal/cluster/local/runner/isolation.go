//go:build linux

package runner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// isolation is how a shim is isolated.
type isolation struct {
	flags   uintptr // namespaces of its own
	uid     int     // in a user namespace
	gid     int
	ambient []uintptr // capabilities that it keeps in the namespace
}

// probeIsolation returns the strongest isolation that this machine allows, and if that is none, why, and the remedy.
func probeIsolation(f disk.Folder, binary string, disabled bool) (isolation, string) {
	if disabled {
		return isolation{}, "the platform's settings say that pods have no namespaces; change no_namespaces"
	}
	i, err := strongestIsolation(f, binary, "--probe", unix.CLONE_NEWPID|unix.CLONE_NEWNS, unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT)
	if err != nil {
		return isolation{}, fmt.Sprintf("%v; %s", err, namespaceRemedy())
	}
	return i, ""
}

// strongestIsolation returns an isolation in which the pod binary passes the probe, as root the one without a user namespace if that is
// possible.
func strongestIsolation(f disk.Folder, binary, probeFlag string, flags uintptr, ambient ...uintptr) (isolation, error) {
	privileged := isolation{flags: flags}
	userNamespace := isolation{flags: flags | unix.CLONE_NEWUSER, uid: os.Getuid(), gid: os.Getgid(), ambient: ambient}
	tries := []isolation{userNamespace}
	if os.Getuid() == 0 {
		tries = []isolation{privileged, userNamespace}
	}
	var last error
	for _, i := range tries {
		if last = i.probe(f, binary, probeFlag); last == nil {
			return i, nil
		}
	}
	return isolation{}, last
}

// probe has the pod binary check whether it can work in the isolation.
func (i isolation) probe(f disk.Folder, binary, probeFlag string) error {
	dir := f.Trash("probe" + probeFlag)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	defer disk.RemoveAll(dir)                                //nolint:errcheck // it is in the trash
	cmd := exec.Command(binary, "supervise", probeFlag, dir) //nolint:gosec,noctx // our own, and short
	cmd.SysProcAttr = i.sysProcAttr()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	runtime.LockOSThread() // else the child would end with the thread that started it
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if output := string(bytes.TrimSpace(out)); output != "" {
		return errors.New(output)
	}
	return fmt.Errorf("make namespaces: %w", err)
}

// namespaceRemedy names the settings of the machine that forbid namespaces.
func namespaceRemedy() string {
	var found []string
	for name, allowed := range map[string]string{
		"kernel.unprivileged_userns_clone": "1", "kernel.apparmor_restrict_unprivileged_userns": "0", "user.max_user_namespaces": "",
	} {
		b, err := os.ReadFile(filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/")))
		value := strings.TrimSpace(string(b))
		switch {
		case err != nil:
		case allowed == "" && value == "0":
			found = append(found, "set sysctl "+name+" above 0")
		case allowed != "" && value != allowed:
			found = append(found, "set sysctl "+name+" to "+allowed)
		}
	}
	if len(found) == 0 {
		return "run the platform as root with CAP_SYS_ADMIN, or allow user namespaces (in a container: its seccomp profile)"
	}
	return strings.Join(found, " and ")
}

func (i isolation) sysProcAttr() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Cloneflags: i.flags, AmbientCaps: i.ambient}
	if i.flags&unix.CLONE_NEWUSER != 0 {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: i.uid, HostID: i.uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: i.gid, HostID: i.gid, Size: 1}}
	}
	return a
}

// startShim starts the shim of the pod in dir, which inherits lock, and returns its process ID.
func (i isolation) startShim(binary, dir string, lock *os.File) (int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close() //nolint:errcheck // only read
	log, err := os.OpenFile(filepath.Join(dir, shimapi.Logs, "supervisor.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close() //nolint:errcheck // the supervisor's
	return syscall.ForkExec(binary, []string{binary, "supervise", dir}, &syscall.ProcAttr{
		Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1"},
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd(), lock.Fd()}, Sys: i.sysProcAttr(),
	})
}
