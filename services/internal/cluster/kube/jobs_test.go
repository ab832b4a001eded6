package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
)

// jobServer serves the part of the API that the tests need: one Job and its pod.
func jobServer(t *testing.T, status *batchv1.JobStatus) kube.Jobs {
	t.Helper()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/apis/batch/v1/namespaces/platform/jobs/x":
			answer(w, batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: *status})
		case "/api/v1/namespaces/platform/pods":
			if got := r.URL.Query().Get("labelSelector"); got == "" {
				t.Error("all pods are listed")
			}
			answer(w, corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "x-1"}}}})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}", server.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := kube.New(kube.Settings{Kubeconfig: file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Jobs()
}

func TestThePodsOfAJobAreLookedAtUnlessOneIsReadyOrAllIsDone(t *testing.T) {
	none, one := int32(0), int32(1)
	for name, tt := range map[string]struct {
		status batchv1.JobStatus
		want   int
	}{
		"a job that has just been made":   {batchv1.JobStatus{}, 1},
		"one whose pod is not ready":      {batchv1.JobStatus{Active: 1, Ready: &none}, 1},
		"one whose pod works":             {batchv1.JobStatus{Active: 1, Ready: &one}, 0},
		"one whose pod has failed":        {batchv1.JobStatus{Failed: 1, Ready: &none}, 1},
		"one that has done what it is to": {batchv1.JobStatus{Succeeded: 1, Ready: &none, CompletionTime: new(metav1.Now())}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := jobServer(t, &tt.status)
			seen, err := jobs.Observe(t.Context(), cluster.Ref{Run: "r", Attempt: 1, Scope: "platform", Job: "x"})
			if err != nil || seen.Job == nil || len(seen.Pods) != tt.want {
				t.Errorf("Observe: %d pods, %v; want %d", len(seen.Pods), err, tt.want)
			}
			if _, err := jobs.Observe(t.Context(), cluster.Ref{Run: "r", Attempt: 1, Scope: "platform", Job: "y"}); !errors.Is(err, cluster.ErrNotFound) {
				t.Errorf("Observe of another: %v", err)
			}
		})
	}
}
