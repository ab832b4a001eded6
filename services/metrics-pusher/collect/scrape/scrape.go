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
	maxPage       = 2 << 20 // bytes
	maxLines      = 20_000
	readTimeout   = 10 * time.Second
	finishTimeout = time.Second // at the benchmark's end
)

// Appender keeps what was read.
type Appender interface {
	// Append keeps samples, or fails and keeps none.
	Append(samples []event.Sample) error
	// Drop notes that n are not kept, and why.
	Drop(n int64, reason string)
}

// Scraper reads the pages of one benchmark.
type Scraper struct {
	targets []*target
	stop    context.CancelFunc
	all     sync.WaitGroup
}

// target is one URL that is read from time to time.
type target struct {
	url      string
	instance string // which of several it is
	names    *regexp.Regexp
	every    time.Duration
	appender Appender
	log      *zap.Logger
	client   *http.Client
	lock     *sync.Mutex // one page is read at a time: so much is in memory

	wasRead     bool  // it was read
	badAnswer   error // what was wrong with the last answer that was none of a page
	lastErr     error // what kept it from being read the last time
	missedReads int64 // readings that failed since it was read
}

// Dial connects to who serves pages, in the benchmark's network.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Start begins to read what s says. A page is read every so often once somebody
// answers; until then, and after an error, it is tried as often, until Finish,
// also where ctx ends before. It fails where the names are no pattern.
func Start(ctx context.Context, s pod.Scrape, dial Dial, to Appender, log *zap.Logger) (*Scraper, error) {
	p := target{every: s.Every, appender: to, log: log, lock: &sync.Mutex{}}
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
		sc.targets = append(sc.targets, &one)
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
	ctx, cancel := context.WithTimeout(context.Background(), finishTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, p := range s.targets {
		all.Go(func() { p.finish(ctx) })
	}
	all.Wait()
}

func (p *target) run(ctx context.Context) {
	ticks := time.NewTicker(p.every)
	defer ticks.Stop()
	for {
		if err := p.read(ctx); ctx.Err() == nil {
			p.recordResult(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// recordResult remembers how a reading ended. Failures between two that went well are
// gaps, and counted.
func (p *target) recordResult(err error) {
	switch {
	case err == nil && !p.wasRead:
		p.log.Info("numbers are read", zap.String("url", p.url))
	case err == nil && p.missedReads > 0:
		p.appender.Drop(p.missedReads, p.dropReason(p.lastErr))
	case err != nil && p.wasRead && p.lastErr == nil:
		p.log.Warn("numbers cannot be read", zap.String("url", p.url), zap.Error(err))
	}
	p.wasRead, p.lastErr, p.missedReads = p.wasRead || err == nil, err, p.missedReads+1
	if err == nil {
		p.missedReads = 0
	}
	if err != nil && !unreachable(err) {
		p.badAnswer = err
	}
}

// finish reads the page for the last time. Who was there, and is gone with the
// benchmark, was read before.
func (p *target) finish(ctx context.Context) {
	defer p.client.CloseIdleConnections()
	err := p.read(ctx)
	switch {
	case err == nil:
		p.recordResult(nil)
	case !p.wasRead && p.badAnswer != nil:
		p.appender.Drop(p.missedReads, p.dropReason(p.badAnswer)+": nothing was ever read there")
	case !p.wasRead:
		p.appender.Drop(1, p.dropReason(err)+": nothing was ever read there")
	case !unreachable(err):
		p.appender.Drop(p.missedReads+1, p.dropReason(err))
	}
}

func (p *target) dropReason(err error) string {
	return fmt.Sprintf("output.prometheus: %s could not be read: %v", p.url, rootError(err))
}

// unreachable reports whether nobody is there who answers.
func unreachable(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ECONNRESET)
}

// rootError is an error without the method and the URL that http puts before it.
func rootError(err error) error {
	for _, sentinel := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, context.DeadlineExceeded} {
		if errors.Is(err, sentinel) {
			return sentinel
		}
	}
	return err
}

// read reads the page and keeps what it says.
func (p *target) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(max(p.every, time.Second), readTimeout))
	defer cancel()
	at := time.Now()
	text, err := p.get(ctx)
	if err != nil {
		return err
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	samples, refused, err := parsePage(text, at, p.names, p.instance)
	if err != nil {
		return err
	}
	for _, r := range refused {
		p.appender.Drop(r.Count, fmt.Sprintf("output.prometheus: %s: %s", p.url, r.Reason))
	}
	return p.appender.Append(samples)
}

func (p *target) get(ctx context.Context) ([]byte, error) {
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
