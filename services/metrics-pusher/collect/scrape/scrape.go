// Package scrape reads samples that a benchmark serves in the text format of Prometheus.
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
	finishTimeout = 5 * time.Second // at the benchmark's end
)

// Appender stores samples.
type Appender interface {
	// Append stores samples, or fails and stores none.
	Append(samples []event.Sample) error
	// Drop counts n samples that are not stored, with the reason.
	Drop(n int64, reason string)
}

// Scraper reads the pages of one benchmark.
type Scraper struct {
	targets []*target
	stop    context.CancelFunc
	all     sync.WaitGroup
}

// target is one URL that is read periodically.
type target struct {
	url      string
	instance string // label of this page if there are several
	names    *regexp.Regexp
	every    time.Duration
	appender Appender
	log      *zap.Logger
	client   *http.Client
	lock     *sync.Mutex // one page is read at a time, to bound the memory

	wasRead     bool  // it was read once at least
	badAnswer   error // last error other than an unreachable server
	lastErr     error // error of the last read; nil after a success
	missedReads int64 // failed reads since the last success
	missedAlive int64 // of these, the ones up to the last after which there was still a server
}

// Dial connects to a server in the benchmark's network.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Start starts to read the pages of s, each every s.Every, until Finish. Failed reads are retried at the same interval, and the end of ctx
// does not stop the reads. Start fails if the pattern of the names cannot be compiled.
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

// Finish stops the reads and reads every page once more. It calls Drop with the reason for pages that were never read, and for reads that
// failed since the last success while there was a server.
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

// recordResult records the result of a read. Failed reads between two successes are gaps and count as dropped.
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
		p.missedReads, p.missedAlive = 0, 0
	}
	if err == nil || unreachable(err) {
		return
	}
	if p.badAnswer = err; !cutOff(err) {
		p.missedAlive = p.missedReads
	}
}

// finish reads the page for the last time. A page that was read before and whose server has ended with the benchmark is complete, up to the
// reads that failed before that end.
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
	case p.missedAlive > 0:
		p.appender.Drop(p.missedAlive, p.dropReason(p.badAnswer))
	}
}

func (p *target) dropReason(err error) string {
	return fmt.Sprintf("output.prometheus: %s could not be read: %v", p.url, rootError(err))
}

// unreachable reports whether there is no server. A server that does not answer in time is one.
func unreachable(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}

// cutOff reports whether an answer is not whole, which may be since the server has ended.
func cutOff(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

var errTimeout = errors.New("the server did not answer in time")

// rootError returns err without the method and the URL that http puts before it.
func rootError(err error) error {
	for _, sentinel := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET} {
		if errors.Is(err, sentinel) {
			return sentinel
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errTimeout
	}
	return err
}

// read reads the page and stores its samples.
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
