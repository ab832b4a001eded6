package deploy_test

import (
	"os"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// party is a pod, as network policies see it.
type party struct {
	namespace string
	in        labels.Set // labels of its namespace
	pod       labels.Set
}

// reaches reports whether policies let one pod reach a named port of another. See
// https://kubernetes.io/docs/concepts/services-networking/network-policies/: a pod that
// no policy selects accepts all connections, a selected one those that some policy
// allows.
func reaches(t *testing.T, policies []*networkingv1.NetworkPolicy, from, to party, port string) bool {
	t.Helper()
	selected := false
	for _, p := range policies {
		if p.Namespace != to.namespace || !matches(t, &p.Spec.PodSelector, to.pod) {
			continue
		}
		selected = true
		for _, rule := range p.Spec.Ingress {
			if admitsPort(rule.Ports, port) && admitsPeer(t, rule.From, from, to) {
				return true
			}
		}
	}
	return !selected
}

func admitsPort(ports []networkingv1.NetworkPolicyPort, port string) bool {
	for _, p := range ports {
		if p.Port.String() == port {
			return true
		}
	}
	return len(ports) == 0
}

func admitsPeer(t *testing.T, peers []networkingv1.NetworkPolicyPeer, from, to party) bool {
	t.Helper()
	for _, p := range peers {
		inside := from.namespace == to.namespace
		if p.NamespaceSelector != nil {
			inside = matches(t, p.NamespaceSelector, from.in)
		}
		if inside && (p.PodSelector == nil || matches(t, p.PodSelector, from.pod)) {
			return true
		}
	}
	return len(peers) == 0
}

func matches(t *testing.T, s *metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(set)
}

// policyOf is the policy that the executor creates for a run of several pods.
func policyOf(t *testing.T, run string) *networkingv1.NetworkPolicy {
	t.Helper()
	text, err := os.ReadFile("../../../descriptors/examples/mpi.toml")
	if err != nil {
		t.Fatal(err)
	}
	d, faults := parser.Parse("mpi.toml", text)
	if err := faults.Err(); err != nil {
		t.Fatal(err)
	}
	in := transpile.Input{Run: event.Fetched{Header: event.NewHeader("id", run, "default", "ann", time.Unix(0, 0))}, Descriptor: d}
	for _, s := range d.Data.Sources {
		in.Run.Data = append(in.Run.Data, event.Data{Source: s.Src, Path: s.Path})
	}
	plan, err := transpile.Objects(in, transpile.Settings{Scope: "benchmarks"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range plan.Objects {
		if p, ok := o.(*networkingv1.NetworkPolicy); ok {
			return p
		}
	}
	t.Fatal("a run of several pods has no policy")
	return nil
}

func TestWhoMustReachTheServicesDoesAndNobodyElse(t *testing.T) {
	policies := append(of[*networkingv1.NetworkPolicy](t), policyOf(t, "r"), policyOf(t, "other"))
	service := func(name string) party {
		return party{"benchmark-ai", nil, labels.Set{"app.kubernetes.io/name": name}}
	}
	runPod := func(run string) party {
		return party{"benchmarks", nil, labels.Set{"benchmark-ai.dev/run": run, "benchmark-ai.dev/attempt": "1"}}
	}
	run, other, single := runPod("r"), runPod("other"), runPod("single")
	scraper := party{"monitoring", labels.Set{"metrics": "enabled"}, labels.Set{"app": "prometheus"}}
	stranger := party{"default", nil, nil}
	for name, tt := range map[string]struct {
		from, to party
		port     string
		want     bool
	}{
		"a user reaches the gateway":              {stranger, service("gateway"), "api", true},
		"a run's pod reaches the gateway":         {run, service("gateway"), "api", true},
		"a user does not reach its metrics":       {stranger, service("gateway"), "health", false},
		"a scraper reaches the gateway's metrics": {scraper, service("gateway"), "health", true},
		"a scraper reaches the watcher's metrics": {scraper, service("watcher"), "health", true},
		"a run's pod reaches no other service":    {run, service("executor"), "health", false},
		"a scraper reaches no pod of a run":       {scraper, run, "any", false},
		"a stranger reaches no pod of a run":      {stranger, run, "any", false},
		"pods of a run reach each other":          {run, run, "any", true},
		"pods of another run reach none of it":    {other, run, "any", false},
		"a run of one pod reaches none of it":     {single, run, "any", false},
		"nobody reaches a run of one pod":         {run, single, "any", false},
	} {
		if got := reaches(t, policies, tt.from, tt.to, tt.port); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for _, d := range of[*appsv1.Deployment](t) {
		ports := d.Spec.Template.Spec.Containers[0].Ports
		if !slices.ContainsFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == "health" }) {
			t.Errorf("%s has no port called health, where scrapers are let in", d.Name)
		}
	}
}
