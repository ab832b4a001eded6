package launch

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/always"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// planOf returns the plan of a run on Kubernetes.
func planOf(t *testing.T, descriptor string) Plan {
	t.Helper()
	p := plan.New(plan.EngineKubernetes, transpile.Settings{Allow: map[string]descriptors.Allowlist{"*": {Claims: []string{"database"}}}}, true)
	h := event.NewHeader("s", "r1", "pets", "ann", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	run := event.Fetched{Header: h, File: "d.toml", Descriptor: descriptor, Data: []event.Data{}}
	d, faults := p.Parse(run)
	if faults.Err() != nil {
		t.Fatal(faults.Err())
	}
	made := makePlan(run, d, Facts{}, p)
	if made.NoLaunch {
		t.Fatal(made.FinalEvent.Message)
	}
	return made
}

const withAlways = `spec_version = "1.0"
[info]
description = "x"
[hardware]
cpus = 2
placement = "exclusive"
[env]
docker_image = "a"
[[volumes]]
path = "/db"
claim = "database"
[ml]
benchmark_code = "measure"
[[steps]]
name = "fill"
when = "before"
command = "x"
[[steps]]
name = "save"
when = "always"
command = '''
#!/bin/sh
save
'''
deadline = "1m"
[[steps]]
name = "drop"
when = "always"
needs = ["save"]
command = "drop-tables"
deadline = "2m"
`

func TestThePodForStepsAtTheEndHasThemAndTheClaimsAlone(t *testing.T) {
	p := planOf(t, withAlways)
	if diff := cmp.Diff([]string{"save", "drop"}, p.alwaysSteps()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if d := p.stepDeadline([]string{"save", "drop"}); d != 3*time.Minute {
		t.Errorf("the steps may take %s", d)
	}
	var text strings.Builder
	for _, o := range alwaysObjects(p, nil, []string{"save", "drop"}) {
		b, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(b))
	}
	golden.Check(t, "testdata/always.yaml", []byte(text.String()))
	if again := planOf(t, withAlways); cmp.Diff(again, p) != "" {
		t.Errorf("the plan is another one:\n%s", cmp.Diff(again, p))
	}
}

func TestAStepWhoseNeedHasRunBeforeDoesNotWaitForIt(t *testing.T) {
	objects := alwaysObjects(planOf(t, withAlways), nil, []string{"drop"})
	job, _ := objects[len(objects)-1].(*batchv1.Job)
	for _, c := range job.Spec.Template.Spec.InitContainers {
		if c.Name == "step-save" || c.Name == "step-drop" && len(always.Needs(c)) > 0 {
			t.Errorf("there is %s: %q", c.Name, c.Command)
		}
	}
}

// endedStep has a step at the end of a pod end with a code.
func endedStep(p corev1.Pod, name string, code int32) corev1.Pod {
	at := metav1.NewTime(time.Unix(100, 0))
	p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{
		Name: cluster.ContainerStep + name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: at, FinishedAt: at}},
	})
	return p
}

