package mpijob_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/mpijob"
)

func TestAnMPIJobSaysWhatAJobWould(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	deadline, yes := int64(60), true
	condition := func(t string, s corev1.ConditionStatus, reason string) mpijob.Condition {
		return mpijob.Condition{Type: t, Status: s, Reason: reason, Message: "words", LastTransitionTime: at}
	}
	for name, row := range map[string]struct {
		conditions []mpijob.Condition
		want       []batchv1.JobCondition
	}{
		"one that runs says nothing": {[]mpijob.Condition{condition("Created", "True", ""), condition("Running", "True", "")}, nil},
		"one that succeeded is complete": {
			[]mpijob.Condition{condition("Running", "False", ""), condition("Succeeded", "True", "MPIJobSucceeded")},
			[]batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True", Reason: "MPIJobSucceeded", Message: "words", LastTransitionTime: at}},
		},
		"one whose deadline passed failed for that": {
			[]mpijob.Condition{condition("Failed", "True", batchv1.JobReasonDeadlineExceeded)},
			[]batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Reason: batchv1.JobReasonDeadlineExceeded, Message: "words", LastTransitionTime: at}},
		},
		"one that was resumed is not suspended": {
			[]mpijob.Condition{condition("Suspended", "False", "MPIJobResumed")},
			[]batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: "False", Reason: "MPIJobResumed", Message: "words", LastTransitionTime: at}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := &mpijob.Job{
				ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "u", Labels: map[string]string{"a": "b"}},
				Spec:       mpijob.Spec{RunPolicy: mpijob.RunPolicy{ActiveDeadlineSeconds: &deadline, Suspend: &yes}},
				Status:     mpijob.Status{Conditions: row.conditions, StartTime: &at},
			}
			want := &batchv1.Job{
				TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: j.ObjectMeta,
				Spec:   batchv1.JobSpec{ActiveDeadlineSeconds: &deadline, Suspend: &yes},
				Status: batchv1.JobStatus{Conditions: row.want, StartTime: &at},
			}
			if diff := cmp.Diff(want, j.AsJob()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnMPIJobThatIsWrittenHasNoStatus(t *testing.T) {
	text, err := json.Marshal(&mpijob.Job{})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	if _, ok := fields["status"]; ok {
		t.Errorf("it is %s", text)
	}
}
