package transpile_test

import (
	"path"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/mpijob"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// hostsMount returns the mount of the hosts file of a container, or nil.
func hostsMount(c corev1.Container) *corev1.VolumeMount {
	i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == "/etc/hosts" })
	if i < 0 {
		return nil
	}
	return &c.VolumeMounts[i]
}

func TestARunOfOnePodWaitsForNoAddresses(t *testing.T) {
	t.Parallel()
	local := settings
	local.OneMachine = true
	alone := podsOfRun(objects(t, networkInput(t, "single_node", "pod"), settings))
	for role, template := range podsOfRun(objects(t, networkInput(t, "roles", "pod"), local)) {
		alone["local "+role] = template
	}
	for role, template := range alone {
		c := containerOf(template.Spec.InitContainers, cluster.ContainerHosts)
		if c != nil || template.Annotations[cluster.AnnotationPods] != "" || hostsMount(template.Spec.Containers[0]) != nil {
			t.Errorf("%s waits: %v, %v", role, c, template.Annotations)
		}
	}
}

func TestEachPodOfSeveralGetsAHostsFileBeforeItNeedsAName(t *testing.T) {
	t.Parallel()
	for strategy, domain := range map[string]string{
		"mpi": "bai-" + runID + "-1-mpi.", "roles": "bai-" + runID + "-1-pods.", "inference": "",
	} {
		for network := range networks {
			pods := podsOfRun(objects(t, networkInput(t, strategy, network), settings))
			for role, template := range pods {
				init := template.Spec.InitContainers
				at := slices.IndexFunc(init, func(c corev1.Container) bool { return c.Name == cluster.ContainerHosts })
				if at < 0 || template.Annotations[cluster.AnnotationPods] == "" {
					t.Fatalf("%s, %s, %s has no hosts file: %v", strategy, network, role, template.Annotations)
				}
				want := []string{pod.PathIn("", pod.Binary), "hosts", domain + "benchmarks.svc.cluster.local", domain + "benchmarks.svc", domain + "benchmarks"}
				if domain != "" {
					want = append(want, domain[:len(domain)-1])
				}
				if diff := cmp.Diff(want, init[at].Command); diff != "" {
					t.Errorf("%s, %s, %s (-want +got):\n%s", strategy, network, role, diff)
				}
				for i, c := range slices.Concat(init, template.Spec.Containers) {
					if reads := hostsMount(c) != nil; reads != (i > at) {
						t.Errorf("%s, %s, %s: container %d, %s, has the hosts file: %t", strategy, network, role, i, c.Name, reads)
					}
				}
			}
		}
	}
}

func TestAPodKnowsHowManyPodsItsRunHas(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for strategy := range strategies {
		for role, template := range podsOfRun(objects(t, networkInput(t, strategy, "pod"), settings)) {
			got[strategy+" "+role] = template.Annotations[cluster.AnnotationPods]
		}
	}
	want := map[string]string{
		"single_node benchmark": "", "mpi worker": "3", "mpi launcher": "3", "inference server": "2", "inference client": "2", "roles server": "3", "roles client": "3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPodsOfTheMPIOperatorHaveTheNamesThatItGives(t *testing.T) {
	t.Parallel()
	operator := settings
	operator.MPIOperator = true
	for _, o := range objects(t, networkInput(t, "mpi", "pod"), operator).Objects {
		j, ok := o.(*mpijob.Job)
		if !ok {
			continue
		}
		for name, r := range j.Spec.ReplicaSpecs {
			c := containerOf(r.Template.Spec.InitContainers, cluster.ContainerHosts)
			if c == nil || c.Command[len(c.Command)-1] != "bai-"+runID+"-1" {
				t.Errorf("%s: %v", name, c)
			}
		}
	}
}

// Steps that run at every end start before the addresses are known.
func TestStepsThatAlwaysRunHaveNoHostsFile(t *testing.T) {
	t.Parallel()
	text := withRoles("[[roles]]\nname = 'a'", "[[roles]]\nname = 'b'", "[[steps]]\nname = 'last'\nwhen = 'always'\ncommand = 'x'")
	s := jobsOf(t, text, settings)["b"].Spec.Template.Spec
	got := map[string]bool{}
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		got[c.Name] = hostsMount(c) != nil
	}
	want := map[string]bool{
		cluster.ContainerInstall: false, cluster.ContainerCollect: false, cluster.ContainerHosts: false,
		"step-last": false, cluster.ContainerBenchmark: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAHostsFileOfTheUsersOwnIsTheOneThatIsRead(t *testing.T) {
	t.Parallel()
	text := withRoles("[[roles]]\nname = 'a'", "[[roles]]\nname = 'b'", "[env.secret_files]\n'/etc/hosts' = 'names/hosts'")
	own := transpile.Settings{Scope: "benchmarks"}
	for role, j := range jobsOf(t, text, own) {
		m := hostsMount(j.Spec.Template.Spec.Containers[0])
		if m == nil || m.Name == "hosts" {
			t.Errorf("%s: %v", role, m)
		}
	}
}
