package clustertest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// indexed makes a Job one of n pods with numbers.
func indexed(j *batchv1.Job, n int32) *batchv1.Job {
	mode := batchv1.IndexedCompletion
	j.Spec.CompletionMode, j.Spec.Completions, j.Spec.Parallelism = &mode, &n, &n
	return j
}

func numbers(b *fixture) {
	j := indexed(b.job(`test -n "$JOB_COMPLETION_INDEX" && test "$JOB_COMPLETION_INDEX" = "$ANNOTATED" || exit 9`), 3)
	j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ANNOTATED", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + batchv1.JobCompletionIndexAnnotation + "']"},
	}}}
	b.create(j)
	seen := b.awaitEnd()
	if st := seen.Job.Status; st.Succeeded != 3 || st.CompletedIndexes != "0-2" ||
		condition(seen.Job, batchv1.JobComplete).Reason != "CompletionsReached" {
		b.Errorf("the job ended with %d of its pods well, %q: %s", st.Succeeded, st.CompletedIndexes, describe(seen))
	}
	found := map[string]bool{}
	for _, p := range seen.Pods {
		index := p.Annotations[batchv1.JobCompletionIndexAnnotation]
		if found[index] || p.Labels[batchv1.JobCompletionIndexAnnotation] != index || p.Labels[batchv1.JobNameLabel] != j.Name {
			b.Errorf("pod %s has the number %q, and the labels %v", p.Name, index, p.Labels)
		}
		found[index] = true
	}
	for i := range 3 {
		if !found[strconv.Itoa(i)] {
			b.Errorf("no pod has the number %d", i)
		}
	}
}

func oneFails(b *fixture) {
	b.create(indexed(b.job("test $JOB_COMPLETION_INDEX = 1 && exit 4; exec sleep 60"), 3))
	seen := b.awaitEnd()
	if c := condition(seen.Job, batchv1.JobFailed); c.Reason != "BackoffLimitExceeded" || seen.Job.Status.Active != 0 {
		b.Errorf("the job's condition is %+v: %s", c, describe(seen))
	}
	for _, p := range seen.Pods {
		for _, c := range p.Status.ContainerStatuses {
			t := c.State.Terminated
			if c.State.Running != nil || p.Annotations[batchv1.JobCompletionIndexAnnotation] == "1" && (t == nil || t.ExitCode != 4) {
				b.Errorf("pod %s is %+v", p.Name, c.State)
			}
		}
	}
}

// named: the pods of a run have names, which they are called by and which lead
// to them.
func named(b *fixture) {
	service := &corev1.Service{TypeMeta: metaOf("Service"), ObjectMeta: b.meta("-pods"), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: map[string]string{cluster.LabelRun: b.run},
		Ports: []corev1.ServicePort{{Name: "p", Port: 2222, Protocol: corev1.ProtocolTCP}},
	}}
	if b.suite.NoNamespaces {
		var refused *cluster.RefusedError
		if err := b.cluster.Create(b.Context(), service); !errors.As(err, &refused) || refused.Reason != string(event.NeedsNamespaces) {
			b.Errorf("create: %v, want a refusal as NeedsNamespaces", err)
		}
		return
	}
	name := fmt.Sprintf("%s-$((1 - JOB_COMPLETION_INDEX)).%s.%s.svc", b.run, service.Name, b.suite.Scope)
	j := indexed(b.job(`
		test "$(hostname)" = `+b.run+`-$JOB_COMPLETION_INDEX || exit 11
		until getent hosts `+name+` >/dev/null; do sleep 0.1; done
		test "$(getent hosts `+name+` | cut -d' ' -f1)" != "$OWN" || exit 12
		sleep 3`), 2)
	j.Spec.Template.Spec.Subdomain = service.Name
	j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{
		Name:      "OWN",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}},
	}}
	b.create(service, j)
	if seen := b.awaitEnd(); seen.Job.Status.Succeeded != 2 {
		b.Errorf("the pods did not find each other: %s", describe(seen))
	}
}

// roles: an attempt has a Job for each of its roles, and a snapshot's main Job is the one whose end ends the attempt.
func roles(b *fixture) {
	server := b.job("exec sleep 60")
	server.Name = b.run + "-server"
	b.create(b.job("exec sleep 60"), server)
	seen := b.await("both jobs", func(s cluster.Snapshot) bool { return s.Job != nil && len(s.Others) > 0 && len(s.Pods) == 2 })
	if seen.Job.Name != b.run || len(seen.Others) != 1 || seen.Others[0].Name != server.Name || seen.Others[0].UID == "" {
		b.Errorf("the job %s, beside it %v", seen.Job.Name, seen.Others)
	}
}

// stops: Stop ends the running pods of an attempt for good, and leaves the ended ones.
func stops(b *fixture) {
	server := b.job("exec sleep 600")
	server.Name = b.run + "-server"
	b.create(b.job("exit 0"), server)
	b.await("the server, and the end of the benchmark", func(s cluster.Snapshot) bool {
		return hasEnded(s) && len(s.Others) == 1 && slices.ContainsFunc(s.Pods, cluster.Alive)
	})
	for range 2 {
		if err := b.cluster.Stop(b.Context(), b.ref()); err != nil {
			b.Fatalf("stop: %v", err)
		}
	}
	seen := b.await("the end of the server", func(s cluster.Snapshot) bool {
		if len(s.Others) != 1 || slices.ContainsFunc(s.Pods, cluster.Alive) {
			return false
		}
		_, ok := cluster.Condition(&s.Others[0], batchv1.JobFailed)
		return ok
	})
	if _, ok := cluster.Condition(seen.Job, batchv1.JobComplete); !ok || len(seen.Pods) == 0 {
		b.Errorf("what had ended is not there as it was: %s", describe(seen))
	}
}
