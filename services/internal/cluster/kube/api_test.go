package kube_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/test/testbed"
)

// waitTimeout is how long the API server and its controllers may take for any step.
const waitTimeout = 5 * time.Minute

// job returns a Job of a run, which runs no pod if the cluster has no nodes.
func job(scope, run string) *batchv1.Job {
	zero, grace := int32(0), int64(1)
	labels := map[string]string{cluster.LabelRun: run, cluster.LabelAttempt: "1"}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: run, Namespace: scope, Labels: labels},
		Spec: batchv1.JobSpec{BackoffLimit: &zero, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
				Containers: []corev1.Container{{Name: cluster.ContainerBenchmark, Image: "example.org/none:1", Command: []string{"x"}}},
				// no node has this label: the pod stays pending on any cluster
				NodeSelector: map[string]string{"benchmark-ai.dev/none": "none"},
			},
		}},
	}
}

func ref(scope, run string) cluster.Ref {
	return cluster.Ref{Run: run, Attempt: 1, Scope: scope, Job: run}
}

// waitUntil observes until ok.
func waitUntil(t *testing.T, c *kube.Cluster, r cluster.Ref, what string, ok func(cluster.Snapshot, error) bool) cluster.Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for {
		seen, err := c.Observe(ctx, r)
		if ok(seen, err) {
			return seen
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s: not seen in time; the last was %+v, %v", what, seen, err)
		}
	}
}

func TestAPI(t *testing.T) {
	t.Parallel()
	testCluster := testbed.API(t)
	for name, test := range map[string]func(*testing.T, *testbed.Cluster){
		"what is refused is refused in the API server's own words":                   refusals,
		"what an admission policy denies is refused in its own words":                denied,
		"a pod that a quota refuses is told of by an event about its job":            quota,
		"what an account may not do is told with the permission that it lacks":       forbidden,
		"Watch hands nothing over while it may not see, and all when it may":         blind,
		"a Job whose pods were orphaned leaves pods, and they are deleted":           orphans,
		"a pod whose node never says that it ended is given up":                      lost,
		"where the pods of runs are is told with the nodes":                          occupancy,
		"what owns all goes last, also where somebody else deleted the Job":          owned,
		"a Job of several roles is that whose end ends the run":                      roles,
		"what is left of a run whose Job is gone is not taken for its Job":           leftOver,
		"nothing that is not labelled as a run's is seen or deleted":                 unlabelled,
		"another cluster driver sees and deletes what this one has made":             replicas,
		"an event about a pod makes Watch hand its run over":                         events,
		"what is handed over again is whole, and as it is":                           resync,
		"a namespace that is not there and one that is not watched are both refused": namespaces,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, testCluster)
		})
	}
}

func refusals(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	for name, row := range map[string]struct {
		change func(*batchv1.Job)
		want   string
	}{
		"a privileged pod, where Pod Security forbids it: at the Job there is only a warning": {
			func(j *batchv1.Job) { yes := true; j.Spec.Template.Spec.HostNetwork = yes }, "",
		},
		"a limit below the request": {func(j *batchv1.Job) {
			r := &j.Spec.Template.Spec.Containers[0].Resources
			r.Requests = corev1.ResourceList{"cpu": resource.MustParse("2")}
			r.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
		}, "must be less than or equal to cpu limit"},
		"a label that is none":    {func(j *batchv1.Job) { j.Labels["x"] = "a b" }, "a valid label must be"},
		"no label of the attempt": {func(j *batchv1.Job) { delete(j.Labels, cluster.LabelAttempt) }, "lacks the labels"},
	} {
		j := job(scope, "r"+fmt.Sprintf("%x", len(name)))
		row.change(j)
		err := c.Create(t.Context(), j)
		if row.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var refused *cluster.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Message, row.want) {
			t.Errorf("%s: %v, want a refusal with %q", name, err, row.want)
		}
	}
}

