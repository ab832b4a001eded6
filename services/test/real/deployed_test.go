package real_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
	"github.com/benchmark-ai/bai/services/test/testbed/kafka"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

const (
	servicesNamespace = "benchmark-ai" // the namespace of the services
	runsNamespace     = "benchmarks"   // that of runs
	kubernetes        = "../../../deploy/kubernetes"
	password          = "a password of the test's"
)

// allServices are those that are deployed.
var allServices = []string{"gateway", "fetcher", "executor", "watcher", "metrics-pusher", "analyst"}

// deployed is the platform of deploy/kubernetes/production: every service in pods of its
// own, two of each, and a Kafka that grants each service its rights and no more.
type deployed struct {
	platform

	cluster *testbed.Cluster
	admin   string // settings of Kafka's administrator
}

func newDeployed(t *testing.T) *deployed {
	t.Helper()
	testCluster := testbed.Kubernetes(t)
	if !testCluster.Own {
		t.Skip("makes namespaces by the names that the platform has there, and needs servers that the cluster's pods reach")
	}
	d := &deployed{cluster: testCluster}
	d.built = build(t, testCluster)
	d.images(t)
	store, broker := elasticsearch.Start(t), d.kafka(t)
	line := forPods(t, proxyTo(t, store.URL, nil))
	keys, bucket := bucketForPods(t, func() {})

	dir := overlay(t, kubernetes+"/production")
	put := func(name string, settings map[string]any) { writeTOML(t, filepath.Join(dir, name+".toml"), settings) }
	put("kafka", map[string]any{
		"kafka": map[string]any{
			"brokers": []string{broker.Addr}, "key_file": "/etc/bai-key/key", "seal_key_file": "/etc/bai-seal/key", "tls": map[string]any{"ca_file": "/etc/bai/ca.pem"},
			"sasl": map[string]any{"mechanism": "SCRAM-SHA-512", "password_file": "/etc/bai/password"},
		},
		"executor": map[string]any{"pods": map[string]any{"brokers": []string{broker.Addr}}},
	})
	put("store", map[string]any{"elasticsearch": map[string]any{"addresses": []string{line.URL}}})
	put("objects", map[string]any{"objects": map[string]any{"url": "s3://team/bai", "s3": bucket("/etc/bai-objects")}})
	put("sources", map[string]any{"fetcher": map[string]any{"sources": map[string]any{"networks": []string{hostForPods + "/32"}}}})
	more := `configMapGenerator:
- {name: config, namespace: benchmark-ai, behavior: merge, files: [kafka.toml, sources.toml]}
- {name: places, namespace: benchmark-ai, behavior: merge, files: [store.toml, objects.toml]}
`
	for _, service := range allServices {
		as := map[string]any{"sasl": map[string]any{"user": service}}
		if service == "executor" {
			as["pods"] = map[string]any{
				"tls":  map[string]any{"ca_file": "/etc/bai/ca.pem"},
				"sasl": map[string]any{"mechanism": "SCRAM-SHA-512", "user": "pods", "password_file": "/etc/bai/password"},
			}
		}
		put(service, map[string]any{"kafka": as})
		more += fmt.Sprintf("- {name: %[1]s, namespace: benchmark-ai, files: [user.toml=%[1]s.toml]}\n", service)
	}
	more += `patches:
- patch: '{apiVersion: v1, kind: Service, metadata: {name: gateway, namespace: benchmark-ai}, spec: {type: NodePort}}'
`
	file := filepath.Join(dir, "kustomization.yaml")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(text, more...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.apply(t, dir, keys, broker.CA)
	return d
}

// images builds the images of all services, and brings them to the nodes.
func (d *deployed) images(t *testing.T) {
	t.Helper()
	tar := filepath.Join(t.TempDir(), "images.tar")
	if err := kit.Image(t.Context(), tar, "all", "-bin", d.bin); err != nil {
		t.Fatal(err)
	}
	if err := d.cluster.Import(t.Context(), tar); err != nil {
		t.Fatal(err)
	}
}

// kafka starts a Kafka with a user for each service and one for pods, whose rights come
// from bai admin.
func (d *deployed) kafka(t *testing.T) *kafka.Server {
	t.Helper()
	broker := kafka.StartGuardedAt(t, hostForPods, password, append([]string{"operator", "pods"}, allServices...)...)
	principals := map[string]any{"pods": []string{"User:pods"}}
	for _, service := range allServices {
		principals[service] = []string{"User:" + service}
	}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/password", []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	d.admin = dir + "/admin.toml"
	writeTOML(t, d.admin, map[string]any{"kafka": map[string]any{
		"brokers": []string{broker.Addr}, "tls": map[string]any{"ca_file": broker.CA},
		"sasl":   map[string]any{"mechanism": "SCRAM-SHA-512", "user": "operator", "password_file": dir + "/password"},
		"topics": map[string]any{"partitions": 2, "replication": 1}, "principals": principals,
	}})
	d.administer(t, "topics", "apply")
	return broker
}

// administer runs bai admin.
func (d *deployed) administer(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(d.bin, "bai"), append(append([]string{"admin"}, args...), "--config", d.admin)...).CombinedOutput()
	if err != nil {
		t.Fatalf("bai admin %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// apply applies the folder of an overlay to the cluster, and waits until all services are
// ready.
func (d *deployed) apply(t *testing.T, dir, keys, ca string) {
	t.Helper()
	d.cluster.Run(t, "wait", "--for=delete", "namespace/"+servicesNamespace, "namespace/"+runsNamespace, "--timeout=10m") // of another test
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute)
		defer cancel()
		if t.Failed() {
			d.logServices(ctx, t)
		}
		if out, err := d.cluster.Try(ctx, "delete", "-k", dir, "--ignore-not-found"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	d.cluster.Run(t, "label", "node", "--all", "--overwrite", "node.kubernetes.io/instance-type=t3.small")
	d.cluster.Run(t, "apply", "-f", kubernetes+"/base/namespaces.yaml")
	secret := func(name string, files ...string) {
		args := []string{"-n", servicesNamespace, "create", "secret", "generic", name}
		for _, f := range files {
			args = append(args, "--from-file="+f)
		}
		d.cluster.Run(t, args...)
	}
	secrets := t.TempDir()
	for name, text := range map[string]string{"key": "the key of the platform of a test", "seal": "the key of the seals of a test", "password": password} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret("platform-key", secrets+"/key")
	secret("seal-key", "key="+secrets+"/seal")
	secret("object-store", keys)
	for _, service := range allServices {
		secret(service, "ca.pem="+ca, secrets+"/password")
	}
	d.cluster.Run(t, "apply", "-k", dir)
	d.awaitAll(t)
	port := d.cluster.Run(t, "-n", servicesNamespace, "get", "service", "gateway", "-o", "jsonpath={.spec.ports[0].nodePort}")
	node := d.cluster.Run(t, "get", "node", "node1", "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`)
	d.server = node + ":" + port
}

// awaitAll waits until all services say that they are ready.
func (d *deployed) awaitAll(t *testing.T) {
	t.Helper()
	for _, service := range allServices {
		d.cluster.Run(t, "-n", servicesNamespace, "rollout", "status", "deployment/"+service, "--timeout=10m")
	}
}

// logServices logs the output of the services.
func (d *deployed) logServices(ctx context.Context, t *testing.T) {
	t.Helper()
	pods, _ := d.cluster.Try(ctx, "-n", servicesNamespace, "get", "pods", "-o", "wide")
	t.Log(pods)
	for _, service := range allServices {
		logs, _ := d.cluster.Try(ctx, "-n", servicesNamespace, "logs", "-l", "app.kubernetes.io/name="+service, "--tail=40", "--prefix")
		t.Logf("%s:\n%s", service, logs)
	}
}

// result is the part of a run's results that does not depend on the machine.
type result struct {
	Values map[string]int       // of each metric, how many; of one of the system, that there are some
	Exact  map[string][]float64 // those that no machine changes
	Log    string               // without speeds and times
}

var (
	machines = regexp.MustCompile(`\d+(\.\d+)? (MB/s|ms)`)
	constant = regexp.MustCompile(`^(ratio_level_\d|packed_size)$`)
)

// results runs a descriptor, and returns its results.
func (p platform) results(t *testing.T, descriptor string) result {
	t.Helper()
	out, code := p.baictl(t, "run", descriptor)
	id := runID.FindString(out)
	log, _ := p.baictl(t, "logs", id)
	if code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, log)
	}
	r := result{map[string]int{}, map[string][]float64{}, machines.ReplaceAllString(log, "N $2")}
	text, _ := p.baictl(t, "metrics", id, "-o", "json")
	for line := range strings.Lines(text) {
		var m measured
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if strings.HasPrefix(m.Metric, "system.") { // as many as the run is long
			r.Values[m.Metric] = 1
			continue
		}
		r.Values[m.Metric]++
		if constant.MatchString(m.Metric) {
			r.Exact[m.Metric] = append(r.Exact[m.Metric], m.Value)
		}
	}
	for _, values := range r.Exact {
		slices.Sort(values)
	}
	return r
}

// TestThePlatformAsItIsDeployedDoesWhatOneProcessDoes runs the samples on the deployed
// platform and on a standalone one, and compares the results. Then it kills all pods of
// all services at the same time, during a run.
func TestThePlatformAsItIsDeployedDoesWhatOneProcessDoes(t *testing.T) {
	t.Parallel()
	d := newDeployed(t)
	const samples = "../../../sample-benchmarks/"
	site := forPods(t, http.FileServer(http.Dir(samples+"compression")))
	text, err := os.ReadFile(samples + "compression/descriptor.toml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	compression, settings := dir+"/compression.toml", dir+"/bai.toml"
	served := strings.ReplaceAll(string(text), `src = "http://127.0.0.1:8000`, `src = "`+site.URL)
	for path, text := range map[string]string{compression: served, settings: "[fetcher.sources]\nnetworks = [\"" + hostForPods + "/32\"]\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one := start(t, d.built, "--config", settings)
	for name, want := range map[string]int{samples + "hello-world/descriptor.toml": 7, compression: 16} {
		alone, deployed := one.results(t, name), d.results(t, name)
		if diff := cmp.Diff(alone, deployed); diff != "" {
			t.Errorf("%s (-one process +deployed):\n%s", name, diff)
		}
		t.Logf("%s: %v %v\n%s", name, deployed.Values, deployed.Exact, deployed.Log)
		if len(deployed.Values) < want {
			t.Errorf("%s: %d metrics, want %d", name, len(deployed.Values), want)
		}
	}
	d.wantRecovery(t)

	for _, account := range []string{"gateway", "executor", "watcher"} {
		wantNothingForbidden(t, calls(t, d.cluster, servicesNamespace, account))
	}
	if plan := d.administer(t, "topics", "plan"); plan != "everything is as it is to be\n" {
		t.Errorf("topics and rights: %s", plan)
	}
	if dead := d.administer(t, "dead", "list"); strings.Count(dead, "\n") != 1 {
		t.Errorf("dead letters:\n%s", dead)
	}
	awaitCleared(t, d.cluster, runsNamespace)
}

// wantRecovery kills all pods of all services at a time, under a run, which ends well
// and with all that it measured.
func (d *deployed) wantRecovery(t *testing.T) {
	t.Helper()
	w := fixture{d.platform, d.cluster, runsNamespace}
	run, err := w.submit(t.Context(), filepath.Join(t.TempDir(), "run.toml"), failureCase{code: gatedCommand}.descriptor())
	if err == nil {
		err = w.awaitRunning(t.Context(), run)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.cluster.Run(t, "-n", servicesNamespace, "delete", "pods", "--all", "--grace-period=0", "--force")
	d.awaitAll(t)
	if err := w.release(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if out, code := d.baictl(t, "watch", run, "--timeout", "10m"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if n, err := w.count(t.Context(), run); n != 6 || err != nil {
		t.Errorf("%d samples, want 6; %v", n, err)
	}
}
