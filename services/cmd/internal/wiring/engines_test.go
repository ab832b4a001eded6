package wiring_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/plan/inject"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

func TestEnginesThatCannotBeAreRefusedByName(t *testing.T) {
	t.Parallel()
	cluster := wiring.Engine{Kind: "kubernetes", Settings: kube.Settings{Kubeconfig: "/k"}}
	with := func(change func(*wiring.Engine)) wiring.Engine {
		e := cluster
		change(&e)
		return e
	}
	for name, tt := range map[string]struct {
		name   string
		engine wiring.Engine
		want   string // empty for none
	}{
		"a cluster":                      {"gpu", cluster, ""},
		"this machine":                   {"second", wiring.Engine{Kind: "local", Dir: "/pods"}, ""},
		"a program":                      {"far", wiring.Engine{Kind: "exec", Command: []string{"engine"}}, ""},
		"a program that is not named":    {"far", wiring.Engine{Kind: "exec"}, "engines.far.command: is needed by kind exec"},
		"a cluster with a program":       {"gpu", with(func(e *wiring.Engine) { e.Command = []string{"engine"} }), "engines.gpu.command: is needed by kind exec, and no other"},
		"no kind":                        {"gpu", wiring.Engine{}, `engines.gpu.kind: "", want kubernetes, exec or local`},
		"a kind that is not there":       {"gpu", wiring.Engine{Kind: "slurm"}, `engines.gpu.kind: "slurm", want kubernetes, exec or local`},
		"a name that no descriptor has":  {"a b", cluster, "engines.a b: no descriptor can have this name"},
		"the name of the default engine": {"default", cluster, "engines.default: this name stands for the default engine"},
		"the name of a kind":             {"kubernetes", cluster, "engines.kubernetes: this name stands for the default engine"},
		"a cluster that is not named":    {"gpu", wiring.Engine{Kind: "kubernetes"}, "engines.gpu: write kubeconfig, or the namespace"},
		"a cluster with a folder":        {"gpu", with(func(e *wiring.Engine) { e.Dir = "/pods" }), "engines.gpu.dir: is of kind local"},
		"this machine with a kubeconfig": {"second", wiring.Engine{Kind: "local", Settings: kube.Settings{Kubeconfig: "/k"}}, "engines.second: kubeconfig, context"},
		"less than no slots":             {"gpu", with(func(e *wiring.Engine) { e.Slots = -1 }), "engines.gpu.slots: must not be negative"},
		"a fault of the cluster":         {"gpu", with(func(e *wiring.Engine) { e.QPS = -1 }), "engines.gpu.qps, engines.gpu.burst: must not be negative"},
		"a fault of its pods":            {"gpu", with(func(e *wiring.Engine) { e.Pods = &transpile.Settings{Grace: -1} }), "engines.gpu.pods.grace: must not be negative"},
		"kinds that its cluster lacks":   {"gpu", with(func(e *wiring.Engine) { e.Pods = &transpile.Settings{MPIOperator: true} }), "engines.gpu.kinds does not name"},
		"kinds that its cluster has":     {"gpu", with(func(e *wiring.Engine) { e.Kinds = []string{"workflows.v1alpha1.argoproj.io"} }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := transpile.Settings{}
			if len(tt.engine.Kinds) > 0 {
				base.Manifests = map[string]inject.Kind{"Workflow.v1alpha1.argoproj.io": {}}
			}
			err := wiring.ValidateEngines(map[string]wiring.Engine{tt.name: tt.engine}, base)
			if got := ""; tt.want == "" && err != nil || err != nil && !strings.Contains(err.Error(), tt.want) || err == nil && tt.want != got {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestOnlyTheProgramOfAllServicesHasLocalEngines(t *testing.T) {
	t.Parallel()
	err := wiring.RefuseLocalEngines(map[string]wiring.Engine{"a": {Kind: "kubernetes"}, "b": {Kind: "local"}})
	if err == nil || !strings.HasPrefix(err.Error(), "engines.b.kind: only bai standalone has engines of kind local") {
		t.Errorf("%v", err)
	}
}

func TestAnEngineHasThePodsOfAllOrItsOwnAndReachesThePlatformInEachCase(t *testing.T) {
	t.Parallel()
	base := transpile.Settings{Scope: "near", Image: "pod:1", Brokers: []string{"b:1"}, ObjectStore: "http://o", Gateway: "http://g", Scheduler: "volcano"}
	got := wiring.EngineSettings(map[string]wiring.Engine{
		"all": {Kind: "kubernetes", Settings: kube.Settings{Kubeconfig: "/k"}},
		"own": {Kind: "kubernetes", Slots: 7, Settings: kube.Settings{Namespace: "far"}, Pods: &transpile.Settings{Gateway: "http://vpn", PriorityClass: "low"}},
		"two": {Kind: "local"},
	}, base)
	own := transpile.Settings{Scope: "far", Image: "pod:1", Brokers: []string{"b:1"}, ObjectStore: "http://o", Gateway: "http://vpn", PriorityClass: "low"}
	if diff := cmp.Diff(own, got["own"].Pods); diff != "" || got["own"].Slots != 7 {
		t.Errorf("its own (-want +got), %d slots:\n%s", got["own"].Slots, diff)
	}
	if e := got["all"]; e.Pods.Scope != "default" || e.Pods.Scheduler != "volcano" || e.Slots != 0 {
		t.Errorf("those of all: %+v", e)
	}
	if e := got["two"]; e.Pods.Scope != "" || e.Slots != 1 || e.Kind != "local" {
		t.Errorf("this machine: %+v", e)
	}
}
