//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
	"github.com/benchmark-ai/bai/services/internal/lock"
)

// Settings say where the cluster keeps its things and what pods are run with.
type Settings struct {
	Dir       string // where everything of the cluster is; it is made. One process at a time may use it
	PodBinary string // the program bai-pod
	Log       *zap.Logger
	// Env are names of variables of this process that containers inherit,
	// besides those that say who and where they are: PATH, HOME, USER, LOGNAME,
	// SHELL, LANG, LANGUAGE, LC_*, TZ, TMPDIR, LD_LIBRARY_PATH.
	Env          []string
	Private      string        // a folder that benchmarks find empty where pods have namespaces: the platform's data; empty means none
	GPUs         int           // how many GPUs pods may be given; zero means as many as there are
	Secrets      string        // folder with the secrets that descriptors name: SECRET/KEY, a file for each value, readable by its owner alone; empty means none
	NoNamespaces bool          // run pods without namespaces, as where the kernel refuses them
	Resync       time.Duration // how often Watch hands everything over again; zero means 30 s
}

// Cluster is a cluster of one machine. It is a cluster.Creator, Deleter and
// Observer, and may be used from several goroutines.
type Cluster struct {
	settings         Settings
	log              *zap.Logger
	disk             disk
	lock             *lock.Lock
	dirWatcher       *dirWatcher
	binary           string
	node             string
	groups           cgroups
	isolation        isolation
	networkIsolation func() (isolation, string) // of pods with a network of their own, looked at once it is needed
	machine          validate.Machine
	env              []string

	done chan struct{} // closed by Close
	wg   sync.WaitGroup

	mu       sync.Mutex                  // never held while a job's is taken
	closing  bool                        // nothing is created any more
	closed   bool                        // nothing is begun any more
	jobs     map[string]*job             // by ID
	attempts map[attempt]gang            // with networks, or that are going
	names    map[objectKey]bool          // of all objects
	creating map[objectKey]chan struct{} // closed when the object is made, or is not
	objects  map[string]object           // by UID
	gpus     map[int]string              // ID of the job that has it
	ports    map[int32]port              // that pods listen on
	watchers map[*watcher]struct{}
	version  int64
}

// objectKey is what an object is created under, once.
type objectKey struct{ kind, scope, name string }

// ip is where everything on this machine is reached.
const ip = "127.0.0.1"

// New returns a cluster that has adopted what the one before left in its
// directory: pods that still run, and the ends of those that do not. Close it.
func New(s Settings) (*Cluster, error) {
	if s.Dir == "" || s.PodBinary == "" {
		return nil, errors.New("local cluster: it needs a directory and the pod binary")
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("local cluster: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	c := &Cluster{
		settings: s, log: s.Log, disk: disk{dir}, done: make(chan struct{}), version: time.Now().UnixNano(),
		jobs: map[string]*job{}, attempts: map[attempt]gang{}, names: map[objectKey]bool{}, creating: map[objectKey]chan struct{}{}, objects: map[string]object{},
		gpus: map[int]string{}, ports: map[int32]port{}, watchers: map[*watcher]struct{}{}, env: inheritedEnv(os.Environ(), s.Env),
	}
	if c.log == nil {
		c.log = zap.NewNop()
	}
	if c.lock, err = c.disk.prepare(); err != nil {
		return nil, err
	}
	if err := c.initialize(); err != nil {
		_ = c.lock.Close()
		return nil, err
	}
	return c, nil
}

// initialize looks at the machine and adopts what is there.
func (c *Cluster) initialize() (err error) {
	if c.node, err = os.Hostname(); err != nil {
		return fmt.Errorf("local cluster: %w", err)
	}
	if c.binary, err = c.disk.binary(c.settings.PodBinary); err != nil {
		return err
	}
	c.isolation, c.machine.NoNamespaces = probeIsolation(c.disk, c.binary, c.settings.NoNamespaces)
	c.networkIsolation = sync.OnceValues(func() (isolation, string) { return probeNetworkIsolation(c.disk, c.binary) })
	if c.machine.GPUs = c.settings.GPUs; c.machine.GPUs == 0 {
		devices, _ := filepath.Glob("/dev/nvidia[0-9]*")
		c.machine.GPUs = len(devices)
	}
	c.groups = findCgroups()
	if c.dirWatcher, err = newDirWatcher(c.disk.stateDir()); err != nil {
		return err
	}
	adopted, err := c.adopt()
	if err != nil {
		c.dirWatcher.close()
		return err
	}
	c.wg.Go(func() { c.dirWatcher.run(c.onFileEvent) })
	c.log.Info("local cluster", zap.String("dir", c.disk.dir), zap.Bool("namespaces", c.machine.NoNamespaces == ""),
		zap.String("without", c.machine.NoNamespaces), zap.String("unlimited", c.groups.unavailableReason), zap.Int("gpus", c.machine.GPUs), zap.Int("adopted", adopted))
	return nil
}

// Limits says why nothing enforces what pods may use of CPU and memory, and the remedy;
// empty where cgroups do.
func (c *Cluster) Limits() string { return c.groups.unavailableReason }

// Namespaces says why pods have no namespaces of their own, and the remedy;
// empty where they have.
func (c *Cluster) Namespaces() string { return c.machine.NoNamespaces }

// Running returns how many pods run.
func (c *Cluster) Running() int { return len(c.running()) }

// Close ends the cluster. With keepPods what runs goes on, to be adopted by the
// next; without, every pod that runs is told to end, is killed when ctx is done
// before, and the next says of it that it failed with the reason PlatformStopped.
// Ended pods stay either way. A second call does nothing.
func (c *Cluster) Close(ctx context.Context, keepPods bool) error {
	c.mu.Lock()
	again := c.closing
	c.closing = true
	c.mu.Unlock()
	if again {
		return nil
	}
	var err error
	if !keepPods {
		err = c.endAll(ctx)
	}
	c.mu.Lock()
	c.closed = true
	close(c.done)
	c.mu.Unlock()
	c.dirWatcher.close()
	c.wg.Wait()
	return errors.Join(err, c.lock.Close())
}

// spawn runs f beside everything else, unless the cluster was closed. Close
// waits for it.
func (c *Cluster) spawn(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Go(f)
	}
}

