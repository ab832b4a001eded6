package download

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestJudge(t *testing.T) {
	own := fmt.Errorf("x: %w", &source.Error{Reason: event.DataTooLarge, Class: event.ClassUser, Message: "m"})
	full := fmt.Errorf("x: %w", syscall.ENOSPC)
	nobody := fmt.Errorf("x: %w", &source.Error{Reason: event.FetchFailed, Message: "m"})
	longErr := fmt.Errorf("x: %w", &source.Error{Reason: event.FetchFailed, Class: event.ClassInfra, Message: strings.Repeat("x", 1<<20)})
	for name, tt := range map[string]struct {
		err         error
		done, total int64
		space       store.Space
		want        string // the failure
	}{
		"a failure that nobody is to blame for is the platform's": {err: nobody, want: "platform FetchFailed: m"},
		"the message of a failure is clipped":                     {err: longErr, want: "infra FetchFailed: " + strings.Repeat("x", 4<<10) + "…"},
		"what is larger than an empty store can never be had": {
			err: full, total: 200 << 30, space: store.Space{Free: 10 << 30, Total: 100 << 30},
			want: "user DataTooLarge: source https://example.com/dogs.bin has 200 GiB, and the object store has room for 100 GiB even when it is empty: use less of it, or have the object store moved to a larger disk (objects.url)",
		},
		"what an empty store would have room for is waited for":     {err: full, total: 90 << 30, space: store.Space{Free: 10 << 30, Total: 100 << 30}},
		"a store whose size nobody knows may have room one day":     {err: full, total: 1 << 50, space: store.Space{Free: -1, Total: -1}},
		"a body of no known size is not larger than an empty store": {err: full, total: -1, space: store.Space{}},
		"what is wrong with the source ends the run":                {err: own, want: "user DataTooLarge: m"},
		"a full store is waited for":                                {err: full, done: 5 << 30, total: 6 << 30, space: store.Space{Total: 1 << 40}},
		"a full store is waited for before anything came":           {err: full, total: -1},
		"a body of no known size that fills the store is wrong":     {err: full, done: 5 << 30, total: -1, want: "user DataTooLarge: source https://example.com/dogs.bin does not say how much it has, and had filled the object store after 5 GiB"},
		"everything else is ours, and waited for":                   {err: io.ErrClosedPipe, done: 5 << 30, total: -1},
		"nothing is nothing":                                        {total: -1},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if f := classifyError(dataset.Source{URL: "https://example.com/dogs.bin"}, tt.err, tt.done, tt.total, tt.space); f != nil {
				got = fmt.Sprintf("%s %s: %s", f.Class, f.Reason, f.Message)
			}
			if got != tt.want {
				t.Errorf("Judge: %s, want %s", got, tt.want)
			}
		})
	}
}

