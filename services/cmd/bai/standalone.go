package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/proto"
	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/analyst/dispatch"
	"github.com/benchmark-ai/bai/services/cmd/bai/internal/consistency"
	"github.com/benchmark-ai/bai/services/cmd/bai/internal/datadir"
	"github.com/benchmark-ai/bai/services/cmd/bai/internal/reserve"
	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/git"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/listener"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/telemetry"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
	destinations "github.com/benchmark-ai/bai/services/metrics-pusher/deliver/open"
	"github.com/benchmark-ai/bai/services/metrics-pusher/follow"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/open"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/watcher"
)

// podsGrace is how long running pods may take to end when the platform ends.
const podsGrace = 20 * time.Second

// standalone runs the platform until it is stopped.
func standalone(ctx context.Context, o options) error {
	if err := o.check(); err != nil {
		return err
	}
	s, err := o.load()
	if err != nil {
		return err
	}
	limit, err := maxFiles()
	if err != nil {
		return err
	}
	if err := enoughFiles(limit, s.localSlots(), len(s.Kafka.Brokers) == 0); err != nil {
		return err
	}
	var binary string
	if s.usesLocal() {
		if binary, err = o.findPodBinary(); err != nil {
			return err
		}
	}
	p := &platform{options: o, settings: s, podBinary: binary, stopper: newStopper(o)}
	ctx, release := p.stopper.contextUntilStopped(ctx)
	defer release()
	go boundHeap(ctx)
	return errors.Join(p.run(ctx), p.close())
}

// platform is a platform in one process, with its drivers in the order in which they
// are opened.
type platform struct {
	options   options
	settings  settings
	podBinary string
	stopper   *stopper

	dir         *datadir.Dir
	listener    net.Listener
	log         *zap.Logger
	store       program.Store
	incidents   store.IncidentIndex // nil if the store has no such part
	objects     *blob.Store
	cluster     *local.Cluster // nil with Kubernetes
	kube        *kube.Cluster  // nil without Kubernetes
	pods        podCluster     // cluster or kube
	engines     engines        // beside it
	door        *door          // endpoint for pods in Kubernetes
	bus         *kafka.Bus
	externalBus bool               // the brokers are external
	replay      bool               // all events are replayed
	marks       *consistency.Marks // nil if the store or the broker is external
	recovery    *recovery
	sqlite      *sqlite.Store // nil if the store is external
	marked      bool          // MarkRunning has succeeded

	telemetry *telemetry.Telemetry
	closers   []func() error
}

// open opens all drivers.
func (p *platform) open(ctx context.Context) error {
	for _, open := range []func(context.Context) error{
		p.openDir, p.listen, p.openLog, p.openTelemetry, p.openStore, p.openDoor, p.openObjects, p.openBus, p.openCluster,
	} {
		if err := open(ctx); err != nil {
			return p.withRemedy(err)
		}
	}
	return nil
}

// withRemedy adds a remedy to an error about a file in the data folder, unless the
// error has one.
func (p *platform) withRemedy(err error) error {
	var path string
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		path = at.Path
	} else if at, ok := errors.AsType[*os.LinkError](err); ok {
		path = at.New
	}
	if path == "" || p.dir == nil || strings.Contains(err.Error(), "--data") {
		return err
	}
	if hint := datadir.Remedy(p.dir.Path, path, err); hint != "" {
		return fmt.Errorf("%w: %s", err, hint)
	}
	return err
}

// run opens all drivers, and runs until the platform is stopped.
func (p *platform) run(ctx context.Context) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	parts, err := p.parts()
	if err != nil {
		return err
	}
	if p.externalBus {
		parts["bai/topics"] = p.topics
	}
	if p.options.replay || p.replay {
		if err := p.bus.Rewind(ctx); err != nil {
			return fmt.Errorf("go back to the first event: %w", err)
		}
	}
	if err := p.writeServices(); err != nil {
		return err
	}
	if err := p.markRunning(ctx); err != nil {
		return err
	}
	if p.marks != nil {
		parts["bai/marks"] = p.marks.Run
	}
	parts["bai/ready"] = p.announce
	if p.replay {
		p.recovery = &recovery{platform: p, done: make(chan struct{})}
		parts = p.recovery.gate(parts)
	}
	parts["bai/disk"] = p.disk().Run
	parts["bai/health"] = run.Health(p.settings.Health, p.checks(), p.telemetry.Handler())
	if p.door != nil {
		parts["bai/door"] = p.door.serve
	}
	return run.All(ctx, parts)
}

