package kube_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
)

func TestAPullSecretIsReadByItsNameAlone(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.URL.Path, "/registry") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "secrets \"other\" is forbidden"}`)
			return
		}
		_, _ = fmt.Fprint(w, `{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "registry"}, "data": {".dockerconfigjson": "e30="}}`)
	}))
	defer server.Close()
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", server.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := kube.New(kube.Settings{Kubeconfig: config, Namespace: "benchmarks"}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if data, err := c.PullSecret(t.Context(), "benchmarks", "registry"); err != nil || string(data[".dockerconfigjson"]) != "{}" {
		t.Errorf("read %q, %v", data, err)
	}
	if data, err := c.PullSecret(t.Context(), "benchmarks", "other"); err == nil || !strings.Contains(err.Error(), "other") {
		t.Errorf("one that may not be read: %q, %v", data, err)
	}
	want := "GET /api/v1/namespaces/benchmarks/secrets/registry GET /api/v1/namespaces/benchmarks/secrets/other"
	if got := strings.Join(asked, " "); got != want {
		t.Errorf("asked %s", got)
	}
}
