package real_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/benchmark-ai/bai/services/test/deploy/manifest"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/process"
	s3bed "github.com/benchmark-ai/bai/services/test/testbed/s3"
)

const (
	hostForPods  = "10.201.0.254"                              // this machine, as pods reach it
	podsOfJobs   = "docker.io/benchmark-ai/bai-pod:fetch-jobs" // of this suite's runs: another suite on the same nodes may have brought podImage from another tree
	fetcherImage = "docker.io/benchmark-ai/fetcher:real"       // that the suite builds
	fetchJobs    = "../../../deploy/kubernetes/fetch-jobs"
	large        = "/large" // where something lies that is so many times the memory of a Job
	largeTimes   = 114
	memoryOfJobs = "128Mi" // the pages of the program's file count for the pod, and all may be there
)

// dataServer serves one data set, from another path for each test, to pods. It can hold
// an answer back in its middle.
type dataServer struct {
	*httptest.Server

	content      []byte
	mu           sync.Mutex
	requestCount map[string]int           // how often, by path
	gates        map[string]chan struct{} // closed once it may go on, by path
	lastClient   map[string]string        // client of the last request, by path
}

func newDataServer(t *testing.T) *dataServer {
	t.Helper()
	s := &dataServer{content: bytes.Repeat([]byte("benchmark"), 1<<20), requestCount: make(map[string]int), gates: make(map[string]chan struct{}), lastClient: make(map[string]string)}
	s.Server = forPods(t, s)
	return s
}

// forPods starts a server that pods reach.
func forPods(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", hostForPods+":0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}}
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// ServeHTTP implements http.Handler.
func (s *dataServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"1"`)
	if r.Header.Get("If-None-Match") == `"1"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.mu.Lock()
	s.requestCount[r.URL.Path]++
	s.lastClient[r.URL.Path] = r.RemoteAddr
	gate := s.gates[r.URL.Path]
	s.mu.Unlock()
	if r.URL.Path == large {
		w.Header().Set("Content-Length", fmt.Sprint(largeTimes*len(s.content)))
		for range largeTimes {
			if _, err := w.Write(s.content); err != nil {
				return
			}
		}
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(s.content)))
	half := len(s.content) / 2
	if _, err := w.Write(s.content[:half]); err != nil {
		return
	}
	if gate != nil {
		_ = http.NewResponseController(w).Flush() // or the client is gone
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
	}
	_, _ = w.Write(s.content[half:]) // or the client is gone
}

// hold makes the answers for a path stop in their middle, until release is called.
func (s *dataServer) hold(path string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gates[path] = gate
	return sync.OnceFunc(func() { close(gate) })
}

// requests returns how often a path was requested, and the last client.
func (s *dataServer) requests(path string) (n int, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requestCount[path], s.lastClient[path]
}

// fetchFixture is a platform whose data are brought by Jobs into a bucket, and read from
// there by pods: each of its services has the settings that are deployed, as far
// as these do not say where things are.
type fetchFixture struct {
	platform

	cluster *testbed.Cluster
	scope   string
	data    *dataServer
	fetcher *process.Process
	reads   *atomic.Int64 // of objects in the bucket, by pods
}

