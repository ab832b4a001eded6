package transpile_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// withRoles is a descriptor with the given tables behind the others.
func withRoles(tables ...string) string {
	return "spec_version = '1.0'\n[info]\ndescription = 'x'\n[hardware]\ncpus = 1\n[env]\ndocker_image = 'a:1'\n[ml]\nbenchmark_code = 'run'\n" +
		"[limits]\ndeadline = '10m'\n" + strings.Join(tables, "\n")
}

// jobsOf returns the Jobs of a descriptor by their roles.
func jobsOf(t *testing.T, text string, s transpile.Settings) map[string]*batchv1.Job {
	t.Helper()
	run := event.Fetched{Header: event.Header{Run: runID, Attempt: 1}, Descriptor: text}
	jobs := map[string]*batchv1.Job{}
	for _, o := range objects(t, transpile.Input{Run: run, Descriptor: parseDescriptor(t, text)}, s).Objects {
		if j, ok := o.(*batchv1.Job); ok {
			jobs[j.Labels[cluster.LabelRole]] = j
		}
	}
	return jobs
}

func TestTheLabelOfAJobTellsWhatItsEndMeans(t *testing.T) {
	jobs := jobsOf(t, withRoles(
		"[[roles]]\nname = 'first'\nends_run = true", "[[roles]]\nname = 'last'\nends_run = true",
		"[[roles]]\nname = 'serves'\nready = { port = 1 }", "[[roles]]\nname = 'helps'",
	), transpile.Settings{Grace: time.Minute, ShippingGrace: time.Minute})
	got := map[string]string{}
	for role, j := range jobs {
		got[role] = j.Labels[cluster.LabelEnd] + " " + (time.Duration(*j.Spec.ActiveDeadlineSeconds) * time.Second).String()
		if j.Labels[cluster.LabelEnd] != j.Spec.Template.Labels[cluster.LabelEnd] {
			t.Errorf("%s: the pods have another label", role)
		}
	}
	want := map[string]string{"first": "awaited 10m0s", "last": " 10m0s", "serves": " 13m10s", "helps": "free 13m10s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if name := jobs["last"].Name; name != "bai-"+runID+"-1" {
		t.Errorf("the main Job is %s", name)
	}
}

func TestAPodWaitsForAllPodsOfTheRolesThatItStartsAfter(t *testing.T) {
	jobs := jobsOf(t, withRoles(
		"[[roles]]\nname = 'a'\nreplicas = 2\nready = { port = 5201 }", "[[roles]]\nname = 'b'\nready = { http = ':80/x' }",
		"[[roles]]\nname = 'c'\nready = { file = '/x$$' }", "[[roles]]\nname = 'd'\nready = { log = '^x$' }",
		"[[roles]]\nname = 'e'\nstarts_after = ['a', 'b', 'c', 'd']",
	), transpile.Settings{})
	host := func(name string) string {
		return "bai-" + runID + "-1-" + name + ".bai-" + runID + "-1-pods.default.svc"
	}
	want := []string{
		"--within=30m0s", "--every=250ms", "--timeout=5s", "--successes=1", "tcp://" + host("a-0") + ":5201", "tcp://" + host("a-1") + ":5201",
		"http://" + host("b-0") + ":80/x", "tcp://" + host("c-0") + ":2223", "tcp://" + host("d-0") + ":2223",
	}
	for role, j := range jobs {
		wait := containerOf(j.Spec.Template.Spec.InitContainers, cluster.ContainerWait)
		if role != "e" && wait != nil {
			t.Errorf("%s waits", role)
		}
		if role == "e" {
			if diff := cmp.Diff(want, wait.Args); diff != "" {
				t.Error(diff)
			}
		}
	}
	for role, want := range map[string]string{"c": "/x$$$$", "d": "^x$$"} {
		vars := varsOf(t, jobs[role])
		if got := vars[pod.EnvReadyFile] + vars[pod.EnvReadyLog]; got != want {
			t.Errorf("%s: %s, want %s, which Kubernetes does not expand", role, got, want)
		}
	}
}

