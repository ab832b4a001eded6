// Package collect is what runs beside a benchmark: it reads what the benchmark
// writes from files, finds samples in it, and ships samples and lines.
//
// The files are the spool: while the brokers are away they grow, and nothing is
// lost. What was shipped is remembered in a file of its own, after it was
// acknowledged, so that a collector that is killed and started again goes on
// where it was. It may ship again what it shipped just before its end, with the
// same sequence numbers.
//
// A source (event.Source) is one of these files, and the sequence number of a
// line, or of the samples in it, is the offset of the byte after its line feed.
// The last line of the output that has no line feed comes after all others:
// that of standard output has the size of the file + 1, that of standard error
// + 2. When the benchmark has ended and all is shipped, each source ends with an
// event.End for each topic.
//
// Of all samples those of the first 15,000 series are shipped, one for each metric
// and set of labels; those that say how the machine is used are not counted.
//
// Before that, files that the benchmark left to be kept go to the gateway, as
// far as there is time for it.
package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// Settings say what to collect, and for whom.
type Settings struct {
	pod.Collect

	Dir   string        // of the pod's volume; empty means pod.Dir
	Seen  string        // below which Volumes lie; empty means pod.VolumesDir
	Pod   string        // the pod's UID
	Node  string        // name of the node; empty where it is not known
	Poll  time.Duration // how long it waits for more; zero means 100 ms
	Drain time.Duration // how long it goes on shipping once it is told to stop; zero means what Collect says
}

// Publisher publishes.
type Publisher interface {
	// Publish publishes events, those of a run in their order, and returns when
	// they are safe, or never will be. It tries until ctx is done, and has no part
	// of them once it has returned: their memory is used again. What it can never
	// publish is event.ErrPoison.
	Publish(ctx context.Context, events ...event.Event) error
}

// Collector collects what one benchmark writes.
type Collector struct {
	settings Settings
	patterns *extract.Patterns
	bus      Publisher
	log      *zap.Logger
	sources  []*source
	series   *series
	lost     map[string]*losses // by stream, of those whose file is ours
	saved    time.Time          // when the cursor was written
	placed   time.Time          // when what was last said of where it runs was written

	complained bool // of a cursor that cannot be written
}

// New returns a Collector. It fails where a metric's pattern is none, or where
// it is not told whose samples it ships.
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
		settings: s, patterns: patterns, bus: bus, log: log, series: &series{path: pod.In(s.Dir, pod.Series), log: log},
		lost: map[string]*losses{event.StreamScraped: {}, event.StreamOTLP: {}, event.StreamFIFO: {}},
	}
	for _, stream := range streams(s) {
		src := c.newSource(stream)
		if err := src.from.Validate(); err != nil {
			return nil, fmt.Errorf("collect for whom: %w", err)
		}
		c.sources = append(c.sources, src)
	}
	return c, nil
}

// streams are those of a pod. The ends of what only some pods have come before
// those that are awaited: who has these has them.
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

// Run collects until the benchmark has ended or ctx is done, and returns when
// everything that was written by then is shipped. Once ctx is done it tries for
// no longer than Drain; what it could not ship by then is an error.
func (c *Collector) Run(ctx context.Context) (err error) {
	if err := c.load(); err != nil {
		return err
	}
	defer c.close()
	if c.over() {
		return nil // an earlier run has shipped everything
	}
	c.prepare()
	beside := c.begin(ctx) // before the pipe: who sees that is told where to send
	closeBeside := sync.OnceFunc(beside.close)
	defer closeBeside()
	pipe := openPipe(c.settings, c.lost[event.StreamFIFO], c.log)
	defer pipe.close()
	ship, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(c.settings.Drain, cancel) })()

	for !c.ended(ctx) {
		full, err := c.round(ship)
		if err != nil {
			c.save()
			return err
		}
		c.saveDue()
		if !full {
			c.wait(ctx)
		}
	}
	pipe.close()
	closeBeside()
	for full := len(c.settings.Artifacts) > 0; full; { // lines before files
		if full, err = c.round(ship); err != nil {
			c.save()
			return err
		}
	}
	c.save()
	c.keep(ship)
	return c.finish(ship)
}

// prepare makes the folder of what is shipped, and the file that client
// libraries append to, so that whoever the benchmark runs as can.
func (c *Collector) prepare() {
	path := pod.In(c.settings.Dir, pod.Metrics)
	dir := filepath.Dir(path)
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o777) // the wrapper runs as the benchmark does
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = makeShared(path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		c.log.Warn("the metrics file cannot be made", zap.Error(err))
	}
}

// makeShared makes an empty file that everybody may write.
func makeShared(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o666), f.Close())
}

// wait waits until there may be more to read.
func (c *Collector) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(c.settings.Poll):
	}
}

// ended reports whether nothing more is to be expected: the benchmark has
// ended, or so has ctx.
func (c *Collector) ended(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	_, err := os.Stat(pod.In(c.settings.Dir, pod.Ended))
	return err == nil
}

// round ships some of what each source has, and reports whether one is likely
// to have more at once.
func (c *Collector) round(ctx context.Context) (full bool, err error) {
	if c.placed.IsZero() {
		if err := c.place(ctx); err != nil {
			return false, err
		}
	}
	for _, s := range c.sources {
		more, err := s.ship(ctx)
		if err != nil {
			return false, err
		}
		full = full || more
	}
	return full, nil
}

// finish ships what each source has now, then its ends.
func (c *Collector) finish(ctx context.Context) error {
	if err := c.place(ctx); err != nil {
		return err
	}
	exit := c.exit()
	for _, s := range c.sources {
		err := s.finish(ctx, exit)
		c.save()
		if err != nil {
			return err
		}
	}
	return nil
}

// exit returns how the benchmark ended, nothing where that is not known.
func (c *Collector) exit() pod.Exit {
	var e pod.Exit
	b, err := os.ReadFile(pod.In(c.settings.Dir, pod.Ended))
	if err == nil {
		err = json.Unmarshal(b, &e)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("how the benchmark ended cannot be read", zap.Error(err))
	}
	return e
}

// over reports whether every source has ended.
func (c *Collector) over() bool {
	for _, s := range c.sources {
		if !s.place.Ended {
			return false
		}
	}
	return true
}

func (c *Collector) close() {
	for _, s := range c.sources {
		s.tail.close()
	}
}
