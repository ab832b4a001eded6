//go:build linux

package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/pod/proc"
	"github.com/benchmark-ai/bai/services/internal/pod/sockets"
)

// notStarted is the exit code that container runtimes use for a container that could not be started.
const notStarted = 128

// start starts container i, or records why it could not be started.
func (s *shim) start(i int) {
	st := &s.state.Containers[i]
	restarts := st.Restarts
	if !st.Started.IsZero() {
		restarts++
	}
	*st = shimapi.ContainerStatus{Started: time.Now(), Restarts: restarts, LastTermination: st.Termination}
	if s.installInPlace(i) {
		st.Termination = &shimapi.Termination{Started: st.Started, Ended: time.Now()}
		return
	}
	pid, err := s.launch(i)
	if err != nil {
		st.Termination = &shimapi.Termination{Code: notStarted, Problem: err.Error(), Started: st.Started, Ended: time.Now()}
		return
	}
	st.PID = pid
	s.running[pid] = i
}

func (s *shim) launch(i int) (int, error) {
	c := s.pod.Containers[i]
	root, err := s.enterableRoot(i)
	if err != nil {
		return 0, err
	}
	dir := c.Dir
	if dir == "" {
		dir = "/"
	}
	if err := checkPath(root, dir, unix.S_IFDIR, 0); err != nil {
		return 0, fmt.Errorf("working directory %q: %w", dir, err)
	}
	path, err := lookPath(root, dir, c)
	if err != nil {
		return 0, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close() //nolint:errcheck // only read
	log, err := s.logs.open(filepath.Join(s.dir, shimapi.Logs, c.Name+".log"))
	if err != nil {
		return 0, err
	}
	defer log.Close() //nolint:errcheck // the container's end
	files := []uintptr{null.Fd(), log.Fd(), log.Fd()}
	if c.Sockets && s.netStarter != nil {
		client, err := s.serveSockets()
		if err != nil {
			return 0, err
		}
		defer unix.Close(client) //nolint:errcheck // the container's
		files = append(files, uintptr(client))
	}
	pid, err := s.starter(c).Start(proc.Command{
		Path: path, Args: c.Args, Env: c.Env, Dir: dir, Root: root, Session: true, Groups: c.Groups, Files: files,
	})
	if err != nil {
		return 0, fmt.Errorf("exec %q: %w", c.Args[0], proc.TooLong(err, c.Args, c.Env))
	}
	return pid, nil
}

// serveSockets returns a connection that hands out sockets of the pod's network until all its copies are closed.
func (s *shim) serveSockets() (client int, err error) {
	server, client, err := sockets.Pair()
	if err != nil {
		return -1, err
	}
	go sockets.Serve(server, s.netStarter.Do)
	return client, nil
}

// starter returns the starter for the container's network.
func (s *shim) starter(c shimapi.Container) *proc.Starter {
	if s.netStarter == nil || c.HostNetwork {
		return s.table.Starter
	}
	return s.netStarter
}

// enterableRoot returns the root directory of container i, ready to be entered.
func (s *shim) enterableRoot(i int) (string, error) {
	switch {
	case s.rootfsErr != nil:
		return "", s.rootfsErr
	case s.rootfs == nil:
		return "", nil
	}
	return s.rootfs.makeRoot(s.pod.Containers[i])
}

// lookPath finds the container's command as execvp would, in its own root.
func lookPath(root, dir string, c shimapi.Container) (string, error) {
	name := c.Args[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	problem := syscall.ENOENT
	for d := range strings.SplitSeq(pathOf(c.Env), ":") {
		path := filepath.Join(d, name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		err := checkPath(root, path, unix.S_IFREG, 0o111)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, syscall.EACCES) {
			problem = syscall.EACCES
		}
	}
	return "", fmt.Errorf("exec %q: executable file not found in $PATH: %w", name, problem)
}

func pathOf(env []string) string {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			return v
		}
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

// checkPath returns why path, as seen from root, has not the given type or lacks all of the given permissions.
func checkPath(root, path string, kind, some uint32) error {
	var st unix.Stat_t
	if err := statIn(root, path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != kind {
		if kind == unix.S_IFDIR {
			return syscall.ENOTDIR
		}
		return syscall.EACCES
	}
	if some != 0 && st.Mode&some == 0 {
		return syscall.EACCES
	}
	return nil
}

// statIn follows links as a process does whose root is root.
func statIn(root, path string, st *unix.Stat_t) error {
	if root == "" {
		return unix.Stat(path, st)
	}
	at, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(at) //nolint:errcheck // only looked at
	fd, err := unix.Openat2(at, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if errors.Is(err, syscall.ENOSYS) {
		return unix.Stat(filepath.Join(root, path), st)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // only looked at
	return unix.Fstat(fd, st)
}