const policy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  validations: [{expression: "false", message: "no jobs on Sundays"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`

func denied(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	testCluster.Apply(t, fmt.Sprintf(policy, scope))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*waitTimeout)
	t.Cleanup(func() {
		defer cancel()
		if out, err := testCluster.Try(ctx, "delete", "validatingadmissionpolicies,validatingadmissionpolicybindings", scope); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	var refused *cluster.RefusedError
	for n := 0; !errors.As(c.Create(ctx, job(scope, fmt.Sprint("r", n))), &refused); n++ { // the limit takes effect after a while
		if ctx.Err() != nil {
			t.Fatal("the policy denied nothing")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if !strings.Contains(refused.Message, "no jobs on Sundays") {
		t.Errorf("refusal %q, want the policy's words", refused.Message)
	}
}

func quota(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	testCluster.Run(t, "-n", scope, "create", "quota", "none", "--hard=pods=0")
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	l := watch(t, c)
	if err := c.Create(t.Context(), job(scope, "over")); err != nil {
		t.Fatal(err)
	}
	hasEvent := func(s cluster.Snapshot) bool {
		for _, e := range s.Events {
			if e.Reason == "FailedCreate" && strings.Contains(e.Message, "exceeded quota") {
				return true
			}
		}
		return false
	}
	waitUntil(t, c, ref(scope, "over"), "a FailedCreate event", func(s cluster.Snapshot, err error) bool { return err == nil && hasEvent(s) })
	l.await(t, "a FailedCreate event", hasEvent)

	testCluster.Run(t, "-n", scope, "create", "quota", "jobs", "--hard=count/jobs.batch=1")
	var refused *cluster.RefusedError
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for n := 0; !errors.As(c.Create(ctx, job(scope, fmt.Sprint("more", n))), &refused); n++ {
		if ctx.Err() != nil {
			t.Fatal("no Job was refused by a quota of Jobs")
		}
	}
	if !strings.Contains(refused.Message, "exceeded quota: jobs") {
		t.Errorf("refusal %q, want the quota's words", refused.Message)
	}
}

func namespaces(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: "nosuch"})
	for scope, want := range map[string]string{"nosuch": `namespaces "nosuch" not found`, "other": `watches "nosuch" only`} {
		var refused *cluster.RefusedError
		if err := c.Create(t.Context(), job(scope, "r")); !errors.As(err, &refused) || !strings.Contains(refused.Message, want) || refused.Class != event.ClassPlatform {
			t.Errorf("create in %s: %v, want a refusal that is the platform's, with %q", scope, err, want)
		}
	}
	if _, err := c.Observe(t.Context(), ref("nosuch", "r")); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("observe: %v, want ErrNotFound", err)
	}
	if err := c.Delete(t.Context(), ref("nosuch", "r")); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func forbidden(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	config := testCluster.Account(t, scope, "nobody")
	c := open(t, kube.Settings{Kubeconfig: config, Namespace: scope})
	var refused *cluster.RefusedError
	if err := c.Create(t.Context(), job(scope, "r")); !errors.As(err, &refused) || !strings.Contains(refused.Message, `the verb "create" on "jobs"`) || refused.Class != event.ClassPlatform {
		t.Errorf("create: %v, want a refusal that is the platform's and names the permission", err)
	}
	var lacks *kube.PermissionError
	_, err := c.Observe(t.Context(), ref(scope, "r"))
	if !errors.As(err, &lacks) || lacks.Verb != "get" || lacks.Resource != "jobs" || lacks.Group != "batch" || lacks.Scope != scope {
		t.Errorf("observe: %v, want a PermissionError for get jobs.batch", err)
	}
	if err := c.Delete(t.Context(), ref(scope, "r")); !errors.As(err, &lacks) || lacks.Verb != "list" {
		t.Errorf("delete: %v, want a PermissionError for list", err)
	}
}

func blind(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	admin := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	if err := admin.Create(t.Context(), job(scope, "r")); err != nil {
		t.Fatal(err)
	}
	c := open(t, kube.Settings{Kubeconfig: testCluster.Account(t, scope, "blind"), Namespace: scope})
	l := watch(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for lacks := (*kube.PermissionError)(nil); !errors.As(c.Ready(ctx), &lacks); {
		if ctx.Err() != nil {
			t.Fatal("Ready does not say which permission is missing")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := l.count(); n > 0 {
		t.Errorf("%d were handed over", n)
	}
	testCluster.Run(t, "-n", scope, "create", "rolebinding", "sees", "--clusterrole=view", "--serviceaccount="+scope+":blind")
	l.await(t, "the job, once it may be seen", func(s cluster.Snapshot) bool { return s.Job != nil })
	for c.Ready(ctx) != nil && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("Ready: %v", err)
	}
}

func orphans(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	if err := c.Create(t.Context(), job(scope, "r")); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, c, ref(scope, "r"), "a pod", func(s cluster.Snapshot, _ error) bool { return len(s.Pods) == 1 })
	testCluster.Run(t, "-n", scope, "delete", "job", "r", "--cascade=orphan")
	waitUntil(t, c, ref(scope, "r"), "the pod alone", func(s cluster.Snapshot, err error) bool { return err == nil && s.Job == nil && len(s.Pods) == 1 })
	if err := c.Delete(t.Context(), ref(scope, "r")); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, c, ref(scope, "r"), "nothing", func(_ cluster.Snapshot, err error) bool { return errors.Is(err, cluster.ErrNotFound) })
}

// lost puts a pod on a node that does not exist: no kubelet reports its status.
func lost(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	testCluster.Apply(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+scope+`"},"spec":{"unschedulable":true}}`)
	t.Cleanup(func() {
		if out, err := testCluster.Try(context.WithoutCancel(t.Context()), "delete", "node", scope); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope, Lost: 2 * time.Second})
	j := job(scope, "r")
	j.Spec.Template.Spec.NodeSelector, j.Spec.Template.Spec.NodeName = nil, scope
	if err := c.Create(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, c, ref(scope, "r"), "a pod", func(s cluster.Snapshot, _ error) bool { return len(s.Pods) == 1 })
	begun := time.Now()
	if err := c.Delete(t.Context(), ref(scope, "r")); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, c, ref(scope, "r"), "nothing", func(s cluster.Snapshot, err error) bool {
		if errors.Is(err, cluster.ErrNotFound) {
			return true
		}
		deleted := len(s.Pods) == 1 && s.Pods[0].DeletionTimestamp != nil
		forced := deleted && s.Pods[0].DeletionGracePeriodSeconds != nil && *s.Pods[0].DeletionGracePeriodSeconds == 0
		// The API server moves the deletion timestamp of a forced pod to the present: it does not say when the pod should have ended.
		// That is 1 s of grace after begun, in whole seconds; then come 2 s of Lost.
		if forced && time.Since(begun) < 2*time.Second {
			t.Error("it was given up at once")
		}
		if err := c.Delete(t.Context(), ref(scope, "r")); err != nil {
			t.Fatal(err)
		}
		return false
	})
}

