package podstatus_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/podstatus"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

var t0 = time.Unix(1000, 0)

func at(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }

// facts are those of a Job with an init container, a sidecar and a benchmark.
func facts(containers ...shimapi.ContainerStatus) podstatus.Facts {
	always := corev1.ContainerRestartPolicyAlways
	f := podstatus.Facts{
		PodName: "run-x", PodUID: "pod", Node: "machine", IP: "127.0.0.1", Grace: 30 * time.Second, Version: 7,
		Job: &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "run", Namespace: "ns", UID: "job", CreationTimestamp: metav1.NewTime(t0)},
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
				Spec: corev1.PodSpec{
					InitContainers: []corev1.Container{{Name: "init"}, {Name: "side", RestartPolicy: &always}},
					Containers:     []corev1.Container{{Name: "benchmark", Image: "image"}},
				},
			}},
		},
	}
	if len(containers) > 0 {
		f.State = &shimapi.State{StartedAt: t0, Containers: containers}
	}
	return f
}

func ended(code int) shimapi.ContainerStatus {
	return shimapi.ContainerStatus{Started: at(1), Termination: &shimapi.Termination{Code: code, Started: at(1), Ended: at(2)}}
}

func signaled(signal int) shimapi.ContainerStatus {
	s := ended(128 + signal)
	s.Termination.Signal = signal
	return s
}

func runs(pid int) shimapi.ContainerStatus { return shimapi.ContainerStatus{PID: pid, Started: at(1)} }

func hasEnded(f podstatus.Facts) podstatus.Facts {
	f.State.EndedAt = at(3)
	return f
}

func deadlineExceeded(f podstatus.Facts) podstatus.Facts {
	f.State.Stopped, f.State.Deadline = at(2), true
	return f
}

func stopped(f podstatus.Facts) podstatus.Facts { return stoppedAt(2, f) }

func stoppedAt(seconds int, f podstatus.Facts) podstatus.Facts {
	f.Stopped = at(seconds)
	return f
}

func killed(f podstatus.Facts) podstatus.Facts {
	f.ShimEnded = true
	return f
}

func deleted(f podstatus.Facts) podstatus.Facts {
	f.Deleting = at(2)
	return f
}

// summary is a short form of the status of a Job and its pod.
type summary struct {
	Job        string // active succeeded failed ready terminating
	Conditions string
	Phase      corev1.PodPhase
	Reason     string
	Containers [3]string
	Ready      corev1.ConditionStatus
	Initial    corev1.ConditionStatus // the condition Initialized
	Deleting   bool
}

func summarize(f podstatus.Facts) summary {
	j, p := podstatus.Job(f), podstatus.Pod(f)
	st := j.Status
	s := summary{
		Job:   string([]byte{'0' + byte(st.Active), '0' + byte(st.Succeeded), '0' + byte(st.Failed), '0' + byte(*st.Ready), '0' + byte(*st.Terminating)}), //nolint:gosec // digits
		Phase: p.Status.Phase, Reason: p.Status.Reason, Deleting: p.DeletionTimestamp != nil,
	}
	for _, c := range st.Conditions {
		s.Conditions += string(c.Type) + ":" + c.Reason + " "
	}
	for i, c := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		switch {
		case c.State.Running != nil:
			s.Containers[i] = "Running"
		case c.State.Waiting != nil:
			s.Containers[i] = "Waiting " + c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.Containers[i] = "Terminated " + c.State.Terminated.Reason
		}
	}
	for _, c := range p.Status.Conditions {
		switch c.Type { //nolint:exhaustive // two are looked at
		case corev1.PodReady:
			s.Ready = c.Status
		case corev1.PodInitialized:
			s.Initial = c.Status
		}
	}
	return s
}

