package real_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan/inject"
	"github.com/benchmark-ai/bai/services/plan/transpile"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// objectDefinition has a cluster know a kind, of which it takes every field.
const objectDefinition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "%[1]s.%[2]s"}, "spec": {
	"group": "%[2]s", "scope": "Namespaced", "names": {"kind": "%[4]s", "plural": "%[1]s", "singular": "%[5]s"}, "versions": [{"name": "%[3]s", "served": true, "storage": true,
	"subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`

// objectKind is a kind of objects that the test installs, and whose controller it plays.
type objectKind struct {
	plural, group, version, kind string

	spec      string // of the object, as JSON
	succeeded string // status of an object that has succeeded, as JSON
	failed    string
}

func objectKinds() []objectKind {
	const pods = `{"template": {"spec": {"containers": [{"name": "tensorflow", "image": "none:1", "command": ["true"]}]}}}`
	condition := func(name string) string {
		return fmt.Sprintf(`{"conditions": [{"type": "Running", "status": "False"}, {"type": %q, "status": "True", "reason": "Played", "message": "by a test", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}`, name)
	}
	return []objectKind{
		{
			"workflows", "argoproj.io", "v1alpha1", "Workflow", `{"entrypoint": "main", "templates": [{"name": "main", "container": {"image": "none:1", "command": ["true"]}}]}`,
			`{"phase": "Succeeded", "finishedAt": "2026-01-02T03:04:05Z"}`, `{"phase": "Error", "message": "by a test"}`,
		},
		{"tfjobs", "kubeflow.org", "v1", "TFJob", `{"tfReplicaSpecs": {"PS": ` + pods + `, "Worker": ` + pods + `}}`, condition("Succeeded"), condition("Failed")},
		{"trainjobs", "trainer.kubeflow.org", "v1alpha1", "TrainJob", `{"runtimeRef": {"name": "none"}}`, condition("Complete"), condition("Failed")},
	}
}

func (k objectKind) resource() string { return k.plural + "." + k.version + "." + k.group }

// install has a cluster know the kind until the test ends.
func (k objectKind) install(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	name := k.plural + "." + k.group
	testCluster.Apply(t, fmt.Sprintf(objectDefinition, k.plural, k.group, k.version, k.kind, strings.ToLower(k.kind)))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitTimeout)
		defer cancel()
		if out, err := testCluster.Try(ctx, "delete", "crd", name, "--ignore-not-found", "--wait=false"); err != nil {
			t.Errorf("delete %s: %v\n%s", name, err, out)
		}
	})
	testCluster.Run(t, "wait", "crd/"+name, "--for=create", "--timeout=1m")
	testCluster.Run(t, "wait", "crd/"+name, "--for=condition=Established", "--timeout=1m")
}

