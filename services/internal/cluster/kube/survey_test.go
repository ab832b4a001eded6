package kube_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/test/testbed"
)

// survey surveys a namespace that has a secret, a quota, an account with few permissions, and a node in a cluster without any other.
func survey(t *testing.T, config, scope string, q cluster.SurveyRequest) cluster.Survey {
	t.Helper()
	q.Scope = scope
	s, err := open(t, kube.Settings{Kubeconfig: config, Namespace: scope}).Survey(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newSurveyFixture(t *testing.T) (testCluster *testbed.Cluster, scope string) {
	t.Helper()
	testCluster = testbed.API(t)
	scope = testCluster.Namespace(t)
	testCluster.Run(t, "-n", scope, "create", "secret", "generic", "registry", "--from-literal=token=s3cret")
	testCluster.Run(t, "-n", scope, "create", "quota", "team", "--hard=pods=7")
	return testCluster, scope
}

func TestASurveyTellsWhatIsThereAndWhatIsNot(t *testing.T) {
	t.Parallel()
	testCluster, scope := newSurveyFixture(t)
	group, job := schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	queue, anyJob := schema.GroupVersionKind{Group: "kueue.x-k8s.io", Kind: "LocalQueue"}, schema.GroupVersionKind{Group: "batch", Kind: "Job"}
	create := cluster.Permission{Verb: "create", Group: "batch", Resource: "jobs"}
	nobody := cluster.Permission{Account: "system:serviceaccount:" + scope + ":nobody", Verb: "get", Resource: "pods/log"}
	s := survey(t, testCluster.Kubeconfig, scope, cluster.SurveyRequest{
		Permissions: []cluster.Permission{create, nobody}, Kinds: []schema.GroupVersionKind{group, job, queue, anyJob},
		Secrets:         []cluster.SecretKey{{Name: "registry", Key: "token"}, {Name: "none"}},
		PriorityClasses: []string{"system-node-critical", "none"}, StorageClasses: []string{"none"},
		Networks: []string{"none", scope + "/none"},
	})
	for what, got := range map[string]struct {
		answer cluster.Answer
		want   bool
	}{
		"a right that it has":                {s.Permissions[create], true},
		"a right that another account lacks": {s.Permissions[nobody], false},
		"a kind that is there":               {s.Kinds[job], true},
		"a kind of any version":              {s.Kinds[anyJob], true},
		"a kind that is not":                 {s.Kinds[group], false},
		"a group that is not":                {s.Kinds[queue], false},
		"a secret that is there":             {s.Secrets[cluster.SecretKey{Name: "registry", Key: "token"}], true},
		"a secret that is not":               {s.Secrets[cluster.SecretKey{Name: "none"}], false},
		"a priority class that is there":     {s.PriorityClasses["system-node-critical"], true},
		"a priority class that is not":       {s.PriorityClasses["none"], false},
		"a network that is not":              {s.Networks["none"], false},
		"one of another namespace":           {s.Networks[scope+"/none"], false},
		"a class of storage that is not":     {s.StorageClasses["none"], false},
	} {
		if got.answer.UnknownReason != "" || got.answer.Yes != got.want {
			t.Errorf("%s: %+v, want %t", what, got.answer, got.want)
		}
	}
	if !strings.HasPrefix(s.Name, "Kubernetes v1.") || !strings.HasSuffix(s.Name, scope) || s.LocalMachine {
		t.Errorf("it is %q", s.Name)
	}
	if len(s.Quotas) != 1 || s.QuotasUnknownReason != "" || s.NodesUnknownReason != "" {
		t.Errorf("quotas %+v %s, nodes %s", s.Quotas, s.QuotasUnknownReason, s.NodesUnknownReason)
	}
	if out := testCluster.Run(t, "-n", scope, "get", "secrets", "-o", "name"); strings.Contains(out, "none") {
		t.Errorf("it made what it asked for:\n%s", out)
	}
}

// networkKind is the kind of the networks of Multus, without its schema.
const networkKind = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: network-attachment-definitions.k8s.cni.cncf.io}
spec:
  group: k8s.cni.cncf.io
  scope: Namespaced
  names: {kind: NetworkAttachmentDefinition, plural: network-attachment-definitions, singular: network-attachment-definition}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestASurveyFindsTheNetworksOfMultus(t *testing.T) {
	t.Parallel()
	testCluster, scope := newSurveyFixture(t)
	testCluster.Apply(t, networkKind)
	testCluster.Run(t, "wait", "--for=condition=established", "crd/network-attachment-definitions.k8s.cni.cncf.io")
	testCluster.Apply(t, "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {name: fast, namespace: "+scope+"}\n")
	kind := schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Kind: "NetworkAttachmentDefinition"}
	s := survey(t, testCluster.Kubeconfig, scope, cluster.SurveyRequest{Kinds: []schema.GroupVersionKind{kind}, Networks: []string{scope + "/fast", scope + "/slow", "fast"}})
	got := map[string]bool{"kind": s.Kinds[kind].Yes}
	for name, a := range s.Networks {
		got[strings.TrimPrefix(name, scope)] = a.Yes
		if a.UnknownReason != "" {
			t.Errorf("%s: %s", name, a.UnknownReason)
		}
	}
	if diff := cmp.Diff(map[string]bool{"kind": true, "/fast": true, "/slow": false, "fast": false}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASurveyNamesWhatItMayNotSee(t *testing.T) {
	t.Parallel()
	testCluster, scope := newSurveyFixture(t)
	s := survey(t, testCluster.Account(t, scope, "poor"), scope, cluster.SurveyRequest{
		Permissions: []cluster.Permission{{Verb: "create", Group: "batch", Resource: "jobs"}, {Account: "system:anonymous", Verb: "list", Resource: "pods"}},
		Secrets:     []cluster.SecretKey{{Name: "registry"}}, PriorityClasses: []string{"system-node-critical"},
	})
	for what, why := range map[string]string{
		"nodes":           s.NodesUnknownReason,
		"quotas":          s.QuotasUnknownReason,
		"another's right": s.Permissions[cluster.Permission{Account: "system:anonymous", Verb: "list", Resource: "pods"}].UnknownReason,
		"a class":         s.PriorityClasses["system-node-critical"].UnknownReason,
	} {
		if !strings.Contains(why, "the platform may not") || !strings.Contains(why, "grant its service account the verb") {
			t.Errorf("%s: %q, want the permission that is missing", what, why)
		}
	}
	if a := s.Secrets[cluster.SecretKey{Name: "registry"}]; a.UnknownReason == "" || a.Yes {
		t.Errorf("a secret: %+v", a)
	}
	if a := s.Permissions[cluster.Permission{Verb: "create", Group: "batch", Resource: "jobs"}]; a.Yes || a.UnknownReason != "" {
		t.Errorf("a right of its own that it lacks: %+v", a)
	}
}

func TestASurveySeesWhoAddsNodes(t *testing.T) {
	testCluster, scope := newSurveyFixture(t)
	if !testCluster.Own {
		t.Skip("writes down that there is a cluster autoscaler, which others would believe")
	}
	if s := survey(t, testCluster.Kubeconfig, scope, cluster.SurveyRequest{}); s.Autoscaler != "" {
		t.Skipf("there is one: %s", s.Autoscaler)
	}
	testCluster.Run(t, "-n", "kube-system", "create", "configmap", "cluster-autoscaler-status")
	defer func() { testCluster.Run(t, "-n", "kube-system", "delete", "configmap", "cluster-autoscaler-status") }()
	if s := survey(t, testCluster.Kubeconfig, scope, cluster.SurveyRequest{}); s.Autoscaler != "the cluster autoscaler" {
		t.Errorf("it is %q", s.Autoscaler)
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
	_, err := open(t, kube.Settings{Kubeconfig: config, Namespace: "x"}).Survey(t.Context(), cluster.SurveyRequest{Secrets: []cluster.SecretKey{{Name: "a"}}})
	if err == nil || !strings.Contains(err.Error(), "ask the API server for its version") {
		t.Errorf("%v", err)
	}
}
