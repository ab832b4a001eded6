package real_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/test/deploy/manifest"
	"github.com/benchmark-ai/bai/services/test/testbed"
)

const (
	roles           = "../../../deploy/kubernetes/base/rbac"
	waitTimeout     = 10 * time.Minute
	kubectlInterval = time.Second // between two starts of kubectl, each of which takes a fifth of a second of a processor
)

// roleOf returns the role that deploy gives a service.
func roleOf(t *testing.T, service string) *rbacv1.Role {
	t.Helper()
	objects, err := manifest.Read(filepath.Join(roles, service+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if r, ok := o.(*rbacv1.Role); ok {
			return r
		}
	}
	t.Fatalf("%s has no role", service)
	return nil
}

// clusterRulesOf returns the rules of the cluster role that deploy gives a service, none if
// it has none.
func clusterRulesOf(t *testing.T, service string) []rbacv1.PolicyRule {
	t.Helper()
	objects, err := manifest.Read(filepath.Join(roles, service+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for _, o := range objects {
		if r, ok := o.(*rbacv1.ClusterRole); ok {
			rules = append(rules, r.Rules...)
		}
	}
	return rules
}

// account makes a service account with the roles of services and nothing more,
// and returns its kubeconfig.
func account(t *testing.T, testCluster *testbed.Cluster, scope, name string, services ...string) string {
	t.Helper()
	testCluster.Run(t, "-n", scope, "create", "serviceaccount", name)
	for _, service := range services {
		role := roleOf(t, service).DeepCopy()
		role.Namespace, role.Name = scope, name+"-"+service
		role.APIVersion, role.Kind = rbacv1.SchemeGroupVersion.String(), "Role"
		text, err := json.Marshal(role)
		if err != nil {
			t.Fatal(err)
		}
		testCluster.Apply(t, string(text))
		testCluster.Run(t, "-n", scope, "create", "rolebinding", role.Name, "--role="+role.Name, "--serviceaccount="+scope+":"+name)
		if rules := clusterRulesOf(t, service); len(rules) > 0 {
			grant(t, testCluster, scope, name, "ClusterRole", "", rules)
		}
	}
	return testCluster.Account(t, scope, name)
}

// call is one thing that was done, as the audit log has it.
type call struct{ Verb, Group, Resource string }

func (c call) String() string { return c.Verb + " " + c.Resource + "." + c.Group }

// record is one line of the audit log.
type record struct {
	Verb       string
	User       struct{ Username string }
	ObjectRef  struct{ Resource, Subresource, APIGroup, Name string }
	Response   struct{ Code int } `json:"responseStatus"`
	RequestURI string
	Received   time.Time `json:"requestReceivedTimestamp"`
}

// writes reports whether a call may change something.
func (r record) writes() bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

// calls returns the requests of an account, from the audit log.
func calls(t *testing.T, testCluster *testbed.Cluster, scope, name string) []record {
	t.Helper()
	f, err := os.Open(testCluster.Audit)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	var all []record
	user := "system:serviceaccount:" + scope + ":" + name
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var r record
		if bytes.Contains(lines.Bytes(), []byte(user)) && json.Unmarshal(lines.Bytes(), &r) == nil && r.User.Username == user && r.ObjectRef.Resource != "" {
			all = append(all, r)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// verbsUsed are the verbs of calls.
func verbsUsed(all []record) []string {
	var verbs []string
	for _, r := range all {
		resource := r.ObjectRef.Resource
		if r.ObjectRef.Subresource != "" {
			resource += "/" + r.ObjectRef.Subresource
		}
		verbs = append(verbs, call{r.Verb, r.ObjectRef.APIGroup, resource}.String())
	}
	slices.Sort(verbs)
	return slices.Compact(verbs)
}

// verbsGranted are the verbs of a role, without the list that comes with a watch: it is
// used only if the API server cannot stream the initial state.
func verbsGranted(r *rbacv1.Role, also []string) []string {
	var verbs []string
	for _, rule := range r.Rules {
		streams := slices.Contains(rule.Verbs, "watch")
		for _, c := range expand(rule) {
			if c.Verb != "list" || !streams || slices.Contains(also, c.String()) {
				verbs = append(verbs, c.String())
			}
		}
	}
	slices.Sort(verbs)
	return verbs
}

func expand(rule rbacv1.PolicyRule) []call {
	var all []call
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				all = append(all, call{verb, group, resource})
			}
		}
	}
	return all
}

// TestRolesAreWhatIsUsed has the driver do, as executor and as watcher, all that
// these two ask of it: it is the only way to Kubernetes that they have.
func TestRolesAreWhatIsUsed(t *testing.T) {
	t.Parallel()
	testCluster := testbed.API(t)
	if !testCluster.Own {
		t.Skip("reads the audit log, which only a cluster of this machine shows")
	}
	scope := testCluster.Namespace(t)
	executor := open(t, kube.Settings{Kubeconfig: account(t, testCluster, scope, "executor", "executor"), Namespace: scope, MainOnly: true})
	watcher := driver(t, account(t, testCluster, scope, "watcher", "watcher"), scope)

	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	seen, done := make(chan cluster.Snapshot, 1000), make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	go func() { done <- watcher.Watch(watching, func(s cluster.Snapshot) { seen <- s }) }()

	for _, o := range objects(scope, "whole") {
		if err := executor.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	createAgain(ctx, t, executor, objects(scope, "whole"))
	r := cluster.Ref{Run: "whole", Attempt: 1, Scope: scope, Job: "whole"}
	eventually(ctx, t, executor, r, func(s cluster.Snapshot, err error) bool { return err == nil && len(s.Pods) == 1 })
	eventually(ctx, t, watcher, r, func(s cluster.Snapshot, err error) bool { return err == nil && len(s.Pods) == 1 })
	requestLog(ctx, t, watcher, r)
	annotatePod(ctx, t, watcher, r)
	if o, err := watcher.Occupancy(ctx); err != nil || o.UnknownReason != "" {
		t.Errorf("where the pods are: %v, %s", err, o.UnknownReason)
	}
	if err := executor.Stop(ctx, r); err != nil { // its pod is deleted, its Job remains
		t.Fatal(err)
	}
	eventually(ctx, t, executor, r, func(s cluster.Snapshot, err error) bool {
		_, failed := cluster.Condition(s.Job, batchv1.JobFailed)
		return err == nil && failed && len(s.Pods) == 0
	})
	if err := executor.Delete(ctx, r); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, executor, r, func(_ cluster.Snapshot, err error) bool { return errors.Is(err, cluster.ErrNotFound) })

	deleteOrphanPod(ctx, t, testCluster, executor, scope)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(seen) == 0 {
		t.Error("the watcher saw nothing")
	}
	for _, service := range []string{"executor", "watcher"} {
		wantAllUsed(t, testCluster, scope, service)
	}
}

// wantAllUsed compares a service's rights with its requests, both ways.
func wantAllUsed(t *testing.T, testCluster *testbed.Cluster, scope, service string) {
	t.Helper()
	all := calls(t, testCluster, scope, service)
	wantNothingForbidden(t, all)
	verbs := verbsUsed(all)
	granted := roleOf(t, service).DeepCopy()
	granted.Rules = append(granted.Rules, clusterRulesOf(t, service)...)
	if diff := cmp.Diff(verbsGranted(granted, verbs), verbs); diff != "" {
		t.Errorf("what %s may (-) and what it does (+):\n%s", service, diff)
	}
}

// createAgain creates objects that exist.
func createAgain(ctx context.Context, t *testing.T, executor *kube.Cluster, objects []cluster.Object) {
	t.Helper()
	for _, o := range objects {
		if err := executor.Create(ctx, o); !errors.Is(err, cluster.ErrExists) || o.GetObjectKind().GroupVersionKind().Kind == "ConfigMap" && o.GetUID() == "" {
			t.Errorf("create %s once more: %v, and its UID is %q", o.GetName(), err, o.GetUID())
		}
	}
}

// requestLog asks for the log of a pod that has none, because it never begins.
func requestLog(ctx context.Context, t *testing.T, watcher *kube.Cluster, r cluster.Ref) {
	t.Helper()
	seen, err := watcher.Observe(ctx, r)
	if err != nil || len(seen.Pods) == 0 {
		t.Fatalf("its pods: %+v, %v", seen.Pods, err)
	}
	log, err := watcher.Log(ctx, cluster.Log{Scope: r.Scope, Pod: seen.Pods[0].Name, Container: cluster.ContainerBenchmark})
	if err == nil {
		_ = log.Close() // it is empty
	}
}

// annotatePod sets an annotation of a pod, as the addresses of the other pods are set.
func annotatePod(ctx context.Context, t *testing.T, watcher *kube.Cluster, r cluster.Ref) {
	t.Helper()
	seen, err := watcher.Observe(ctx, r)
	if err != nil || len(seen.Pods) == 0 {
		t.Fatalf("its pods: %+v, %v", seen.Pods, err)
	}
	if err := watcher.Annotate(ctx, seen.Pods[0], cluster.AnnotationPeers, "a 10.1.0.1\n"); err != nil {
		t.Error(err)
	}
	eventually(ctx, t, watcher, r, func(s cluster.Snapshot, err error) bool {
		return err == nil && s.Pods[0].Annotations[cluster.AnnotationPeers] == "a 10.1.0.1\n"
	})
}

func wantNothingForbidden(t *testing.T, all []record) {
	t.Helper()
	for _, c := range all {
		if c.Response.Code == http.StatusForbidden {
			t.Errorf("forbidden: %s %s", c.Verb, c.ObjectRef.Resource)
		}
	}
}

// deleteOrphanPod has a pod without its Job be deleted.
func deleteOrphanPod(ctx context.Context, t *testing.T, testCluster *testbed.Cluster, executor *kube.Cluster, scope string) {
	t.Helper()
	r := cluster.Ref{Run: "orphan", Attempt: 1, Scope: scope, Job: "orphan"}
	for _, o := range objects(scope, "orphan") {
		if err := executor.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	eventually(ctx, t, executor, r, func(s cluster.Snapshot, err error) bool { return err == nil && len(s.Pods) == 1 })
	testCluster.Run(t, "-n", scope, "delete", "job", "orphan", "--cascade=orphan") //nolint:contextcheck // it is the test's
	eventually(ctx, t, executor, r, func(s cluster.Snapshot, err error) bool { return err == nil && s.Job == nil })
	if err := executor.Delete(ctx, r); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, executor, r, func(_ cluster.Snapshot, err error) bool { return errors.Is(err, cluster.ErrNotFound) })
}

func driver(t *testing.T, config, scope string) *kube.Cluster {
	t.Helper()
	return open(t, kube.Settings{Kubeconfig: config, Namespace: scope})
}

func open(t *testing.T, s kube.Settings) *kube.Cluster {
	t.Helper()
	c, err := kube.New(s, zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func eventually(ctx context.Context, t *testing.T, c *kube.Cluster, r cluster.Ref, ok func(cluster.Snapshot, error) bool) {
	t.Helper()
	for {
		s, err := c.Observe(ctx, r)
		if ok(s, err) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s: not seen in time; the last was %+v, %v", r.Job, s, err)
		}
	}
}

// objects are one of each kind that a run may have.
func objects(scope, run string) []cluster.Object {
	zero, grace := int32(0), int64(1)
	labels := map[string]string{cluster.LabelRun: run, cluster.LabelAttempt: "1"}
	own := metav1.ObjectMeta{Name: run, Namespace: scope, Labels: labels}
	core := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }
	return []cluster.Object{
		&corev1.Secret{TypeMeta: core("Secret"), ObjectMeta: own},
		&corev1.ConfigMap{TypeMeta: core("ConfigMap"), ObjectMeta: own},
		&corev1.PersistentVolumeClaim{TypeMeta: core("PersistentVolumeClaim"), ObjectMeta: own, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
		&networkingv1.NetworkPolicy{TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}, ObjectMeta: own, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: labels},
		}},
		&corev1.Service{TypeMeta: core("Service"), ObjectMeta: own, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: labels}},
		&batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: own, Spec: batchv1.JobSpec{
			BackoffLimit: &zero, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
				NodeSelector: map[string]string{"benchmark-ai.dev/none": "none"}, // it remains pending
				Containers:   []corev1.Container{{Name: cluster.ContainerBenchmark, Image: "example.org/none:1"}},
			}},
		}},
	}
}

func formatCalls(all []record) string {
	var lines []string
	for _, r := range all {
		lines = append(lines, fmt.Sprintf("%s %s/%s", r.Verb, r.ObjectRef.Resource, r.ObjectRef.Name))
	}
	return strings.Join(lines, "\n")
}