// newFetchFixture starts one.
func newFetchFixture(t *testing.T) *fetchFixture {
	t.Helper()
	testCluster := testbed.Kubernetes(t)
	if !testCluster.Own {
		t.Skip("pods of a cluster elsewhere do not reach this machine: the platform would have to run in there")
	}
	o := &fetchFixture{cluster: testCluster, scope: testCluster.Namespace(t), data: newDataServer(t), reads: &atomic.Int64{}}
	o.built = build(t, testCluster)
	buildFetcher(t, testCluster, o.built)
	keys, bucket := bucketForPods(t, func() { o.reads.Add(1) })
	data := filepath.Join(t.TempDir(), "data")
	core := o.core(t, data)
	address := strings.Replace(process.FreeAddr(t), "127.0.0.1", hostForPods, 1)
	o.server = address
	shared := map[string]any{"store": core["store"], "kafka": core["kafka"]}
	objects := map[string]any{"url": "s3://team/bai", "s3": bucket(keys)}
	sources := map[string]any{"sources": map[string]any{"networks": []string{hostForPods + "/32"}}}
	o.join(t, "gateway", map[string]any{"listen": address, "objects": objects, "fetcher": sources}, shared)
	pods := settingsTable(t, settingsTable(t, core, "executor"), "pods")
	pods["object_store"], pods["gateway"] = "http://"+address+"/v1/runs/{run}", "http://"+address
	o.join(t, "executor", map[string]any{"executor": core["executor"], "kubernetes": map[string]any{"kubeconfig": account(t, testCluster, o.scope, "executor", "executor"), "namespace": o.scope}}, shared)
	o.jobs(t, data, keys, bucket)
	o.fetcher = o.join(t, "fetcher", map[string]any{
		"objects": objects, "jobs": map[string]any{"template": o.template(t)},
		"kubernetes": map[string]any{"kubeconfig": o.rights(t), "namespace": o.scope},
		"fetcher":    sources,
	}, shared)
	return o
}

// core starts the services without a part in data: the broker, the watcher and the
// metrics-pusher. It returns the settings for further services.
func (o *fetchFixture) core(t *testing.T, data string) map[string]any {
	t.Helper()
	rest := process.New("the platform", "", filepath.Join(o.bin, "bai"), "standalone", "--data", data, "--listen", "127.0.0.1:0", "--without", "gateway,fetcher,executor",
		"--kubeconfig", account(t, o.cluster, o.scope, "platform", "watcher"), "--kube-namespace", o.scope, "--pod-image", podsOfJobs)
	rest.Begin(t)
	rest.EndWith(t)
	rest.AwaitOutput(t, 0, regexp.MustCompile("has no API"))
	var settings map[string]any
	if _, err := toml.DecodeFile(filepath.Join(data, "services.toml"), &settings); err != nil {
		t.Fatal(err)
	}
	return settings
}

// join starts a service with settings of its own and those that all have.
func (o *fetchFixture) join(t *testing.T, service string, own, all map[string]any) *process.Process {
	t.Helper()
	health, config := process.FreeAddr(t), filepath.Join(t.TempDir(), service+".toml")
	settings := map[string]any{"health": health}
	maps.Copy(settings, all)
	maps.Copy(settings, own)
	writeTOML(t, config, settings)
	p := process.New(service, health, filepath.Join(o.bin, service), "-config", config)
	p.Begin(t)
	p.EndWith(t)
	p.AwaitReady(t)
	return p
}

