package real_test

import (
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
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/mpijob"
	"github.com/benchmark-ai/bai/services/plan/transpile"
	"github.com/benchmark-ai/bai/services/test/deploy/manifest"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/mpioperator"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// grantMPIJobs gives an account the roles that deploy adds for MPIJobs, and returns
// that of its service.
func grantMPIJobs(t *testing.T, testCluster *testbed.Cluster, scope, account string, services ...string) *rbacv1.Role {
	t.Helper()
	return grantComponent(t, testCluster, "mpi-operator", scope, account, services...)
}

// grantComponent gives an account the roles that a component of deploy adds, and returns that
// of its service.
func grantComponent(t *testing.T, testCluster *testbed.Cluster, component, scope, account string, services ...string) *rbacv1.Role {
	t.Helper()
	objects, err := manifest.Read("../../../deploy/kubernetes/" + component + "/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var last *rbacv1.Role
	for _, o := range objects {
		role, ok := o.(*rbacv1.Role)
		if !ok || !slices.ContainsFunc(services, func(s string) bool { return strings.HasPrefix(role.Name, s+"-") }) {
			continue
		}
		last = role.DeepCopy()
		last.Namespace, last.Name = scope, account+"-"+role.Name
		last.APIVersion, last.Kind = rbacv1.SchemeGroupVersion.String(), "Role"
		text, err := json.Marshal(last)
		if err != nil {
			t.Fatal(err)
		}
		testCluster.Apply(t, string(text))
		testCluster.Run(t, "-n", scope, "create", "rolebinding", last.Name, "--role="+last.Name, "--serviceaccount="+scope+":"+account)
		awaitGranted(t, testCluster, last, account)
	}
	return last
}

// awaitGranted waits until the API server goes by a role: it reads roles a little later than it
// stores them.
func awaitGranted(t *testing.T, testCluster *testbed.Cluster, role *rbacv1.Role, account string) {
	t.Helper()
	rule := role.Rules[0]
	review := filepath.Join(t.TempDir(), "review.json")
	text, err := json.Marshal(authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + role.Namespace + ":" + account,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: role.Namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0]},
		},
	})
	if err := errors.Join(err, os.WriteFile(review, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(waitTimeout); ; time.Sleep(kubectlInterval) {
		out := testCluster.Run(t, "create", "-f", review, "-o", "jsonpath={.status.allowed}")
		if out == "true" {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("the role %s does not count yet: %q", role.Name, out)
		}
	}
}

// TestAnMPIJobIsWhatItsDefinitionAccepts calls the driver's methods of executor and
// watcher with an MPIJob. The test plays the operator.
func TestAnMPIJobIsWhatItsDefinitionAccepts(t *testing.T) {
	t.Parallel()
	testCluster := testbed.API(t)
	if !testCluster.Own {
		t.Skip("has the cluster know a further kind of objects")
	}
	mpioperator.Install(t, testCluster)
	scope := testCluster.Namespace(t)
	drivers, roles := mpiDrivers(t, testCluster, scope)
	ctx, cancel := context.WithTimeout(t.Context(), 3*waitTimeout) // the garbage collector looks for new kinds only every 30 s
	defer cancel()
	seen := make(chan cluster.Snapshot, 1000)
	watching, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- drivers["watcher"].Watch(watching, func(s cluster.Snapshot) { seen <- s }) }()

	for id, end := range map[string]mpiEnd{
		"01jz0000000000000000000001": {
			`{"type":"Succeeded","status":"True","reason":"MPIJobSucceeded","message":"done"}`,
			verdict.Verdict{Outcome: event.Succeeded},
		},
		"01jz0000000000000000000002": {
			`{"type":"Failed","status":"True","reason":"DeadlineExceeded","message":"too late"}`,
			verdict.Verdict{Outcome: event.Failed, Class: event.ClassTimeout, Reason: event.DeadlineExceeded},
		},
	} {
		playOperator(ctx, t, testCluster, drivers, seen, mpiPlan(t, scope, id), end)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	awaitCleared(t, testCluster, scope)
	if left := testCluster.Run(t, "-n", scope, "get", "mpijobs", "-o", "name"); left != "" {
		t.Errorf("left: %s", left)
	}
	wantMPIJobsUsed(t, testCluster, scope, roles)
}

// mpiDrivers are those of executor and watcher, and their roles for MPIJobs.
func mpiDrivers(t *testing.T, testCluster *testbed.Cluster, scope string) (map[string]*kube.Cluster, map[string]*rbacv1.Role) {
	t.Helper()
	drivers, roles := map[string]*kube.Cluster{}, map[string]*rbacv1.Role{}
	for _, service := range []string{"executor", "watcher"} {
		config := account(t, testCluster, scope, service, service)
		roles[service] = grantMPIJobs(t, testCluster, scope, service, service)
		c, err := kube.New(kube.Settings{Kubeconfig: config, Namespace: scope, Kinds: []string{mpijob.Resource}, MainOnly: service == "executor"}, zaptest.NewLogger(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		drivers[service] = c
	}
	return drivers, roles
}

// mpiEnd is a condition that an operator gives an MPIJob, and its meaning.
type mpiEnd struct {
	condition string
	want      verdict.Verdict
}

// playOperator creates the objects of a plan, says how its MPIJob ended, and
// deletes them.
func playOperator(ctx context.Context, t *testing.T, testCluster *testbed.Cluster, drivers map[string]*kube.Cluster, seen <-chan cluster.Snapshot, plan transpile.Workload, end mpiEnd) {
	t.Helper()
	for _, o := range plan.Objects {
		if err := drivers["executor"].Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	last := plan.Objects[len(plan.Objects)-1]
	id, uid := last.GetLabels()[cluster.LabelRun], last.GetUID()
	r := cluster.Ref{Run: id, Attempt: 1, Scope: plan.Scope, Job: plan.Job, UID: string(uid)}
	for _, c := range drivers {
		eventually(ctx, t, c, r, func(s cluster.Snapshot, err error) bool { return err == nil && s.Job != nil && s.Job.UID == uid })
	}
	testCluster.Run(t, "-n", plan.Scope, "patch", "mpijobs", plan.Job, "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[`+end.condition+`]}}`) //nolint:contextcheck // it is the test's
	v := verdict.Decide(verdict.Observation{Seen: await(ctx, t, seen, func(s cluster.Snapshot) bool {
		return s.Ref.Run == id && s.Job != nil && len(s.Job.Status.Conditions) > 0
	}), Now: time.Now(), Grace: time.Second, PendingDeadline: time.Minute})
	if v.Phase != event.PhaseFinished || v.Outcome != end.want.Outcome || v.Class != end.want.Class || v.Reason != end.want.Reason {
		t.Errorf("the watcher says %+v, want %+v", v, end.want)
	}
	if err := drivers["executor"].Delete(ctx, r); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, drivers["executor"], r, func(_ cluster.Snapshot, err error) bool { return errors.Is(err, cluster.ErrNotFound) })
	await(ctx, t, seen, func(s cluster.Snapshot) bool { return s.Ref.Run == id && s.Job == nil })
}

// wantMPIJobsUsed checks that each right of the roles was used, and no request was
// forbidden.
func wantMPIJobsUsed(t *testing.T, testCluster *testbed.Cluster, scope string, roles map[string]*rbacv1.Role) {
	t.Helper()
	for service, role := range roles {
		all := calls(t, testCluster, scope, service)
		wantNothingForbidden(t, all)
		for _, verb := range verbsGranted(role, verbsUsed(all)) {
			if !slices.Contains(verbsUsed(all), verb) {
				t.Errorf("%s may %s, and does not", service, verb)
			}
		}
	}
}

// await waits for something that is handed over.
func await(ctx context.Context, t *testing.T, seen <-chan cluster.Snapshot, ok func(cluster.Snapshot) bool) cluster.Snapshot {
	t.Helper()
	for {
		select {
		case s := <-seen:
			if ok(s) {
				return s
			}
		case <-ctx.Done():
			t.Fatal("not handed over in time")
		}
	}
}

// mpiPlan is the plan of a run of strategy mpi where there is an operator.
func mpiPlan(t *testing.T, scope, run string) transpile.Workload {
	t.Helper()
	d, faults := parser.Parser{}.Parse("mpi.toml", []byte(mpi))
	if err := faults.Err(); err != nil {
		t.Fatal(err)
	}
	header := event.NewHeader("submitted "+run, run, "pets", "ann", time.Now())
	plan, err := transpile.Objects(
		transpile.Input{Run: event.Fetched{Header: header, Descriptor: mpi}, Descriptor: d},
		transpile.Settings{Scope: scope, Image: podImage, MPIOperator: true, Deadline: time.Hour, Queue: "team"})
	if err != nil {
		t.Fatal(err)
	}
	if plan.Objects[len(plan.Objects)-1].GetObjectKind().GroupVersionKind().Kind != mpijob.Kind {
		t.Fatalf("the plan ends with %v", plan.Objects[len(plan.Objects)-1].GetObjectKind())
	}
	return plan
}

// TestAnMPIJobIsRefusedWhereNobodyKnowsIt: the run ends, with the API server's
// words, instead of waiting for ever.
func TestAnMPIJobIsRefusedWhereNobodyKnowsIt(t *testing.T) {
	testCluster := testbed.API(t)
	if out, err := testCluster.Try(t.Context(), "get", "crd", "mpijobs.kubeflow.org"); err == nil {
		t.Skipf("it is known here:\n%s", out)
	}
	scope := testCluster.Namespace(t)
	c := driver(t, testCluster.Kubeconfig, scope)
	plan := mpiPlan(t, scope, "01jz0000000000000000000003")
	err := c.Create(t.Context(), plan.Objects[len(plan.Objects)-1])
	if refused, ok := errors.AsType[*cluster.RefusedError](err); !ok || !strings.Contains(refused.Message, http.StatusText(http.StatusNotFound)) && !strings.Contains(refused.Message, "could not find the requested resource") {
		t.Errorf("it was not refused for being unknown: %v", err)
	}
}

// TestRunsOfStrategyMPIAreCarriedOutByTheOperator runs with the real operator: a run that
// succeeds with its metrics, one with a failing rank, and one that is canceled.
func TestRunsOfStrategyMPIAreCarriedOutByTheOperator(t *testing.T) {
	t.Parallel()
	settings := fmt.Sprintf("[executor.pods]\ngrace = \"4s\"\nmpi_operator = true\n[kubernetes]\nkinds = [%q]\n", mpijob.Resource)
	f := newFleet(t, fleetOptions{settings: settings, args: []string{"--slots", "3"}, grant: func(f *fleet, service string) {
		if service == "executor" { // the first
			mpioperator.Start(t, f.cluster, f.scope)
		}
		grantMPIJobs(t, f.cluster, f.scope, service, service)
	}})
	importBenchImage(t, f.fixture)
	dir := t.TempDir()
	well, err := f.submit(t.Context(), filepath.Join(dir, "well.toml"), mpi)
	if err != nil {
		t.Fatal(err)
	}
	if out, code := f.baictl(t, "watch", well, "--timeout", "10m"); code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, f.cluster.Run(t, "-n", f.scope, "get", "mpijobs,jobs,pods", "-o", "wide"))
	}
	if diff := cmp.Diff(map[string]string{"ranks": "4", "hosts": "2", "total": "6"}, f.values(t, well)); diff != "" {
		t.Errorf("its metrics (-want +got):\n%s", diff)
	}
	for name, h := range map[string]failureCase{
		"a rank that is killed": {
			descriptorText: mpiSleep, act: killBenchmark("worker-0"),
			want: runStatus{Outcome: "failed", FailureClass: "user", Reason: "Signaled"}, messagePattern: `rank [01] on \S+worker-0\S* failed first`,
		},
		"a run that is canceled": {
			descriptorText: mpiSleep, act: cancelRun,
			want: runStatus{Outcome: "canceled", Reason: "CanceledByUser"}, messagePattern: `canceled`,
		},
	} {
		end, took, err := f.provoke(t.Context(), filepath.Join(dir, name+".toml"), h)
		if err := errors.Join(err, h.check(end)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %s %s %s after %.1f s: %s", name, end.Outcome, end.FailureClass, end.Reason, took.Seconds(), end.Message)
	}
	awaitCleared(t, f.cluster, f.scope)
	if left := f.cluster.Run(t, "-n", f.scope, "get", "mpijobs,jobs,pods,services", "-o", "name"); left != "" {
		t.Errorf("left:\n%s", left)
	}
	wantNothingForbidden(t, append(calls(t, f.cluster, f.scope, "executor"), calls(t, f.cluster, f.scope, "watcher")...))
}

func cancelRun(ctx context.Context, w fixture, run string) error {
	if out, code, err := w.try(ctx, "cancel", run); err != nil || code != 0 {
		return fmt.Errorf("exit code %d: %w: %s", code, err, out)
	}
	return nil
}