func TestStepsAtTheEndOfAnAttempt(t *testing.T) {
	ended, alive := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	deleted := alive
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(30, 0)}
	job := func(t batchv1.JobConditionType) *batchv1.Job {
		return &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: t, Status: corev1.ConditionTrue}}}}
	}
	const gone, early = "the pod that was made for the steps was deleted", "the pod that was made for the steps ended before that"
	for name, tt := range map[string]struct {
		first, own []corev1.Pod
		job        *batchv1.Job
		made       int64
		want       stepsAction
	}{
		"a pod that runs is ended, which runs them":      {first: []corev1.Pod{alive}, want: stepsAction{Stop: true}},
		"one that is being deleted has time to run them": {first: []corev1.Pod{deleted}, want: stepsAction{Stop: true}},
		"those that are missing get a pod":               {first: []corev1.Pod{endedStep(ended, "save", 0)}, want: stepsAction{Make: []string{"drop"}}},
		"without a pod all of them do":                   {want: stepsAction{Make: []string{"save", "drop"}}},
		"which is waited for":                            {job: &batchv1.Job{}, made: 90, want: stepsAction{Wait: true}},
		"a step that was killed is missing":              {first: []corev1.Pod{endedStep(endedStep(ended, "save", 137), "drop", 0)}, want: stepsAction{Make: []string{"save"}}},
		"a step does not run if one that it needs has failed": {
			first: []corev1.Pod{endedStep(ended, "save", 2)},
			want:  stepsAction{Results: &always.Results{Steps: []always.StepResult{{Name: "save", Problem: "ended with exit code 2"}, {Name: "drop", Skipped: true}}}},
		},
		"all have run": {
			first: []corev1.Pod{endedStep(ended, "save", 0)}, own: []corev1.Pod{endedStep(ended, "drop", 0)}, job: job(batchv1.JobComplete), made: 90,
			want: stepsAction{Results: &always.Results{Steps: []always.StepResult{{Name: "save"}, {Name: "drop"}}}},
		},
		"the pod that was made is gone": {
			made: 90,
			want: stepsAction{Results: &always.Results{Steps: []always.StepResult{{Name: "save", NotRun: gone}, {Name: "drop", NotRun: gone}}}},
		},
		"the pod that was made has failed": {
			own: []corev1.Pod{endedStep(ended, "save", 0)}, job: job(batchv1.JobFailed), made: 90,
			want: stepsAction{Results: &always.Results{Steps: []always.StepResult{{Name: "save"}, {Name: "drop", NotRun: early}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := stepsState{
				All: []string{"save", "drop"}, Steps: []string{"save", "drop"}, First: cluster.Snapshot{Pods: tt.first}, Own: cluster.Snapshot{Job: tt.job, Pods: tt.own},
				Now: time.Unix(91, 0), Since: time.Unix(80, 0), Lost: time.Minute + 2*time.Second, Pending: time.Minute, Longest: time.Hour,
			}
			if tt.made > 0 {
				s.Made = time.Unix(tt.made, 0)
			}
			needs := func(step string) []string { return map[string][]string{"drop": {"save"}}[step] }
			if diff := cmp.Diff(tt.want, decideSteps(s, needs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			s.Now = time.Unix(93, 0) // the node of the pod that is being deleted is lost by then
			if got := decideSteps(s, needs); tt.first != nil && tt.first[0].DeletionTimestamp != nil && got.Make == nil {
				t.Errorf("a lost pod is waited for: %+v", got)
			}
		})
	}
}

func TestAStepWhoseNeedFailedBeforeTheEndDoesNotRunInAPodOfItsOwn(t *testing.T) {
	needs := func(step string) []string { return map[string][]string{"b": {"a"}, "d": {"b"}}[step] }
	failed := always.StepResult{Name: "a", Problem: "ended with exit code 1"}
	for name, tt := range map[string]struct {
		ended []always.StepResult
		first []corev1.Pod
		want  stepsAction
	}{
		"nor does one that needs it": {ended: []always.StepResult{failed}, want: stepsAction{Make: []string{"c"}}},
		"the pod still shows it":     {first: []corev1.Pod{endedStep(corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, "a", 1)}, want: stepsAction{Make: []string{"c"}}},
		"one that has succeeded is no obstacle": {
			ended: []always.StepResult{{Name: "a"}}, want: stepsAction{Make: []string{"c", "b", "d"}},
		},
		"one that was skipped did not succeed": {
			ended: []always.StepResult{failed, {Name: "c"}, {Name: "b", Skipped: true}},
			want:  stepsAction{Results: &always.Results{Steps: []always.StepResult{{Name: "d", Skipped: true}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := stepsState{All: []string{"a", "c", "b", "d"}, Ended: tt.ended, First: cluster.Snapshot{Pods: tt.first}, Now: time.Unix(91, 0), Since: time.Unix(80, 0)}
			for _, name := range s.All {
				if name != "a" && !slices.ContainsFunc(tt.ended, func(r always.StepResult) bool { return r.Name == name }) {
					s.Steps = append(s.Steps, name)
				}
			}
			if diff := cmp.Diff(tt.want, decideSteps(s, needs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
