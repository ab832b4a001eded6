package storm_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
	"github.com/benchmark-ai/bai/services/test/testbed/kafka"
	"github.com/benchmark-ai/bai/services/test/testbed/process"
)

const (
	slots       = 12
	waitTimeout = 10 * time.Minute // how long anything may take that is not timed
)

// harness is a platform in processes that can be killed one by one.
type harness struct {
	t    *testing.T
	dir  string // of its data
	addr string // of its API
	data string // URL below which anything is served, for runs to fetch

	broker *kafka.Server         // nil where it is embedded
	store  *elasticsearch.Server // nil where it is embedded
	prefix string                // of the store's indices

	platform *process.Process            // executor and watcher, and services without a process of their own
	services map[string]*process.Process // services with a process of their own

	api     baiv1.RunServiceClient
	results baiv1.ResultServiceClient
	sets    baiv1.SetServiceClient
	alarms  baiv1.AlarmServiceClient
}

// large is the size of a data set that takes a while to bring.
const large = 96 << 20

// newHarness returns a harness without a process.
func newHarness(t *testing.T) *harness {
	t.Helper()
	w := &harness{t: t, dir: filepath.Join(t.TempDir(), "data"), addr: process.FreeAddr(t), services: map[string]*process.Process{}}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		size := 4 << 10
		if r.URL.Path == "/large" {
			size = large
		}
		rw.Header().Set("Content-Length", fmt.Sprint(size))
		piece := make([]byte, 4<<10)
		copy(piece, r.URL.Path)
		for ; size > 0; size -= len(piece) {
			if _, err := rw.Write(piece); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	w.data = server.URL
	t.Cleanup(w.stopAll)
	conn, err := grpc.NewClient(w.addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond}, MinConnectTimeout: 5 * time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	w.api, w.results, w.sets = baiv1.NewRunServiceClient(conn), baiv1.NewResultServiceClient(conn), baiv1.NewSetServiceClient(conn)
	w.alarms = baiv1.NewAlarmServiceClient(conn)
	return w
}

// startSeparate starts a platform on real Kafka and Elasticsearch, whose services are
// processes of their own; executor and watcher are one, as the pods of one machine
// belong to one process.
func startSeparate(t *testing.T) *harness {
	t.Helper()
	needsReal(t)
	w := newHarness(t)
	w.startReal("gateway,fetcher,metrics-pusher")
	w.startService("gateway", map[string]any{"listen": w.addr})
	w.startService("fetcher", map[string]any{"fetcher": map[string]any{"sources": map[string]any{"networks": []string{"loopback"}}}})
	w.startService("metrics-pusher", nil, "index")
	w.awaitReady()
	return w
}

// startReal starts real Kafka and Elasticsearch, and a platform on them without some services.
func (w *harness) startReal(without string) {
	w.t.Helper()
	w.broker, w.store, w.prefix = kafka.Own(w.t), elasticsearch.Own(w.t), fmt.Sprintf("storm%d", time.Now().UnixNano())
	w.startPlatform(fmt.Sprintf("[kafka]\nsession = \"2s\"\ntopics = { partitions = 4, replication = 1 }\n[elasticsearch]\nprefix = %q\nrefresh = \"200ms\"\n", w.prefix),
		"--kafka", w.broker.Addr, "--elasticsearch", w.store.URL, "--without", without)
}

// startEmbedded starts a platform in one process, with the broker and the store that
// are embedded.
func startEmbedded(t *testing.T) *harness {
	t.Helper()
	needsReal(t)
	w := newHarness(t)
	w.startPlatform("", "--listen", w.addr)
	return w
}

// startPlatform starts the process that the others join.
func (w *harness) startPlatform(settings string, args ...string) {
	w.t.Helper()
	health, file := process.FreeAddr(w.t), filepath.Join(filepath.Dir(w.dir), "bai.toml")
	text := fmt.Sprintf("health = %q\n[log]\nformat = \"json\"\n[executor.pods]\ngateway = \"http://%s\"\n%s", health, w.addr, settings)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	argv := append([]string{filepath.Join(bin, "bai"), "standalone", "--data", w.dir, "--config", file, "--slots", fmt.Sprint(slots)}, args...)
	w.platform = process.New("platform", health, argv...)
	w.platform.Begin(w.t)
	w.awaitReady()
}

// startService starts a service as a process of its own, with further settings.
func (w *harness) startService(service string, further map[string]any, args ...string) {
	w.t.Helper()
	w.startInstance(service, service, further, args...)
}

// startInstance starts a process of a service, which may have several, under a name of its own.
func (w *harness) startInstance(name, service string, further map[string]any, args ...string) {
	w.t.Helper()
	var settings map[string]any
	if _, err := toml.DecodeFile(filepath.Join(w.dir, "services.toml"), &settings); err != nil {
		w.t.Fatal(err)
	}
	health := process.FreeAddr(w.t)
	settings["health"] = health
	maps.Copy(settings, further)
	path := filepath.Join(filepath.Dir(w.dir), name+".toml")
	file, err := os.Create(path)
	if err == nil {
		err = toml.NewEncoder(file).Encode(settings)
		_ = file.Close()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	p := process.New(name, health, append(append([]string{filepath.Join(bin, service)}, args...), "-config", path)...)
	w.services[name] = p
	p.Begin(w.t)
}

// processes are the processes of the platform.
func (w *harness) processes() []*process.Process {
	var all []*process.Process
	if w.platform != nil {
		all = append(all, w.platform)
	}
	for _, p := range w.services {
		all = append(all, p)
	}
	return all
}

// stopAll ends everything, after which nothing may be left.
func (w *harness) stopAll() {
	w.t.Helper()
	for _, p := range w.processes() {
		p.Stop(w.t)
		if w.t.Failed() {
			w.t.Logf("the log of %s:\n%s", p.Name, p.Log.Tail(6000))
		}
	}
	process.WantNothingLeft(w.t, w.dir)
}

// awaitReady waits until every process says that it is of use.
func (w *harness) awaitReady() {
	w.t.Helper()
	late := time.Now().Add(waitTimeout)
	for _, p := range w.processes() {
		for err := p.Ready(w.t.Context()); err != nil; err = p.Ready(w.t.Context()) {
			if time.Now().After(late) {
				w.t.Fatalf("%s is not ready after %s: %v\n%s", p.Name, waitTimeout, err, p.Log.Tail(4000))
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// retry calls until the call succeeds: while the platform is away it tries again.
// Any other failure is the test's.
func (w *harness) retry(what string, call func(ctx context.Context) error) bool {
	w.t.Helper()
	for late := time.Now().Add(waitTimeout); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
		err := call(ctx)
		cancel()
		switch {
		case err == nil:
			return true
		case w.t.Context().Err() != nil: // the test is over
			return false
		case !isUnavailable(err):
			w.t.Errorf("%s: %v", what, err)
			return false
		case time.Now().After(late):
			w.t.Errorf("%s: still %v", what, err)
			return false
		}
	}
}
