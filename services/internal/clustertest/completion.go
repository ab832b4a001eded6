package clustertest

import (
	"errors"
	"strings"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

func createsOnce(b *fixture) {
	b.create(b.configMap(nil), b.secret(nil), b.job("exec sleep 60"))
	first := b.await("the job", func(s cluster.Snapshot) bool { return s.Job != nil && s.Job.UID != "" })
	for _, o := range []cluster.Object{b.configMap(nil), b.secret(nil), b.job("exit 1")} {
		if err := b.cluster.Create(b.Context(), o); !errors.Is(err, cluster.ErrExists) {
			b.Errorf("create %s once more: %v, want ErrExists", o.GetName(), err)
		}
	}
	if got := b.await("the job", func(s cluster.Snapshot) bool { return s.Job != nil }); got.Job.UID != first.Job.UID {
		b.Errorf("the job is another: UID %s, was %s", got.Job.UID, first.Job.UID)
	}
}

func refuses(b *fixture) {
	for name, change := range map[string]func(*batchv1.Job){
		"a name that is none":        func(j *batchv1.Job) { j.Name += "_X" },
		"no container":               func(j *batchv1.Job) { j.Spec.Template.Spec.Containers = nil },
		"a volume that is not there": func(j *batchv1.Job) { mount(&j.Spec.Template.Spec.Containers[0], "nosuch", "/x", "") },
		"a restart policy that Jobs may not have": func(j *batchv1.Job) {
			j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		},
	} {
		j := b.job("exit 0")
		change(j)
		err := b.cluster.Create(b.Context(), j)
		var refused *cluster.RefusedError
		if !errors.As(err, &refused) {
			b.Errorf("%s: %v, want a RefusedError", name, err)
			continue
		}
		if !strings.Contains(refused.Object, b.run) || refused.Message == "" {
			b.Errorf("%s: the refusal %q does not name the object, or gives no reason", name, refused)
		}
	}
	if _, err := b.cluster.Observe(b.Context(), b.ref()); !errors.Is(err, cluster.ErrNotFound) {
		b.Errorf("observe after the refusals: %v, want ErrNotFound", err)
	}
}

// check runs a job to its end and compares the result.
func check(b *fixture, want result) cluster.Snapshot {
	b.Helper()
	seen := b.awaitEnd()
	if diff := cmp.Diff(want, resultOf(seen)); diff != "" {
		b.Errorf("result (-want +got):\n%s%s", diff, describe(seen))
	}
	return seen
}

func completes(b *fixture) {
	j := b.job("exit 0")
	b.create(j)
	if j.UID == "" {
		b.Error("create gave the job no UID")
	}
	seen := check(b, result{
		Succeeded: 1, Condition: batchv1.JobComplete, Reason: "CompletionsReached",
		Phase: corev1.PodSucceeded, ExitReason: "Completed",
	})
	if seen.Job.UID != j.UID || seen.Ref.UID != string(j.UID) {
		b.Errorf("UID %s in %+v, want %s", seen.Job.UID, seen.Ref, j.UID)
	}
	if seen.Job.Status.CompletionTime == nil || seen.Job.Status.StartTime == nil {
		b.Errorf("the job does not say when it began and ended: %s", describe(seen))
	}
	end := containerState(seen, cluster.ContainerBenchmark).Terminated
	if end == nil || end.StartedAt.IsZero() || end.FinishedAt.Before(&end.StartedAt) {
		b.Errorf("the container does not say when it began and ended: %s", describe(seen))
	}
}

func fails(b *fixture) {
	b.create(b.job("exit 3"))
	check(b, result{
		Failed: 1, Condition: batchv1.JobFailed, Reason: "BackoffLimitExceeded", Phase: corev1.PodFailed,
		Exit: 3, ExitReason: "Error",
	})
}

func signaled(b *fixture) {
	b.create(b.job("sh -c 'kill -9 $$$$'; exit $?"))
	check(b, result{
		Failed: 1, Condition: batchv1.JobFailed, Reason: "BackoffLimitExceeded", Phase: corev1.PodFailed,
		Exit: 137, ExitReason: "Error",
	})
}

func notFound(b *fixture) {
	j := b.job("")
	j.Spec.Template.Spec.Containers[0].Command = []string{"no-such-command", "x"}
	b.create(j)
	seen := b.awaitEnd()
	end := containerState(seen, cluster.ContainerBenchmark).Terminated
	if end == nil || end.Reason != "StartError" && end.Reason != "ContainerCannotRun" || end.ExitCode == 0 ||
		!strings.Contains(end.Message, "no-such-command") {
		b.Errorf("the container's end is %+v, want a StartError that names the command", end)
	}
	if c := condition(seen.Job, batchv1.JobFailed); c.Reason != "BackoffLimitExceeded" {
		b.Errorf("the job's condition is %+v", c)
	}
}

func initFails(b *fixture) {
	j := b.job("exit 0")
	j.Spec.Template.Spec.InitContainers = []corev1.Container{b.sh("first", "exit 7"), b.sh("second", "exit 0")}
	b.create(j)
	seen := check(b, result{Failed: 1, Condition: batchv1.JobFailed, Reason: "BackoffLimitExceeded", Phase: corev1.PodFailed})
	if end := containerState(seen, "first").Terminated; end == nil || end.ExitCode != 7 {
		b.Errorf("the first init container's end is %+v, want exit code 7", end)
	}
	for _, name := range []string{"second", cluster.ContainerBenchmark} {
		if w := containerState(seen, name).Waiting; w == nil || w.Reason != "PodInitializing" {
			b.Errorf("%s is %+v, want it to wait for PodInitializing", name, containerState(seen, name))
		}
	}
}

func deadline(b *fixture) {
	j, second := b.job("exec sleep 60"), int64(1)
	j.Spec.ActiveDeadlineSeconds = &second
	b.create(j)
	seen := b.awaitEnd()
	if c := condition(seen.Job, batchv1.JobFailed); c.Reason != "DeadlineExceeded" {
		b.Errorf("the job's condition is %+v, want DeadlineExceeded", c)
	}
	if st := seen.Job.Status; st.Failed != 1 || st.Active != 0 || st.Succeeded != 0 {
		b.Errorf("the job counts %d failed, %d active, %d succeeded", st.Failed, st.Active, st.Succeeded)
	}
	if containerState(seen, cluster.ContainerBenchmark).Running != nil {
		b.Error("the container runs after the job's end")
	}
}
