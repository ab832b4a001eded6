// Package collect is the collector that runs beside a benchmark: it reads the files that the benchmark writes, finds samples in them, and
// ships samples and lines.
//
// The files are the spool: they grow while the brokers are away, so no data are lost. The collector writes how far it has shipped to a
// cursor file, after the brokers have acknowledged it. A collector that is killed and started again continues there. It may ship the last
// lines and samples before the kill twice, with the same sequence numbers.
//
// A source (event.Source) is one of these files, and the sequence number of a line, or of the samples in it, is the offset of the byte
// after its line feed. The last line of the output that has no line feed comes after all other lines: on standard output its number is the
// size of the file + 1, on standard error + 2. When the benchmark has ended and everything is shipped, each source ends with an event.End
// for each topic.
//
// The collector ships the samples of the first 15,000 series, one for each metric and set of labels. Where the run has other pods, they
// share that number. Series of the machine's usage do not count.
//
// Before the ends, the collector sends the artifacts to the gateway, as far as there is time.
package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/spool"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/volume"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// Settings say what to collect, and for whom.
type Settings struct {
	pod.Collect

	Dir        string        // of the pod's volume; empty means pod.Dir
	StateDir   string        // of the collector's own volume; empty means Dir
	VolumesDir string        // below which Volumes lie; empty means pod.VolumesDir
	Pod        string        // the pod's UID
	Node       string        // name of the node; empty where it is not known
	Net        Network       // the benchmark's; nil means that it shares this process's
	Poll       time.Duration // how long it waits for more; zero means 100 ms
	Drain      time.Duration // how long it goes on shipping once it is told to stop; zero means what Collect says
}

// Network is the network of a benchmark, in which it serves samples and sends them.
type Network interface {
	// Listen listens at an address such as 127.0.0.1:4318.
	Listen(address string) (net.Listener, error)
	// DialContext connects, as net.Dialer does.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// hostNetwork is the network that this process is in.
type hostNetwork struct{ net.Dialer }

// Listen implements Network.
func (hostNetwork) Listen(address string) (net.Listener, error) {
	return net.Listen("tcp", address) //nolint:noctx // it returns at once
}

// Publisher publishes.
type Publisher interface {
	// Publish publishes events, those of a run in their order, and returns when they are safe or can never be published. It tries until ctx
	// is done. It does not use the memory of events after it has returned: the caller reuses it. An event that can never be published is
	// event.ErrPoison.
	Publish(ctx context.Context, events ...event.Event) error
}

// Collector collects the output, metrics and artifacts of one benchmark.
type Collector struct {
	settings           Settings
	patterns           *extract.Patterns
	declared           extract.Declared
	bus                Publisher
	log                *zap.Logger
	volume             *volume.Volume // while it runs
	state              *volume.Volume // while it runs; the same as volume if the collector has no volume of its own
	shippers           []*shipper
	series             *spool.SeriesSet
	losses             map[string]*spool.Losses // by stream, of the files that the collector writes itself
	savedAt            time.Time                // when the cursor was written
	environmentModTime time.Time                // modification time of the last environment file that was shipped
	disk               *diskMonitor

	unshippedBytes map[string]int64 // bytes of each stream that are not shipped, once it has run
	saveFailed     bool             // of a cursor that cannot be written
}

// New returns a Collector. It fails if a metric's pattern cannot be compiled, or if the settings do not name the run and pod whose samples
// it ships.
func New(s Settings, bus Publisher, log *zap.Logger) (*Collector, error) {
	if err := s.Header.Validate(); err != nil {
		return nil, fmt.Errorf("collect for whom: %w", err)
	}
	patterns, err := extract.Compile(s.Metrics)
	if err != nil {
		return nil, err
	}
	s = defaults(s)
	c := &Collector{
		settings: s, patterns: patterns, declared: extract.Declare(s.Metrics), bus: bus, log: log,
		series: spool.NewSeriesSet(s.Series, log),
		losses: map[string]*spool.Losses{event.StreamScraped: {}, event.StreamOTLP: {}, event.StreamFIFO: {}},
	}
	for _, src := range append(c.stepShippers(), c.kindShippers()...) {
		if err := src.stream.Validate(); err != nil {
			return nil, fmt.Errorf("collect for whom: %w", err)
		}
		c.shippers = append(c.shippers, src)
	}
	return c, nil
}

// streams returns the streams of a pod. The streams that only some pods have come before those whose ends a reader waits for: a reader that
// has the latter has all.
func streams(s Settings) []string {
	all := []string{event.StreamSystem}
	if len(s.Scrape.URLs) > 0 {
		all = append(all, event.StreamScraped)
	}
	if s.OTLP {
		all = append(all, event.StreamOTLP)
	}
	return append(all, event.StreamOutput, event.StreamMetrics, event.StreamFIFO)
}

// Run collects until the benchmark has ended or ctx is done, and returns when everything written by then is shipped. Once ctx is done it
// ships for at most Drain; data that are not shipped by then are an error.
func (c *Collector) Run(ctx context.Context) error {
	err := c.run(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s could not be shipped within %s: %w", c.describeUnshipped(), c.settings.Drain, err)
	}
	return err
}

func (c *Collector) run(ctx context.Context) (err error) {
	if err := c.openVolumes(); err != nil {
		return err
	}
	defer c.closeVolumes()
	if err := c.load(); err != nil {
		return err
	}
	defer func() { c.unshippedBytes = c.unshipped(); c.close() }()
	if c.allEnded() {
		return nil // an earlier run has shipped everything
	}
	c.prepare()
	c.watchDisk(ctx)
	recv := c.startReceivers(ctx) // before the pipe: a benchmark that sees the FIFO finds the OTLP endpoint too
	closeReceivers := sync.OnceFunc(recv.close)
	defer closeReceivers()
	pipe := openPipe(c.volume, c.state, c.settings, c.losses[event.StreamFIFO], c.disk, c.log)
	defer pipe.close()
	ship, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(c.settings.Drain, cancel) })()

	for !c.benchmarkEnded(ctx) {
		full, err := c.shipOnce(ship)
		if err != nil {
			c.save()
			return err
		}
		c.saveDue()
		if !full {
			control.Sleep(ctx, c.settings.Poll)
		}
	}
	pipe.close()
	closeReceivers()
	for full := len(c.settings.Artifacts) > 0; full; { // lines before files
		if full, err = c.shipOnce(ship); err != nil {
			c.save()
			return err
		}
	}
	c.save()
	c.sendNotices(ship)
	c.sendArtifacts(ship)
	return c.finish(ship)
}

