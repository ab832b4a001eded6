package transpile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// policiesOf returns the network policies of a run, and the number of objects that are
// created before the first of them.
func policiesOf(p transpile.Workload) (all []*networkingv1.NetworkPolicy, before int) {
	for i, o := range p.Objects {
		if n, ok := o.(*networkingv1.NetworkPolicy); ok {
			all, before = append(all, n), i
		}
	}
	return all, before
}

func TestPodsOfARunAreReachedByEachOtherAlone(t *testing.T) {
	operator := settings
	operator.MPIOperator = true
	for name, tt := range map[string]struct {
		file     string
		settings transpile.Settings
	}{
		"a server and its client":      {"inference.toml", settings},
		"workers and their launcher":   {"mpi.toml", settings},
		"those that an operator makes": {"mpi.toml", operator},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(t, examples+"/"+tt.file)
			in.Run.Attempt = 2
			plan := objects(t, in, tt.settings)
			policies, before := policiesOf(plan)
			if len(policies) != 1 {
				t.Fatalf("%d policies", len(policies))
			}
			same := metav1.LabelSelector{MatchLabels: map[string]string{cluster.LabelRun: runID, cluster.LabelAttempt: "2"}}
			want := networkingv1.NetworkPolicySpec{
				PodSelector: same, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &same}}}},
			}
			if diff := cmp.Diff(want, policies[0].Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if p := policies[0]; p.Name != plan.Job || p.Namespace != "benchmarks" || p.Labels[cluster.LabelRun] != runID {
				t.Errorf("%s of %s with %v", p.Name, p.Namespace, p.Labels)
			}
			if before > len(plan.Objects)-2 {
				t.Error("its pods are there before it")
			}
		})
	}
}

func TestWhatNobodyHasToReachNeedsNoPolicy(t *testing.T) {
	local := settings
	local.OneMachine = true
	for name, plan := range map[string]transpile.Workload{
		"a run of one pod":                 objects(t, input(t, examples+"/minimal.toml"), settings),
		"the local cluster's own networks": objects(t, input(t, examples+"/mpi.toml"), local),
	} {
		if policies, _ := policiesOf(plan); len(policies) != 0 {
			t.Errorf("%s: %d policies", name, len(policies))
		}
	}
}
