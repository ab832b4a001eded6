//go:build linux

package kubecluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Keep boots a cluster, calls up with its addresses once it is up, and keeps it until ctx
// is done. All of it is gone when Keep returns, with or without an error. Keep begins
// with the leftovers of killed keepers.
func Keep(ctx context.Context, s Settings, up func(Info) error) (err error) {
	if err := s.check(); err != nil {
		return err
	}
	k := &keeper{settings: s, dir: Dir(s.Name)}
	start, cancel := context.WithTimeout(ctx, s.timeout())
	defer cancel()
	if err := k.begin(start); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end(context.WithoutCancel(ctx))) }()
	if err := k.boot(start); err != nil {
		return fmt.Errorf("boot the cluster %s: %w%s", s.Name, err, k.lastOutput())
	}
	switchOnSignals := make(chan os.Signal, 1)
	signal.Notify(switchOnSignals, switchOn)
	defer signal.Stop(switchOnSignals)
	if err := up(k.info); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-switchOnSignals:
			if err := k.switchOn(ctx); err != nil {
				return err
			}
		case name := <-k.ended:
			if name == machineCP {
				return fmt.Errorf("the machine %s of the cluster %s has ended%s", name, s.Name, k.lastOutput())
			}
			k.off++ // a node that is switched off remains so until switchOn
		}
	}
}

// switchOn is the signal by which a keeper starts the machines whose folders have a file
// called onFile.
const (
	switchOn = syscall.SIGHUP
	onFile   = "on"
)

// switchOn starts the requested machines.
func (k *keeper) switchOn(ctx context.Context) error {
	specs, err := k.specs()
	if err != nil {
		return err
	}
	for _, s := range specs {
		if os.Remove(s.path(onFile)) != nil {
			continue // no request
		}
		if err := k.machine(ctx, s); err != nil {
			return fmt.Errorf("switch the machine %s on: %w", s.Name, err)
		}
	}
	return nil
}

// machineCP is the machine without which there is no cluster.
const machineCP = "cp"

// keeper keeps one cluster.
type keeper struct {
	settings Settings
	dir      string
	lock     *os.File // of the cluster
	hostLock *os.File // of the machine's only place for a cluster with nodes
	changes  hostChanges
	info     Info
	running  []*exec.Cmd
	pipes    []*os.File
	ended    chan string
	off      int // machines that have ended, as reported
}

// begin takes the locks, and undoes the leftovers of the dead.
func (k *keeper) begin(ctx context.Context) (err error) {
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return fmt.Errorf("make the cluster's folder: %w", err)
	}
	if k.lock, err = acquireLock(ctx, filepath.Join(k.dir, lockFile)); err != nil {
		return fmt.Errorf("a cluster called %s is up: %w", k.settings.Name, err)
	}
	if k.settings.Nodes > 0 {
		if k.hostLock, err = acquireLock(ctx, hostLockFile); err != nil {
			return errors.Join(fmt.Errorf("another cluster with nodes is up on this machine: %w", err), k.lock.Close())
		}
	}
	if err := sweep(ctx, k.settings.Name); err != nil {
		return errors.Join(err, k.unlock())
	}
	return nil
}

// hostLockFile is locked by the keeper of the one cluster with nodes.
const hostLockFile = "/run/bai-bed.lock"