// objectPlan is the plan of a run with a manifest.
func objectPlan(t *testing.T, scope, run, kind, text string) transpile.Workload {
	t.Helper()
	whole := "spec_version = '1.0'\n[info]\ndescription = 'x'\n[hardware]\ncpus = 1\nstrategy = 'manifest'\n[env]\ndocker_image = 'none:1'\n[manifest]\nobjects = '''" + text + "'''\n"
	d, faults := parser.Parser{}.Parse("manifest.toml", []byte(whole))
	if err := faults.Err(); err != nil {
		t.Fatal(err)
	}
	header := event.NewHeader("submitted "+run, run, "pets", "ann", time.Now())
	plan, err := transpile.Objects(transpile.Input{Run: event.Fetched{Header: header, Descriptor: whole}, Descriptor: d},
		transpile.Settings{Scope: scope, Image: podImage, Owner: true, Manifests: map[string]inject.Kind{kind: {}}})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestObjectsOfManifestsAreCreatedWatchedAndDeleted calls the driver's methods of executor and watcher, with their own rights, for objects
// whose kinds are installed as definitions. The test plays their controllers. One more kind is in the settings, and not in the cluster.
func TestObjectsOfManifestsAreCreatedWatchedAndDeleted(t *testing.T) {
	t.Parallel()
	testCluster := testbed.API(t)
	if !testCluster.Own {
		t.Skip("has the cluster know further kinds of objects")
	}
	kinds := []string{"jobsets.v1alpha2.jobset.x-k8s.io"}
	for _, k := range objectKinds() {
		k.install(t, testCluster)
		kinds = append(kinds, k.resource())
	}
	scope := testCluster.Namespace(t)
	drivers := map[string]*kube.Cluster{}
	for _, service := range []string{"executor", "watcher"} {
		config := account(t, testCluster, scope, service, service)
		grantComponent(t, testCluster, "manifests", scope, service, service)
		c, err := kube.New(kube.Settings{Kubeconfig: config, Namespace: scope, Kinds: kinds, MainOnly: service == "executor"}, zaptest.NewLogger(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		drivers[service] = c
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*waitTimeout) // the garbage collector looks for new kinds only every 30 s
	defer cancel()
	seen := make(chan cluster.Snapshot, 1000)
	watching, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- drivers["watcher"].Watch(watching, func(s cluster.Snapshot) { seen <- s }) }()
	for i, k := range objectKinds() {
		for n, end := range []struct {
			status  string
			outcome event.Outcome
		}{{k.succeeded, event.Succeeded}, {k.failed, event.Failed}} {
			run := fmt.Sprintf("01jz00000000000000000000%d%d", i, n)
			text := fmt.Sprintf(`{"apiVersion": "%s/%s", "kind": %q, "metadata": {"name": "mine"}, "spec": %s}`, k.group, k.version, k.kind, k.spec)
			text += "\n---\n" + `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beside"}, "data": {"a": "b"}}` + "\n"
			plan := objectPlan(t, scope, run, k.kind+"."+k.version+"."+k.group, text)
			playController(ctx, t, testCluster, drivers, seen, plan, k, end.status, end.outcome)
		}
	}
	lacking := objectPlan(t, scope, "01jz0000000000000000000099", "JobSet.v1alpha2.jobset.x-k8s.io", `{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "mine"}, "spec": {}}`)
	err := drivers["executor"].Create(ctx, lacking.Objects[len(lacking.Objects)-1])
	if refused, ok := errors.AsType[*cluster.RefusedError](err); !ok || refused.Class != event.ClassPlatform || !strings.Contains(refused.Message, "JobSet (sigs.k8s.io/jobset) brings it") {
		t.Errorf("a kind that the cluster lacks: %v", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	awaitCleared(t, testCluster, scope)
	for _, service := range []string{"executor", "watcher"} {
		wantNothingForbidden(t, calls(t, testCluster, scope, service))
	}
}

// playController creates the objects of a plan, says how the last one ended, and deletes them.
func playController(ctx context.Context, t *testing.T, testCluster *testbed.Cluster, drivers map[string]*kube.Cluster, seen <-chan cluster.Snapshot, plan transpile.Workload, k objectKind, status string, want event.Outcome) {
	t.Helper()
	last := plan.Objects[len(plan.Objects)-1]
	again, ok := last.DeepCopyObject().(cluster.Object)
	for _, o := range plan.Objects {
		if err := drivers["executor"].Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	id, uid := last.GetLabels()[cluster.LabelRun], last.GetUID()
	if err := drivers["executor"].Create(ctx, again); !ok || !errors.Is(err, cluster.ErrExists) {
		t.Errorf("created twice: %v", err)
	}
	r := cluster.Ref{Run: id, Attempt: 1, Scope: plan.Scope, Job: plan.Job, UID: string(uid)}
	for _, c := range drivers {
		eventually(ctx, t, c, r, func(s cluster.Snapshot, err error) bool { return err == nil && s.Job != nil && s.Job.UID == uid })
	}
	if selector := last.GetAnnotations()[cluster.AnnotationPodSelector]; selector != "" {
		playPods(ctx, t, testCluster, drivers["watcher"], seen, r, selector)
	}
	testCluster.Run(t, "-n", plan.Scope, "patch", k.plural+"."+k.group, plan.Job, "--subresource=status", "--type=merge", "-p", `{"status":`+status+`}`) //nolint:contextcheck // it is the test's
	v := verdict.Decide(verdict.Observation{Seen: await(ctx, t, seen, func(s cluster.Snapshot) bool {
		return s.Ref.Run == id && s.Job != nil && len(s.Job.Status.Conditions) > 0
	}), Now: time.Now(), Grace: time.Second, PendingDeadline: time.Minute})
	if v.Phase != event.PhaseFinished || v.Outcome != want || want == event.Failed && (v.Class != event.ClassUser || v.Reason != event.ObjectFailed) {
		t.Errorf("%s: the watcher says %+v, want %s", k.kind, v, want)
	}
	if err := drivers["executor"].Delete(ctx, r); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, drivers["executor"], r, func(_ cluster.Snapshot, err error) bool { return errors.Is(err, cluster.ErrNotFound) })
	await(ctx, t, seen, func(s cluster.Snapshot) bool { return s.Ref.Run == id && s.Job == nil })
}

// selectedPod is a pod of an operator that no node takes.
const selectedPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": %q, "labels": {%q: %q}},
	"spec": {"nodeSelector": {"none": "such"}, "containers": [{"name": "node", "image": "none:1"}]}}`

// playPods makes a pod that the object of an attempt selects by the only label of its selector, and one of another run's operator. Only
// the first is of the attempt, live and from the cache.
func playPods(
	ctx context.Context, t *testing.T, testCluster *testbed.Cluster, c *kube.Cluster, seen <-chan cluster.Snapshot, r cluster.Ref, selector string,
) {
	t.Helper()
	label, name, _ := strings.Cut(selector, "=")
	mine, other := "mine-"+r.Run, "other-"+r.Run
	testCluster.Apply(t, fmt.Sprintf(selectedPod, mine, r.Scope, label, name))           //nolint:contextcheck // it is the test's
	testCluster.Apply(t, fmt.Sprintf(selectedPod, other, r.Scope, label, "bai-other-1")) //nolint:contextcheck // likewise
	selected := func(s cluster.Snapshot) bool {
		return s.Ref.Run == r.Run && len(s.Pods) == 1 && s.Pods[0].Name == mine && cluster.RunsWithoutEntrypoint(s.Pods[0])
	}
	await(ctx, t, seen, selected)
	eventually(ctx, t, c, r, func(s cluster.Snapshot, err error) bool { return err == nil && selected(s) })
	testCluster.Run(t, "-n", r.Scope, "delete", "pod", mine, other, "--wait=true", "--timeout=5m") //nolint:contextcheck // likewise
}

// jobOfManifest is a descriptor whose run makes two copies of a Job and its ConfigMap.
const jobOfManifest = `spec_version = "1.0"
[info]
description = "two Jobs that read a file"
[hardware]
cpus = "50m"
strategy = "manifest"
[env]
docker_image = "debian:12-slim"
[limits]
deadline = "10m"
[manifest]
copies = 2
objects = '''
apiVersion: batch/v1
kind: Job
metadata: {name: reads}
spec:
  template:
    spec:
      containers:
      - name: main
        command: [sh, -ec, 'cat /config/line; BENCHMARK_AI_STRICT=1 bai-emit copies=2; test -n "$BAI_COPY"; sleep 2; exit 0']
        volumeMounts: [{name: data, mountPath: /config}]
      volumes: [{name: data, configMap: {name: lines}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: lines}
data: {line: "n=7\n"}
'''
[[output.metrics]]
name = "n"
units = "count"
pattern = 'n=(\d+)'
`

// TestJobsOfManifestsReallyRun runs copies of a Job whose container runs under the platform's program, then one whose log is followed, one
// that fails, and one that is canceled.
func TestJobsOfManifestsReallyRun(t *testing.T) {
	t.Parallel()
	f := newFleet(t, fleetOptions{settings: "[executor.pods]\ngrace = \"4s\"\n", args: []string{"--slots", "3"}, replicas: 1})
	dir := t.TempDir()
	followed := strings.Replace(strings.Replace(jobOfManifest, "command: [sh, -ec", "args: [sh, -ec", 1), "BENCHMARK_AI_STRICT=1 bai-emit copies=2; ", "", 1)
	for name, row := range map[string]struct {
		text string
		want map[string]string
	}{
		"collected": {jobOfManifest, map[string]string{"n": "7 7", "copies": "2 2"}},
		"followed":  {followed, map[string]string{"n": "7 7"}},
	} {
		run, err := f.submit(t.Context(), filepath.Join(dir, name+".toml"), row.text)
		if err != nil {
			t.Fatal(err)
		}
		if out, code := f.baictl(t, "watch", run, "--timeout", "10m"); code != 0 {
			t.Fatalf("%s: exit code %d\n%s\n%s", name, code, out, f.cluster.Run(t, "-n", f.scope, "get", "jobs,pods", "-o", "wide"))
		}
		if diff := cmp.Diff(row.want, f.values(t, run)); diff != "" {
			t.Errorf("%s: metrics (-want +got):\n%s", name, diff)
		}
	}
	for name, h := range map[string]failureCase{
		"a copy that fails": {
			descriptorText: strings.Replace(jobOfManifest, "exit 0", "exit $((3 * BAI_COPY))", 1), want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "NonZeroExit"}, messagePattern: `exit code 3`,
		},
		"a run that is canceled": {
			descriptorText: strings.Replace(jobOfManifest, "sleep 2", "sleep 1000", 1), act: cancelRun, want: runStatus{Outcome: "canceled", Reason: "CanceledByUser"}, messagePattern: `canceled`,
		},
	} {
		end, took, err := f.provoke(t.Context(), filepath.Join(dir, name+".toml"), h)
		if err := errors.Join(err, h.check(end)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %s %s %s after %.1f s: %s", name, end.Outcome, end.FailureClass, end.Reason, took.Seconds(), end.Message)
	}
	awaitCleared(t, f.cluster, f.scope)
	if left := f.cluster.Run(t, "-n", f.scope, "get", "jobs,pods,configmaps", "-l", cluster.LabelRun, "-o", "name"); left != "" {
		t.Errorf("left:\n%s", left)
	}
	wantNothingForbidden(t, append(calls(t, f.cluster, f.scope, "executor"), calls(t, f.cluster, f.scope, "watcher")...))
}
