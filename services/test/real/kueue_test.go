package real_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed/kueue"
)

// kueueObjects are a queue with room for a CPU, which a workload of high priority takes from others.
const kueueObjects = `apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: benchmarks}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu, memory, ephemeral-storage]
    flavors:
    - name: any
      resources:
      - {name: cpu, nominalQuota: 100m}
      - {name: memory, nominalQuota: 8Gi}
      - {name: ephemeral-storage, nominalQuota: 100Gi}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: team, namespace: SCOPE}
spec: {clusterQueue: benchmarks}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: WorkloadPriorityClass
metadata: {name: high}
value: 1000
`

// rival is a Job of others, of high priority, that takes all of the queue.
const rival = `apiVersion: batch/v1
kind: Job
metadata:
  name: rival
  namespace: SCOPE
  labels: {kueue.x-k8s.io/queue-name: team, kueue.x-k8s.io/priority-class: high}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - name: rival
        image: debian:12-slim
        command: [sleep, "3600"]
        resources: {requests: {cpu: 100m}}
`

// TestARunInAQueueOfKueueWaitsForItsTurnAndIsRetriedWhenItIsPreempted has Kueue's own controller.
func TestARunInAQueueOfKueueWaitsForItsTurnAndIsRetriedWhenItIsPreempted(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[executor.pods]\ngrace = \"4s\"\n[executor.pods.allow.default]\nqueues = [\"team\"]\n", "--slots", "4")
	kueue.Start(t, w.cluster, w.scope)
	file := filepath.Join(t.TempDir(), "run.toml")
	queued := failureCase{hardware: "memory = \"64Mi\"\nqueue = \"team\"", code: gatedCommand, limits: "retries = 1"}
	first, err := w.submit(t.Context(), file, queued.descriptor())
	if err != nil {
		t.Fatal(err)
	}
	w.awaitStatus(t, first, "queued", "QueueSuspended") // there is no such queue yet
	w.cluster.Apply(t, strings.ReplaceAll(kueueObjects, "SCOPE", w.scope))
	w.awaitStatus(t, first, "running", "")
	w.cluster.Apply(t, strings.ReplaceAll(rival, "SCOPE", w.scope))
	w.awaitStatus(t, first, "queued", "QueueSuspended")
	out, _ := w.baictl(t, "why", first)
	if why := strings.Join(strings.Fields(out), " "); !regexp.MustCompile(`Preempted \(infra\): its job had to leave the cluster's queue team to others`).MatchString(why) {
		t.Errorf("its user is not told that it was preempted:\n%s", out)
	}
	w.cluster.Run(t, "-n", w.scope, "delete", "job", "rival", "--wait=false")
	w.awaitStatus(t, first, "running", "")
	if err := w.release(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if out, code := w.baictl(t, "watch", first, "--timeout", "10m"); code != 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	end, err := w.get(t.Context(), first)
	if err != nil || end.Outcome != "succeeded" {
		t.Errorf("it ended as %+v; %v", end, err)
	}
	if n, err := w.count(t.Context(), first); err != nil || n < 6 || n > 9 {
		t.Errorf("%d samples of n, want the 6 of the second attempt and at most 3 of the first; %v", n, err)
	}
	awaitCleared(t, w.cluster, w.scope)
}

// awaitStatus waits until a run has a phase, for a reason.
func (w fixture) awaitStatus(t *testing.T, run, phase, reason string) {
	t.Helper()
	for late := time.Now().Add(waitTimeout); ; time.Sleep(300 * time.Millisecond) {
		r, err := w.get(t.Context(), run)
		if err == nil && r.Phase == phase && r.Reason == reason {
			return
		}
		if err != nil || r.Phase == "finished" || time.Now().After(late) {
			why, _ := w.baictl(t, "why", run)
			queue, _ := w.cluster.Try(t.Context(), "get", "workloads,localqueues,jobs", "-n", w.scope, "-o", "yaml") // for people
			t.Fatalf("it is not %s %s but %s; %v\n%s\n%s", phase, reason, fmt.Sprintf("%+v", r), err, why, queue)
		}
	}
}