// openVolumes opens the pod's volume and the collector's own.
func (c *Collector) openVolumes() (err error) {
	if c.volume, err = volume.Open(c.settings.Dir); err != nil {
		return err
	}
	if c.state = c.volume; c.settings.StateDir != "" {
		if c.state, err = volume.OpenState(c.settings.StateDir); err != nil {
			c.volume.Close()
			return err
		}
	}
	for _, s := range c.shippers {
		s.tail.volume = c.volume
		if c.losses[s.stream.Kind] != nil { // its file is ours
			s.tail.volume = c.state
		}
	}
	return nil
}

func (c *Collector) closeVolumes() {
	if c.state != c.volume {
		c.state.Close()
	}
	c.volume.Close()
}

// prepare makes the folder of the metrics file and the file itself, so that a client library can append to it under any user.
func (c *Collector) prepare() {
	root, dir := c.volume.Root, path.Dir(pod.Metrics)
	err := root.Mkdir(dir, 0o700)
	if err == nil {
		err = root.Chmod(dir, 0o777) // the entrypoint runs as the benchmark does
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = makeShared(root, pod.Metrics)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		c.log.Warn("the metrics file cannot be made", zap.Error(err))
	}
}

// makeShared makes an empty file that every user may write.
func makeShared(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o666), f.Close())
}

// benchmarkEnded reports whether no more output is to be expected: the benchmark and the steps after it have ended, or ctx is done.
func (c *Collector) benchmarkEnded(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	_, err := c.volume.Root.Lstat(pod.ExitFile)
	if last := c.settings.LastStep; err == nil && last != "" {
		_, err = c.volume.Root.Lstat(pod.StepExit(last))
	}
	return err == nil
}

// shipOnce ships a part of each source, and reports whether a source is likely to have more at once.
func (c *Collector) shipOnce(ctx context.Context) (full bool, err error) {
	if c.environmentModTime.IsZero() {
		if err := c.sendEnvironment(ctx); err != nil {
			return false, err
		}
	}
	if err := c.disk.watch(ctx); err != nil {
		return false, err
	}
	for _, s := range c.shippers {
		more, err := s.ship(ctx)
		if err != nil {
			return false, err
		}
		full = full || more
	}
	return full, nil
}

// finish ships the rest of each source, then its ends.
func (c *Collector) finish(ctx context.Context) error {
	if err := c.sendEnvironment(ctx); err != nil {
		return err
	}
	for _, s := range c.shippers {
		exit, _ := c.exitStatus(s.exitFile)
		err := s.finish(ctx, exit)
		c.save()
		if err != nil {
			return err
		}
	}
	return nil
}

// exitStatus returns how the benchmark or a step ended. It is false while the exit file is missing or cannot be read.
func (c *Collector) exitStatus(file string) (e pod.Exit, ok bool) {
	b, err := c.volume.Read(file, maxExitSize)
	if err == nil {
		err = json.Unmarshal(b, &e)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("how the benchmark ended cannot be read", zap.Error(err))
	}
	return e, err == nil
}

// unshipped returns how many bytes of each stream are not shipped.
func (c *Collector) unshipped() map[string]int64 {
	unshipped := make(map[string]int64)
	for _, s := range c.shippers {
		if n := s.tail.end() - s.committed.Resume; n > 0 && !s.committed.Ended {
			unshipped[s.key()] = n
		}
	}
	return unshipped
}

// describeUnshipped returns how many bytes of which streams are not shipped, for an error.
func (c *Collector) describeUnshipped() string {
	var all []string
	for _, stream := range slices.Sorted(maps.Keys(c.unshippedBytes)) {
		all = append(all, fmt.Sprintf("%d bytes of %s", c.unshippedBytes[stream], stream))
	}
	if len(all) == 0 {
		return "the end of the output"
	}
	return strings.Join(all, ", ")
}

// allEnded reports whether every source has ended.
func (c *Collector) allEnded() bool {
	for _, s := range c.shippers {
		if !s.committed.Ended {
			return false
		}
	}
	return true
}

func (c *Collector) close() {
	for _, s := range c.shippers {
		s.tail.close()
	}
}
