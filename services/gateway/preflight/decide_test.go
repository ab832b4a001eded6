package preflight_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/mpijob"
)

// job returns a Job of one role, whose benchmark requests the given resources.
func job(role string, given map[string]string, change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: "bai-x-1", Labels: map[string]string{cluster.LabelRole: role}},
	}
	limits := list(given)
	j.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: cluster.ContainerBenchmark, Image: "image:1", Command: []string{"/bai/bin/bai-pod", "exec", "--", "train"},
		Resources: corev1.ResourceRequirements{Limits: limits},
	}}
	for _, c := range change {
		c(j)
	}
	return j
}

func list(given map[string]string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, text := range given {
		all[corev1.ResourceName(name)] = resource.MustParse(text)
	}
	return all
}

func selecting(key, value string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.Template.Spec.NodeSelector = map[string]string{key: value} }
}

func times(n int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.Parallelism = &n }
}

// node returns a node that is ready.
func node(name string, has map[string]string, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelInstanceTypeStable: "m5.large"}}}
	n.Status.Allocatable = list(has)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, c := range change {
		c(&n)
	}
	return n
}

func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// messages returns the messages of a topic, one line for each check.
func messages(checks []preflight.Check, topic string) string {
	var lines []string
	for _, c := range checks {
		if c.Topic == topic {
			line := fmt.Sprintf("%s %s: %s", [...]string{"fine", "warning", "fault"}[c.Grade], c.Subject, c.Message)
			if c.Grade == preflight.Fault {
				line = string(c.Class) + " " + line
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func TestARunThatNothingEndsIsTold(t *testing.T) {
	endless, ended := job("benchmark", nil), job("benchmark", nil)
	ended.Spec.ActiveDeadlineSeconds = new(int64(60))
	for want, o := range map[string]*batchv1.Job{
		"fine : limits.deadline is not set: a run that does not end by itself goes on until it is canceled": endless,
		"": ended,
	} {
		if got := messages(preflight.Decide(preflight.Requirements{Objects: []cluster.Object{o}}, cluster.Survey{}), preflight.TopicLimits); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
}

func TestANodeIsLookedForThatTakesThePods(t *testing.T) {
	two := []corev1.Node{
		node("a", map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110"}),
		node("b", map[string]string{"cpu": "8", "memory": "4Gi", "nvidia.com/gpu": "2"}),
	}
	for name, tt := range map[string]struct {
		job    *batchv1.Job
		survey cluster.Survey
		want   string
	}{
		"nodes that are large enough are named": {
			job("benchmark", map[string]string{"cpu": "3", "memory": "1Gi"}),
			cluster.Survey{Nodes: two},
			"fine benchmark: 2 nodes are large enough for cpu 3, memory 1Gi: a, b",
		},
		"a pod that asks for nothing fits everywhere": {
			job("benchmark", nil),
			cluster.Survey{Nodes: two[:1]},
			"fine benchmark: 1 node is large enough for what it asks for, which is nothing: a",
		},
		"more GPUs than any node has: the most is said": {
			job("benchmark", map[string]string{"nvidia.com/gpu": "4"}),
			cluster.Survey{Nodes: two},
			"user fault benchmark: 4 nvidia.com/gpu asked for, the largest node has 2, on b",
		},
		"a kind of GPU that no node has": {
			job("benchmark", map[string]string{"amd.com/gpu": "1"}),
			cluster.Survey{Nodes: two},
			"user fault benchmark: 1 amd.com/gpu asked for, no node has any",
		},
		"enough of each, but not on one node": {
			job("benchmark", map[string]string{"cpu": "6", "memory": "6Gi"}),
			cluster.Survey{Nodes: two},
			"user fault benchmark: no node has enough of everything at once: cpu 6, memory 6Gi",
		},
		"an instance type that is not there: those that are, are said": {
			job("benchmark", nil, selecting(corev1.LabelInstanceTypeStable, "p3.8xlarge")),
			cluster.Survey{Nodes: two},
			"user fault benchmark: no node is a p3.8xlarge; there are m5.large",
		},
		"an instance type that an autoscaler may add is a warning": {
			job("benchmark", nil, selecting(corev1.LabelInstanceTypeStable, "p3.8xlarge")),
			cluster.Survey{Nodes: two, Autoscaler: "Karpenter"},
			"warning benchmark: no node is a p3.8xlarge; there are m5.large; Karpenter may add one that has it",
		},
		"no node at all": {
			job("benchmark", nil), cluster.Survey{}, "user fault benchmark: the cluster has no node",
		},
		"no node at all where an autoscaler begins with none": {
			job("benchmark", nil),
			cluster.Survey{Autoscaler: "the cluster autoscaler"},
			"warning benchmark: the cluster has no node; the cluster autoscaler may add one that has it",
		},
		"nodes that take no pods do not count": {
			job("benchmark", nil),
			cluster.Survey{Nodes: []corev1.Node{node("a", nil, cordoned)}},
			"user fault benchmark: no node is ready and takes pods",
		},
		"a taint that is not tolerated": {
			job("benchmark", nil),
			cluster.Survey{Nodes: []corev1.Node{node("a", nil, tainted)}},
			"user fault benchmark: every node that would do has a taint that is not tolerated: gpu=yes:NoSchedule",
		},
		"a taint that is tolerated": {
			job("benchmark", nil, func(j *batchv1.Job) {
				j.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "yes"}}
			}),
			cluster.Survey{Nodes: []corev1.Node{node("a", nil, tainted)}},
			"fine benchmark: 1 node is large enough for what it asks for, which is nothing: a",
		},
		"more workers than there is room for, also when nothing else runs": {
			job("worker", map[string]string{"cpu": "3"}, times(4)),
			cluster.Survey{Nodes: two},
			"user fault worker: 4 pods are needed at a time, and the nodes have room for 3, also when nothing else runs: a, b",
		},
		"as many workers as there is room for": {
			job("worker", map[string]string{"cpu": "3"}, times(3)),
			cluster.Survey{Nodes: two},
			"fine worker: 2 nodes are large enough for 3 pods of cpu 3: a, b",
		},
		"more workers than nodes with the port that each needs": {
			job("worker", map[string]string{"cpu": "1"}, times(3), onPort(2222)),
			cluster.Survey{Nodes: two},
			"user fault worker: 3 pods are needed at a time, each with port 2222 of its node, and the nodes have room for 2, also when nothing else runs: a, b",
		},
		"as many workers as nodes with the port that each needs": {
			job("worker", map[string]string{"cpu": "1"}, times(2), onPort(2222)),
			cluster.Survey{Nodes: two},
			"fine worker: 2 nodes are large enough for 2 pods of cpu 1: a, b",
		},
		"nodes that nobody may see are a warning": {
			job("benchmark", nil),
			cluster.Survey{NodesUnknownReason: "forbidden"},
			"warning benchmark: the nodes cannot be listed: forbidden",
		},
		"a machine that has less than is asked for runs it all the same": {
			job("benchmark", map[string]string{"cpu": "64"}),
			cluster.Survey{LocalMachine: true, Nodes: two[:1]},
			"warning benchmark: 64 cpu asked for, the largest node has 4, on a; nothing enforces it here",
		},
		"labels of nodes mean nothing on a machine": {
			job("benchmark", nil, selecting(corev1.LabelInstanceTypeStable, "p3.8xlarge")),
			cluster.Survey{LocalMachine: true, Nodes: two[:1]},
			"fine benchmark: the machine is large enough for what it asks for, which is nothing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := messages(preflight.Decide(preflight.Requirements{Scope: "benchmarks", Objects: []cluster.Object{tt.job}}, tt.survey), preflight.TopicNodes)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// onPort gives the benchmark of a job a port of its node.
func onPort(port int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
	}
}

func TestRoomIsLookedForForAllRolesTogether(t *testing.T) {
	gpu := func(n string) map[string]string { return map[string]string{"nvidia.com/gpu": n} }
	server, client := job("server", gpu("1")), job("client", gpu("1"))
	cpus := func(role, n string, many int32) *batchv1.Job {
		return job(role, map[string]string{"cpu": n}, times(many))
	}
	for name, tt := range map[string]struct {
		jobs   []*batchv1.Job
		survey cluster.Survey
		want   string
	}{
		"one GPU is not enough for two roles that each need it": {
			[]*batchv1.Job{server, client},
			cluster.Survey{Nodes: []corev1.Node{node("a", gpu("1")), node("b", nil)}},
			"user fault server, client: the pods of all roles are needed at a time, and beside the others the nodes have no room for 1 pod of client with nvidia.com/gpu 1, also when nothing else runs: a",
		},
		"what adds nodes may add one": {
			[]*batchv1.Job{server, client},
			cluster.Survey{Nodes: []corev1.Node{node("a", gpu("1"))}, Autoscaler: "Karpenter"},
			"warning server, client: the pods of all roles are needed at a time, and beside the others the nodes have no room for 1 pod of client with nvidia.com/gpu 1, also when nothing else runs: a; Karpenter may add one that has it",
		},
		"a machine enforces nothing": {
			[]*batchv1.Job{server, client},
			cluster.Survey{LocalMachine: true, Nodes: []corev1.Node{node("a", gpu("1"))}},
			"warning server, client: the pods of all roles are needed at a time, and beside the others the nodes have no room for 1 pod of client with nvidia.com/gpu 1, also when nothing else runs: a; nothing enforces it here",
		},
		"two roles with one port of their node": {
			[]*batchv1.Job{job("server", gpu("1"), onPort(5201)), job("client", nil, onPort(5201))},
			cluster.Survey{Nodes: []corev1.Node{node("a", gpu("1"))}},
			"user fault server, client: the pods of all roles are needed at a time, and beside the others the nodes have no room for 1 pod of client with what it asks for, which is nothing, also when nothing else runs: a",
		},
		"two roles with ports of their own": {
			[]*batchv1.Job{job("server", gpu("1"), onPort(5201)), job("client", nil, onPort(5202))}, cluster.Survey{Nodes: []corev1.Node{node("a", gpu("1"))}}, "",
		},
		"two GPUs are enough, of one node or two": {
			[]*batchv1.Job{server, client}, cluster.Survey{Nodes: []corev1.Node{node("a", gpu("1")), node("b", gpu("1"))}}, "",
		},
		"those who need little leave large nodes to others": {
			[]*batchv1.Job{cpus("client", "1", 2), cpus("server", "4", 1)},
			cluster.Survey{Nodes: []corev1.Node{node("a", map[string]string{"cpu": "4"}), node("b", map[string]string{"cpu": "2"})}},
			"",
		},
		"those who need nothing special leave nodes with GPUs to others": {
			[]*batchv1.Job{cpus("client", "4", 1), job("server", map[string]string{"cpu": "1", "nvidia.com/gpu": "1"})},
			cluster.Survey{Nodes: []corev1.Node{node("a", map[string]string{"cpu": "4", "nvidia.com/gpu": "4"}), node("b", map[string]string{"cpu": "4"})}},
			"",
		},
		"the order that does it is found": {
			[]*batchv1.Job{cpus("worker", "3", 2), cpus("launcher", "2", 2)},
			cluster.Survey{Nodes: []corev1.Node{node("a", map[string]string{"cpu": "4"}), node("b", map[string]string{"cpu": "6"})}},
			"",
		},
		"a launcher beside workers that fill the nodes": {
			[]*batchv1.Job{cpus("worker", "4", 2), cpus("launcher", "1", 1)},
			cluster.Survey{Nodes: []corev1.Node{node("a", map[string]string{"cpu": "4"}), node("b", map[string]string{"cpu": "4"})}},
			"user fault worker, launcher: the pods of all roles are needed at a time, and beside the others the nodes have no room for 1 pod of launcher with cpu 1, also when nothing else runs: a, b",
		},
		"where one finds none alone, that is what is said": {
			[]*batchv1.Job{job("server", gpu("2")), client}, cluster.Survey{Nodes: []corev1.Node{node("a", gpu("1"))}}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var all []cluster.Object
			for _, j := range tt.jobs {
				all = append(all, j)
			}
			checks := preflight.Decide(preflight.Requirements{Objects: all}, tt.survey)
			checks = slices.DeleteFunc(checks, func(c preflight.Check) bool { return !strings.Contains(c.Subject, ", ") })
			if diff := cmp.Diff(tt.want, messages(checks, preflight.TopicNodes)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// mpiJob returns an MPIJob with the pods of two Jobs.
func mpiJob(worker, launcher *batchv1.Job) *mpijob.Job {
	part := func(j *batchv1.Job) mpijob.Replica {
		r := mpijob.Replica{Replicas: 1, Template: j.Spec.Template}
		if j.Spec.Parallelism != nil {
			r.Replicas = *j.Spec.Parallelism
		}
		r.Template.Labels = j.Labels
		return r
	}
	j := &mpijob.Job{ObjectMeta: worker.ObjectMeta, Spec: mpijob.Spec{ReplicaSpecs: map[string]mpijob.Replica{
		mpijob.Launcher: part(launcher), mpijob.Worker: part(worker),
	}}}
	j.APIVersion, j.Kind = mpijob.APIVersion, mpijob.Kind
	return j
}

// TestAnMPIJobIsHeldAgainstTheClusterAsItsJobsWouldBe: the roles of an MPIJob need the
// same as those of Jobs.
func TestAnMPIJobIsHeldAgainstTheClusterAsItsJobsWouldBe(t *testing.T) {
	worker := job("worker", map[string]string{"nvidia.com/gpu": "2", "cpu": "2"}, times(3), func(j *batchv1.Job) {
		j.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "login"}}
		j.Spec.Template.Spec.PriorityClassName = "urgent"
	})
	launcher := job("launcher", nil, func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].Command = []string{"/bai/bin/bai-pod", "exec", "--", "/bai/mpi/launch", "mpirun", "train"}
	})
	two := []cluster.Object{worker, launcher}
	one := []cluster.Object{mpiJob(worker, launcher)}
	survey := cluster.Survey{
		Nodes:  []corev1.Node{node("a", map[string]string{"nvidia.com/gpu": "4", "cpu": "8", "ephemeral-storage": "50Gi"})},
		Quotas: []corev1.ResourceQuota{quota(map[string]string{"requests.nvidia.com/gpu": "4", "pods": "3"}, nil)},
	}
	for _, topic := range []string{preflight.TopicNodes, preflight.TopicQuota, preflight.TopicStorage, preflight.TopicImages} {
		want := messages(preflight.Decide(preflight.Requirements{Objects: two}, survey), topic)
		if got := messages(preflight.Decide(preflight.Requirements{Objects: one}, survey), topic); got != want || topic == preflight.TopicNodes && got == "" {
			t.Errorf("%s:\n%s\nwant\n%s", topic, got, want)
		}
	}
	jobs, mpi := preflight.NewInquiry(preflight.Requirements{Objects: two}, preflight.Settings{}), preflight.NewInquiry(preflight.Requirements{Objects: one}, preflight.Settings{Executor: "e", Watcher: "w"})
	if diff := cmp.Diff([]any{jobs.Secrets, jobs.PriorityClasses, jobs.Programs}, []any{mpi.Secrets, mpi.PriorityClasses, mpi.Programs}); diff != "" || len(mpi.Secrets) == 0 {
		t.Errorf("it is asked for (-of two Jobs +of the MPIJob):\n%s", diff)
	}
	for _, r := range []cluster.Permission{
		{Account: "e", Verb: "create", Group: "kubeflow.org", Resource: "mpijobs"},
		{Account: "e", Verb: "list", Group: "kubeflow.org", Resource: "mpijobs"},
		{Account: "w", Verb: "watch", Group: "kubeflow.org", Resource: "mpijobs"},
	} {
		if !slices.Contains(mpi.Permissions, r) {
			t.Errorf("%+v is not asked for", r)
		}
	}
}

func quota(hard, used map[string]string, change ...func(*corev1.ResourceQuota)) corev1.ResourceQuota {
	q := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	q.Spec.Hard, q.Status.Used = list(hard), list(used)
	for _, c := range change {
		c(&q)
	}
	return q
}

func TestAQuotaThatLeavesNoRoomIsSaid(t *testing.T) {
	gpus := job("worker", map[string]string{"nvidia.com/gpu": "2"}, times(2))
	for name, tt := range map[string]struct {
		survey cluster.Survey
		want   string
	}{
		"none": {cluster.Survey{}, "fine : the namespace has none that a run counts against"},
		"one that has room": {
			cluster.Survey{Quotas: []corev1.ResourceQuota{quota(map[string]string{"requests.nvidia.com/gpu": "8"}, map[string]string{"requests.nvidia.com/gpu": "4"})}},
			"fine team: requests.nvidia.com/gpu: 4 needed, 4 of 8 left",
		},
		"one that others use up": {
			cluster.Survey{Quotas: []corev1.ResourceQuota{quota(map[string]string{"requests.nvidia.com/gpu": "8"}, map[string]string{"requests.nvidia.com/gpu": "5"})}},
			"warning team: others use the quota up: requests.nvidia.com/gpu: 4 needed, 3 of 8 left",
		},
		"one that never allows it": {
			cluster.Survey{Quotas: []corev1.ResourceQuota{quota(map[string]string{"requests.nvidia.com/gpu": "3"}, nil)}},
			"user fault team: the quota never allows it: requests.nvidia.com/gpu: 4 needed, 3 of 3 left",
		},
		"numbers of objects count, too": {
			cluster.Survey{Quotas: []corev1.ResourceQuota{quota(map[string]string{"pods": "1", "count/jobs.batch": "0"}, nil)}},
			"user fault team: the quota never allows it: count/jobs.batch: 1 needed, 0 of 0 left; pods: 2 needed, 1 of 1 left",
		},
		"one that counts what a container does not name refuses its pods": {
			cluster.Survey{Quotas: []corev1.ResourceQuota{quota(map[string]string{"limits.memory": "8Gi"}, nil)}},
			"warning team: the quota counts limits.memory, which not every container of the run names: its pods are refused unless a LimitRange names it for them",
		},
		"one that holds for some pods only": {
			cluster.Survey{Quotas: []corev1.ResourceQuota{quota(nil, nil, func(q *corev1.ResourceQuota) {
				q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
			})}},
			"warning team: it holds for some pods only, which is not looked at",
		},
		"one that a run does not count against": {
			cluster.Survey{Quotas: []corev1.ResourceQuota{quota(map[string]string{"persistentvolumeclaims": "1"}, nil)}},
			"fine : the namespace has none that a run counts against",
		},
		"quotas that nobody may see": {
			cluster.Survey{QuotasUnknownReason: "forbidden"}, "warning : the quotas of the namespace cannot be listed: forbidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.survey.Nodes = []corev1.Node{node("a", map[string]string{"nvidia.com/gpu": "8"})}
			got := messages(preflight.Decide(preflight.Requirements{Objects: []cluster.Object{gpus}}, tt.survey), preflight.TopicQuota)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatThePlatformLacksIsThePlatformsToMend(t *testing.T) {
	create := cluster.Permission{Account: "executor", Verb: "create", Group: "batch", Resource: "jobs"}
	list := cluster.Permission{Account: "executor", Verb: "list", Resource: "pods"}
	group := schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}
	for name, tt := range map[string]struct {
		need   preflight.Requirements
		survey cluster.Survey
		topic  string
		want   string
	}{
		"every permission": {
			need: preflight.Requirements{Scope: "benchmarks"}, survey: cluster.Survey{Permissions: map[cluster.Permission]cluster.Answer{create: {Yes: true}, list: {Yes: true}}},
			topic: preflight.TopicPermissions, want: "fine : all 2 permissions in the namespace benchmarks",
		},
		"permissions that are missing, all in one": {
			survey: cluster.Survey{Permissions: map[cluster.Permission]cluster.Answer{create: {}, list: {}}},
			topic:  preflight.TopicPermissions, want: "platform fault executor: executor may not create jobs.batch, list pods",
		},
		"permissions that nobody could look up": {
			survey: cluster.Survey{Permissions: map[cluster.Permission]cluster.Answer{create: {UnknownReason: "forbidden"}, list: {Yes: true}}},
			topic:  preflight.TopicPermissions, want: "warning : not every permission could be looked up: forbidden",
		},
		"on a machine there are none": {
			survey: cluster.Survey{LocalMachine: true, Permissions: map[cluster.Permission]cluster.Answer{create: {Yes: true}}},
			topic:  preflight.TopicPermissions, want: "",
		},
		"a kind that the cluster has": {
			survey: cluster.Survey{Kinds: map[schema.GroupVersionKind]cluster.Answer{group: {Yes: true}}},
			topic:  preflight.TopicKinds, want: "fine PodGroup: the cluster has PodGroup of scheduling.volcano.sh",
		},
		"a kind that the cluster lacks": {
			survey: cluster.Survey{Kinds: map[schema.GroupVersionKind]cluster.Answer{group: {}}},
			topic:  preflight.TopicKinds, want: "platform fault PodGroup: the cluster has no PodGroup of scheduling.volcano.sh",
		},
		"a priority class that the cluster lacks": {
			survey: cluster.Survey{PriorityClasses: map[string]cluster.Answer{"urgent": {}}},
			topic:  preflight.TopicKinds, want: "platform fault urgent: the cluster has no such priority class, so that every pod is refused",
		},
		"networks of Multus": {
			survey: cluster.Survey{Networks: map[string]cluster.Answer{"a/fast": {Yes: true}, "none": {}, "secret": {UnknownReason: "forbidden"}}},
			topic:  preflight.TopicKinds,
			want:   "fine a/fast: the cluster has the network\nuser fault none: the cluster has no such NetworkAttachmentDefinition\nwarning secret: the network cannot be looked up: forbidden",
		},
		"a cluster without Multus": {
			survey: cluster.Survey{Networks: map[string]cluster.Answer{"fast": {}}, Kinds: map[schema.GroupVersionKind]cluster.Answer{{Group: "k8s.cni.cncf.io", Kind: "NetworkAttachmentDefinition"}: {}}},
			topic:  preflight.TopicKinds,
			want:   "platform fault NetworkAttachmentDefinition: the cluster has no NetworkAttachmentDefinition of k8s.cni.cncf.io",
		},
		"classes of storage": {
			survey: cluster.Survey{StorageClasses: map[string]cluster.Answer{"": {}, "fast": {Yes: true}}},
			topic:  preflight.TopicStorage,
			want:   "platform fault : the cluster has no class of storage that is the default, so that what pods are to share never comes\nfine fast: the cluster has the class of storage fast, for what pods share",
		},
		"a cluster that cannot be asked": {
			need:  preflight.Requirements{ClusterError: "connection refused"},
			topic: preflight.TopicCluster, want: "platform fault : the cluster cannot be asked: connection refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, messages(preflight.Decide(tt.need, tt.survey), tt.topic)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatTheDescriptorAsksForIsTheUsersToMend(t *testing.T) {
	token, pull := cluster.SecretKey{Name: "registry", Key: "token"}, cluster.SecretKey{Name: "login"}
	entrypoint := job("benchmark", nil, func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Command = nil })
	entrypoint.Spec.Template.Spec.Containers[0].Image = "bench:1"
	for name, tt := range map[string]struct {
		need   preflight.Requirements
		survey cluster.Survey
		topic  string
		want   string
	}{
		"a run that cannot be": {
			need:  preflight.Requirements{PlanError: `EngineUnavailable: info.execution_engine is "aws.sagemaker"`},
			topic: preflight.TopicPlan, want: `user fault : EngineUnavailable: info.execution_engine is "aws.sagemaker"`,
		},
		"an object that the cluster does not take": {
			survey: cluster.Survey{Refusals: []cluster.RefusedError{{Object: "Job x", Message: "it has no command"}}},
			topic:  preflight.TopicPlan, want: "user fault Job x: it has no command",
		},
		"an object that the cluster does not take, by the platform's fault": {
			survey: cluster.Survey{Refusals: []cluster.RefusedError{{Object: "Job x", Class: event.ClassPlatform, Message: "no such namespace"}}},
			topic:  preflight.TopicPlan, want: "platform fault Job x: no such namespace",
		},
		"a secret that is there, as far as can be seen": {
			survey: cluster.Survey{Secrets: map[cluster.SecretKey]cluster.Answer{token: {Yes: true}}},
			topic:  preflight.TopicSecrets, want: "fine registry/token: the secret is there; whether it has the key token is not looked at",
		},
		"secrets that are not there": {
			need:   preflight.Requirements{Scope: "benchmarks"},
			survey: cluster.Survey{Secrets: map[cluster.SecretKey]cluster.Answer{token: {}, pull: {}}},
			topic:  preflight.TopicSecrets,
			want:   "user fault login: the namespace benchmarks has no secret login\nuser fault registry/token: the namespace benchmarks has no secret registry",
		},
		"a secret that nobody may look for": {
			survey: cluster.Survey{Secrets: map[cluster.SecretKey]cluster.Answer{pull: {UnknownReason: "forbidden"}}},
			topic:  preflight.TopicSecrets, want: "warning login: it cannot be looked up: forbidden",
		},
		"with what images are pulled means nothing on a machine": {
			survey: cluster.Survey{LocalMachine: true, Secrets: map[cluster.SecretKey]cluster.Answer{pull: {Yes: true}, token: {Detail: "chmod 600 it"}}},
			topic:  preflight.TopicSecrets, want: "user fault registry/token: it cannot be had",
		},
		"a program that the machine lacks": {
			survey: cluster.Survey{LocalMachine: true, Programs: map[string]cluster.Answer{"sh": {Yes: true, Detail: "/bin/sh"}, "train": {Detail: "it is not on PATH"}}},
			topic:  preflight.TopicPrograms,
			want:   "fine sh: /bin/sh\nuser fault train: this machine, whose own programs are run, does not have it: it is not on PATH",
		},
		"a source that may not be read": {
			need:  preflight.Requirements{Data: []preflight.DataSource{{Source: "https://a/x"}, {Source: "ftp://a/x", DenyReason: "scheme ftp"}}},
			topic: preflight.TopicData,
			want:  "fine https://a/x: it may be asked for; whether it is there shows when it is fetched\nuser fault ftp://a/x: scheme ftp",
		},
		"sources are looked at also where the cluster is away": {
			need:  preflight.Requirements{ClusterError: "gone", Data: []preflight.DataSource{{Source: "ftp://a/x", DenyReason: "scheme ftp"}}},
			topic: preflight.TopicData, want: "user fault ftp://a/x: scheme ftp",
		},
		"an image's own entrypoint promises less": {
			need:  preflight.Requirements{Objects: []cluster.Object{entrypoint}},
			topic: preflight.TopicImages,
			want:  "warning benchmark: the image's own entrypoint is run: its output is read from the container's log, without telling standard error apart, without what the node's log rotation takes, and files that it leaves are not kept",
		},
		"an entrypoint whose registry gives no answer": {
			need:  preflight.Requirements{Objects: []cluster.Object{entrypoint}, Images: []cluster.Image{{Name: "other", UnreadReason: "x"}, {Name: "bench:1", UnreadReason: "example.org answers 401"}}},
			topic: preflight.TopicImages,
			want:  "warning benchmark: the image's own entrypoint is run: its output is read from the container's log, without telling standard error apart, without what the node's log rotation takes, and files that it leaves are not kept; asked from here, example.org answers 401",
		},
		"an entrypoint that only the executor may be told": {
			need:  preflight.Requirements{Objects: []cluster.Object{entrypoint}, Images: []cluster.Image{{Name: "bench:1", NoSecret: true, UnreadReason: "example.org answers 401; the pull secret cannot be read"}}},
			topic: preflight.TopicImages,
			want:  "warning benchmark: whether the image's entrypoint can be read from its registry shows at launch, when the executor asks with the pull secrets: it is then run as a command is, or its output is read from the container's log; asked from here, example.org answers 401; the pull secret cannot be read",
		},
		"an entrypoint that is known": {
			need:  preflight.Requirements{Objects: []cluster.Object{job("benchmark", nil)}, Images: []cluster.Image{{Name: "bench:1", Digest: "sha256:abc", Platform: "linux/amd64"}}},
			topic: preflight.TopicImages,
			want:  "fine bench:1: its registry gives its entrypoint (linux/amd64, sha256:abc): it is run as a command of a descriptor is",
		},
		"little disk": {
			need:   preflight.Requirements{Objects: []cluster.Object{job("benchmark", nil)}},
			survey: cluster.Survey{Nodes: []corev1.Node{node("a", map[string]string{"ephemeral-storage": "50Gi"}), node("b", map[string]string{"ephemeral-storage": "100Mi"})}},
			topic:  preflight.TopicStorage, want: "warning b: data, logs and results lie on the node's own disk, of which pods may use 0.1 GiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, messages(preflight.Decide(tt.need, tt.survey), tt.topic)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhateverIsNotFineSaysWhatToDo(t *testing.T) {
	s := cluster.Survey{
		Permissions: map[cluster.Permission]cluster.Answer{{Verb: "create", Resource: "jobs"}: {}}, Secrets: map[cluster.SecretKey]cluster.Answer{{Name: "a"}: {}},
		PriorityClasses: map[string]cluster.Answer{"a": {}}, QuotasUnknownReason: "x", Kinds: map[schema.GroupVersionKind]cluster.Answer{{Kind: "A"}: {}},
		Networks: map[string]cluster.Answer{"a": {}, "b": {UnknownReason: "x"}},
		Programs: map[string]cluster.Answer{"a": {}},
	}
	n := preflight.Requirements{Objects: []cluster.Object{job("benchmark", nil)}, Data: []preflight.DataSource{{Source: "a", DenyReason: "b"}}}
	for _, c := range preflight.Decide(n, s) {
		if c.Grade != preflight.Fine && c.Remedy == "" {
			t.Errorf("%s %s has no remedy: %s", c.Topic, c.Subject, c.Message)
		}
		if (c.Grade == preflight.Fault) != (c.Class != "") {
			t.Errorf("%s %s: grade %d and class %q", c.Topic, c.Subject, c.Grade, c.Class)
		}
	}
}
