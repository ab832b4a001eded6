package verdict_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// recording has the objects of a disturbed run in a real Kubernetes cluster, before the platform deleted them, and the expected verdict.
type recording struct {
	Now             metav1.Time
	PendingDeadline string
	Job             *batchv1.Job
	Pods            []corev1.Pod
	Events          []corev1.Event
	Want            string
}

func TestWhatARealClusterShowed(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no records: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var r recording
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			deadline, err := time.ParseDuration(r.PendingDeadline)
			if err != nil {
				t.Fatal(err)
			}
			s := verdict.Observation{
				Seen: cluster.Snapshot{Job: r.Job, Pods: r.Pods, Events: r.Events},
				Now:  r.Now.Time, PendingDeadline: deadline, Grace: 3 * time.Second,
			}
			if diff := cmp.Diff(r.Want, verdictLine(verdict.Decide(s))); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
		})
	}
}
