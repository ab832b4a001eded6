package collect

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
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
	volume   *volume
	own      *volume
	series   *series
	lost     map[string]*losses // by stream
	room     *room
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
	b := &beside{settings: c.settings, volume: c.volume, own: c.own, series: c.series, lost: c.lost, room: c.room, log: c.log, ended: make(chan struct{}), begun: make(chan struct{})}
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
		b.scraper, err = scrape.Start(ctx, b.settings.Scrape, b.settings.Net.DialContext, b.scraped, b.log)
	}
	if err != nil {
		b.log.Error("numbers that the benchmark serves cannot be read", zap.Error(err))
	}
}

func (b *beside) spool(name, key, stream string) (*spool, error) {
	return openSpool(b.own, name, key, b.settings.MaxLog, b.series, b.lost[stream], b.room)
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
	address, key := b.before()
	if address == "" {
		defer close(b.begun)
		key := rand.Text()
		l, err := listenAny(b.settings.Net)
		if err == nil {
			err = b.tell(l.Addr().String(), key)
		}
		if err != nil {
			b.sent.Drop(1, "output.otlp: nobody can listen: "+err.Error())
			b.log.Error("nothing is taken over OTLP", zap.Error(err))
			return
		}
		b.server = otlp.Serve(l, key, b.sent, b.log)
		return
	}
	if err := b.tell(address, key); err != nil { // it may have been killed before
		b.log.Warn("the benchmark may not find where to send", zap.Error(err))
	}
	go b.again(address, key)
}

// again listens at an address that programs know already, as soon as it is free.
func (b *beside) again(address, key string) {
	defer close(b.begun)
	for told := false; ; told = true {
		l, err := b.settings.Net.Listen(address)
		if err == nil {
			b.server = otlp.Serve(l, key, b.sent, b.log)
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

func listenAny(n Network) (net.Listener, error) {
	usual, err := url.Parse(pod.DefaultOTLP)
	if err != nil {
		return nil, err
	}
	l, err := n.Listen(usual.Host)
	if err != nil {
		l, err = n.Listen("127.0.0.1:0")
	}
	return l, err
}

// before returns where an earlier collector of this pod listened, and for which key.
func (b *beside) before() (address, key string) {
	text, err := b.own.read(pod.OTLPURL, mostURL)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			b.log.Warn("where it was listened for OTLP cannot be read", zap.Error(err))
		}
		return "", ""
	}
	u, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return "", ""
	}
	key, _, _ = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	return u.Host, key
}

// tell writes down where programs are to send.
func (b *beside) tell(address, key string) error {
	text := []byte("http://" + address + otlp.Path(key))
	err := b.own.write(pod.OTLPURL, text, 0o644)
	if err == nil && b.own != b.volume {
		err = b.volume.write(pod.OTLPURL, text, 0o644) // the benchmark reads it
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
