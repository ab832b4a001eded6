package flow_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/clustertest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise"
	"github.com/benchmark-ai/bai/services/puller"
	"github.com/benchmark-ai/bai/services/watcher"
)

// fixture is the whole platform on an in-memory bus, with a scripted cluster. It lives in
// the bubble of a synctest, whose time passes only when all goroutines wait.
type fixture struct {
	t        *testing.T
	recorder *topicRecorder
	bus      *eventtest.Bus
	store    pollingStore
	objects  *blob.Store
	cluster  *fakeCluster
	client   baiv1.RunServiceClient
	slots    int    // of the executor
	folder   string // that data may be read from
}

// pollingStore is a store without notifications: followers poll.
type pollingStore struct{ *storetest.Memory }

// Changed implements store.Notifier.
func (pollingStore) Changed(string) <-chan struct{} { return nil }

// runScenario runs a scene in a platform that is stopped, and looked at, at the end.
func runScenario(t *testing.T, scene func(w *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, newTopicRecorder())
		defer w.start(w.services())()
		scene(w)
	})
}

func newFixture(t *testing.T, b *topicRecorder) *fixture {
	t.Helper()
	objects, err := blob.Open(t.Context(), blob.Settings{URL: "file://" + t.TempDir(), Reserve: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := objects.Close(); err != nil {
			t.Error(err)
		}
	})
	return &fixture{
		t: t, recorder: b, bus: eventtest.NewBus(t), store: pollingStore{storetest.NewMemory()}, objects: objects,
		cluster: newFakeCluster(), folder: t.TempDir(), slots: 1,
	}
}

func (w *fixture) busOf(name string) recordingBus {
	return recordingBus{bus: w.bus, recorder: w.recorder, name: name}
}

// gateway returns the runnables of the gateway, and a client of it in w. The service
// "gateway record" of the table is some of them.
func (w *fixture) gateway() map[string]service.Runnable {
	w.t.Helper()
	l := bufconn.Listen(1 << 20)
	conn, err := grpc.NewClient("passthrough:///gateway", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		w.t.Fatal(err)
	}
	w.client = baiv1.NewRunServiceClient(conn)
	bus := w.busOf(gatewayService)
	bus.consumer = recordService
	parts := gateway.New(gateway.Settings{}, gateway.Deps{Bus: bus, Store: w.store, Listener: l, Entropy: rand.Reader, Log: zap.NewNop()})
	parts["gateway/reconcile"] = asService(recordService, parts["gateway/reconcile"])
	parts["client"] = func(ctx context.Context) error {
		<-ctx.Done()
		return conn.Close()
	}
	return parts
}

// services returns the parts of all services.
func (w *fixture) services() map[string]service.Runnable {
	w.t.Helper()
	var s dataset.Settings
	s.Sources.Folders = []string{w.folder}
	parts, err := fetcher.New(s, fetcher.Deps{Bus: w.busOf(fetcherService), Dataset: dataset.Deps{Store: w.store, Objects: w.objects, Log: zap.NewNop()}})
	if err != nil {
		w.t.Fatal(err)
	}
	es := executor.Settings{Slots: w.slots}
	es.Pods.Brokers, es.Pods.ObjectStore = []string{"localhost:9092"}, w.objects.PodURL()
	token := func(run string) string { return "token of " + run }
	maps.Copy(parts, w.gateway())
	maps.Copy(parts, executor.New(es, executor.Deps{Bus: w.busOf(executorService), Store: w.store, Cluster: w.cluster, Token: token}))
	maps.Copy(parts, watcher.New(watcher.Settings{}, watcher.Deps{Bus: w.busOf(watcherService), Store: w.store, Cluster: w.cluster}))
	maps.Copy(parts, index.New(index.Settings{}, index.Deps{Bus: w.busOf(indexService), Store: w.store}))
	maps.Copy(parts, summarise.New(summarise.Settings{}, summarise.Deps{Bus: w.busOf(summaryService), Store: w.store, Now: time.Now, Log: zap.NewNop()}))
	maps.Copy(parts, analyst.New(analyst.Settings{}, analyst.Deps{Bus: w.busOf(analystService), Store: w.store, Now: time.Now, Log: zap.NewNop()}))
	return parts
}

