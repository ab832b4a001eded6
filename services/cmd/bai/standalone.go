package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/proto"
	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
	"github.com/benchmark-ai/bai/services/internal/git"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/telemetry"
	"github.com/benchmark-ai/bai/services/metrics-pusher/follow"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/open"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise"
	"github.com/benchmark-ai/bai/services/watcher"
)

// podsGrace is how long running pods may take to end when the platform does.
const podsGrace = 20 * time.Second

// gcPercent lets the heap, which is small, grow further between collections: it
// buys a tenth more runs a second for some MiB.
const gcPercent = 300

// standalone runs the platform until it is told to end.
func standalone(ctx context.Context, o options) error {
	if err := o.check(); err != nil {
		return err
	}
	s, err := o.load()
	if err != nil {
		return err
	}
	var binary string
	if !s.Kubernetes.Set() {
		if binary, err = o.findPodBinary(); err != nil {
			return err
		}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	p := &platform{options: o, settings: s, podBinary: binary}
	return errors.Join(p.run(ctx), p.close())
}

// platform is a platform in one process: the drivers, in the order in which they
// are opened.
type platform struct {
	options   options
	settings  settings
	podBinary string

	dir      *dataDir
	listener net.Listener
	log      *zap.Logger
	store    program.Store
	objects  *blob.Store
	cluster  *local.Cluster // nil where pods run in Kubernetes
	kube     *kube.Cluster  // nil where they do not
	pods     pods           // the one of the two that there is
	door     *door          // for the pods of Kubernetes
	bus      *kafka.Bus

	telemetry *telemetry.Telemetry
	closers   []func() error
}

// run opens everything, and runs until told to end.
func (p *platform) run(ctx context.Context) error {
	for _, open := range []func(context.Context) error{
		p.openDir, p.listen, p.openLog, p.openTelemetry, p.openStore, p.openDoor, p.openObjects, p.openBus, p.openCluster,
	} {
		if err := open(ctx); err != nil {
			return err
		}
	}
	parts, err := p.parts()
	if err != nil {
		return err
	}
	if p.options.replay {
		if err := p.bus.Rewind(ctx); err != nil {
			return fmt.Errorf("go back to the first event: %w", err)
		}
	}
	if err := p.writeServices(); err != nil {
		return err
	}
	parts["bai/ready"] = p.announce
	parts["bai/health"] = run.Health(p.settings.Health, p.checks(), p.telemetry.Handler())
	if p.door != nil {
		parts["bai/door"] = p.door.serve
	}
	return run.UntilSignal(ctx, parts)
}

// checks are what readiness depends on.
func (p *platform) checks() map[string]run.Check {
	checks := map[string]run.Check{"kafka": p.bus.Ready, "store": p.store.Check}
	if p.kube != nil {
		checks["kubernetes"] = p.kube.Ready
	}
	return checks
}

// close closes what was opened, last first.
func (p *platform) close() error {
	var errs []error
	for _, c := range slices.Backward(p.closers) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

func (p *platform) onClose(c func() error) { p.closers = append(p.closers, c) }

func (p *platform) openDir(context.Context) (err error) {
	if p.dir, err = openDataDir(p.options.data); err != nil {
		return err
	}
	p.onClose(p.dir.close)
	return nil
}

// listen takes the address first: what cannot be reached need not be started.
func (p *platform) listen(ctx context.Context) (err error) {
	if p.without("gateway") {
		return nil
	}
	if p.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", p.options.listen); err != nil {
		return fmt.Errorf("listen for users: %w; choose another address with --listen", err)
	}
	p.onClose(func() error {
		if err := p.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return nil
}

func (p *platform) openLog(context.Context) (err error) {
	p.log, err = p.settings.Log.New(p.options.log)
	return err
}

// openTelemetry has the platform tell of itself.
func (p *platform) openTelemetry(ctx context.Context) (err error) {
	if p.telemetry, err = telemetry.New(ctx, p.settings.Telemetry, "bai", p.log); err != nil {
		return err
	}
	p.settings.Kafka.Meter, p.settings.Kafka.Tracer = p.telemetry, p.telemetry
	p.onClose(func() error { //nolint:contextcheck // the context of the process is over by then
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		return p.telemetry.Close(ctx)
	})
	return nil
}

func (p *platform) openObjects(ctx context.Context) (err error) {
	if p.objects, err = blob.Open(ctx, p.objectSettings()); err != nil {
		return err
	}
	p.onClose(p.objects.Close)
	return nil
}

func (p *platform) objectSettings() blob.Settings {
	return blob.Settings{URL: "file://" + p.dir.in("objects"), PodURL: p.door.objectsURL()}
}

func (p *platform) openCluster(context.Context) (err error) {
	if p.settings.Kubernetes.Set() {
		return p.openKube()
	}
	s := local.Settings{
		Dir: p.dir.in("pods"), PodBinary: p.podBinary, Log: p.log, NoNamespaces: p.options.noNamespaces, Secrets: p.dir.in("secrets"),
	}
	if p.cluster, err = local.New(s); err != nil {
		return err
	}
	p.pods = p.cluster
	p.onClose(func() error { //nolint:contextcheck // the context of the process is over by then
		ctx, cancel := context.WithTimeout(context.Background(), podsGrace)
		defer cancel()
		return p.cluster.Close(ctx, p.options.keepPods)
	})
	return nil
}

func (p *platform) without(name string) bool { return slices.Contains(p.options.without, name) }

// parts returns the parts of every service that this process runs.
func (p *platform) parts() (map[string]service.Part, error) {
	all := make(map[string]service.Part)
	for name, parts := range map[string]func() (map[string]service.Part, error){
		"gateway": p.gateway, "fetcher": p.fetcher, "executor": p.executor, "watcher": p.watcher, "metrics-pusher": p.index,
	} {
		if p.without(name) {
			continue
		}
		some, err := parts()
		if err != nil {
			return nil, err
		}
		maps.Copy(all, some)
	}
	return all, nil
}

func (p *platform) gateway() (map[string]service.Part, error) {
	source, err := wiring.NewSource(p.settings.Fetcher.Sources, p.settings.Buckets)
	if err != nil {
		return nil, err
	}
	p.onClose(func() error { source.Close(); return nil })
	d, err := p.fetcherDeps()
	if err != nil {
		return nil, err
	}
	stock, err := wiring.NewStock(p.settings.Fetcher, d)
	if err != nil {
		return nil, err
	}
	flight, closeSources, err := wiring.NewPreflight(p.executorSettings(), p.settings.Fetcher, d, p.pods)
	if err != nil {
		return nil, err
	}
	p.onClose(func() error { closeSources(); return nil })
	return gateway.New(p.settings.Gateway, gateway.Deps{
		Preflight: flight,
		Bus:       p.bus, Store: p.store, Listener: p.listener, Objects: p.objects, Stock: stock, Source: source, Renderer: wiring.NewRenderer(p.executorSettings()),
		Token: p.bus.Token, OpenAPI: proto.OpenAPI(), Entropy: rand.Reader, Ready: p.bus.Ready, Version: api.Version{Version: version}, Log: p.log,
	}), nil
}

// executorSettings returns the settings of the executor, with what pods of this
// platform reach.
func (p *platform) executorSettings() executor.Settings {
	s := p.settings.Executor
	s.Pods.Brokers, s.Pods.ObjectStore = p.settings.Kafka.Brokers, p.objects.PodURL()
	if s.Pods.Gateway == "" && p.door != nil {
		s.Pods.Gateway = p.door.url()
	}
	if s.Pods.Gateway == "" && p.listener != nil {
		s.Pods.Gateway = gatewayURL(p.listener.Addr())
	}
	return s
}

// gatewayURL returns the URL by which pods on this machine reach an address that
// is listened on: over loopback where that is every address.
func gatewayURL(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func (p *platform) fetcher() (map[string]service.Part, error) {
	d, err := p.fetcherDeps()
	if err != nil {
		return nil, err
	}
	return fetcher.New(p.settings.Fetcher, d)
}

// fetcherDeps is what fetches data, and who looks after them, are given.
func (p *platform) fetcherDeps() (fetcher.Deps, error) {
	buckets, err := bucket.New(p.settings.Buckets)
	if err != nil {
		return fetcher.Deps{}, err
	}
	return fetcher.Deps{
		Bus: p.bus, Store: p.store, Objects: p.objects, Log: p.log,
		Buckets: fetcher.OpenBuckets(buckets), Repositories: fetcher.OpenRepositories(git.Opener{}),
	}, nil
}

func (p *platform) executor() (map[string]service.Part, error) {
	s := p.executorSettings()
	var err error
	if s.Pods.Access, err = p.settings.Kafka.ForPods(); err != nil {
		return nil, err
	}
	return executor.New(s, executor.Deps{Bus: p.bus, Store: p.store, Cluster: p.pods, Token: p.bus.Token, Log: p.log}), nil
}

func (p *platform) watcher() (map[string]service.Part, error) {
	parts := watcher.New(p.settings.Watcher, watcher.Deps{Bus: p.bus, Store: p.store, Cluster: p.pods, Log: p.log})
	if p.kube != nil {
		maps.Copy(parts, follow.New(p.settings.Follow, follow.Deps{Bus: p.bus, Store: p.store, Cluster: p.kube, Holder: wiring.Holder(), Log: p.log}))
	}
	return parts, nil
}

func (p *platform) index() (map[string]service.Part, error) {
	parts := index.New(p.settings.Index, index.Deps{Bus: p.bus, Store: p.store})
	maps.Copy(parts, summarise.New(p.settings.Summaries, summarise.Deps{Bus: p.bus, Store: p.store, Now: time.Now, Log: p.log}))
	sinks, end, err := open.Parts(context.Background(), p.settings.Sinks, sink.Deps{Bus: p.bus, Meter: p.telemetry, Now: time.Now, Log: p.log})
	p.onClose(end)
	maps.Copy(parts, sinks)
	return parts, err
}

// announce says, once the platform is ready, what it is and where.
func (p *platform) announce(ctx context.Context) error {
	for p.bus.Ready(ctx) != nil && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // told to end before it was ready
	}
	where := "has no API: the gateway runs elsewhere"
	if p.listener != nil {
		where = "listens on " + p.listener.Addr().String()
	}
	fmt.Fprintf(p.options.out, "bai standalone %s, for laptops and tests, %s\n", version, where)
	where = "commands run with this machine's own programs, not in images"
	if p.kube != nil {
		where = "pods run in Kubernetes and reach this machine at " + p.door.address()
	}
	fmt.Fprintf(p.options.out, "data in %s; %s\n", p.dir.path, where)
	if p.cluster == nil {
		<-ctx.Done()
		return nil
	}
	if why := p.cluster.Namespaces(); why != "" {
		fmt.Fprintf(p.options.out, "pods have no namespaces of their own: %s\n", why)
	}
	<-ctx.Done()
	return nil
}