func TestEachPodIsToldWhichOneItIsAndWhereAllAre(t *testing.T) {
	text := withRoles("[[roles]]\nname = 'load-gen'\nreplicas = 2", "[[roles]]\nname = 'last'")
	for role, j := range jobsOf(t, text, transpile.Settings{}) {
		vars := varsOf(t, j)
		if vars["BAI_ROLE"] != role || vars["BAI_ROLE_INDEX"] != "metadata.annotations['batch.kubernetes.io/job-completion-index']" {
			t.Errorf("%s: %v", role, vars)
		}
		hosts := strings.Fields(vars["BAI_HOSTS_LOAD_GEN"])
		if len(hosts) != 2 || !strings.HasPrefix(hosts[1], "bai-"+runID+"-1-load-gen-1.") || !strings.HasPrefix(vars["BAI_HOSTS_LAST"], "bai-"+runID+"-1-0.") {
			t.Errorf("%s: %v", role, vars)
		}
		if s := j.Spec.Template.Spec; s.Subdomain != "bai-"+runID+"-1-pods" {
			t.Errorf("%s: subdomain %s", role, s.Subdomain)
		}
	}
}

func TestPodsKnowThePortsAtWhichRolesAreReady(t *testing.T) {
	t.Parallel()
	text := withRoles("[[roles]]\nname = 'by-port'\nbenchmark_code = 'x'\nready = { port = 5001 }", "[[roles]]\nname = 'by-http'\nbenchmark_code = 'x'\nready = { http = ':8080/ping' }",
		"[[roles]]\nname = 'by-log'\nbenchmark_code = 'x'\nready = { log = 'x' }", "[[roles]]\nname = 'last'\nbenchmark_code = 'x'")
	for role, j := range jobsOf(t, text, transpile.Settings{}) {
		got := map[string]string{}
		for name, value := range varsOf(t, j) {
			if strings.HasPrefix(name, pod.EnvPort) {
				got[name] = value
			}
		}
		if diff := cmp.Diff(map[string]string{"BAI_PORT_BY_PORT": "5001", "BAI_PORT_BY_HTTP": "8080"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
	}
}

func TestTheRegistryIsAskedForTheEntrypointOfEachRoleWithoutACommand(t *testing.T) {
	text := strings.Replace(withRoles("[[roles]]\nname = 'a'\ndocker_image = 'b:1'", "[[roles]]\nname = 'c'\nbenchmark_code = 'x'", "[[roles]]\nname = 'd'"),
		"[ml]\nbenchmark_code = 'run'\n", "", 1)
	var names []string
	for _, q := range transpile.Images(parseDescriptor(t, text), settings) {
		names = append(names, q.Name)
	}
	if diff := cmp.Diff([]string{"b:1", "a:1"}, names); diff != "" {
		t.Error(diff)
	}
}

// A strategy is a short form: only the variables about other pods are not in the pod of
// single_node, which is otherwise the pod of its role.
func TestThePodOfSingleNodeIsThatOfARoleCalledBenchmark(t *testing.T) {
	text, err := os.ReadFile(examples + "/hello-world.toml")
	if err != nil {
		t.Fatal(err)
	}
	alone := jobsOf(t, string(text), settings)["benchmark"].Spec.Template.Spec
	role := jobsOf(t, string(text)+"\n[[roles]]\nname = 'benchmark'\n", settings)["benchmark"].Spec.Template.Spec
	told := []string{"BAI_ROLE", "BAI_ROLE_INDEX", "BAI_HOSTS_BENCHMARK", "BAI_INDEX"}
	for _, all := range [][]corev1.Container{role.InitContainers, role.Containers} {
		for i := range all {
			all[i].Env = slices.DeleteFunc(all[i].Env, func(v corev1.EnvVar) bool { return slices.Contains(told, v.Name) })
		}
	}
	role.Subdomain, role.DNSConfig, role.Containers[0].Ports = "", nil, nil
	if diff := cmp.Diff(alone, role); diff != "" {
		t.Errorf("(-single_node +role):\n%s", diff)
	}
	if d, faults := parser.Parse("f", text); d == nil || d.Hardware.Strategy != descriptors.SingleNode {
		t.Errorf("the example is no longer one of single_node: %v", faults)
	}
}

func containerOf(all []corev1.Container, name string) *corev1.Container {
	if i := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// varsOf returns the variables of a Job's benchmark, or the paths of the fields that have their values.
func varsOf(t *testing.T, j *batchv1.Job) map[string]string {
	t.Helper()
	vars := map[string]string{}
	for _, v := range containerOf(j.Spec.Template.Spec.Containers, cluster.ContainerBenchmark).Env {
		vars[v.Name] = v.Value
		if v.ValueFrom != nil && v.ValueFrom.FieldRef != nil {
			vars[v.Name] = v.ValueFrom.FieldRef.FieldPath
		}
	}
	return vars
}