// occupancy has a pod on a node, and one that waits for one.
func occupancy(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	testCluster.Apply(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+scope+`"},"spec":{"unschedulable":true}}`)
	t.Cleanup(func() {
		if out, err := testCluster.Try(context.WithoutCancel(t.Context()), "delete", "node", scope); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	placed := job(scope, "placed")
	placed.Spec.Template.Spec.NodeSelector, placed.Spec.Template.Spec.NodeName = nil, scope
	for _, j := range []*batchv1.Job{placed, job(scope, "waits")} {
		if err := c.Create(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, c, ref(scope, j.Name), "a pod", func(s cluster.Snapshot, _ error) bool { return len(s.Pods) == 1 })
	}
	got, nodes := awaitOccupancy(t, c, 2), map[string]string{}
	for _, p := range got.Pods {
		nodes[p.Labels[cluster.LabelRun]] = p.Spec.NodeName
	}
	known := slices.ContainsFunc(got.Nodes, func(n corev1.Node) bool { return n.Name == scope })
	if diff := cmp.Diff(map[string]string{"placed": scope, "waits": ""}, nodes); diff != "" || !known || got.UnknownReason != "" {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
}

// awaitOccupancy waits until the cache is complete and has so many pods.
func awaitOccupancy(t *testing.T, c *kube.Cluster, pods int) cluster.Occupancy {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for {
		got, err := c.Occupancy(ctx)
		if err == nil && len(got.Pods) == pods {
			return got
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the last answer: %+v, %v", got, err)
		}
	}
}

// owned deletes a run twice: whole, and with its Job already being deleted.
func owned(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	for _, run := range []string{"whole", "begun"} {
		j := job(scope, run)
		owner := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: *j.ObjectMeta.DeepCopy()}
		again := owner.DeepCopy()
		if err := c.Create(t.Context(), owner); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), again); !errors.Is(err, cluster.ErrExists) || again.UID != owner.UID {
			t.Errorf("once more: %v, with UID %q, want %q", err, again.UID, owner.UID)
		}
		j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: run, UID: owner.UID}}
		if err := c.Create(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		if run == "begun" {
			testCluster.Run(t, "-n", scope, "delete", "job", run, "--cascade=foreground", "--wait=false")
		}
		if err := c.Delete(t.Context(), ref(scope, run)); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, c, ref(scope, run), "nothing", func(_ cluster.Snapshot, err error) bool { return errors.Is(err, cluster.ErrNotFound) })
		if left := testCluster.Run(t, "-n", scope, "get", "configmaps,jobs,pods", "-l", cluster.LabelRun, "-o", "name"); left != "" {
			t.Errorf("%s: left:\n%s", run, left)
		}
	}
}

