package executable

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

func exampleJob() *batchv1.Job {
	deadline, grace, mode := int64(60), int64(3600), int32(0o555)
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: "bai-r1-1", Namespace: "default", Labels: map[string]string{cluster.LabelRun: "r1", cluster.LabelAttempt: "1"},
		Annotations: map[string]string{cluster.AnnotationCustomParams: `{"region":"eu"}`},
	}}
	j.Spec.ActiveDeadlineSeconds = &deadline
	t := &j.Spec.Template
	t.Annotations = map[string]string{cluster.AnnotationGrace: "310"}
	t.Spec = corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		InitContainers:                []corev1.Container{{Name: cluster.ContainerInstall}, {Name: cluster.ContainerCollect}},
		Containers: []corev1.Container{{
			Name: cluster.ContainerBenchmark, Image: "debian:12", Command: []string{"/bai/bin/bai-pod", "exec", "--", "/bin/sh", "-eu", "/bai/script/benchmark"},
			Env: []corev1.EnvVar{
				{Name: "BAI_POD_UID", ValueFrom: &corev1.EnvVarSource{}},
				{Name: "BAI_GRACE", Value: "5m0s"},
				{Name: "BENCHMARK_AI_FILE", Value: "/bai/run/metrics"},
				{Name: "BENCHMARK_AI_RUN", Value: "r1"},
				{Name: "SIZE", Value: "1K"},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "script", MountPath: "/bai/script"}, {Name: "bai", MountPath: "/bai"}},
		}},
		Volumes: []corev1.Volume{
			{Name: "bai"},
			{Name: "script", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, DefaultMode: &mode}}},
		},
	}
	return j
}

