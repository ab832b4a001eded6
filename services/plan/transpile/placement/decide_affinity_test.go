package placement_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/plan/transpile/placement"
)

// terms returns the terms of an affinity as texts.
func terms(a *corev1.Affinity) []string {
	var all []string
	add := func(kind string, t corev1.PodAffinityTerm) {
		where := "this namespace"
		if t.NamespaceSelector != nil {
			where = "any namespace"
		}
		all = append(all, fmt.Sprintf("%s %s: %s in %s", kind, t.TopologyKey, metav1.FormatLabelSelector(t.LabelSelector), where))
	}
	if a == nil {
		return nil
	}
	if anti := a.PodAntiAffinity; anti != nil {
		for _, t := range anti.RequiredDuringSchedulingIgnoredDuringExecution {
			add("never on one", t)
		}
		for _, t := range anti.PreferredDuringSchedulingIgnoredDuringExecution {
			add("rather not on one", t.PodAffinityTerm)
		}
	}
	if a.PodAffinity != nil {
		for _, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			add("on one", t)
		}
	}
	return all
}

func TestWhichPodsMayBeOnTheNodesOfAPod(t *testing.T) {
	t.Parallel()
	const (
		label  = "benchmark-ai.dev/run"
		others = " kubernetes.io/hostname: " + label + "," + label + " notin (r1) in any namespace"
		own    = ": " + label + "=r1 in this namespace"
	)
	apart, both := descriptors.Hardware{Apart: "node"}, descriptors.Hardware{Apart: "node", Together: "zone"}
	for name, tt := range map[string]struct {
		pods      int
		hardware  descriptors.Hardware
		placement string
		want      []string
	}{
		"those of other runs, if need be":   {pods: 1, want: []string{"rather not on one" + others}},
		"none of other runs":                {pods: 1, placement: placement.Exclusive, want: []string{"never on one" + others}},
		"all":                               {pods: 1, placement: placement.Anywhere},
		"no other of the run":               {pods: 3, hardware: apart, placement: placement.Anywhere, want: []string{"never on one kubernetes.io/hostname" + own}},
		"no other at all":                   {pods: 3, hardware: apart, placement: placement.Exclusive, want: []string{"never on one" + others, "never on one kubernetes.io/hostname" + own}},
		"those of one zone, and none of it": {pods: 3, hardware: both, want: []string{"never on one kubernetes.io/hostname" + own, "rather not on one" + others, "on one topology.kubernetes.io/zone" + own}},
		"those of one rack":                 {pods: 2, hardware: descriptors.Hardware{Together: "example.org/rack"}, placement: placement.Anywhere, want: []string{"on one example.org/rack" + own}},
		"a pod alone has none of its run":   {pods: 1, hardware: both, placement: placement.Anywhere},
	} {
		if diff := cmp.Diff(tt.want, terms(placement.Affinity("r1", tt.pods, tt.hardware, tt.placement))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