func writeTOML(t *testing.T, path string, settings map[string]any) {
	t.Helper()
	var text bytes.Buffer
	if err := errors.Join(toml.NewEncoder(&text).Encode(settings), os.WriteFile(path, text.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func settingsTable(t *testing.T, of map[string]any, name string) map[string]any {
	t.Helper()
	some, ok := of[name].(map[string]any)
	if !ok {
		t.Fatalf("services join with %v, which has no table %s", of, name)
	}
	return some
}

// bucketForPods starts an S3 server that pods reach, with a bucket "team", and returns
// the folder with its credentials, and the settings for a process that has that folder at
// some path. It calls read for reads by presigned links.
func bucketForPods(t *testing.T, read func()) (keys string, settings func(keys string) map[string]any) {
	t.Helper()
	server := s3bed.Start(t)
	server.Bucket(t, "team")
	line := forPods(t, proxyTo(t, server.Endpoint, func(r *http.Response) error {
		if r.Request.Method == http.MethodGet && r.Request.URL.Query().Get("X-Amz-Signature") != "" {
			read()
		}
		return nil
	}))
	keys = t.TempDir()
	if err := errors.Join(os.WriteFile(keys+"/access_key", []byte(server.AccessKey), 0o600), os.WriteFile(keys+"/secret_key", []byte(server.SecretKey), 0o600)); err != nil {
		t.Fatal(err)
	}
	return keys, func(keys string) map[string]any {
		return map[string]any{
			"endpoint": line.URL, "region": server.Region, "path_style": true, "access_key_file": keys + "/access_key", "secret_key_file": keys + "/secret_key",
		}
	}
}

// proxyTo hands requests to a server of loopback, which pods do not reach.
func proxyTo(t *testing.T, address string, seen func(*http.Response) error) http.Handler {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ModifyResponse: seen,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

// buildFetcher builds the fetcher, and brings its image and that of pods to the
// nodes.
func buildFetcher(t *testing.T, testCluster *testbed.Cluster, b built) {
	t.Helper()
	dir := t.TempDir()
	for tar, args := range map[string][]string{
		dir + "/fetcher.tar": {"one", "-ref", fetcherImage, "-user", "65532:65532", "-entrypoint", "/fetcher", b.bin + "/fetcher=/fetcher"},
		dir + "/pod.tar":     append([]string{"one", "-ref", podsOfJobs}, b.podImageArgs()...),
	} {
		if err := errors.Join(kit.Image(t.Context(), tar, args...), testCluster.Import(t.Context(), tar)); err != nil {
			t.Fatal(err)
		}
	}
}

// onHost is a claim for a folder of this machine, which all its nodes have.
const onHost = `apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s-data}
spec:
  storageClassName: %[1]s
  capacity: {storage: 50Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: %[2]s, type: Directory}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: %[1]s}
spec:
  storageClassName: %[1]s
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 50Gi}}
`

// jobs creates the mounts of Jobs in the cluster: the store, which is writable although
// they run as nobody, their settings, and the bucket's credentials.
func (o *fetchFixture) jobs(t *testing.T, data, keys string, bucket func(string) map[string]any) {
	t.Helper()
	if err := os.Chmod(data, 0o777); err != nil { //nolint:gosec // pods of the test write there
		t.Fatal(err)
	}
	files, err := filepath.Glob(data + "/store.db*")
	for _, f := range files {
		err = errors.Join(err, os.Chmod(f, 0o666)) //nolint:gosec // likewise
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("the store is %q, %v", files, err)
	}
	o.cluster.Apply(t, fmt.Sprintf(onHost, o.scope, data))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitTimeout)
		defer cancel()
		if out, err := o.cluster.Try(ctx, "delete", "pv", o.scope+"-data", "--wait=false"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	var task map[string]any
	if _, err := toml.DecodeFile(fetchJobs+"/task.toml", &task); err != nil {
		t.Fatal(err)
	}
	task["fetcher"] = map[string]any{"sources": map[string]any{"networks": []string{hostForPods + "/32"}}}
	dir := t.TempDir()
	writeTOML(t, dir+"/task.toml", task)
	writeTOML(t, dir+"/objects.toml", map[string]any{"objects": map[string]any{"url": "s3://team/bai", "s3": bucket("/etc/bai-objects")}})
	o.cluster.Run(t, "-n", o.scope, "create", "configmap", "fetch-jobs", "--from-file="+dir+"/task.toml")
	o.cluster.Run(t, "-n", o.scope, "create", "configmap", "places", "--from-file="+fetchJobs+"/../base/config/store.toml", "--from-file="+dir+"/objects.toml")
	o.cluster.Run(t, "-n", o.scope, "create", "secret", "generic", "object-store", "--from-file="+keys)
}

// template returns the file of the Job that is deployed, for here.
func (o *fetchFixture) template(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(fetchJobs + "/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(text, &job); err != nil {
		t.Fatal(err)
	}
	job.Namespace = o.scope
	job.Spec.Template.Spec.Affinity = nil // the services are no pods here
	job.Spec.Template.Spec.Containers[0].Image = fetcherImage
	job.Spec.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse(memoryOfJobs)
	path := filepath.Join(t.TempDir(), "job.yaml")
	if text, err = yaml.Marshal(job); err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// rights gives the fetcher and its Jobs the accounts that are deployed, and
// returns the fetcher's kubeconfig.
func (o *fetchFixture) rights(t *testing.T) string {
	t.Helper()
	objects, err := manifest.Read(fetchJobs + "/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		object.SetNamespace(o.scope)
		if b, ok := object.(*rbacv1.RoleBinding); ok {
			b.Subjects[0].Namespace = o.scope
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		o.cluster.Apply(t, string(text))
	}
	return o.cluster.Account(t, o.scope, "fetcher")
}

// submit submits a run whose data set lies at a path of the site, and returns its
// ID.
func (o *fetchFixture) submit(t *testing.T, path string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "data.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, dataDescriptor, o.data.URL+path), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := o.baictl(t, "submit", file)
	id := regexp.MustCompile(`\w{26}`).FindString(out)
	if code != 0 || id == "" {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	return id
}

// wantSuccess waits for a run, which is to end well with all of its data.
func (o *fetchFixture) wantSuccess(t *testing.T, run string) {
	t.Helper()
	out, code := o.baictl(t, "watch", run)
	if code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, o.cluster.Run(t, "-n", o.scope, "describe", "jobs,pods"))
	}
	text, _ := o.baictl(t, "metrics", run, "-o", "json")
	if !strings.Contains(text, fmt.Sprint(len(o.data.content))) {
		t.Errorf("other data came:\n%s", text)
	}
	t.Logf("%s", out)
}

// awaitRequests waits until a path was asked for so often.
func (o *fetchFixture) awaitRequests(t *testing.T, path string, n int) {
	t.Helper()
	for late := time.Now().Add(waitTimeout); ; time.Sleep(50 * time.Millisecond) {
		got, _ := o.data.requests(path)
		if got >= n {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s was asked for %d times, want %d\n%s", path, got, n, o.cluster.Run(t, "-n", o.scope, "describe", "jobs,pods"))
		}
	}
}

// pods are those of fetch Jobs.
func (o *fetchFixture) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := json.Unmarshal([]byte(o.cluster.Run(t, "-n", o.scope, "get", "pods", "-l", "app.kubernetes.io/name=fetch-job", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// addresses are those of the pods of fetch Jobs, once all have one.
func (o *fetchFixture) addresses(t *testing.T) []string {
	t.Helper()
	for late := time.Now().Add(waitTimeout); ; time.Sleep(kubectlInterval) {
		var ips []string
		for _, p := range o.pods(t) {
			ips = append(ips, p.Status.PodIP)
		}
		if len(ips) > 0 && !slices.Contains(ips, "") {
			return ips
		}
		if time.Now().After(late) {
			t.Fatalf("the pods of fetch Jobs have the addresses %q", ips)
		}
	}
}

// awaitNoJobs waits until no fetch Job is left, and no pod of one.
func (o *fetchFixture) awaitNoJobs(t *testing.T) {
	t.Helper()
	for late := time.Now().Add(waitTimeout); ; time.Sleep(kubectlInterval) {
		left := o.cluster.Run(t, "-n", o.scope, "get", "jobs,pods", "-l", "app.kubernetes.io/name=fetch-job", "-o", "name")
		if left == "" {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("left:\n%s", left)
		}
	}
}

// TestDataAreBroughtByJobsOfTheClusterIntoABucketThatPodsRead carries out the deployed
// set-up: a Job for each source, as nobody and with no rights, downloads from a site into
// a bucket; the benchmark's pod reads from there.
func TestDataAreBroughtByJobsOfTheClusterIntoABucketThatPodsRead(t *testing.T) {
	t.Parallel()
	o := newFetchFixture(t)
	t.Run("a Job brings what a run needs", o.wantFetchByJob)
	t.Run("a pod that is killed is replaced", o.wantPodReplaced)
	t.Run("a Job goes on while its fetcher is killed and comes back", o.wantJobContinues)
	t.Run("a run that is canceled ends its Job", func(t *testing.T) {
		defer o.data.hold("/canceled")()
		run := o.submit(t, "/canceled")
		o.awaitRequests(t, "/canceled", 1)
		if out, code := o.baictl(t, "cancel", run); code != 0 {
			t.Fatalf("exit code %d\n%s", code, out)
		}
		o.awaitNoJobs(t)
		if out, code := o.baictl(t, "watch", run); code != 5 {
			t.Errorf("exit code %d, want 5\n%s", code, out)
		}
	})
	t.Run("what is eight times its memory is brought by one Job", func(t *testing.T) {
		out, code := o.baictl(t, "data", "prefetch", o.data.URL+large)
		if code != 0 {
			t.Fatalf("exit code %d\n%s\n%s", code, out, o.cluster.Run(t, "-n", o.scope, "describe", "jobs,pods"))
		}
		if n, _ := o.data.requests(large); n != 1 {
			t.Errorf("it was sent %d times", n)
		}
		t.Log(out)
		o.awaitNoJobs(t)
	})
	t.Run("what has not changed is not brought again", func(t *testing.T) {
		o.wantSuccess(t, o.submit(t, "/set"))
		if n, _ := o.data.requests("/set"); n != 1 {
			t.Errorf("it was brought %d times", n)
		}
		o.awaitNoJobs(t)
	})
	awaitCleared(t, o.cluster, o.scope)
	o.wantRightsUsed(t)
}

// wantFetchByJob fetches the data of a run by a Job.
func (o *fetchFixture) wantFetchByJob(t *testing.T) {
	t.Helper()
	release := o.data.hold("/set")
	run := o.submit(t, "/set")
	o.awaitRequests(t, "/set", 1)
	_, from := o.data.requests("/set")
	if ips := o.addresses(t); len(ips) != 1 || !strings.HasPrefix(from, ips[0]+":") {
		t.Errorf("it is brought by %s, want the one pod of %q", from, ips)
	}
	release()
	o.wantSuccess(t, run)
	if n, _ := o.data.requests("/set"); n != 1 {
		t.Errorf("it was asked for %d times", n)
	}
	if o.reads.Load() == 0 {
		t.Error("the pod did not read from the bucket")
	}
	o.awaitNoJobs(t)
}

// wantPodReplaced kills the pod of a Job, which is replaced.
func (o *fetchFixture) wantPodReplaced(t *testing.T) {
	t.Helper()
	release := o.data.hold("/killed")
	run := o.submit(t, "/killed")
	o.awaitRequests(t, "/killed", 1)
	for _, p := range o.pods(t) {
		o.cluster.Run(t, "-n", o.scope, "delete", "pod", p.Name, "--grace-period=0", "--force")
	}
	o.awaitRequests(t, "/killed", 2)
	release()
	o.wantSuccess(t, run)
	o.awaitNoJobs(t)
}

// wantJobContinues kills the fetcher, while its Job goes on.
func (o *fetchFixture) wantJobContinues(t *testing.T) {
	t.Helper()
	release := o.data.hold("/alone")
	run := o.submit(t, "/alone")
	o.awaitRequests(t, "/alone", 1)
	o.fetcher.Kill(t)
	o.fetcher.Begin(t)
	o.fetcher.AwaitReady(t)
	release()
	o.wantSuccess(t, run)
	if n, _ := o.data.requests("/alone"); n != 1 {
		t.Errorf("it was asked for %d times", n)
	}
	o.awaitNoJobs(t)
}

// wantRightsUsed compares the rights of the fetcher with its requests, both ways.
func (o *fetchFixture) wantRightsUsed(t *testing.T) {
	t.Helper()
	objects, err := manifest.Read(fetchJobs + "/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if role, ok := object.(*rbacv1.Role); ok {
			did := verbsUsed(calls(t, o.cluster, o.scope, "fetcher"))
			if diff := cmp.Diff(verbsGranted(role, did), did); diff != "" {
				t.Errorf("what the fetcher may do and does (-may +does):\n%s", diff)
			}
		}
	}
	wantNothingForbidden(t, calls(t, o.cluster, o.scope, "fetcher"))
	if did := calls(t, o.cluster, o.scope, "fetch-job"); len(did) > 0 {
		t.Errorf("a Job speaks to the API server: %v", did)
	}
}