func roles(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	worker := job(scope, "r")
	worker.Name = "r-worker"
	for _, j := range []*batchv1.Job{worker, job(scope, "r")} {
		if err := c.Create(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	both := func(s cluster.Snapshot) bool { return s.Job != nil && s.Job.Name == "r" && len(s.Pods) == 2 }
	waitUntil(t, c, ref(scope, "r"), "the main job and both pods", func(s cluster.Snapshot, err error) bool { return err == nil && both(s) })
	l := watch(t, c) // one from before may have met the worker alone
	l.await(t, "the main job and both pods", both)
	if err := c.Delete(t.Context(), ref(scope, "r")); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, c, ref(scope, "r"), "nothing", func(_ cluster.Snapshot, err error) bool { return errors.Is(err, cluster.ErrNotFound) })
	l.await(t, "that it has gone", func(s cluster.Snapshot) bool { return s.Job == nil && len(s.Pods) == 0 && s.Ref.Job == "r" })
}

func leftOver(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	worker, suspend := job(scope, "r"), true
	worker.Name, worker.Spec.Suspend = "r-worker", &suspend // the suspended Job has no pods
	if err := errors.Join(c.Create(t.Context(), job(scope, "r")), c.Create(t.Context(), worker)); err != nil {
		t.Fatal(err)
	}
	l := watch(t, c)
	l.await(t, "both jobs", func(s cluster.Snapshot) bool { return s.Job != nil && s.Job.Name == "r" && len(s.Others) == 1 })
	gone := func(s cluster.Snapshot) bool { return s.Job == nil && len(s.Pods) == 0 && s.Ref.Job == "r" }
	testCluster.Run(t, "-n", scope, "delete", "job/r")
	l.await(t, "that it has gone", gone)
	n := l.count()
	testCluster.Run(t, "-n", scope, "annotate", "job/r-worker", "x=y")
	l.await(t, "that it still has", func(s cluster.Snapshot) bool { return l.count() > n && gone(s) })
	if err := c.Delete(t.Context(), ref(scope, "r")); err != nil {
		t.Fatal(err)
	}
	l.await(t, "that it still has", gone)
}

func unlabelled(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	testCluster.Run(t, "-n", scope, "create", "configmap", "mine")
	testCluster.Run(t, "-n", scope, "create", "secret", "generic", "mine")
	testCluster.Run(t, "-n", scope, "create", "job", "r", "--image=example.org/none:1")
	l := watch(t, c)
	if _, err := c.Observe(t.Context(), ref(scope, "r")); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("observe a job that is not a run's: %v, want ErrNotFound", err)
	}
	if err := c.Delete(t.Context(), ref(scope, "r")); err != nil {
		t.Error(err)
	}
	testCluster.Run(t, "-n", scope, "get", "configmap/mine", "secret/mine", "job/r")
	if n := l.count(); n > 0 {
		t.Errorf("%d were handed over", n)
	}
}

