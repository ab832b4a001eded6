package wiring

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/cluster/executable"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/registry"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// Engine are the settings of a cluster beside the default one, by the name that
// info.execution_engine of descriptors has.
type Engine struct {
	// kubernetes; exec for a program that runs benchmarks; or local for the platform's machine, in bai standalone alone
	Kind  string `toml:"kind"`
	Slots int    `toml:"slots"` // maximum number of runs that hold a slot there; zero means 4, and 1 of the other kinds
	Dir   string `toml:"dir"`   // of kind local: folder for its pods; empty means engines/NAME in the data folder

	// Command is of kind exec: the program and its arguments, of which each service starts
	// its own copy.
	Command []string `toml:"command"`

	kube.Settings // of kind kubernetes

	Pods *transpile.Settings `toml:"pods"` // in place of executor.pods as a whole; without this table, those of executor.pods hold
}

// Local reports whether pods of the engine run on the platform's machine.
func (e Engine) Local() bool { return e.Kind == plan.EngineLocal }

// ValidateEngines names every setting of an engine at fault, where base are the settings of
// pods that hold for engines without their own. A program of one service has no local
// engines, since the pods of one machine belong to one process.
func ValidateEngines(all map[string]Engine, base transpile.Settings) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		errs = append(errs, checkEngineName(name), all[name].validate("engines."+name, base))
	}
	return errors.Join(errs...)
}

// engineName is the form of the names that descriptors can have for an engine.
var engineName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)

func checkEngineName(name string) error {
	switch {
	case !engineName.MatchString(name):
		return fmt.Errorf("engines.%s: no descriptor can have this name: write letters, digits, - and _", name)
	case slices.Contains([]string{"default", plan.EngineLocal, plan.EngineKubernetes}, name):
		return fmt.Errorf("engines.%s: this name stands for the default engine: choose another one", name)
	}
	return nil
}

func (e Engine) validate(at string, base transpile.Settings) error {
	var errs []error
	if e.Slots < 0 {
		errs = append(errs, fmt.Errorf("%s.slots: must not be negative", at))
	}
	pods := base
	if e.Pods != nil {
		pods = *e.Pods
		errs = append(errs, pods.Validate(at+".pods"))
	}
	if e.Kind != plan.EngineKubernetes && (e.Kubeconfig != "" || e.Context != "" || e.Namespace != "" || len(e.Kinds) > 0) {
		errs = append(errs, fmt.Errorf("%s: kubeconfig, context, namespace and kinds are of kind kubernetes: leave them out", at))
	}
	if (e.Kind == plan.EngineExec) != (len(e.Command) > 0) {
		errs = append(errs, fmt.Errorf("%s.command: is needed by kind exec, and no other has one", at))
	}
	if e.Dir != "" && e.Kind != plan.EngineLocal {
		errs = append(errs, fmt.Errorf("%s.dir: is of kind local: leave it out", at))
	}
	switch e.Kind {
	case plan.EngineLocal, plan.EngineExec:
	case plan.EngineKubernetes:
		if !e.Set() {
			errs = append(errs, fmt.Errorf("%s: write kubeconfig, or the namespace of runs in the cluster of this process", at))
		}
		cluster := errors.Join(e.Validate(), e.ValidateOperator(pods.MPIOperator), kube.ValidateManifests(e.Settings, pods.Manifests))
		if cluster != nil {
			errs = append(errs, errors.New(strings.ReplaceAll(cluster.Error(), "kubernetes.", at+".")))
		}
	default:
		errs = append(errs, fmt.Errorf("%s.kind: %q, want %s, %s or %s", at, e.Kind, plan.EngineKubernetes,
			plan.EngineExec, plan.EngineLocal))
	}
	return errors.Join(errs...)
}

// RefuseLocalEngines names the engines that need one process for all services.
func RefuseLocalEngines(all map[string]Engine) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].Local() {
			errs = append(errs, fmt.Errorf("engines.%s.kind: only bai standalone has engines of kind local: use kind kubernetes", name))
		}
	}
	return errors.Join(errs...)
}

// EngineSettings returns the executor's settings of engines. Those that have no settings of
// pods have base, and the others have from it how pods reach the platform.
func EngineSettings(all map[string]Engine, base transpile.Settings) map[string]executor.EngineSettings {
	engines := make(map[string]executor.EngineSettings, len(all))
	for name, e := range all {
		pods, slots := base, e.Slots
		if e.Pods != nil {
			pods = *e.Pods
			pods.Access, pods.Reserve = base.Access, base.Reserve
			pods.Image = cmp.Or(pods.Image, base.Image)
			pods.ObjectStore, pods.Gateway = cmp.Or(pods.ObjectStore, base.ObjectStore), cmp.Or(pods.Gateway, base.Gateway)
			if len(pods.Brokers) == 0 {
				pods.Brokers = base.Brokers
			}
		}
		pods.Scope = e.Scope()
		if e.Kind != plan.EngineKubernetes {
			pods.Scope, slots = "", cmp.Or(slots, 1) // two benchmarks on one machine disturb each other
		}
		engines[name] = executor.EngineSettings{Kind: e.Kind, Slots: slots, Pods: pods}
	}
	return engines
}

// OpenEngines opens the engines of kind kubernetes, without connecting to them. MainOnly is
// as in the settings of a cluster. The caller closes each.
func OpenEngines(all map[string]Engine, mainOnly bool, log *zap.Logger) (map[string]*kube.Cluster, error) {
	opened := make(map[string]*kube.Cluster)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := all[name]
		if e.Kind != plan.EngineKubernetes {
			continue
		}
		e.MainOnly = mainOnly
		c, err := kube.New(e.Settings, log)
		if err != nil {
			for _, c := range opened {
				c.Close()
			}
			return nil, fmt.Errorf("open engine %s: %w", name, err)
		}
		opened[name] = c
	}
	return opened, nil
}

// AddImages adds the clients of registries for engines of kind kubernetes to those that
// there are, by engine. Each reads the pull secrets of its own cluster. The caller closes
// them.
func AddImages(to map[string]plan.Images, s registry.Settings, engines map[string]*kube.Cluster) (release func(), err error) {
	var all []*registry.Reader
	release = func() {
		for _, r := range all {
			r.Close()
		}
	}
	for name, c := range engines {
		r, err := registry.New(s, c)
		if err != nil {
			release()
			return nil, fmt.Errorf("open the registries of engine %s: %w", name, err)
		}
		all, to[name] = append(all, r), r
	}
	return release, nil
}

// OpenPrograms opens the engines of kind exec, without starting their programs. The caller
// closes each.
func OpenPrograms(all map[string]Engine, log *zap.Logger) (map[string]*executable.Cluster, error) {
	opened := make(map[string]*executable.Cluster)
	for name, e := range all {
		if e.Kind != plan.EngineExec {
			continue
		}
		c, err := executable.New(executable.Settings{Command: e.Command, Log: log})
		if err != nil {
			return nil, fmt.Errorf("open engine %s: %w", name, err)
		}
		opened[name] = c
	}
	return opened, nil
}
