package transpile_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/internal/pod"
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

// networks are the tables of the descriptors that networkObjects makes, by their names.
var networks = map[string]string{
	"pod":        "",
	"host":       "host_network = true\n",
	"attachment": "attachment = \"kube-system/sriov-fast\"\n",
	"mtu":        "mtu = 9000\n",
	"rdma":       "rdma = { resource = \"rdma/hca_shared_devices_a\", count = 2 }\n",
}

// strategies are the beginnings of these descriptors, by the names of their strategies.
var strategies = map[string]string{
	"single_node": "[hardware]\ncpus = 1\n",
	"mpi":         "[hardware]\ncpus = 1\nstrategy = \"mpi\"\n",
	"inference": "[hardware]\ncpus = 1\nstrategy = \"inference\"\n[server.hardware]\ncpus = 1\n[server.env]\ndocker_image = \"example.org/server:1\"\n" +
		"ports = [8080]\nstart_command = \"serve\"\nreadiness_probe = { path = \"/ping\", port = 8081 }\n",
	"roles": "[hardware]\ncpus = 1\n[[roles]]\nname = \"server\"\nbenchmark_code = \"iperf -s\"\nready = { port = 5001 }\n" +
		"[[roles]]\nname = \"client\"\nreplicas = 2\nbenchmark_code = \"iperf -c\"\nready = { log = \"connected\" }\nstarts_after = [\"server\"]\n",
}