func replicas(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	one := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	two := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	l := watch(t, two)
	made := make(chan error, 2)
	for _, c := range []*kube.Cluster{one, two} {
		go func() { made <- c.Create(t.Context(), job(scope, "r")) }()
	}
	if a, b := <-made, <-made; (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), cluster.ErrExists) {
		t.Errorf("two create one job: %v and %v, want one ErrExists", a, b)
	}
	l.await(t, "the job", func(s cluster.Snapshot) bool { return s.Job != nil })
	if err := errors.Join(two.Delete(t.Context(), ref(scope, "r")), one.Delete(t.Context(), ref(scope, "r"))); err != nil {
		t.Fatal(err)
	}
	l.await(t, "that it has gone", func(s cluster.Snapshot) bool { return s.Job == nil && len(s.Pods) == 0 })
}

func events(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	if err := c.Create(t.Context(), job(scope, "r")); err != nil {
		t.Fatal(err)
	}
	seen := waitUntil(t, c, ref(scope, "r"), "a pod", func(s cluster.Snapshot, _ error) bool { return len(s.Pods) == 1 })
	l := watch(t, c)
	l.await(t, "the pod", func(s cluster.Snapshot) bool { return len(s.Pods) == 1 })
	eventJSON := fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":%q},"type":"Warning","reason":"FailedMount","message":"no such secret","involvedObject":{"kind":"Pod","namespace":%[1]q,"name":%q,"uid":%q},"lastTimestamp":"2026-01-01T00:00:00Z"}`,
		scope, seen.Pods[0].Name, seen.Pods[0].UID)
	testCluster.Apply(t, eventJSON)
	l.await(t, "the event", func(s cluster.Snapshot) bool {
		for _, e := range s.Events {
			if e.Reason == "FailedMount" {
				return true
			}
		}
		return false
	})
}

func resync(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	scope := testCluster.Namespace(t)
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope, Resync: 50 * time.Millisecond})
	if err := c.Create(t.Context(), job(scope, "r")); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, c, ref(scope, "r"), "a pod", func(s cluster.Snapshot, _ error) bool { return len(s.Pods) == 1 })
	l := watch(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for l.count() < 20 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	last := l.last()
	if l.count() < 20 || last.Job == nil || len(last.Pods) != 1 {
		t.Errorf("handed over %d times, last %+v", l.count(), last)
	}
}

// watchLog records the snapshots of Watch.
type watchLog struct {
	mu        sync.Mutex
	snapshots []cluster.Snapshot
	wake      chan struct{}
}

func (l *watchLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.snapshots)
}

func (l *watchLog) last() cluster.Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.snapshots) == 0 {
		return cluster.Snapshot{}
	}
	return l.snapshots[len(l.snapshots)-1]
}

// await waits until the last that was handed over is ok.
func (l *watchLog) await(t *testing.T, what string, ok func(cluster.Snapshot) bool) {
	t.Helper()
	late := time.After(waitTimeout)
	for {
		if s := l.last(); l.count() > 0 && ok(s) {
			return
		}
		select {
		case <-l.wake:
		case <-late:
			t.Fatalf("%s: not handed over in time; the last of %d was %+v", what, l.count(), l.last())
		}
	}
}

// watch watches until the test is over.
func watch(t *testing.T, c *kube.Cluster) *watchLog {
	t.Helper()
	l, done := &watchLog{wake: make(chan struct{}, 1)}, make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		done <- c.Watch(ctx, func(s cluster.Snapshot) {
			l.mu.Lock()
			l.snapshots = append(l.snapshots, s)
			l.mu.Unlock()
			select {
			case l.wake <- struct{}{}:
			default:
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("watch: %v", err)
		}
	})
	return l
}
