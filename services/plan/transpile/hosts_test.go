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
	for strategy, subdomain := range map[string]string{
		"mpi": "bai-" + runID + "-1-mpi", "roles": "bai-" + runID + "-1-pods", "inference": "",
	} {
		domains := []string{"benchmarks.svc.cluster.local", "benchmarks.svc", "benchmarks"}
		if subdomain != "" {
			domains = []string{subdomain + "." + domains[0], subdomain + "." + domains[1], subdomain + "." + domains[2], subdomain}
		}
		for network := range networks {
			for role, template := range podsOfRun(objects(t, networkInput(t, strategy, network), settings)) {
				checkHostsFile(t, strategy+", "+network+", "+role, template.Spec, domains)
			}
		}
	}
}

// checkHostsFile checks that a container writes a hosts file with names in domains, and that those behind it have the file.
func checkHostsFile(t *testing.T, name string, s corev1.PodSpec, domains []string) {
	t.Helper()
	writer := slices.IndexFunc(s.InitContainers, func(c corev1.Container) bool { return c.Name == cluster.ContainerHosts })
	if writer < 0 {
		t.Errorf("%s has no hosts file", name)
		return
	}
	want := append([]string{pod.PathIn("", pod.Binary), "hosts"}, domains...)
	if diff := cmp.Diff(want, s.InitContainers[writer].Command); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	for i, c := range slices.Concat(s.InitContainers, s.Containers) {
		if has := hostsMount(c) != nil; has != (i > writer) {
			t.Errorf("%s: container %d, %s, has the hosts file: %t", name, i, c.Name, has)
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
