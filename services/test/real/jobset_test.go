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

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/test/testbed/jobset"
)

// twoReplicatedJobs is a descriptor whose JobSet has a leader with one pod, and a Job of two workers.
const twoReplicatedJobs = `spec_version = "1.0"
[info]
description = "a JobSet with two replicated jobs"
[hardware]
cpus = "50m"
strategy = "manifest"
[env]
docker_image = "debian:12-slim"
[manifest]
objects = '''
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - name: leader
    template:
      spec:
        template:
          spec:
            containers:
            - name: main
              command: [sh, -ec, 'echo leads=1; sleep 1; exit 0']
  - name: workers
    template:
      spec:
        parallelism: 2
        completions: 2
        template:
          spec:
            containers:
            - name: main
              command: [sh, -ec, 'cat /config/line; sleep 2; exit 0']
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
[[output.metrics]]
name = "leads"
units = "count"
pattern = 'leads=(\d+)'
`

// TestJobSetsReallyRun has JobSet's own controller: a JobSet of two replicated jobs that succeeds, one with a worker that fails, and one
// that is canceled.
func TestJobSetsReallyRun(t *testing.T) {
	t.Parallel()
	const settings = "[executor.pods]\ngrace = \"4s\"\n[executor.pods.manifests.\"JobSet.v1alpha2.jobset.x-k8s.io\"]\n" +
		"[executor.pods.manifests.\"TrainJob.v1alpha1.trainer.kubeflow.org\"]\n" +
		"[kubernetes]\nkinds = [\"jobsets.v1alpha2.jobset.x-k8s.io\", \"trainjobs.v1alpha1.trainer.kubeflow.org\"]\n"
	f := newFleet(t, fleetOptions{settings: settings, args: []string{"--slots", "3"}, replicas: 1, grant: func(f *fleet, service string) {
		if service == "executor" { // the first
			jobset.Start(t, f.cluster, f.scope)
			trainJob().install(t, f.cluster)
		}
		grantComponent(t, f.cluster, "manifests", f.scope, service, service)
	}})
	dir := t.TempDir()
	run, err := f.submit(t.Context(), filepath.Join(dir, "well.toml"), twoReplicatedJobs)
	if err != nil {
		t.Fatal(err)
	}
	if out, code := f.baictl(t, "watch", run, "--timeout", "10m"); code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, f.cluster.Run(t, "-n", f.scope, "get", "jobsets,jobs,pods", "-o", "wide"))
	}
	if diff := cmp.Diff(map[string]string{"leads": "1", "n": "7 7"}, f.values(t, run)); diff != "" {
		t.Errorf("its metrics (-want +got):\n%s", diff)
	}
	if log, code := f.baictl(t, "logs", run); code != 0 || strings.Count(log, "n=7") != 2 || strings.Count(log, "leads=1") != 1 {
		t.Errorf("exit code %d, its log:\n%s", code, log)
	}
	f.trains(t, dir)
	for name, h := range map[string]failureCase{
		"a worker that fails": {
			descriptorText: strings.Replace(twoReplicatedJobs, "sleep 2; exit 0", "sleep 1; exit 3", 1),
			want:           runStatus{Outcome: "failed", FailureClass: "user", Reason: "NonZeroExit"}, messagePattern: `exit code 3`,
		},
		"a run that is canceled": {
			descriptorText: strings.Replace(twoReplicatedJobs, "sleep 2", "sleep 1000", 1), act: cancelRun,
			want: runStatus{Outcome: "canceled", Reason: "CanceledByUser"}, messagePattern: `canceled`,
		},
	} {
		end, took, err := f.provoke(t.Context(), filepath.Join(dir, name+".toml"), h)
		if err := errors.Join(err, h.check(end)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %s %s %s after %.1f s: %s", name, end.Outcome, end.FailureClass, end.Reason, took.Seconds(), end.Message)
	}
	awaitCleared(t, f.cluster, f.scope)
	if left := f.cluster.Run(t, "-n", f.scope, "get", "trainjobs,jobsets,jobs,pods,configmaps", "-l", cluster.LabelRun, "-o", "name"); left != "" {
		t.Errorf("left:\n%s", left)
	}
	wantNothingForbidden(t, append(calls(t, f.cluster, f.scope, "executor"), calls(t, f.cluster, f.scope, "watcher")...))
}

// trainJob is the kind of Kubeflow Trainer.
func trainJob() objectKind {
	return objectKind{plural: "trainjobs", group: "trainer.kubeflow.org", version: "v1alpha1", kind: "TrainJob"}
}

// trainJobDescriptor is a run of a TrainJob, whose pods the platform finds by a label.
const trainJobDescriptor = `spec_version = "1.0"
[info]
description = "a TrainJob"
[hardware]
cpus = "50m"
strategy = "manifest"
[env]
docker_image = "debian:12-slim"
[manifest]
objects = '''
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: train}
spec: {runtimeRef: {name: torch-distributed}}
'''
[[output.metrics]]
name = "n"
units = "count"
pattern = 'n=(\d+)'
`

// jobSetOf is the JobSet that Trainer makes of a TrainJob.
const jobSetOf = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: %[1]s
  ownerReferences: [{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: %[1]s, uid: %[2]s, controller: true, blockOwnerDeletion: true}]
spec:
  replicatedJobs:
  - name: node
    template:
      spec:
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            containers:
            - {name: node, image: 'debian:12-slim', command: [sh, -ec, 'echo n=7; sleep 2']}
`

// trains plays Trainer for a run: it makes a JobSet of the TrainJob, and says that this has succeeded.
func (f *fleet) trains(t *testing.T, dir string) {
	t.Helper()
	run, err := f.submit(t.Context(), filepath.Join(dir, "train.toml"), trainJobDescriptor)
	if err != nil {
		t.Fatal(err)
	}
	name := "bai-" + strings.ToLower(run) + "-1"
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	uid := f.awaitText(ctx, t, "get", "trainjob", name, "-o", "jsonpath={.metadata.uid}")
	f.cluster.Run(t, "-n", f.scope, "wait", "trainjob/"+name, "--for=create", "--timeout=1m")
	f.cluster.Apply(t, strings.Replace(fmt.Sprintf(jobSetOf, name, uid), "metadata:", "metadata:\n  namespace: "+f.scope, 1))
	f.awaitText(ctx, t, "get", "jobset", name, "-o", `jsonpath={.status.conditions[?(@.type=="Completed")].status}`)
	if out, _ := f.baictl(t, "why", run); !strings.Contains(out, "running") {
		t.Errorf("nothing is seen of its pods:\n%s", out)
	}
	f.cluster.Run(t, "-n", f.scope, "patch", "trainjob", name, "--subresource=status", "--type=merge", "-p",
		`{"status": {"conditions": [{"type": "Complete", "status": "True", "reason": "JobsCompleted", "message": "played", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}`)
	if out, code := f.baictl(t, "watch", run, "--timeout", "10m"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if diff := cmp.Diff(map[string]string{"n": "7"}, f.values(t, run)); diff != "" {
		t.Errorf("its metrics (-want +got):\n%s", diff)
	}
}

// awaitText waits until a call of kubectl prints something, and returns that.
func (f *fleet) awaitText(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	for every := time.Tick(300 * time.Millisecond); ; <-every {
		out, err := f.cluster.Try(ctx, append([]string{"-n", f.scope}, args...)...)
		if text := strings.TrimSpace(out); err == nil && text != "" {
			return text
		}
		if ctx.Err() != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
