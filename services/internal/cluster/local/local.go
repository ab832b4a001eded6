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
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/runner"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
	"github.com/benchmark-ai/bai/services/internal/lock"
)

// Settings of a local cluster.
type Settings struct {
	Dir       string // the folder of the cluster, which is made. One process at a time may use it
	PodBinary string // the program bai-pod
	Log       *zap.Logger
	// Env are names of variables of this process that containers inherit,
	// besides those that say who and where they are: PATH, HOME, USER, LOGNAME,
	// SHELL, LANG, LANGUAGE, LC_*, TZ, TMPDIR, LD_LIBRARY_PATH.
	Env     []string
	Private string // a folder that benchmarks find empty where pods have namespaces: the platform's data; empty means none
	GPUs    int    // how many GPUs pods may be given; zero means as many as there are
	// folder with the secrets that descriptors name: SECRET/KEY, a file for each value, readable by its owner alone; empty means none
	Secrets      string
	NoNamespaces bool          // run pods without namespaces, as where the kernel refuses them
	Resync       time.Duration // how often Watch hands everything over again; zero means 30 s
}

// Cluster is a cluster of one machine. It is a cluster.Creator, Deleter and Observer. Several goroutines may use it.
//
// A job's lock is taken before those of the registry, the objects and the resources. No other lock is taken while one of these is held.
type Cluster struct {
	settings   Settings
	log        *zap.Logger
	folder     disk.Folder
	node       string
	lock       *lock.Lock
	watcher    *disk.Watcher
	registry   *registry
	objects    *objects
	resources  *resources
	background *background
	runner     *runner.Runner
	kubelet    *kubelet
	controller *controller
}

// ip is where everything on this machine is reached.
const ip = "127.0.0.1"

// New returns a cluster that has adopted the pods which the previous cluster left in its folder: running pods, and the results of ended
// ones. The caller closes it.
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
	c := &Cluster{settings: s, log: s.Log, folder: disk.Folder{Dir: dir}, registry: newRegistry(), background: newBackground()}
	if c.log == nil {
		c.log = zap.NewNop()
	}
	if c.lock, err = c.folder.Prepare(); err != nil {
		return nil, err
	}
	if err := c.initialize(); err != nil {
		_ = c.lock.Close()
		return nil, err
	}
	return c, nil
}

// initialize probes the machine and adopts the existing pods.
func (c *Cluster) initialize() (err error) {
	if c.node, err = os.Hostname(); err != nil {
		return fmt.Errorf("local cluster: %w", err)
	}
	if c.runner, err = runner.New(c.folder, c.settings.PodBinary, c.settings.NoNamespaces, c.log); err != nil {
		return err
	}
	gpus := c.settings.GPUs
	if gpus == 0 {
		devices, _ := filepath.Glob("/dev/nvidia[0-9]*")
		gpus = len(devices)
	}
	c.objects, c.resources = newObjects(c.folder, c.log), newResources(gpus)
	c.connect()
	if c.watcher, err = disk.NewWatcher(c.folder.StateDir()); err != nil {
		return err
	}
	adopted, err := c.controller.adopt()
	if err != nil {
		c.watcher.Close()
		return err
	}
	c.background.spawn(func(context.Context) { c.watcher.Run(c.kubelet.onFileEvent) })
	c.log.Info("local cluster", zap.String("dir", c.folder.Dir), zap.Bool("namespaces", c.runner.NoNamespaces == ""),
		zap.String("without", c.runner.NoNamespaces), zap.String("unlimited", c.runner.NoLimits),
		zap.Int("gpus", gpus), zap.Int("adopted", adopted))
	return nil
}

// connect makes the kubelet and the job controller, which call each other.
func (c *Cluster) connect() {
	c.kubelet = &kubelet{
		registry: c.registry, objects: c.objects, resources: c.resources, background: c.background, runner: c.runner,
		folder: c.folder, log: c.log, node: c.node, env: inheritedEnv(os.Environ(), c.settings.Env), private: c.settings.Private,
		secrets: userSecrets(c.settings.Secrets),
	}
	c.controller = &controller{
		registry: c.registry, objects: c.objects, resources: c.resources, background: c.background, kubelet: c.kubelet,
		runner: c.runner, folder: c.folder, log: c.log, node: c.node,
	}
	c.kubelet.events = c.controller
}

// Limits returns why limits of CPU and memory are not enforced, and the remedy; empty if cgroups enforce them.
func (c *Cluster) Limits() string { return c.runner.NoLimits }

// Namespaces returns why pods have no namespaces of their own, and the remedy; empty if they have.
func (c *Cluster) Namespaces() string { return c.runner.NoNamespaces }

// Running returns how many pods run.
func (c *Cluster) Running() int { return len(c.controller.running()) }

// Close ends the cluster. With keepPods, running pods go on, and the next cluster adopts them. Without, every running pod is ended, and
// killed if ctx is done before; in the next cluster it has failed with the reason PlatformStopped. Ended pods stay either way. A second
// call has no effect.
func (c *Cluster) Close(ctx context.Context, keepPods bool) error {
	if !c.objects.close() {
		return nil
	}
	var err error
	if !keepPods {
		err = c.controller.endAll(ctx)
	}
	c.background.close()
	c.watcher.Close()
	c.background.wait()
	return errors.Join(err, c.lock.Close())
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
	n := disk.Key{Kind: o.GetObjectKind().GroupVersionKind().Kind, Scope: o.GetNamespace(), Name: o.GetName()}
	done, err := c.objects.reserve(ctx, n)
	if err != nil {
		return err
	}
	err = c.create(o)
	done(err == nil)
	if err != nil {
		return fmt.Errorf("create %s %s: %w", n.Kind, n.Name, err)
	}
	if n.Kind != "Job" {
		c.kubelet.launchWaiting(n.Scope)
	}
	return nil
}

// create sets the UID of an object, and adds it.
func (c *Cluster) create(o cluster.Object) error {
	o.SetUID(types.UID(newUID()))
	o.SetCreationTimestamp(metav1.NewTime(time.Now()))
	o.SetResourceVersion(fmt.Sprint(c.registry.nextVersion()))
	switch o := o.(type) {
	case *corev1.ConfigMap:
		return c.objects.add(string(o.UID), disk.Object{ConfigMap: o.DeepCopy()})
	case *corev1.Secret:
		return c.objects.add(string(o.UID), disk.Object{Secret: o.DeepCopy()})
	case *corev1.Service:
		return c.objects.add(string(o.UID), disk.Object{Service: o.DeepCopy()})
	case *batchv1.Job:
		o.Generation = 1
		return c.controller.addJob(o.DeepCopy())
	}
	return nil // validate.Object refuses other types
}

// machineFor returns the machine's offer to an object.
func (c *Cluster) machineFor(o cluster.Object) validate.Machine {
	m := validate.Machine{GPUs: c.resources.count, NoNamespaces: c.runner.NoNamespaces}
	if _, ok := o.(*corev1.Service); ok && m.NoNamespaces == "" {
		m.NoNetworks = c.runner.NoNetworks()
	}
	return m
}
