package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
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
		for _, t := range a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			add("rather on one", t.PodAffinityTerm)
		}
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
		"those of other runs, if there are": {pods: 1, placement: placement.Pack, want: []string{"rather on one" + others}},
		"those of other runs in one zone":   {pods: 2, hardware: descriptors.Hardware{Together: "zone"}, placement: placement.Pack, want: []string{"rather on one" + others, "on one topology.kubernetes.io/zone" + own}},
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

func TestNodesOfTheControlPlaneAreAvoidedUnlessTheyAreTolerated(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"of another taint":      {corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists}, true},
		"of the taint":          {corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}, false},
		"of its effect":         {corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule}, false},
		"of every taint":        {corev1.Toleration{Operator: corev1.TolerationOpExists}, false},
		"of what ends its pods": {corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, true},
	} {
		for _, a := range []*corev1.Affinity{nil, placement.Affinity("r1", 1, descriptors.Hardware{}, placement.Exclusive)} {
			had := len(terms(a))
			got := placement.AvoidControlPlane(a, []corev1.Toleration{tt.toleration})
			if avoids := got != nil && got.NodeAffinity != nil; avoids != tt.want || len(terms(got)) != had {
				t.Errorf("%s: %v, want %v", name, got, tt.want)
			}
		}
	}
}

func TestARunPrefersNodes(t *testing.T) {
	t.Parallel()
	p := &event.NodePreference{On: []string{"a", "b"}, NotOn: []string{"c", "d"}}
	base := func() *corev1.Affinity { return placement.AvoidControlPlane(nil, nil) }
	for name, tt := range map[string]struct {
		affinity *corev1.Affinity
		nodes    *event.NodePreference
		want     []string
	}{
		"anywhere":               {nil, nil, nil},
		"no nodes":               {nil, &event.NodePreference{}, nil},
		"some nodes":             {nil, p, []string{"In [a]", "In [b]", "NotIn [c] NotIn [d]"}},
		"beside the other terms": {base(), p, []string{"DoesNotExist []", "In [a]", "In [b]", "NotIn [c] NotIn [d]"}},
		"only the other terms":   {base(), nil, []string{"DoesNotExist []"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			if a := placement.PreferNodes(tt.affinity, tt.nodes); a != nil {
				for _, term := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
					got = append(got, nodeTerm(term.Preference))
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// nodeTerm is a term about nodes as a text.
func nodeTerm(t corev1.NodeSelectorTerm) string {
	var all []string
	for _, r := range append(t.MatchExpressions, t.MatchFields...) {
		all = append(all, fmt.Sprint(r.Operator, " ", r.Values))
	}
	return strings.Join(all, " ")
}
