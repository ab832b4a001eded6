package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// labelServer answers like an API server that has one Secret and one claim, and forbids access to objects called forbidden.
func labelServer(t *testing.T) *kube.Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := func(code int, v any) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(v) // the client reports a missing answer
		}
		status := func(code int, reason metav1.StatusReason, message string) {
			answer(code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}) //nolint:gosec // a code of HTTP
		}
		object := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}}
		object.Labels = map[string]string{"allow": "runs"}
		switch {
		case !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"):
			status(http.StatusBadRequest, metav1.StatusReasonBadRequest, "the whole object is asked for")
		case r.URL.Path == "/api/v1/namespaces/runs/secrets/registry", r.URL.Path == "/api/v1/namespaces/runs/persistentvolumeclaims/models":
			answer(http.StatusOK, object)
		case strings.HasSuffix(r.URL.Path, "/forbidden"):
			status(http.StatusForbidden, metav1.StatusReasonForbidden, `secrets "forbidden" is forbidden: User "executor" cannot get resource "secrets" in API group "" in the namespace "runs"`)
		default:
			status(http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
		}
	}))
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: %q}}]\nusers: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n", server.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := kube.New(kube.Settings{Kubeconfig: config, Namespace: "runs"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestLabelsAreToldWithoutTheObject(t *testing.T) {
	t.Parallel()
	c := labelServer(t)
	for kind, name := range map[string]string{"Secret": "registry", "PersistentVolumeClaim": "models"} {
		got, err := c.Labels(t.Context(), kind, "runs", name)
		if diff := cmp.Diff(map[string]string{"allow": "runs"}, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", kind, err, diff)
		}
	}
	if _, err := c.Labels(t.Context(), "Secret", "runs", "none"); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("no such object: %v", err)
	}
}

func TestAnExecutorThatMayNotSeeLabelsSaysWhichRightItLacks(t *testing.T) {
	t.Parallel()
	_, err := labelServer(t).Labels(t.Context(), "Secret", "runs", "forbidden")
	refused, ok := errors.AsType[*cluster.RefusedError](err)
	if !ok || refused.Class != event.ClassPlatform || !strings.Contains(refused.Message, "get") || !strings.Contains(refused.Message, "executor.pods.allow") {
		t.Errorf("%v", err)
	}
}