// checks returns the checks on which readiness depends.
func (p *platform) checks() map[string]run.Check {
	checks := map[string]run.Check{"kafka": p.bus.Ready, "store": p.store.Check, "disk": p.disk().Check, "seals": program.Seals(p.bus)}
	if p.recovery != nil {
		checks["events"] = p.recovery.check
	}
	if p.kube != nil {
		checks["kubernetes"] = p.kube.Ready
	}
	return checks
}

// ready returns the reason why calls would fail now, or nil.
func (p *platform) ready(ctx context.Context) error {
	return errors.Join(p.bus.Ready(ctx), p.store.Check(ctx))
}

// markRunning records for the next start that the platform is running.
func (p *platform) markRunning(ctx context.Context) error {
	if p.marks == nil {
		return nil
	}
	if err := p.marks.MarkRunning(ctx, p.sqlite.ID(), p.replay); err != nil {
		return err
	}
	p.marked = true
	return nil
}

// close closes the drivers, last first.
func (p *platform) close() error {
	var errs []error
	for _, c := range slices.Backward(p.closers) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// markClean records a clean end, unless services in other processes use the platform's
// files.
func (p *platform) markClean() error {
	if !p.marked || len(p.options.without) > 0 {
		return nil
	}
	return p.marks.MarkClean()
}

// disk returns the monitor of the data folder's disk.
func (p *platform) disk() reserve.Monitor { return reserve.Monitor{Dir: p.dir, Log: p.log} }

func (p *platform) onClose(c func() error) { p.closers = append(p.closers, c) }

func (p *platform) openDir(context.Context) (err error) {
	if p.dir, err = datadir.Open(p.options.data); err != nil {
		return err
	}
	p.onClose(p.dir.Close)
	p.onClose(p.markClean)
	return p.disk().Prepare()
}

// listen opens the port of the API first, so that nothing is started if the port is
// taken.
func (p *platform) listen(ctx context.Context) error {
	if p.without("gateway") {
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.options.listen)
	if err != nil {
		return fmt.Errorf("listen for users: %w; choose another address with --listen", err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); ok {
		if err := refuseExposed(p.options.listen, at.AddrPort(), p.options.allowAnyone); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	p.listener = listener.Retry(l)
	p.onClose(func() error {
		if err := p.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return nil
}

func (p *platform) openLog(context.Context) (err error) {
	if p.log, err = p.settings.Log.New(p.options.log); err != nil {
		return err
	}
	if p.dir != nil && p.dir.Warning != "" {
		p.log.Warn(p.dir.Warning)
	}
	if p.listener == nil {
		return nil
	}
	if at, ok := p.listener.Addr().(*net.TCPAddr); ok {
		if warning := warnExposed(at.AddrPort()); warning != "" {
			p.log.Warn(warning)
		}
	}
	return nil
}

// openTelemetry opens the platform's own metrics and traces.
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
	if err := os.MkdirAll(p.dir.Join("objects"), 0o755); err != nil { //nolint:gosec // below the owner's data folder; pods read there
		return fmt.Errorf("make the folder of the data sets: %w", err)
	}
	if p.objects, err = blob.Open(ctx, p.objectSettings()); err != nil {
		return err
	}
	p.onClose(p.objects.Close)
	p.settings.Fetcher.Sources.ObjectStoreURL = p.objectSettings().URL
	return nil
}

func (p *platform) objectSettings() blob.Settings {
	return blob.Settings{URL: blob.FolderURL(p.dir.Join("objects")), PodURL: p.door.objectsURL()}
}

func (p *platform) openCluster(context.Context) error {
	open := p.openLocal
	if p.settings.Kubernetes.Set() {
		open = p.openKube
	}
	if err := open(); err != nil {
		return err
	}
	return p.openEngines() //nolint:contextcheck // likewise
}

func (p *platform) without(name string) bool { return slices.Contains(p.options.without, name) }

// parts returns the runnables of all services in this process.
func (p *platform) parts() (map[string]service.Runnable, error) {
	all := make(map[string]service.Runnable)
	for name, parts := range map[string]func() (map[string]service.Runnable, error){
		"gateway": p.gateway, "fetcher": p.fetcher, "executor": p.executor, "watcher": p.watcher, "metrics-pusher": p.index,
		"analyst": p.analyst,
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

func (p *platform) gateway() (map[string]service.Runnable, error) {
	source, err := wiring.NewSource(p.settings.Fetcher.Sources, p.settings.Buckets)
	if err != nil {
		return nil, err
	}
	p.onClose(func() error { source.Close(); return nil })
	d, err := p.datasetDeps()
	if err != nil {
		return nil, err
	}
	stock, err := dataset.New(p.settings.Fetcher, d)
	if err != nil {
		return nil, err
	}
	images, err := p.images()
	if err != nil {
		return nil, err
	}
	flight, closeSources, err := wiring.NewPreflight(p.executorSettings(), p.settings.Fetcher, d, p.pods, p.surveyors(), images)
	if err != nil {
		return nil, err
	}
	p.onClose(func() error { closeSources(); return nil })
	planner := p.executorSettings().Planner(p.settings.Registry.Off)
	return gateway.New(p.settings.Gateway, gateway.Deps{
		Preflight: flight,
		Bus:       p.bus, Store: p.store, Listener: p.listener, Objects: p.objects, DatasetCache: stock, Source: source,
		Parser: planner.Parser(), Renderer: planner,
		Token: p.bus.Token, OpenAPI: proto.OpenAPI(), Entropy: rand.Reader, Ready: p.ready, Notes: p.bus.UnsignedWarning,
		StorageFull: p.disk().RefusalReason, Sync: syncOf(p.sqlite), Version: rpc.Version{Version: version}, Log: p.log,
		Receivers: p.settings.Receivers.Resolver(p.log),
	}), nil
}

// syncOf returns a function that syncs the store to disk. It is nil for an external
// store.
func syncOf(s *sqlite.Store) func(context.Context) error {
	if s == nil {
		return nil
	}
	return s.Sync
}

// executorSettings returns the settings of the executor, with the addresses for the
// pods of this platform.
func (p *platform) executorSettings() executor.Settings {
	s := p.settings.Executor
	s.Destinations, s.Receivers = p.settings.Destinations.Namespaces(), p.settings.Receivers.Namespaces()
	if p.cluster != nil {
		s.NoLimitsReason, s.Pods.Reserve = p.cluster.Limits(), p.disk().OutputReserve()
	}
	s.Pods.Brokers, s.Pods.ObjectStore = p.settings.Kafka.Brokers, p.objects.PodURL()
	if s.Pods.Gateway == "" && p.door != nil {
		s.Pods.Gateway = p.door.url()
	}
	if s.Pods.Gateway == "" && p.listener != nil {
		s.Pods.Gateway = gatewayURL(p.listener.Addr())
	}
	s.Engines = p.engineSettings(s)
	return s
}

// gatewayURL returns the URL of a listening address for pods on this machine. It is on
// loopback if the listener has all addresses.
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

func (p *platform) fetcher() (map[string]service.Runnable, error) {
	d, err := p.datasetDeps()
	if err != nil {
		return nil, err
	}
	return fetcher.New(p.settings.Fetcher, fetcher.Deps{Bus: p.bus, Dataset: d})
}

// datasetDeps returns the dependencies of the dataset cache.
func (p *platform) datasetDeps() (dataset.Deps, error) {
	buckets, err := bucket.New(p.settings.Buckets)
	if err != nil {
		return dataset.Deps{}, err
	}
	return dataset.Deps{
		Store: p.store, Objects: p.objects, Log: p.log,
		Buckets: source.OpenBuckets(buckets), Repositories: source.OpenRepositories(git.Opener{}),
	}, nil
}

func (p *platform) executor() (map[string]service.Runnable, error) {
	s := p.executorSettings()
	access, err := p.settings.Kafka.ForPods()
	if err != nil {
		return nil, err
	}
	s.Pods.Access = access
	for name, e := range s.Engines {
		e.Pods.Access = access
		s.Engines[name] = e
	}
	images, err := p.images()
	if err != nil {
		return nil, err
	}
	return executor.New(s, executor.Deps{
		Bus: p.bus, Store: p.store, Cluster: p.pods, Engines: p.launchClusters(), Images: images,
		Token: p.bus.Token, Log: p.log,
	}), nil
}

// images returns the clients of registries, by the name of the engine. An engine that runs
// no images has none.
func (p *platform) images() (map[string]plan.Images, error) {
	clusters := maps.Clone(p.engines.kube)
	if p.kube != nil {
		clusters[""] = p.kube
	}
	all := make(map[string]plan.Images)
	release, err := wiring.AddImages(all, p.settings.Registry, clusters)
	if err != nil {
		return nil, err
	}
	p.onClose(func() error { release(); return nil })
	return all, nil
}

func (p *platform) watcher() (map[string]service.Runnable, error) {
	deps := watcher.Deps{Bus: p.bus, Store: p.store, Cluster: p.pods, Engines: p.watchedEngines(), Log: p.log}
	if p.kube != nil {
		deps.Ready, deps.Annotator = p.kube.Ready, p.kube
	}
	parts := watcher.New(p.settings.Watcher, deps)
	for name, logs := range p.followed() {
		maps.Copy(parts, follow.New(p.settings.Follow, follow.Deps{
			Bus: p.bus, Store: p.store, Cluster: logs, Engine: name, Holder: wiring.ProcessName(), Log: p.log,
		}))
	}
	return parts, nil
}

func (p *platform) index() (map[string]service.Runnable, error) {
	d := index.Deps{Bus: p.bus, Store: p.store}
	if p.sqlite != nil {
		d.Store = reserve.Store{Docs: p.store, Next: p.store, Disk: p.disk()}
	}
	parts := index.New(p.settings.Index, d)
	buckets, err := bucket.New(p.settings.Buckets)
	if err != nil {
		return parts, err
	}
	places, closePlaces, err := destinations.Destinations(context.Background(), p.settings.Destinations, buckets, p.log)
	p.onClose(closePlaces)
	if err != nil {
		return parts, err
	}
	deliverer := deliver.New(deliver.Deps{
		Store: p.store, Destinations: places, Namespaces: p.settings.Destinations.Namespaces(), Now: time.Now, Log: p.log,
	})
	maps.Copy(parts, deliverer.Runnables())
	maps.Copy(parts, summarise.New(p.settings.Summaries, summarise.Deps{
		Bus: p.bus, Store: p.store, Prices: p.settings.Prices, Summarised: deliverer.Owe, Now: time.Now, Log: p.log,
	}))
	sinks, end, err := open.Runnables(context.Background(), p.settings.Sinks,
		sink.Deps{Bus: p.bus, Meter: p.telemetry, Now: time.Now, Log: p.log})
	p.onClose(end)
	maps.Copy(parts, sinks)
	return parts, err
}

// analystShare is the share of the time in which the analyst of one process works: summaries come less late for it than they would if it
// worked all the time, and 2,000 series with a new point are analysed in less than a minute.
const analystShare = 0.25

func (p *platform) analyst() (map[string]service.Runnable, error) {
	d, err := dispatch.New(p.settings.Receivers, p.store, time.Now, p.log)
	if err != nil {
		return nil, err
	}
	return analyst.New(p.settings.Analyst, analyst.Deps{
		Bus: p.bus, Store: p.store, Index: p.incidents, Receivers: p.settings.Receivers.Resolver(p.log), Dispatch: d.Count(p.telemetry).Run,
		Meter: p.telemetry, Share: analystShare, Wake: d.Wake, Now: time.Now, Log: p.log,
	}), nil
}

// announce prints the version, addresses and data folder once the platform is ready.
func (p *platform) announce(ctx context.Context) error {
	if !control.Await(ctx, p.bus.Ready) {
		return nil // stopped before it was ready
	}
	releasePages()
	where := "has no API: the gateway runs elsewhere"
	if p.listener != nil {
		where = "listens on " + p.listener.Addr().String()
	}
	fmt.Fprintf(p.options.out, "bai standalone %s, for laptops and tests, %s\n", version, where)
	where = "commands run with this machine's own programs, not in images"
	if p.kube != nil {
		where = "pods run in Kubernetes and reach this machine at " + p.door.address()
	}
	fmt.Fprintf(p.options.out, "data in %s; %s\n", p.dir.Path, where)
	if p.cluster == nil {
		<-ctx.Done()
		return nil
	}
	if why := p.cluster.Namespaces(); why != "" {
		fmt.Fprintf(p.options.out, "pods have no namespaces of their own: %s\n", why)
		fmt.Fprintf(p.options.out, "so benchmarks can read and remove the platform's data in %s\n", p.dir.Path)
	}
	<-ctx.Done()
	return nil
}
