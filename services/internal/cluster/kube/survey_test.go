package kube_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/test/testbed"
)

// survey looks at a namespace that has a secret, a quota, an account that may do
// little, and a node of a cluster without any.
func survey(t *testing.T, config, scope string, q cluster.Inquiry) cluster.Survey {
	t.Helper()
	q.Scope = scope
	s, err := open(t, kube.Settings{Kubeconfig: config, Namespace: scope}).Survey(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func furnished(t *testing.T) (bed *testbed.Cluster, scope string) {
	t.Helper()
	bed = testbed.API(t)
	scope = bed.Namespace(t)
	bed.Run(t, "-n", scope, "create", "secret", "generic", "registry", "--from-literal=token=s3cret")
	bed.Run(t, "-n", scope, "create", "quota", "team", "--hard=pods=7")
	return bed, scope
}

func TestASurveyTellsWhatIsThereAndWhatIsNot(t *testing.T) {
	t.Parallel()
	bed, scope := furnished(t)
	group, job := schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	queue, anyJob := schema.GroupVersionKind{Group: "kueue.x-k8s.io", Kind: "LocalQueue"}, schema.GroupVersionKind{Group: "batch", Kind: "Job"}
	create := cluster.Right{Verb: "create", Group: "batch", Resource: "jobs"}
	nobody := cluster.Right{Account: "system:serviceaccount:" + scope + ":nobody", Verb: "get", Resource: "pods/log"}
	s := survey(t, bed.Kubeconfig, scope, cluster.Inquiry{
		Rights: []cluster.Right{create, nobody}, Kinds: []schema.GroupVersionKind{group, job, queue, anyJob},
		Secrets: []cluster.SecretKey{{Name: "registry", Key: "token"}, {Name: "none"}},
		Classes: []string{"system-node-critical", "none"}, Storage: []string{"none"},
	})
	for what, got := range map[string]struct {
		answer cluster.Answer
		want   bool
	}{
		"a right that it has":                {s.Rights[create], true},
		"a right that another account lacks": {s.Rights[nobody], false},
		"a kind that is there":               {s.Kinds[job], true},
		"a kind of any version":              {s.Kinds[anyJob], true},
		"a kind that is not":                 {s.Kinds[group], false},
		"a group that is not":                {s.Kinds[queue], false},
		"a secret that is there":             {s.Secrets[cluster.SecretKey{Name: "registry", Key: "token"}], true},
		"a secret that is not":               {s.Secrets[cluster.SecretKey{Name: "none"}], false},
		"a priority class that is there":     {s.Classes["system-node-critical"], true},
		"a priority class that is not":       {s.Classes["none"], false},
		"a class of storage that is not":     {s.Storage["none"], false},
	} {
		if got.answer.Unknown != "" || got.answer.Yes != got.want {
			t.Errorf("%s: %+v, want %t", what, got.answer, got.want)
		}
	}
	if !strings.HasPrefix(s.Name, "Kubernetes v1.") || !strings.HasSuffix(s.Name, scope) || s.Machine {
		t.Errorf("it is %q", s.Name)
	}
	if len(s.Quotas) != 1 || s.QuotasUnknown != "" || s.NodesUnknown != "" {
		t.Errorf("quotas %+v %s, nodes %s", s.Quotas, s.QuotasUnknown, s.NodesUnknown)
	}
	if out := bed.Run(t, "-n", scope, "get", "secrets", "-o", "name"); strings.Contains(out, "none") {
		t.Errorf("it made what it asked for:\n%s", out)
	}
}

func TestASurveyNamesWhatItMayNotSee(t *testing.T) {
	t.Parallel()
	bed, scope := furnished(t)
	s := survey(t, bed.Account(t, scope, "poor"), scope, cluster.Inquiry{
		Rights:  []cluster.Right{{Verb: "create", Group: "batch", Resource: "jobs"}, {Account: "system:anonymous", Verb: "list", Resource: "pods"}},
		Secrets: []cluster.SecretKey{{Name: "registry"}}, Classes: []string{"system-node-critical"},
	})
	for what, why := range map[string]string{
		"nodes":           s.NodesUnknown,
		"quotas":          s.QuotasUnknown,
		"another's right": s.Rights[cluster.Right{Account: "system:anonymous", Verb: "list", Resource: "pods"}].Unknown,
		"a class":         s.Classes["system-node-critical"].Unknown,
	} {
		if !strings.Contains(why, "the platform may not") || !strings.Contains(why, "grant its service account the verb") {
			t.Errorf("%s: %q, want the permission that is missing", what, why)
		}
	}
	if a := s.Secrets[cluster.SecretKey{Name: "registry"}]; a.Unknown == "" || a.Yes {
		t.Errorf("a secret: %+v", a)
	}
	if a := s.Rights[cluster.Right{Verb: "create", Group: "batch", Resource: "jobs"}]; a.Yes || a.Unknown != "" {
		t.Errorf("a right of its own that it lacks: %+v", a)
	}
}

func TestASurveySeesWhoAddsNodes(t *testing.T) {
	bed, scope := furnished(t)
	if !bed.Own {
		t.Skip("writes down that there is a cluster autoscaler, which others would believe")
	}
	if s := survey(t, bed.Kubeconfig, scope, cluster.Inquiry{}); s.Scaler != "" {
		t.Skipf("there is one: %s", s.Scaler)
	}
	bed.Run(t, "-n", "kube-system", "create", "configmap", "cluster-autoscaler-status")
	defer func() { bed.Run(t, "-n", "kube-system", "delete", "configmap", "cluster-autoscaler-status") }()
	if s := survey(t, bed.Kubeconfig, scope, cluster.Inquiry{}); s.Scaler != "the cluster autoscaler" {
		t.Errorf("it is %q", s.Scaler)
	}
}

func TestAClusterThatIsAwayCannotBeSurveyed(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "config")
	const nowhere = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`
	if err := os.WriteFile(config, []byte(nowhere), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, kube.Settings{Kubeconfig: config, Namespace: "x"}).Survey(t.Context(), cluster.Inquiry{Secrets: []cluster.SecretKey{{Name: "a"}}})
	if err == nil || !strings.Contains(err.Error(), "ask the API server for its version") {
		t.Errorf("%v", err)
	}
}
