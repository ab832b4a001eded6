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
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/spool"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/volume"
)

// receivers writes samples that come over HTTP into spools while the benchmark runs: samples of pages that the benchmark serves, and
// samples that programs send. A receiver that cannot work is logged, and does not stop other data from being shipped.
type receivers struct {
	settings Settings
	volume   *volume.Volume
	state    *volume.Volume
	series   *spool.SeriesSet
	losses   map[string]*spool.Losses // by stream
	disk     *diskMonitor
	log      *zap.Logger

	scrapeSpool *spool.Spool
	scraper     *scrape.Scraper
	otlpSpool   *spool.Spool
	server      *otlp.Server
	stop        chan struct{}
	listenDone  chan struct{} // closed when no goroutine tries to listen any more
}

// startReceivers starts the receivers that the settings ask for. When it returns, programs can find the OTLP endpoint.
func (c *Collector) startReceivers(ctx context.Context) *receivers {
	b := &receivers{
		settings: c.settings, volume: c.volume, state: c.state, series: c.series, losses: c.losses, disk: c.disk, log: c.log,
		stop: make(chan struct{}), listenDone: make(chan struct{}),
	}
	if len(c.settings.Scrape.URLs) > 0 {
		b.startScraper(ctx)
	}
	if !c.settings.OTLP {
		close(b.listenDone)
		return b
	}
	b.startOTLP()
	return b
}

func (b *receivers) startScraper(ctx context.Context) {
	var err error
	if b.scrapeSpool, err = b.openSpool(pod.Scraped, "output.prometheus", event.StreamScraped); err == nil {
		b.scraper, err = scrape.Start(ctx, b.settings.Scrape, b.settings.Net.DialContext, b.scrapeSpool, b.log)
	}
	if err != nil {
		b.log.Error("numbers that the benchmark serves cannot be read", zap.Error(err))
	}
}

func (b *receivers) openSpool(name, key, stream string) (*spool.Spool, error) {
	return spool.Open(b.state, spool.Settings{File: name, Key: key, Limit: b.settings.MaxLog, Full: b.disk.checkFull}, b.series,
		b.losses[stream])
}

// startOTLP listens for samples that programs send: at the address of an earlier collector, which programs know, else at the default
// address, else at any port of the loopback.
func (b *receivers) startOTLP() {
	var err error
	if b.otlpSpool, err = b.openSpool(pod.OTLP, "output.otlp", event.StreamOTLP); err != nil {
		b.log.Error("nothing is taken over OTLP", zap.Error(err))
		close(b.listenDone)
		return
	}
	address, key := b.previousEndpoint()
	if address == "" {
		defer close(b.listenDone)
		key := rand.Text()
		l, err := listenAny(b.settings.Net)
		if err == nil {
			err = b.writeEndpoint(l.Addr().String(), key)
		}
		if err != nil {
			b.otlpSpool.Drop(1, "output.otlp: nobody can listen: "+err.Error())
			b.log.Error("nothing is taken over OTLP", zap.Error(err))
			return
		}
		b.server = otlp.Serve(l, key, b.otlpSpool, b.log)
		return
	}
	if err := b.writeEndpoint(address, key); err != nil { // a collector may have been killed before it wrote this
		b.log.Warn("the benchmark may not find where to send", zap.Error(err))
	}
	go b.retryListen(address, key)
}

// retryListen listens at an address that programs know already, as soon as it is free.
func (b *receivers) retryListen(address, key string) {
	defer close(b.listenDone)
	for logged := false; ; logged = true {
		l, err := b.settings.Net.Listen(address)
		if err == nil {
			b.server = otlp.Serve(l, key, b.otlpSpool, b.log)
			return
		}
		if !logged {
			b.log.Warn("cannot listen for OTLP where it was: trying on", zap.String("address", address), zap.Error(err))
		}
		select {
		case <-b.stop:
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

// previousEndpoint returns where an earlier collector of this pod listened, and for which key.
func (b *receivers) previousEndpoint() (address, key string) {
	text, err := b.state.Read(pod.OTLPURL, maxURLSize)
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

// writeEndpoint writes the files with the OTLP endpoint.
func (b *receivers) writeEndpoint(address, key string) error {
	text := []byte("http://" + address + otlp.Path(key))
	err := b.state.Write(pod.OTLPURL, text, 0o644)
	if err == nil && b.state != b.volume {
		err = b.volume.Write(pod.OTLPURL, text, 0o644) // the benchmark reads it
	}
	if err != nil {
		return fmt.Errorf("write where it is listened: %w", err)
	}
	return nil
}

// close reads the pages and requests that are ready at the benchmark's end, and stops the receivers.
func (b *receivers) close() {
	close(b.stop)
	<-b.listenDone
	if b.scraper != nil {
		b.scraper.Finish()
	}
	if b.server != nil {
		b.server.Close()
	}
	for _, s := range []*spool.Spool{b.scrapeSpool, b.otlpSpool} {
		if s == nil {
			continue
		}
		if err := s.Close(); err != nil {
			b.log.Warn("what samples were written to cannot be closed", zap.Error(err))
		}
	}
}