func TestAJobAndItsPodAreSaidToBeWhatTheyAre(t *testing.T) {
	t.Parallel()
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	none := shimapi.ContainerStatus{}
	crashed := ended(1)
	crashed.Restarts, crashed.LastTermination = 1, &shimapi.Termination{Code: 2, Started: at(0), Ended: at(1)}
	unable := shimapi.ContainerStatus{Started: at(1), Termination: &shimapi.Termination{Code: 128, Problem: "no such file", Started: at(1), Ended: at(1)}}
	starved := ended(137)
	starved.Termination.OOM = true
	waiting := facts()
	waiting.Waiting = &podstatus.Waiting{Since: t0, Container: "benchmark", Reason: "CreateContainerConfigError", Message: "x"}
	nowhere := facts()
	nowhere.Waiting = &podstatus.Waiting{Since: t0, Reason: "Unschedulable", Message: "x", NoNode: true}
	expired := facts()
	expired.Expired = at(5)
	const (
		complete = "SuccessCriteriaMet:CompletionsReached Complete:CompletionsReached "
		failed   = "FailureTarget:BackoffLimitExceeded Failed:BackoffLimitExceeded "
		tooLate  = "FailureTarget:DeadlineExceeded "
		initing  = "Waiting PodInitializing"
	)
	for name, test := range map[string]struct {
		facts podstatus.Facts
		want  summary
	}{
		"nothing has begun":                {facts(), summary{Job: "10000", Phase: "Pending", Containers: [3]string{initing, initing, initing}, Ready: no, Initial: no}},
		"a container lacks its config":     {waiting, summary{Job: "10000", Phase: "Pending", Containers: [3]string{initing, initing, "Waiting CreateContainerConfigError"}, Ready: no, Initial: no}},
		"the machine has no room":          {nowhere, summary{Job: "10000", Phase: "Pending", Containers: [3]string{initing, initing, initing}}},
		"the init container runs":          {facts(runs(2), none, none), summary{Job: "10000", Phase: "Pending", Containers: [3]string{"Running", initing, initing}, Ready: no, Initial: no}},
		"the sidecar runs":                 {facts(ended(0), runs(3), none), summary{Job: "10000", Phase: "Pending", Containers: [3]string{"Terminated Completed", "Running", initing}, Ready: no, Initial: yes}},
		"all runs":                         {facts(ended(0), runs(3), runs(4)), summary{Job: "10010", Phase: "Running", Containers: [3]string{"Terminated Completed", "Running", "Running"}, Ready: yes, Initial: yes}},
		"the sidecar has crashed":          {facts(ended(0), crashed, runs(4)), summary{Job: "10000", Phase: "Running", Containers: [3]string{"Terminated Completed", "Waiting CrashLoopBackOff", "Running"}, Ready: no, Initial: yes}},
		"the sidecar still runs":           {facts(ended(0), runs(3), ended(0)), summary{Job: "10000", Phase: "Running", Containers: [3]string{"Terminated Completed", "Running", "Terminated Completed"}, Ready: no, Initial: yes}},
		"all is over, and well":            {hasEnded(facts(ended(0), ended(0), ended(0))), summary{Job: "01000", Conditions: complete, Phase: "Succeeded", Containers: [3]string{"Terminated Completed", "Terminated Completed", "Terminated Completed"}, Ready: no, Initial: yes}},
		"a failed sidecar fails nothing":   {hasEnded(facts(ended(0), signaled(15), ended(0))), summary{Job: "01000", Conditions: complete, Phase: "Succeeded", Containers: [3]string{"Terminated Completed", "Terminated Error", "Terminated Completed"}, Ready: no, Initial: yes}},
		"the benchmark failed":             {hasEnded(facts(ended(0), ended(0), ended(3))), summary{Job: "00100", Conditions: failed, Phase: "Failed", Containers: [3]string{"Terminated Completed", "Terminated Completed", "Terminated Error"}, Ready: no, Initial: yes}},
		"the benchmark was starved":        {hasEnded(facts(ended(0), ended(0), starved)), summary{Job: "00100", Conditions: failed, Phase: "Failed", Containers: [3]string{"Terminated Completed", "Terminated Completed", "Terminated OOMKilled"}, Ready: no, Initial: yes}},
		"the benchmark could not start":    {hasEnded(facts(ended(0), ended(0), unable)), summary{Job: "00100", Conditions: failed, Phase: "Failed", Containers: [3]string{"Terminated Completed", "Terminated Completed", "Terminated StartError"}, Ready: no, Initial: yes}},
		"the init container failed":        {hasEnded(facts(ended(7), none, none)), summary{Job: "00100", Conditions: failed, Phase: "Failed", Containers: [3]string{"Terminated Error", initing, initing}, Ready: no, Initial: no}},
		"the deadline passes":              {deadlineExceeded(facts(ended(0), runs(3), signaled(15))), summary{Job: "00001", Conditions: tooLate, Phase: "Running", Containers: [3]string{"Terminated Completed", "Running", "Terminated Error"}, Ready: no, Initial: yes, Deleting: true}},
		"the deadline has passed":          {hasEnded(deadlineExceeded(facts(ended(0), ended(0), signaled(15)))), summary{Job: "00100", Conditions: tooLate + "Failed:DeadlineExceeded ", Phase: "Failed", Containers: [3]string{"Terminated Completed", "Terminated Completed", "Terminated Error"}, Ready: no, Initial: yes, Deleting: true}},
		"it ended well, but too late":      {hasEnded(deadlineExceeded(facts(ended(0), ended(0), ended(0)))), summary{Job: "00100", Conditions: tooLate + "Failed:DeadlineExceeded ", Phase: "Succeeded", Containers: [3]string{"Terminated Completed", "Terminated Completed", "Terminated Completed"}, Ready: no, Initial: yes, Deleting: true}},
		"the deadline passed while waited": {expired, summary{Job: "00100", Conditions: tooLate + "Failed:DeadlineExceeded ", Phase: "Failed", Containers: [3]string{initing, initing, initing}, Ready: no, Initial: no}},
		"the platform was stopped":         {hasEnded(stopped(facts(ended(0), ended(0), signaled(15)))), summary{Job: "00100", Conditions: failed, Phase: "Failed", Reason: "PlatformStopped", Containers: [3]string{"Terminated Completed", "Terminated Completed", "Terminated Error"}, Ready: no, Initial: yes}},
		"it ends well when stopped":        {hasEnded(stopped(facts(ended(0), ended(0), ended(0)))), summary{Job: "00100", Conditions: failed, Phase: "Failed", Reason: "PlatformStopped", Containers: [3]string{"Terminated Completed", "Terminated Completed", "Terminated Completed"}, Ready: no, Initial: yes}},
		"it ended well before the stop":    {hasEnded(stoppedAt(3, facts(ended(0), ended(0), ended(0)))), summary{Job: "01000", Conditions: complete, Phase: "Succeeded", Containers: [3]string{"Terminated Completed", "Terminated Completed", "Terminated Completed"}, Ready: no, Initial: yes}},
		"it is told to end by the stop":    {stopped(facts(ended(0), runs(3), runs(4))), summary{Job: "10010", Phase: "Running", Containers: [3]string{"Terminated Completed", "Running", "Running"}, Ready: yes, Initial: yes}},
		"it was killed when stopped":       {killed(stopped(facts(ended(0), runs(3), runs(4)))), summary{Job: "00100", Conditions: failed, Phase: "Failed", Reason: "PlatformStopped", Containers: [3]string{"Terminated Completed", "Terminated Error", "Terminated Error"}, Ready: no, Initial: yes}},
		"it failed to begin before that":   {hasEnded(stoppedAt(3, facts(ended(7), none, none))), summary{Job: "00100", Conditions: failed, Phase: "Failed", Containers: [3]string{"Terminated Error", initing, initing}, Ready: no, Initial: no}},
		"it is deleted":                    {deleted(facts(ended(0), runs(3), runs(4))), summary{Job: "00011", Phase: "Running", Containers: [3]string{"Terminated Completed", "Running", "Running"}, Ready: yes, Initial: yes, Deleting: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, summarize(test.facts)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// podsOfJob makes facts those of the pods of one Indexed Job.
func podsOfJob(pods ...podstatus.Facts) []podstatus.Facts {
	n, mode := int32(len(pods)), batchv1.IndexedCompletion //nolint:gosec // a few
	for i := range pods {
		pods[i].Index, pods[i].Version = i, int64(i)
		pods[i].Job.Spec.CompletionMode, pods[i].Job.Spec.Completions, pods[i].Job.Spec.Parallelism = &mode, &n, &n
	}
	return pods
}

func TestAJobOfSeveralPodsIsWhatTheyAreTogether(t *testing.T) {
	t.Parallel()
	waits := func() podstatus.Facts { return facts() }
	works := func() podstatus.Facts { return facts(ended(0), runs(3), runs(4)) }
	good := func() podstatus.Facts { return hasEnded(facts(ended(0), ended(0), ended(0))) }
	bad := func() podstatus.Facts { return hasEnded(facts(ended(0), ended(0), ended(3))) }
	halted := func() podstatus.Facts {
		f := facts()
		f.Halted = at(4)
		return f
	}
	for name, tt := range map[string]struct {
		pods []podstatus.Facts
		want string // active ready terminating succeeded failed, which succeeded, conditions
	}{
		"one has begun":                   {podsOfJob(waits(), works()), "21000 "},
		"some have ended well":            {podsOfJob(good(), works(), good(), good(), waits(), good()), "21040 0,2,3,5"},
		"all have":                        {podsOfJob(good(), good()), "00020 0,1 SuccessCriteriaMet Complete"},
		"one has failed, another goes on": {podsOfJob(works(), bad(), good()), "01111 2 FailureTarget"},
		"one failed before another began": {podsOfJob(bad(), halted()), "00002  FailureTarget Failed"},
		"one that has ended is gone":      {podsOfJob(good(), good(), good())[:2], "00020 0,1"},
		"one is over its deadline":        {podsOfJob(deadlineExceeded(works()), works()), "02200  FailureTarget"},
		"they are deleted":                {podsOfJob(deleted(works()), deleted(works())), "02200 "},
	} {
		j := podstatus.Job(tt.pods...)
		st := j.Status
		got := fmt.Sprintf("%d%d%d%d%d %s", st.Active, *st.Ready, *st.Terminating, st.Succeeded, st.Failed, st.CompletedIndexes)
		for _, c := range st.Conditions {
			got += " " + string(c.Type)
		}
		if got != tt.want || j.ResourceVersion != strconv.Itoa(len(tt.pods)-1) {
			t.Errorf("%s: %q of version %s, want %q", name, got, j.ResourceVersion, tt.want)
		}
	}
	p := podstatus.Pod(podsOfJob(works(), works())[1])
	for _, got := range []string{p.Labels[batchv1.JobCompletionIndexAnnotation], p.Annotations[batchv1.JobCompletionIndexAnnotation]} {
		if got != "1" {
			t.Errorf("the second pod has the number %q", got)
		}
	}
}

func TestAContainersEndIsToldWhole(t *testing.T) {
	t.Parallel()
	f := hasEnded(facts(ended(0), ended(0), signaled(9)))
	f.State.Containers[2].Termination.Message = "last words"
	f.State.Containers[1].Restarts = 2
	f.State.Containers[1].LastTermination = &shimapi.Termination{Code: 5, Started: at(0), Ended: at(1)}
	p := podstatus.Pod(f)
	want := &corev1.ContainerStateTerminated{
		ExitCode: 137, Signal: 9, Reason: "Error", Message: "last words",
		StartedAt: metav1.NewTime(at(1)), FinishedAt: metav1.NewTime(at(2)), ContainerID: "local://pod/benchmark",
	}
	if diff := cmp.Diff(want, p.Status.ContainerStatuses[0].State.Terminated); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	side := p.Status.InitContainerStatuses[1]
	if side.RestartCount != 2 || side.LastTerminationState.Terminated == nil || side.LastTerminationState.Terminated.ExitCode != 5 {
		t.Errorf("the sidecar's status is %+v", side)
	}
}

func TestAPodIsItsJobs(t *testing.T) {
	t.Parallel()
	p := podstatus.Pod(facts())
	if len(p.OwnerReferences) != 1 || p.OwnerReferences[0].UID != "job" || p.OwnerReferences[0].Kind != "Job" {
		t.Errorf("it is owned by %+v", p.OwnerReferences)
	}
	want := map[string]string{
		"a": "b", "job-name": "run", "controller-uid": "job", "batch.kubernetes.io/job-name": "run", "batch.kubernetes.io/controller-uid": "job",
	}
	if diff := cmp.Diff(want, p.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestAPodThatWaitsSaysSoInAnEvent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waiting *podstatus.Waiting
		want    string
	}{
		"for nothing":  {nil, ""},
		"for a volume": {&podstatus.Waiting{Message: "m"}, "FailedMount"},
		"for config":   {&podstatus.Waiting{Container: "benchmark", Message: "m"}, "Failed"},
		"for a GPU":    {&podstatus.Waiting{NoNode: true, Message: "m"}, "FailedScheduling"},
	} {
		f := facts()
		f.Waiting = test.waiting
		if e, ok := podstatus.Event(f); ok != (test.want != "") || e.Reason != test.want {
			t.Errorf("%s: %q, want %q", name, e.Reason, test.want)
		}
	}
}
