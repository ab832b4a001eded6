// Package scrape reads numbers where a benchmark serves them in the text format
// of Prometheus.
package scrape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Bounds of a reading.
const (
	maxPage  = 2 << 20 // bytes
	maxLines = 20_000
	patient  = 10 * time.Second
	hasty    = time.Second // at the benchmark's end
)

// Keeper keeps what was read.
type Keeper interface {
	// Keep keeps samples, or fails and keeps none.
	Keep(samples []event.Sample) error
	// Drop notes that n are not kept, and why.
	Drop(n int64, reason string)
}

// Scraper reads the pages of one benchmark.
type Scraper struct {
	pages []*page
	stop  context.CancelFunc
	all   sync.WaitGroup
}

// page is one URL that is read from time to time.
type page struct {
	url      string
	instance string // which of several it is
	names    *regexp.Regexp
	every    time.Duration
	to       Keeper
	log      *zap.Logger
	client   *http.Client
	turn     *sync.Mutex // one page is read at a time: so much is in memory

	up   bool  // it was read
	bad  error // what was wrong with the last answer that was none of a page
	last error // what kept it from being read the last time
	gaps int64 // readings that failed since it was read
}

// Dial connects to who serves pages, in the benchmark's network.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Start begins to read what s says. A page is read every so often once somebody
// answers; until then, and after an error, it is tried as often, until Finish,
// also where ctx ends before. It fails where the names are no pattern.
func Start(ctx context.Context, s pod.Scrape, dial Dial, to Keeper, log *zap.Logger) (*Scraper, error) {
	p := page{every: s.Every, to: to, log: log, turn: &sync.Mutex{}}
	if p.every <= 0 {
		p.every = time.Second
	}
	if s.Names != "" {
		var err error
		if p.names, err = regexp.Compile(s.Names); err != nil {
			return nil, fmt.Errorf("which numbers to read: %w", err)
		}
	}
	p.client = &http.Client{
		Transport:     &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 1, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	sc := &Scraper{stop: stop}
	of := instances(s.URLs)
	for i, url := range s.URLs {
		one := p
		one.url, one.instance = url, of[i]
		sc.pages = append(sc.pages, &one)
		sc.all.Go(func() { one.run(ctx) })
	}
	return sc, nil
}

// Finish reads every page that has ever answered once more, where it still does,
// and ends. Of pages that never did, and of those that could not be read at last,
// it says why.
func (s *Scraper) Finish() {
	s.stop()
	s.all.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), hasty)
	defer cancel()
	var all sync.WaitGroup
	for _, p := range s.pages {
		all.Go(func() { p.finish(ctx) })
	}
	all.Wait()
}

func (p *page) run(ctx context.Context) {
	ticks := time.NewTicker(p.every)
	defer ticks.Stop()
	for {
		if err := p.read(ctx); ctx.Err() == nil {
			p.note(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// note remembers how a reading ended. Failures between two that went well are
// gaps, and counted.
func (p *page) note(err error) {
	switch {
	case err == nil && !p.up:
		p.log.Info("numbers are read", zap.String("url", p.url))
	case err == nil && p.gaps > 0:
		p.to.Drop(p.gaps, p.why(p.last))
	case err != nil && p.up && p.last == nil:
		p.log.Warn("numbers cannot be read", zap.String("url", p.url), zap.Error(err))
	}
	p.up, p.last, p.gaps = p.up || err == nil, err, p.gaps+1
	if err == nil {
		p.gaps = 0
	}
	if err != nil && !away(err) {
		p.bad = err
	}
}

// finish reads the page for the last time. Who was there, and is gone with the
// benchmark, was read before.
func (p *page) finish(ctx context.Context) {
	defer p.client.CloseIdleConnections()
	err := p.read(ctx)
	switch {
	case err == nil:
		p.note(nil)
	case !p.up && p.bad != nil:
		p.to.Drop(p.gaps, p.why(p.bad)+": nothing was ever read there")
	case !p.up:
		p.to.Drop(1, p.why(err)+": nothing was ever read there")
	case !away(err):
		p.to.Drop(p.gaps+1, p.why(err))
	}
}

func (p *page) why(err error) string {
	return fmt.Sprintf("output.prometheus: %s could not be read: %v", p.url, plain(err))
}

// away reports whether nobody is there who answers.
func away(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ECONNRESET)
}

// plain is an error without the method and the URL that http puts before it.
func plain(err error) error {
	for _, known := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// read reads the page and keeps what it says.
func (p *page) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(max(p.every, time.Second), patient))
	defer cancel()
	at := time.Now()
	text, err := p.get(ctx)
	if err != nil {
		return err
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	samples, refused, err := Samples(text, at, p.names, p.instance)
	if err != nil {
		return err
	}
	for _, r := range refused {
		p.to.Drop(r.N, fmt.Sprintf("output.prometheus: %s: %s", p.url, r.Why))
	}
	return p.to.Keep(samples)
}

func (p *page) get(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4;q=1,*/*;q=0.1")
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	switch {
	case err != nil:
	case len(text) > maxPage:
		err = fmt.Errorf("the page is larger than %d bytes", maxPage)
	case bytes.Count(text, []byte("\n")) > maxLines:
		err = fmt.Errorf("the page has more than %d lines", maxLines)
	}
	return text, err
}