// acquireLock locks a file, which ends with the process.
func acquireLock(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // ours
	if err != nil {
		return nil, err
	}
	err = await(ctx, 50*time.Millisecond, "wait for "+path, func() error {
		return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// isKept reports whether a living keeper has a cluster.
func isKept(name string) bool {
	f, err := os.Open(filepath.Join(Dir(name), lockFile))
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only looked at
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

func (k *keeper) unlock() error {
	var errs []error
	for _, f := range []*os.File{k.hostLock, k.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// boot brings the cluster up.
func (k *keeper) boot(ctx context.Context) error {
	specs, err := k.specs()
	if err != nil {
		return err
	}
	if err := certificates(specs[0].PKI, specs[0].server(), k.settings.Nodes); err != nil {
		return err
	}
	if err := k.prepare(ctx); err != nil {
		return err
	}
	k.ended = make(chan string, len(specs))
	for _, s := range specs {
		if err := k.machine(ctx, s); err != nil {
			return err
		}
	}
	if err := k.await(ctx, specs[0]); err != nil {
		return err
	}
	k.info = k.describe(specs[0])
	return writeJSON(filepath.Join(k.dir, infoFile), k.info)
}

// specs are the settings of the machines, the control plane's first.
func (k *keeper) specs() ([]machineSpec, error) {
	base := machineSpec{
		PKI: filepath.Join(k.dir, "pki"), Bin: k.settings.Bin, Nodes: k.settings.Nodes, Images: k.settings.Images,
		Ports: ports{Etcd: 2379, API: 6443}, NoControllers: k.settings.NoControllers, Scheduler: k.settings.Scheduler,
	}
	if base.sharesHostNetwork() {
		var err error
		if base.Ports, err = reservePorts(); err != nil {
			return nil, err
		}
	}
	all := make([]machineSpec, 0, 1+k.settings.Nodes)
	for n := range 1 + k.settings.Nodes {
		s := base
		s.Name, s.Number = machineCP, 1
		if n > 0 {
			s.Name, s.Number = nodeName(n), firstNode+n
		}
		s.Dir = filepath.Join(k.dir, s.Name)
		all = append(all, s)
	}
	return all, nil
}

// machine starts one, and links it.
func (k *keeper) machine(ctx context.Context, s machineSpec) error {
	if err := os.MkdirAll(filepath.Join(s.Dir, "log"), 0o700); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(s.Dir, "spec.json"), s); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.Dir, "log", "machine.log"))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the machine has it
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()                                    //nolint:errcheck // the machine has it
	cmd := exec.Command("/proc/self/exe", "machine", s.Dir) //nolint:gosec,noctx // ends with its pipe
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, log, log
	cmd.SysProcAttr = attributes(s)
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start the machine %s: %w", s.Name, err), ours.Close())
	}
	k.running, k.pipes = append(k.running, cmd), append(k.pipes, ours)
	go func() {
		_ = cmd.Wait()
		k.ended <- s.Name
	}()
	if s.sharesHostNetwork() {
		return nil
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "pid"), []byte(port(cmd.Process.Pid)), 0o600); err != nil {
		return err
	}
	return link(ctx, s.Number, cmd.Process.Pid)
}

// attributes are the namespaces of a machine. One without a network of its own needs no
// privilege, so any user may make it.
func attributes(s machineSpec) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS}
	if !s.sharesHostNetwork() {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	if uid := os.Geteuid(); uid != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return a
}

// await waits until the cluster is of use, or one of its machines has ended.
func (k *keeper) await(ctx context.Context, cp machineSpec) error {
	a, err := newAPI(cp.PKI, cp.server())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case name := <-k.ended:
			cancel(fmt.Errorf("the machine %s has ended: %s", name, lastLine(filepath.Join(k.dir, name, "log", "machine.log"))))
		case <-stop:
		}
	}()
	for _, step := range []func() error{
		func() error { _, err := a.get(ctx, readyURL); return err },
		func() error {
			if k.settings.NoControllers && k.settings.Nodes == 0 {
				return nil
			}
			_, err := a.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
			return err
		},
		func() error { return a.nodesReady(ctx, k.settings.Nodes) },
	} {
		if err := await(ctx, 20*time.Millisecond, "wait for the cluster", step); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) describe(cp machineSpec) Info {
	i := Info{
		Name: k.settings.Name, Dir: k.dir, Kubeconfig: cp.pki("admin.kubeconfig"), Server: cp.server(),
		Audit: cp.path("audit.log"), Kubectl: cp.program("kubectl"), Keeper: os.Getpid(), Simulator: cp.pki("simulator.kubeconfig"),
	}
	for n := 1; n <= k.settings.Nodes; n++ {
		i.Nodes = append(i.Nodes, nodeName(n))
		i.Host = hostAddress
	}
	return i
}

// end ends the machines and undoes the changes that the kernel does not undo.
func (k *keeper) end(ctx context.Context) error {
	for _, p := range k.pipes {
		_ = p.Close() // a machine ends with it
	}
	for range len(k.running) - k.off {
		select {
		case <-k.ended:
		case <-time.After(5 * time.Second):
			for _, cmd := range k.running {
				_ = cmd.Process.Kill() // at once, if not by itself
			}
		}
	}
	return errors.Join(undo(ctx, k.dir), k.unlock())
}
