package real_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/test/deploy/manifest"
	"github.com/benchmark-ai/bai/services/test/testbed"
)

// checks is the output of preflight.
type checks struct {
	Ready            bool
	Faults, Warnings int
	Checks           []struct{ Topic, Subject, Grade, Message, Remedy, FailureClass string }
}

// of is how a topic stands, a line for each thing.
func (c checks) of(topic string) string {
	var lines []string
	for _, one := range c.Checks {
		if one.Topic == topic {
			lines = append(lines, strings.TrimSpace(one.Grade+" "+one.Subject)+": "+one.Message)
		}
	}
	return strings.Join(lines, "\n")
}

func (w fixture) preflight(t *testing.T, text string, set ...string) (checks, int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "d.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"preflight", file, "-o", "json"}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	out, code := w.baictl(t, args...)
	begin, end := strings.Index(out, "{\n"), strings.LastIndex(out, "\n}") // the rest is standard error
	if begin < 0 || end < begin {
		t.Fatalf("exit code %d: %s", code, out)
	}
	var c checks
	if err := json.Unmarshal([]byte(out[begin:end+2]), &c); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return c, code
}

const preflightDescriptor = `spec_version = "1.0"
[info]
description = "needs all kinds of things"
[hardware]
cpus = "50m"
memory = "64Mi"
[env]
docker_image = "debian:12-slim"
secrets = { TOKEN = "registry/token" }
[ml]
benchmark_code = "true"
`

// TestPreflightTellsWhatARunWouldLack compares preflights with runs: if all checks pass,
// a run succeeds, and if one finds a fault, a run would fail.
func TestPreflightTellsWhatARunWouldLack(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[executor.pods.allow.default]\nsecrets = [\"registry\", \"none\"]\n")
	w.cluster.Run(t, "-n", w.scope, "create", "secret", "generic", "registry", "--from-literal=token=s3cret")
	c, code := w.preflight(t, preflightDescriptor)
	if code != 0 || !c.Ready || c.Faults != 0 {
		t.Errorf("what is all there: exit code %d, %+v", code, c)
	}
	if got := c.of("secrets"); got != "ok registry/token: the secret is there; whether it has the key token is not looked at" {
		t.Error(got)
	}
	if got := c.of("permissions"); !strings.HasPrefix(got, "ok: all ") {
		t.Error(got)
	}
	if got := c.of("nodes"); !strings.Contains(got, "the nodes cannot be listed") && !strings.Contains(got, "large enough") {
		t.Error(got)
	}
	for what, tt := range map[string]struct {
		set   []string
		topic string
		want  string
		code  int
	}{
		"a secret that is not there":    {[]string{`env.secrets.TOKEN="none/token"`}, "secrets", "fault none/token: the namespace " + w.scope + " has no secret none", 2},
		"a source that may not be read": {[]string{`data.sources=[{src="http://169.254.169.254/x",path="/data/x"}]`}, "data", "is not public", 2},
		"an engine that there is none":  {[]string{`info.execution_engine="aws.sagemaker"`}, "plan", "which this platform does not have", 2},
	} {
		c, code := w.preflight(t, preflightDescriptor, tt.set...)
		if got := c.of(tt.topic); code != tt.code || c.Ready || !strings.Contains(got, tt.want) {
			t.Errorf("%s: exit code %d, %s", what, code, got)
		}
	}
	wantNothingCreated(t, w)
}

// wantNothingCreated fails the test if an object of a run exists.
func wantNothingCreated(t *testing.T, w fixture) {
	t.Helper()
	if out := w.cluster.Run(t, "-n", w.scope, "get", "jobs,pods,secrets,configmaps", "-l", "benchmark-ai.dev/run", "-o", "name"); out != "" {
		t.Errorf("it made\n%s", out)
	}
}

// gatewayAccount makes a service account with the gateway's rights of deploy, in the
// namespace and beyond, and returns its kubeconfig and these rules.
func gatewayAccount(t *testing.T, testCluster *testbed.Cluster, scope string) (config string, rules []rbacv1.PolicyRule) {
	t.Helper()
	const name = "gateway"
	testCluster.Run(t, "-n", scope, "create", "serviceaccount", name)
	objects, err := manifest.Read(filepath.Join(roles, "gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		switch r := o.(type) {
		case *rbacv1.ClusterRole:
			rules = append(rules, r.Rules...)
			grant(t, testCluster, scope, name, "ClusterRole", "", r.Rules)
		case *rbacv1.Role:
			rules = append(rules, r.Rules...)
			namespace := scope
			if r.Namespace == "kube-system" {
				namespace = r.Namespace
			}
			grant(t, testCluster, scope, name, "Role", namespace, r.Rules)
		}
	}
	return testCluster.Account(t, scope, name), rules
}

// grant gives an account rules, in a namespace or in the whole cluster, until the
// test ends.
func grant(t *testing.T, testCluster *testbed.Cluster, scope, account, kind, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	text, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	role := fmt.Sprintf("%s-%s-%s", scope, account, strings.ToLower(kind))
	testCluster.Apply(t, fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":%q,"namespace":%q},"rules":%s}`, kind, role, namespace, text))
	testCluster.Apply(t, fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":%q,"namespace":%q},
"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%q},"subjects":[{"kind":"ServiceAccount","name":%q,"namespace":%q}]}`,
		kind+"Binding", role, namespace, kind, role, account, scope))
	if namespace != scope {
		t.Cleanup(func() {
			args := []string{"delete", strings.ToLower(kind) + "binding/" + role, strings.ToLower(kind) + "/" + role}
			if namespace != "" {
				args = append(args, "-n", namespace)
			}
			if out, err := testCluster.Try(t.Context(), args...); err != nil && t.Context().Err() == nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestTheGatewaysRolesAreWhatPreflightUses compares the gateway's rights of deploy with
// the requests of a survey, both ways.
func TestTheGatewaysRolesAreWhatPreflightUses(t *testing.T) {
	t.Parallel()
	testCluster := testbed.API(t)
	if !testCluster.Own {
		t.Skip("reads the audit log, which only a cluster of this machine shows")
	}
	scope := testCluster.Namespace(t)
	config, rules := gatewayAccount(t, testCluster, scope)
	executor := cluster.Permission{Account: "system:serviceaccount:" + scope + ":executor", Verb: "create", Group: "batch", Resource: "jobs"}
	account(t, testCluster, scope, "executor", "executor")
	s, err := driver(t, config, scope).Survey(t.Context(), cluster.SurveyRequest{
		Scope: scope, Permissions: []cluster.Permission{executor}, Secrets: []cluster.SecretKey{{Name: "a"}}, PriorityClasses: []string{"system-node-critical"}, StorageClasses: []string{""},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !s.Permissions[executor].Yes || s.NodesUnknownReason != "" || s.QuotasUnknownReason != "" || !s.PriorityClasses["system-node-critical"].Yes {
		t.Errorf("it sees %+v", s)
	}
	if s.Secrets[cluster.SecretKey{Name: "a"}].UnknownReason == "" {
		t.Error("it sees secrets")
	}
	all := calls(t, testCluster, scope, "gateway")
	wantNothingForbidden(t, all)
	verbs := slices.DeleteFunc(verbsUsed(all), func(v string) bool { return v == "create selfsubjectaccessreviews.authorization.k8s.io" }) // everybody may
	var may []string
	for _, r := range rules {
		for _, c := range expand(r) {
			may = append(may, c.String())
		}
	}
	slices.Sort(may)
	if diff := cmp.Diff(may, verbs); diff != "" {
		t.Errorf("what the gateway may (-) and what it does (+):\n%s", diff)
	}
}