func TestFull(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"a full disk is full":           {fmt.Errorf("x: %w", syscall.ENOSPC), true},
		"a quota is full":               {fmt.Errorf("x: %w", syscall.EDQUOT), true},
		"another error is another fact": {io.ErrClosedPipe, false},
		"nothing is nothing":            {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsNoSpace(tt.err); got != tt.want {
				t.Errorf("Full: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestAJobIsTheTemplateWithATask(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	from := *template()
	from.Labels = map[string]string{"app": "fetch"}
	j := JobOf(from, key, Task{Number: 7}, "s3://cats", time.Hour)
	got := []string{
		j.APIVersion, j.Kind, j.Namespace, j.Name, j.Labels["app"], j.Labels[cluster.LabelRun], j.Labels[cluster.LabelAttempt],
		j.Spec.Template.Labels[cluster.LabelRun], string(j.Spec.Template.Spec.RestartPolicy), fmt.Sprint(*j.Spec.BackoffLimit, " ", *j.Spec.ActiveDeadlineSeconds),
		strings.Join(j.Spec.Template.Spec.Containers[0].Args, " "),
	}
	want := []string{
		"batch/v1", "Job", "platform", "bai-fetch-0123456789abcdef0123456789-7", "fetch", "fetch-0123456789abcdef0123456789", "7",
		"fetch-0123456789abcdef0123456789", "Never", "0 3600", "-config /etc/bai/fetcher.toml -transfer " + key,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(from.Labels) != 1 || len(from.Spec.Template.Spec.Containers[0].Args) != 2 {
		t.Error("the template has changed")
	}
	bare := *template()
	bare.Namespace = ""
	two := *template()
	two.Spec.Template.Spec.Containers = append(two.Spec.Template.Spec.Containers, corev1.Container{})
	for want, j := range map[string]batchv1.Job{"metadata.namespace: is needed": bare, "spec.template.spec.containers: has 2, want the fetcher alone": two} {
		if err := CheckJob(j); err == nil || err.Error() != want {
			t.Errorf("CheckJob: %v, want %s", err, want)
		}
	}
}

func TestLookTellsHowAJobStands(t *testing.T) {
	with := func(kind batchv1.JobConditionType, message string) *batchv1.Job {
		j := template()
		j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: "R", Message: message}}
		return j
	}
	words := corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no store"},
	}}}}}
	broken := func(pods ...corev1.Pod) cluster.Snapshot {
		j := template()
		j.Name, j.Status.Active = "bai-fetch-x-1", int32(len(pods))
		return cluster.Snapshot{Job: j, Pods: pods}
	}
	pod := func(status corev1.PodStatus) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bai-fetch-x-1-abcde", Namespace: "platform"}, Status: status}
	}
	container := func(state corev1.ContainerState) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "fetch", State: state}}
	}
	waitingPod := func(reason, message string) corev1.Pod {
		return pod(corev1.PodStatus{
			Phase:             corev1.PodPending,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
			ContainerStatuses: container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}),
		})
	}
	noNode := pod(corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient memory."},
	}})
	noImage := waitingPod("ImagePullBackOff", `Back-off pulling image "fetcher:1"`)
	noSecret := waitingPod("CreateContainerConfigError", `secret "fetcher" not found`)
	runs := pod(corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: container(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})})
	one, yes := int32(1), true
	ready, queued := broken(), broken()
	ready.Job.Status.Ready, queued.Job.Spec.Suspend = &one, &yes
	for name, tt := range map[string]struct {
		seen  cluster.Snapshot
		long  time.Duration
		stage jobPhase
		why   string
	}{
		"one that has not started has a moment for it":             {broken(noImage), 110 * time.Second, jobRunning, ""},
		"then it is said that its image cannot be had":             {broken(noImage), 2 * time.Minute, jobRunning, `its fetch job does not start: ImagePullBackOff: Back-off pulling image "fetcher:1"`},
		"or that no node takes it":                                 {broken(noNode), 2 * time.Minute, jobRunning, "its fetch job does not start: Unschedulable: 0/3 nodes are available: 3 Insufficient memory."},
		"or that a secret is missing":                              {broken(noSecret), 9 * time.Minute, jobRunning, `its fetch job does not start: CreateContainerConfigError: secret "fetcher" not found`},
		"or that it has no pod":                                    {broken(), 2 * time.Minute, jobRunning, "its fetch job does not start: it has no pod; kubectl describe job bai-fetch-x-1 --namespace platform says why"},
		"or at least which pod it is":                              {broken(waitingPod("ContainerCreating", "")), 2 * time.Minute, jobRunning, "its fetch job does not start: pod bai-fetch-x-1-abcde is being prepared; kubectl describe pod bai-fetch-x-1-abcde --namespace platform says what is missing"},
		"and after ten minutes it is given up":                     {broken(noNode), 10 * time.Minute, jobFailed, "its fetch job does not start: Unschedulable: 0/3 nodes are available: 3 Insufficient memory.; given up after 10m0s"},
		"one that has started may take its time":                   {broken(runs), 24 * time.Hour, jobRunning, ""},
		"also where its pods were not looked at, for one is ready": {ready, 24 * time.Hour, jobRunning, ""},
		"one that waits in a queue of the cluster's may wait":      {queued, 24 * time.Hour, jobRunning, "its fetch job does not start: a queue of the cluster's has not let it begin"},
		"there is none":                                            {cluster.Snapshot{}, 0, jobGone, ""},
		"it works":                                                 {cluster.Snapshot{Job: template()}, 0, jobRunning, ""},
		"it suspends nothing by itself":                            {cluster.Snapshot{Job: with(batchv1.JobSuspended, "")}, 0, jobRunning, ""},
		"it has worked":                                            {cluster.Snapshot{Job: with(batchv1.JobComplete, "")}, time.Hour, jobSucceeded, ""},
		"it failed without words":                                  {cluster.Snapshot{Job: with(batchv1.JobFailed, "late")}, 0, jobFailed, "R: late"},
		"it failed with last words":                                {cluster.Snapshot{Job: with(batchv1.JobFailed, "late"), Pods: []corev1.Pod{words}}, 0, jobFailed, "no store"},
	} {
		if stage, why := jobStatus(tt.seen, tt.long); stage != tt.stage || why != tt.why {
			t.Errorf("%s: %v %q, want %v %q", name, stage, why, tt.stage, tt.why)
		}
	}
}

// template returns the template of Jobs.
func template() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "fetch", Image: "fetcher:1", Args: []string{"-config", "/etc/bai/fetcher.toml"},
		}}}}},
	}
}