func TestAPlanHasTheBenchmarkWithoutThePlatformsOwnParts(t *testing.T) {
	t.Parallel()
	v := values{configMaps: map[string]*corev1.ConfigMap{"c": {Data: map[string]string{"benchmark": "echo $SIZE"}}}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got, err := newPlan(exampleJob(), v, "u1", now)
	if err != nil {
		t.Fatal(err)
	}
	want := &commandPlan{
		Command: []string{"/bin/sh", "-eu", "{dir}/script/benchmark"}, Env: []envVar{{"BENCHMARK_AI_RUN", "r1"}, {"SIZE", "1K"}},
		Files: []file{{"script/benchmark", "echo $SIZE", 0o555}}, Image: "debian:12", Grace: 300, Deadline: 60, CustomParams: json.RawMessage(`{"region":"eu"}`),
		Record: record{
			Scope: "default", Job: "bai-r1-1", UID: "u1", Created: now, Labels: map[string]string{cluster.LabelRun: "r1", cluster.LabelAttempt: "1"},
			Annotations: map[string]string{cluster.AnnotationGrace: "310"}, Image: "debian:12",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestADeletedAttemptHasItsGraceFromTheFirstSightOfTheDeletion(t *testing.T) {
	t.Parallel()
	at := attempt{"r1", 1}
	second := func(n int) time.Time {
		return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(n) * time.Second)
	}
	runs := state{Run: "r1", Attempt: 1, Phase: phaseRunning, Started: second(1), Record: record{Job: "bai-r1-1", UID: "u1", Created: second(0)}}
	for name, tt := range map[string]struct {
		annotations map[string]string
		ended       time.Time
		requested   time.Time
		deadline    time.Time
	}{
		"that of its plan":                       {map[string]string{cluster.AnnotationGrace: "310"}, time.Time{}, second(600), second(910)},
		"30 s where the plan has none":           {nil, time.Time{}, second(600), second(630)},
		"an end that is seen with the deletion":  {nil, second(590), second(590), second(620)},
		"an end after the sight of the deletion": {nil, second(620), second(600), second(630)},
	} {
		t.Run(name, func(t *testing.T) {
			deletes := runs
			deletes.Record.Annotations, deletes.Deleting = tt.annotations, true
			deletions := noteDeletions(map[attempt]state{at: runs}, nil, second(500))
			deletions = noteDeletions(map[attempt]state{at: deletes}, deletions, second(600))
			if deletes.Ended = tt.ended; !tt.ended.IsZero() {
				deletes.Phase = phaseSucceeded
			}
			all := map[attempt]state{at: deletes}
			deletions = noteDeletions(all, deletions, second(700))
			seen := all[at].snapshot()
			p := seen.Pods[0]
			got := []time.Time{seen.Job.DeletionTimestamp.Time, p.DeletionTimestamp.Time, cluster.DeletionDeadline(p)}
			if diff := cmp.Diff([]time.Time{tt.requested, tt.deadline, tt.deadline}, got); diff != "" {
				t.Errorf("the request, the end of the pod's grace, and when the pod is lost (-want +got):\n%s", diff)
			}
			if len(noteDeletions(nil, deletions, second(800))) > 0 {
				t.Error("the deletion of an attempt that is gone is remembered")
			}
		})
	}
}

func TestAPlanHasTheVariablesPutInAsKubernetesDoes(t *testing.T) {
	t.Parallel()
	j := exampleJob()
	c := &j.Spec.Template.Spec.Containers[0]
	c.Command = []string{
		"/bai/bin/bai-pod", "exec", "--", "/bin/$(NAME)", "--out=$(OUT)", "$(BENCHMARK_AI_RUN)", "$(BAI_SCRIPTS_PATH)/run.sh", "$(LATER)", "--file=$(SCRIPT)", "$(DIR)/benchmark",
		"$(NONE)", "$(BAI_POD_UID)", "pid $$$$", "$$(OUT)", "$OUT",
	}
	c.Env = append(
		c.Env, corev1.EnvVar{Name: pod.EnvScripts, Value: pod.ScriptsDir}, corev1.EnvVar{Name: "NAME", Value: "bench"}, corev1.EnvVar{Name: "OUT", Value: "/tmp/$(NAME)-$(LATER)-$$(NAME)"},
		corev1.EnvVar{Name: "LATER", Value: "later"}, corev1.EnvVar{Name: "SCRIPT", Value: "/bai/script/benchmark"}, corev1.EnvVar{Name: "DIR", Value: "/bai/script"},
	)
	v := values{configMaps: map[string]*corev1.ConfigMap{"c": {Data: map[string]string{"benchmark": "echo $(NAME) $$"}}}}
	got, err := newPlan(j, v, "u1", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	want := commandPlan{
		Command: []string{
			"/bin/bench", "--out=/tmp/bench-$(LATER)-$(NAME)", "r1", "/bai/scripts/run.sh", "later", "--file={dir}/script/benchmark", "{dir}/script/benchmark",
			"$(NONE)", "$(BAI_POD_UID)", "pid $$", "$(OUT)", "$OUT",
		},
		Env: []envVar{
			{"BENCHMARK_AI_RUN", "r1"},
			{"SIZE", "1K"},
			{"BAI_SCRIPTS_PATH", "/bai/scripts"},
			{"NAME", "bench"},
			{"OUT", "/tmp/bench-$(LATER)-$(NAME)"},
			{"LATER", "later"},
			{"SCRIPT", "{dir}/script/benchmark"},
			{"DIR", "{dir}/script"},
		},
		Files: []file{{"script/benchmark", "echo $(NAME) $$", 0o555}},
	}
	if diff := cmp.Diff(want, commandPlan{Command: got.Command, Env: got.Env, Files: got.Files}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// addVolume adds a volume to the pod of a Job, and mounts it in the benchmark.
func addVolume(j *batchv1.Job, name string, source corev1.VolumeSource) {
	t := &j.Spec.Template.Spec
	t.Volumes = append(t.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	t.Containers[0].VolumeMounts = append(t.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/mnt"})
}

func TestJobsThatAProgramCannotRunAreRefused(t *testing.T) {
	t.Parallel()
	two := int32(2)
	for want, change := range map[string]func(*batchv1.Job){
		"runs one pod":                func(j *batchv1.Job) { j.Spec.Parallelism = &two },
		"use strategy single_node":    func(j *batchv1.Job) { j.Labels[cluster.LabelEnd] = cluster.EndAwaited },
		"and not step-fill":           func(j *batchv1.Job) { j.Spec.Template.Spec.InitContainers[0].Name = "step-fill" },
		"leave out steps":             func(j *batchv1.Job) { j.Spec.Template.Spec.Containers = make([]corev1.Container, 2) },
		"add ml.benchmark_code":       func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Command = nil },
		"no secrets: leave out TOKEN": func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Env[0].Name = "TOKEN" },
		"leave out output.parsers": func(j *batchv1.Job) {
			c := &j.Spec.Template.Spec.Containers[0]
			c.Env = append(c.Env, corev1.EnvVar{Name: pod.EnvParsers, Value: `[{"kind":"iperf3"}]`})
		},
		"no secrets: leave out env.secret_files": func(j *batchv1.Job) {
			addVolume(j, cluster.VolumeSecretFile+"0", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "aws"}})
		},
		"no volumes: leave out volumes": func(j *batchv1.Job) {
			addVolume(j, cluster.VolumeUser+"0", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
		},
	} {
		j := exampleJob()
		change(j)
		_, err := newPlan(j, values{}, "u", time.Time{})
		if why, ok := errors.AsType[*cluster.RefusedError](err); !ok || !strings.Contains(why.Message, want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzAnAnswerIsTheSchemaOrRefused(f *testing.F) {
	for _, seed := range []string{
		`{"id":1}`, `{"id":1,"error":{"refused":true,"message":"x"}}`, `{"id":1,"lines":[{"time":"2026-01-02T03:04:05Z","text":"a"}],"cursor":"9","end":true}`,
		`{"id":1,"states":[{"run":"r","attempt":1,"phase":"failed","reason":"Lost","ended":"2026-01-02T03:04:05Z","record":{"job":"j","uid":"u"}}]}`, `[]`, `{"id":1e99}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := readAnswer(line, request{ID: 1, Call: callStates})
		if err != nil {
			return
		}
		for _, s := range a.States {
			if a.Error != nil {
				break
			}
			seen := s.snapshot()
			if seen.Job.Name == "" || len(seen.Pods) != 1 {
				t.Errorf("%s gives the snapshot %+v", line, seen)
			}
		}
		_ = quoted(line)
	})
}