// sleep waits, and reports whether the cluster is still open.
func (c *Cluster) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.done:
		return false
	}
}

// after calls f with the job locked after a time, unless it is gone by then.
func (c *Cluster) after(j *job, d time.Duration, f func(*job)) {
	t := time.AfterFunc(d, func() {
		c.spawn(func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			if !j.removing {
				f(j)
			}
		})
	})
	j.timers = append(j.timers, t)
}

// nextVersion returns a number greater than any before.
func (c *Cluster) nextVersion() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	return c.version
}

// inheritedEnv returns the variables that every container has.
func inheritedEnv(env, more []string) []string {
	standard := []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH"}
	var inherited []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if slices.Contains(standard, name) || slices.Contains(more, name) || strings.HasPrefix(name, "LC_") {
			inherited = append(inherited, e)
		}
	}
	return inherited
}

// Create implements cluster.Creator.
func (c *Cluster) Create(ctx context.Context, o cluster.Object) error {
	if refused := validate.Object(o, c.machineFor(o)); refused != nil {
		return refused
	}
	n := objectKey{o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName()}
	done, err := c.reserveName(ctx, n)
	if err != nil {
		return err
	}
	err = c.create(o)
	done(err == nil)
	if err != nil {
		return fmt.Errorf("create %s %s: %w", n.kind, n.name, err)
	}
	if n.kind != "Job" {
		c.launchWaiting(n.scope)
	}
	return nil
}

// machineFor returns what the machine offers to an object.
func (c *Cluster) machineFor(o cluster.Object) validate.Machine {
	m := c.machine
	if _, ok := o.(*corev1.Service); ok && m.NoNamespaces == "" {
		_, m.NoNetworks = c.networkIsolation()
	}
	return m
}

// reserveName lets one make an object of a name at a time, and says ErrExists where
// there is one.
func (c *Cluster) reserveName(ctx context.Context, n objectKey) (done func(made bool), err error) {
	for {
		c.mu.Lock()
		creating, busy := c.creating[n]
		switch {
		case c.closing:
			c.mu.Unlock()
			return nil, errClosed
		case c.names[n]:
			c.mu.Unlock()
			return nil, fmt.Errorf("%s %s: %w", n.kind, n.name, cluster.ErrExists)
		case !busy:
			defer c.mu.Unlock()
			made := make(chan struct{})
			c.creating[n] = made
			return func(ok bool) {
				c.mu.Lock()
				defer c.mu.Unlock()
				delete(c.creating, n)
				if ok {
					c.names[n] = true
				}
				close(made)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-creating:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// errClosed says that the cluster was closed.
var errClosed = errors.New("the local cluster is closed")