// start runs parts until they are stopped.
func (w *fixture) start(parts map[string]service.Runnable) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	var all sync.WaitGroup
	for name, part := range parts {
		all.Go(func() {
			if err := part(ctx); err != nil {
				w.t.Errorf("%s stopped with %v, want nil", name, err)
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// descriptor returns that of a benchmark, with tables beside the required ones.
func descriptor(more string) string {
	return `spec_version = "0.1.0"
[info]
description = "hello"
[hardware]
instance_type = "t3.small"
[env]
docker_image = "alpine"
[ml]
benchmark_code = "echo hello"
[[output.metrics]]
name = "loss"
units = "1"
pattern = 'loss=(\S+)'
` + more
}

// addFile puts a data set into the folder that may be read, and returns the table
// of a descriptor that asks for it.
func (w *fixture) addFile(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return source(path, fmt.Sprintf("%x", sha256.Sum256([]byte(text))))
}

// source returns the table of a descriptor that asks for a file, with its SHA-256
// unless that is empty.
func source(path, sum string) string {
	table := fmt.Sprintf("[[data.sources]]\nsrc = %q\npath = \"/data\"\n", "file://"+path)
	if sum != "" {
		table += fmt.Sprintf("sha256 = %q\n", sum)
	}
	return table
}

// submit submits a benchmark and returns the run.
func (w *fixture) submit(more string) string {
	w.t.Helper()
	resp, err := w.client.SubmitRun(w.t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: []byte(descriptor(more))})
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.GetRunId()
}

func (w *fixture) cancel(run string) {
	w.t.Helper()
	if _, err := w.client.CancelRun(w.t.Context(), &baiv1.CancelRunRequest{Run: run}); err != nil {
		w.t.Fatal(err)
	}
}

// waitUntil lets time pass until something is so.
func (w *fixture) waitUntil(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(time.Hour); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s: not within an hour; heard:\n%q", what, w.bus.TakeLines())
		}
	}
}

// awaitQuiescence lets time pass until all work is done, and all pollers have polled.
func (w *fixture) awaitQuiescence() {
	time.Sleep(2 * time.Minute)
	synctest.Wait()
}

// awaitPhase waits until a run is in a phase.
func (w *fixture) awaitPhase(run string, p event.Phase) {
	w.t.Helper()
	w.waitUntil(fmt.Sprintf("run %s is %s", run, p), func() bool {
		r, err := w.store.Run(w.t.Context(), run)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			w.t.Fatal(err)
		}
		return r.Phase == p
	})
}

// awaitLaunch waits until a run's n-th attempt has its job.
func (w *fixture) awaitLaunch(run string, n int) {
	w.t.Helper()
	w.waitUntil(fmt.Sprintf("attempt %d of run %s is launched", n, run), func() bool {
		r, err := w.store.Run(w.t.Context(), run)
		return err == nil && r.Attempt == n && r.Phase == event.PhasePending && w.cluster.attempts(run) == n
	})
}

// startBenchmark waits for the launch of a run's n-th attempt, and has its benchmark
// begin.
func (w *fixture) startBenchmark(run string, n int) {
	w.t.Helper()
	w.awaitLaunch(run, n)
	w.act(run, clustertest.Start)
	w.awaitPhase(run, event.PhaseRunning)
}

func (w *fixture) act(run string, a clustertest.Action) {
	w.t.Helper()
	if !w.cluster.Act(run, a) {
		w.t.Fatalf("run %s has no job", run)
	}
}

// runPuller has the puller of a run's pod bring its data, and returns where they are.
func (w *fixture) runPuller(run string) string {
	w.t.Helper()
	var pull pod.Pull
	w.readPodFile(run, pod.PullFile, &pull)
	dir, bus := w.t.TempDir(), w.busOf(pullerService)
	err := puller.Run(w.t.Context(), dir, pull, func(s event.Status) {
		if err := bus.Publish(w.t.Context(), s); err != nil {
			w.t.Error(err)
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return pod.PathIn(dir, pod.Data)
}

// runCollector ships a run's output and its metrics file by the pod's collector.
func (w *fixture) runCollector(run, output, metrics string) {
	w.t.Helper()
	s := collect.Settings{Dir: w.t.TempDir()}
	w.readPodFile(run, pod.CollectFile, &s.Collect)
	w.act(run, func(_ *batchv1.Job, p *corev1.Pod) { s.Pod = string(p.UID) })
	record := pod.AppendRecord(nil, pod.Record{Time: time.Now().UnixNano(), Data: []byte(output)})
	for name, content := range map[string][]byte{pod.Output: record, pod.Metrics: []byte(metrics), pod.ExitFile: []byte("{}")} {
		path := pod.PathIn(s.Dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			w.t.Fatal(err)
		}
	}
	c, err := collect.New(s, w.busOf(collectService), zap.NewNop())
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.Run(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// readPodFile reads the settings of a program in the pod of a run.
func (w *fixture) readPodFile(run, file string, into any) {
	w.t.Helper()
	if err := json.Unmarshal(w.cluster.podSecret(run)[file], into); err != nil {
		w.t.Fatalf("read what the pod of run %s is told in %s: %v", run, file, err)
	}
}
