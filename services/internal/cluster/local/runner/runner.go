//go:build linux

// Package runner starts the shims of pods on this machine, each with the strongest
// isolation and limits that the machine allows, and ends them.
package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/cgroup"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/lower"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/control/keymutex"
)

// Runner starts shims. Any goroutine may use it.
type Runner struct {
	Binary       string // the pod binary
	NoLimits     string // why limits of CPU and memory are not enforced, and the remedy; empty if cgroups enforce them
	NoNamespaces string // why pods have no namespaces of their own, and the remedy; empty if they have

	folder           disk.Folder
	log              *zap.Logger
	groups           cgroup.Groups
	isolation        isolation
	networkIsolation func() (isolation, string) // of pods with a network of their own, probed on first use
	bridges          keymutex.Mutex             // by the folder of the network
}

// New copies the pod binary into the folder and probes the machine. If disabled is set, pods have no namespaces.
func New(f disk.Folder, podBinary string, disabled bool, log *zap.Logger) (*Runner, error) {
	binary, err := f.Binary(podBinary)
	if err != nil {
		return nil, err
	}
	r := &Runner{Binary: binary, folder: f, log: log, groups: cgroup.Find()}
	r.NoLimits = r.groups.Unavailable
	r.isolation, r.NoNamespaces = probeIsolation(f, binary, disabled)
	r.networkIsolation = sync.OnceValues(func() (isolation, string) { return probeNetworkIsolation(f, binary) })
	return r, nil
}

// NoNetworks returns why pods cannot have networks of their own, and the remedy; empty if they can.
func (r *Runner) NoNetworks() string {
	_, unavailable := r.networkIsolation()
	return unavailable
}

// Start writes the files of a pod and starts its shim. It returns the shim's process ID if the shim is a child of this process. The shim of
// a pod with a network of its own is a child of the bridge, in the folder network; network is empty for a pod that shares the machine's.
func (r *Runner) Start(id string, out lower.Output, network string) (pid int, err error) {
	if err := createVolumes(out); err != nil {
		return 0, err
	}
	if err := r.writePod(id, out.Pod); err != nil {
		return 0, err
	}
	lock, err := r.folder.Lock(id)
	if err != nil {
		return 0, fmt.Errorf("take the pod's lock: %w", err)
	}
	defer lock.Close() //nolint:errcheck // the shim has it too
	if network != "" {
		err = r.startInNetwork(id, network, lock)
	} else {
		pid, err = r.isolation.startShim(r.Binary, r.folder.Pod(id), lock)
	}
	if err != nil {
		return 0, fmt.Errorf("start the supervisor: %w", err)
	}
	return pid, nil
}

// writePod writes the specification of a pod, and makes the cgroups that it names: these are written down first, so that none stays if this
// process ends in between.
func (r *Runner) writePod(id string, p shimapi.Pod) error {
	path := filepath.Join(r.folder.Pod(id), shimapi.PodFile)
	if r.NoLimits == "" {
		for i := range p.Containers {
			o := &p.Containers[i]
			o.Groups = r.groups.Folders(groupName(p, *o), o.CPU, o.Memory)
		}
	}
	if err := shimapi.Write(path, p); err != nil || r.NoLimits != "" || r.createGroups(p) {
		return err
	}
	return shimapi.Write(path, p)
}

// createGroups makes the cgroups of the containers of a pod: they enforce limits, and count the processes that the kernel kills for lack of
// memory. It is false if a container has to run without: it has no Groups then.
func (r *Runner) createGroups(p shimapi.Pod) bool {
	all := true
	for i := range p.Containers {
		o := &p.Containers[i]
		dirs, err := r.groups.Create(groupName(p, *o), o.CPU, o.Memory)
		if err == nil {
			continue
		}
		err = errors.Join(err, cgroup.Remove(dirs))
		r.log.Warn("a container runs without cgroups, and so without limits", zap.String("pod", p.ID),
			zap.String("container", o.Name), zap.Error(err))
		o.Groups, all = nil, false
	}
	return all
}

// groupName returns the name of the cgroups of a container.
func groupName(p shimapi.Pod, c shimapi.Container) string { return "bai-" + p.ID + "-" + c.Name }

// createVolumes creates the volumes and their first files. It can be repeated.
func createVolumes(out lower.Output) error {
	for _, dir := range out.Dirs {
		if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // containers may have other users
			return err
		}
		if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // whatever the umask
			return err
		}
	}
	for _, f := range out.Files {
		if err := writeFile(f); err != nil {
			return err
		}
	}
	for at, to := range out.Links {
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil { //nolint:gosec // containers may have other users
			return err
		}
		if err := os.Symlink(to, at); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func writeFile(f lower.File) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil { //nolint:gosec // containers may have other users
		return err
	}
	if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(f.Path, f.Data, 0o600); err != nil {
		return err
	}
	return os.Chmod(f.Path, fs.FileMode(f.Mode))
}
