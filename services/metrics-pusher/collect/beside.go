package collect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/otlp"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/scrape"
)

// beside takes samples that come over HTTP into spools, while the benchmark runs:
// those that it serves, and those that programs send. What of this is impossible
// is said, and keeps nothing else from being shipped.
type beside struct {
	settings Settings
	series   *series
	lost     map[string]*losses // by stream
	log      *zap.Logger

	scraped *spool
	scraper *scrape.Scraper
	sent    *spool
	server  *otlp.Server
	ended   chan struct{}
	begun   chan struct{} // closed when nobody tries to listen any more
}

// begin begins what the settings ask for. When it returns programs find where to
// send.
func (c *Collector) begin(ctx context.Context) *beside {
	b := &beside{settings: c.settings, series: c.series, lost: c.lost, log: c.log, ended: make(chan struct{}), begun: make(chan struct{})}
	if len(c.settings.Scrape.URLs) > 0 {
		b.scrape(ctx)
	}
	if !c.settings.OTLP {
		close(b.begun)
		return b
	}
	b.listen()
	return b
}

func (b *beside) scrape(ctx context.Context) {
	var err error
	if b.scraped, err = b.spool(pod.Scraped, "output.prometheus", event.StreamScraped); err == nil {
		b.scraper, err = scrape.Start(ctx, b.settings.Scrape, b.scraped, b.log)
	}
	if err != nil {
		b.log.Error("numbers that the benchmark serves cannot be read", zap.Error(err))
	}
}

func (b *beside) spool(name, key, stream string) (*spool, error) {
	return openSpool(pod.In(b.settings.Dir, name), key, b.settings.MaxLog, b.series, b.lost[stream])
}

// listen listens for what programs send: where it listened before, which they
// know, else where they expect it, else anywhere on the loopback.
func (b *beside) listen() {
	var err error
	if b.sent, err = b.spool(pod.OTLP, "output.otlp", event.StreamOTLP); err != nil {
		b.log.Error("nothing is taken over OTLP", zap.Error(err))
		close(b.begun)
		return
	}
	before := b.before()
	if before == "" {
		defer close(b.begun)
		l, err := listenAny()
		if err == nil {
			err = b.tell(l.Addr().String())
		}
		if err != nil {
			b.sent.Drop(1, "output.otlp: nobody can listen: "+err.Error())
			b.log.Error("nothing is taken over OTLP", zap.Error(err))
			return
		}
		b.server = otlp.Serve(l, b.sent, b.log)
		return
	}
	go b.again(before)
}

// again listens at an address that programs know already, as soon as it is free.
func (b *beside) again(address string) {
	defer close(b.begun)
	for told := false; ; told = true {
		l, err := net.Listen("tcp", address) //nolint:noctx // it returns at once
		if err == nil {
			b.server = otlp.Serve(l, b.sent, b.log)
			return
		}
		if !told {
			b.log.Warn("cannot listen for OTLP where it was: trying on", zap.String("address", address), zap.Error(err))
		}
		select {
		case <-b.ended:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func listenAny() (net.Listener, error) {
	usual, err := url.Parse(pod.DefaultOTLP)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", usual.Host) //nolint:noctx // it returns at once
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it returns at once
	}
	return l, err
}

// before returns where an earlier collector of this pod listened.
func (b *beside) before() string {
	text, err := os.ReadFile(pod.In(b.settings.Dir, pod.OTLPURL))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			b.log.Warn("where it was listened for OTLP cannot be read", zap.Error(err))
		}
		return ""
	}
	u, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return ""
	}
	return u.Host
}

// tell writes down where programs are to send.
func (b *beside) tell(address string) error {
	path := pod.In(b.settings.Dir, pod.OTLPURL)
	err := os.WriteFile(path+".tmp", []byte("http://"+address+otlp.Path), 0o644) //nolint:gosec // the benchmark reads it
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		return fmt.Errorf("write where it is listened: %w", err)
	}
	return nil
}

// close takes what is there to be taken at the benchmark's end, and ends.
func (b *beside) close() {
	close(b.ended)
	<-b.begun
	if b.scraper != nil {
		b.scraper.Finish()
	}
	if b.server != nil {
		b.server.Close()
	}
	for _, s := range []*spool{b.scraped, b.sent} {
		if s == nil {
			continue
		}
		if err := s.close(); err != nil {
			b.log.Warn("what samples were written to cannot be closed", zap.Error(err))
		}
	}
}
