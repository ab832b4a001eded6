package placement_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/plan/transpile/placement"
)

func TestANodeHasTheLabelsOfTheDescriptorAndOfTheSettings(t *testing.T) {
	t.Parallel()
	labels := func(pairs ...string) map[string]string {
		all := map[string]string{}
		for _, p := range pairs {
			key, value, _ := strings.Cut(p, "=")
			all[key] = value
		}
		return all
	}
	kind := descriptors.Hardware{InstanceType: "lab.huge", NodeSelector: labels("disk=ssd")}
	for name, tt := range map[string]struct {
		settings map[string]string
		hardware descriptors.Hardware
		zone     string
		want     map[string]string
		conflict string
	}{
		"none of either":                     {},
		"of the descriptor":                  {hardware: kind, zone: "a", want: labels("disk=ssd", "node.kubernetes.io/instance-type=lab.huge", "topology.kubernetes.io/zone=a")},
		"of both":                            {settings: labels("pool=bench", "disk=ssd"), hardware: kind, want: labels("disk=ssd", "pool=bench", "node.kubernetes.io/instance-type=lab.huge")},
		"of which one has another value":     {settings: labels("disk=hdd"), hardware: kind, conflict: "disk"},
		"of which the type is another":       {settings: labels("node.kubernetes.io/instance-type=lab.tiny"), hardware: kind, conflict: "node.kubernetes.io/instance-type"},
		"of which the zone is another":       {settings: labels("topology.kubernetes.io/zone=b"), zone: "a", conflict: "topology.kubernetes.io/zone"},
		"whose zone only the caller decides": {hardware: descriptors.Hardware{AvailabilityZone: "a"}},
	} {
		got, err := placement.NodeSelector(tt.settings, tt.hardware, tt.zone)
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.conflict == "") || err != nil && !strings.Contains(err.Error(), tt.conflict+"=") {
			t.Errorf("%s: %v, want a conflict over %q (-want +got):\n%s", name, err, tt.conflict, diff)
		}
	}
	if len(kind.NodeSelector) != 1 {
		t.Errorf("the descriptor was changed: %v", kind.NodeSelector)
	}
}

func TestATaintThatBothTolerateIsToleratedOnce(t *testing.T) {
	t.Parallel()
	minute := 60
	dedicated := descriptors.Toleration{Key: "dedicated", Operator: "Equal", Value: "benchmarks", Effect: "NoSchedule"}
	lost := descriptors.Toleration{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", Seconds: &minute}
	got := placement.Tolerations([]descriptors.Toleration{dedicated, {Effect: "PreferNoSchedule"}}, []descriptors.Toleration{lost, dedicated})
	seconds := int64(60)
	want := []corev1.Toleration{
		{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds},
		{Key: "dedicated", Operator: "Equal", Value: "benchmarks", Effect: "NoSchedule"},
		{Operator: "Exists", Effect: "PreferNoSchedule"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettingsThatKubernetesWouldRefuseAreNamed(t *testing.T) {
	t.Parallel()
	minute := 60
	for name, tt := range map[string]struct {
		selector   map[string]string
		toleration descriptors.Toleration
		want       string // part of the error; empty for none
	}{
		"good ones":                        {map[string]string{"example.org/pool": ""}, descriptors.Toleration{Key: "dedicated", Value: "x", Effect: "NoExecute", Seconds: &minute}, ""},
		"every taint":                      {nil, descriptors.Toleration{Operator: "Exists"}, ""},
		"a label's key":                    {map[string]string{"a b": "x"}, descriptors.Toleration{Key: "a"}, `pods.node_selector: "a b" = "x" is not a label of nodes`},
		"a label's value":                  {map[string]string{"a": "x y"}, descriptors.Toleration{Key: "a"}, `pods.node_selector: "a" = "x y" is not a label of nodes`},
		"an operator":                      {nil, descriptors.Toleration{Key: "a", Operator: "Lt"}, `pods.tolerations[0].operator: "Lt": use Equal, Exists`},
		"an effect":                        {nil, descriptors.Toleration{Key: "a", Effect: "Evict"}, `pods.tolerations[0].effect: "Evict": use NoSchedule`},
		"a key":                            {nil, descriptors.Toleration{Key: "a b"}, `pods.tolerations[0].key: "a b"`},
		"none":                             {nil, descriptors.Toleration{Value: "x"}, "pods.tolerations[0].key: operator Equal needs a key"},
		"a value that is not compared":     {nil, descriptors.Toleration{Key: "a", Operator: "Exists", Value: "x"}, `pods.tolerations[0].value: "x"`},
		"a value":                          {nil, descriptors.Toleration{Key: "a", Value: "x y"}, `pods.tolerations[0].value: "x y"`},
		"a time of another effect":         {nil, descriptors.Toleration{Key: "a", Effect: "NoSchedule", Seconds: &minute}, "pods.tolerations[0].toleration_seconds"},
		"a time that is over at the start": {nil, descriptors.Toleration{Key: "a", Effect: "NoExecute", Seconds: new(-1)}, "pods.tolerations[0].toleration_seconds"},
	} {
		err := placement.Check("pods", tt.selector, []descriptors.Toleration{tt.toleration})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