// networkInput returns the input of a run of a strategy in a network.
func networkInput(t *testing.T, strategy, network string) transpile.Input {
	t.Helper()
	table := networks[network]
	if strategy == "mpi" {
		table += map[bool]string{true: "transport = \"rdma\"\n", false: "transport = \"tcp\"\n"}[network == "rdma"]
	}
	if table != "" {
		table = "[network]\n" + table
	}
	text := "spec_version = \"1.0\"\n[info]\ndescription = \"networks\"\n[env]\ndocker_image = \"example.org/benchmark:1\"\n[ml]\nbenchmark_code = \"measure\"\n" +
		strategies[strategy] + table
	h := event.NewHeader("m1", runID, "pets", "ann@example.org", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return newInput(t, event.Fetched{Header: h, File: strategy + ".toml", Descriptor: text})
}

// TestObjectsOfNetworks compares the Jobs, Services and policies of each strategy in each
// network with a golden file.
func TestObjectsOfNetworks(t *testing.T) {
	for strategy := range strategies {
		for network := range networks {
			t.Run(strategy+"."+network, func(t *testing.T) {
				t.Parallel()
				p := objects(t, networkInput(t, strategy, network), settings)
				kept := slices.DeleteFunc(p.Objects, func(o cluster.Object) bool {
					kind := o.GetObjectKind().GroupVersionKind().Kind
					return kind == "ConfigMap" || kind == "Secret"
				})
				text := manifest(t, kept)
				checkStrict(t, text)
				golden.Check(t, filepath.Join("testdata", "networks", strategy+"."+network+".yaml"), text)
			})
		}
	}
}

// podsOfRun returns the pods of a run by their roles.
func podsOfRun(p transpile.Workload) map[string]corev1.PodTemplateSpec {
	all := map[string]corev1.PodTemplateSpec{}
	for _, o := range p.Objects {
		if j, ok := o.(*batchv1.Job); ok {
			all[j.Labels[cluster.LabelRole]] = j.Spec.Template
		}
	}
	return all
}

func TestTwoPodsInTheNetworkOfTheirNodesShareNoPort(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[string]map[string][]int32{
		"single_node": {"benchmark": nil},
		"mpi":         {"worker": {2222}, "launcher": nil},
		"inference":   {"server": {8080, 8081}, "client": nil},
		"roles":       {"server": {5001}, "client": {pod.ReadyPort}},
	} {
		got := map[string][]int32{}
		for role, template := range podsOfRun(objects(t, networkInput(t, strategy, "host"), settings)) {
			got[role] = nil
			for _, p := range template.Spec.Containers[0].Ports {
				if p.HostPort != p.ContainerPort {
					t.Errorf("%s: port %d of %s is port %d of its node", strategy, p.ContainerPort, role, p.HostPort)
				}
				got[role] = append(got[role], p.HostPort)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", strategy, diff)
		}
	}
}

func TestMetricsThatAProgramServesTakeAPortOfTheNode(t *testing.T) {
	t.Parallel()
	in := networkInput(t, "single_node", "host")
	in = replaceInDescriptor(t, in, "[network]", "[output]\nprometheus = [\"http://127.0.0.1:9090/metrics\", \"http://localhost\"]\n[network]")
	var got []int32
	for _, p := range podOf(t, objects(t, in, settings)).Containers[0].Ports {
		got = append(got, p.HostPort)
	}
	if diff := cmp.Diff([]int32{9090, 80}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALauncherIsNeverOnTheNetworkOfItsNodeAndHasNoDevices(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"host", "rdma"} {
		for role, template := range podsOfRun(objects(t, networkInput(t, "mpi", network), settings)) {
			s, c := template.Spec, template.Spec.Containers[0]
			_, devices := c.Resources.Limits["rdma/hca_shared_devices_a"]
			worker := role == "worker"
			if s.HostNetwork != (worker && network == "host") || devices != (worker && network == "rdma") || (c.SecurityContext != nil) != devices {
				t.Errorf("%s, %s: host network %t, devices %t, %v", network, role, s.HostNetwork, devices, c.SecurityContext)
			}
			if s.HostNetwork != (s.DNSPolicy == corev1.DNSClusterFirstWithHostNet) {
				t.Errorf("%s, %s: DNS policy %q", network, role, s.DNSPolicy)
			}
		}
	}
}

// The workers are on the addresses of their nodes, and the policy of the namespace lets
// nobody reach pods of runs.
func TestOnlyALauncherHasAPolicyIfTheOtherPodsAreInTheNetworkOfTheirNodes(t *testing.T) {
	t.Parallel()
	for strategy := range strategies {
		policies, _ := policiesOf(objects(t, networkInput(t, strategy, "host"), settings))
		if strategy != "mpi" {
			if len(policies) != 0 {
				t.Errorf("%s: %d policies", strategy, len(policies))
			}
			continue
		}
		if len(policies) != 1 {
			t.Fatalf("%s: %d policies", strategy, len(policies))
		}
		want := networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{cluster.LabelRun: runID, cluster.LabelAttempt: "1", cluster.LabelRole: "launcher"}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, Ingress: []networkingv1.NetworkPolicyIngressRule{{}},
		}
		if diff := cmp.Diff(want, policies[0].Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", strategy, diff)
		}
	}
}

func TestOpenMPITakesTheTransportOfTheDescriptor(t *testing.T) {
	t.Parallel()
	for network, want := range map[string]map[string]string{
		"pod":  {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1", "OMPI_MCA_osc": "^ucx"},
		"rdma": {"OMPI_MCA_btl": "^openib", "OMPI_MCA_pml": "ucx", "OMPI_MCA_osc": "ucx", "UCX_TLS": "self,rc_x"},
	} {
		for role, template := range podsOfRun(objects(t, networkInput(t, "mpi", network), settings)) {
			got := map[string]string{}
			for _, v := range template.Spec.Containers[0].Env {
				if slices.Contains([]string{"OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_osc", "UCX_TLS"}, v.Name) {
					got[v.Name] = v.Value
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", network, role, diff)
			}
		}
	}
}

func TestSSHUsesThePortOfTheDescriptor(t *testing.T) {
	t.Parallel()
	p := objects(t, replaceInDescriptor(t, networkInput(t, "mpi", "host"), "[network]\n", "[network]\nssh_port = 22022\n"), settings)
	text := string(manifest(t, p.Objects))
	if strings.Contains(text, "2222\n") {
		t.Error("the default port is there, too")
	}
	for _, want := range []string{"Port 22022\n", "hostPort: 22022\n", "targetPort: 22022\n", "svc:22022\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestOneMachineHasNoNetworkOfNodesAndSetsTheMTUItself(t *testing.T) {
	t.Parallel()
	local := settings
	local.OneMachine, local.NoLimits = true, true
	for _, network := range []string{"host", "attachment", "mtu"} {
		for role, template := range podsOfRun(objects(t, networkInput(t, "mpi", network), local)) {
			if template.Spec.HostNetwork || template.Spec.InitContainers[1].Name == cluster.ContainerMTU || template.Annotations[cluster.AnnotationNetwork] != "" {
				t.Errorf("%s, %s: %+v", network, role, template)
			}
			if got := template.Annotations[cluster.AnnotationMTU]; (got == "9000") != (network == "mtu") {
				t.Errorf("%s, %s: MTU %q", network, role, got)
			}
		}
	}
}

func TestOnlyTheBenchmarkHasDevicesAndLargePages(t *testing.T) {
	t.Parallel()
	in := networkInput(t, "single_node", "rdma")
	in = replaceInDescriptor(t, in, "cpus = 1\n", "gpus = 1\nrequests = { cpu = \"500m\" }\nlimits = { cpu = 2, memory = \"1GiB\", ephemeral-storage = \"1GiB\", hugepages-2Mi = \"64MiB\", \"intel.com/sriov\" = 1 }\n")
	in = replaceInDescriptor(t, in, "[network]", "[[steps]]\nname = \"warm\"\nwhen = \"before\"\ncommand = \"a\"\n[[steps]]\nname = \"report\"\nwhen = \"after\"\ncommand = \"b\"\n[network]")
	for name, tt := range map[string]struct {
		noLimits, oneMachine bool
		want                 map[string]string
	}{
		"with limits": {false, false, map[string]string{
			"benchmark": "requests: cpu=500m rdma/hca_shared_devices_a=2; limits: cpu=2 ephemeral-storage=1Gi hugepages-2Mi=64Mi intel.com/sriov=1 memory=1Gi nvidia.com/gpu=1 rdma/hca_shared_devices_a=2",
			"step-warm": "requests: cpu=500m; limits: cpu=2 ephemeral-storage=1Gi memory=1Gi nvidia.com/gpu=1",
		}},
		"on one machine, where requests are limits": {true, true, map[string]string{
			"benchmark": "requests: cpu=2 memory=1Gi rdma/hca_shared_devices_a=2; limits: hugepages-2Mi=64Mi intel.com/sriov=1 nvidia.com/gpu=1 rdma/hca_shared_devices_a=2",
			"step-warm": "requests: cpu=2 memory=1Gi; limits: nvidia.com/gpu=1",
		}},
		"where there are none": {true, false, map[string]string{
			"benchmark": "requests: cpu=500m ephemeral-storage=1Gi memory=1Gi rdma/hca_shared_devices_a=2; limits: hugepages-2Mi=64Mi intel.com/sriov=1 nvidia.com/gpu=1 rdma/hca_shared_devices_a=2",
			"step-warm": "requests: cpu=500m ephemeral-storage=1Gi memory=1Gi; limits: nvidia.com/gpu=1",
		}},
	} {
		s := settings
		s.NoLimits, s.OneMachine = tt.noLimits, tt.oneMachine
		spec := podOf(t, objects(t, in, s))
		got := map[string]string{}
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			if len(c.Resources.Requests)+len(c.Resources.Limits) > 0 {
				got[c.Name] = "requests:" + amounts(c.Resources.Requests) + "; limits:" + amounts(c.Resources.Limits)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// amounts returns a list of resources as text.
func amounts(list corev1.ResourceList) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		text.WriteString(" " + string(name) + "=" + q.String())
	}
	return text.String()
}

func TestRightsNeedANamespaceThatGivesThem(t *testing.T) {
	t.Parallel()
	allow := map[string]descriptors.Allowlist{"perf": {Rights: []string{"mtu"}}}
	for level, want := range map[string]string{
		transpile.Privileged: "", transpile.Baseline: `executor.pods.allow."perf".rights: pods with these rights are refused`, "": `executor.pods.allow."perf".rights`,
	} {
		err := transpile.Settings{Security: level, Allow: allow}.Validate("executor.pods")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", level, err, want)
		}
	}
}

func TestPodsOfTheLevelRestrictedHaveNoRights(t *testing.T) {
	t.Parallel()
	s := settings
	s.Security = transpile.Restricted
	for network, key := range map[string]string{"host": "host_network", "mtu": "mtu", "rdma": "rdma"} {
		if _, err := transpile.Objects(networkInput(t, "single_node", network), s); err == nil || !strings.Contains(err.Error(), "network."+key+" needs a right") {
			t.Errorf("%s: %v", network, err)
		}
	}
	if _, err := transpile.Objects(networkInput(t, "single_node", "attachment"), s); err != nil {
		t.Error(err)
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
