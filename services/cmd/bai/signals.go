package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster/local"
	"github.com/benchmark-ai/bai/services/internal/run"
)

// stopper is how a platform is told to end. The first signal ends it, the benchmarks
// that run on this machine within their grace. The second kills those. From then on,
// or where there are none, a signal ends the process at once.
type stopper struct {
	options options
	killed  chan struct{} // closed once the benchmarks are to be killed
	kill    func()        // closes it

	mu      sync.Mutex
	cluster *local.Cluster // nil until it is opened, and where pods run in Kubernetes
}

func newStopper(o options) *stopper {
	s := &stopper{options: o, killed: make(chan struct{})}
	s.kill = sync.OnceFunc(func() { close(s.killed) })
	return s
}

// contextUntilStopped returns a context that is done once the process is told to end. A reader of
// its output that has gone ends nothing. Call release in the end.
func (s *stopper) contextUntilStopped(ctx context.Context) (stopped context.Context, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals, closed := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(signals, run.Signals()...)
	signal.Notify(closed, syscall.SIGPIPE) // not ignored: what is started inherits that
	done := make(chan struct{})
	go func() {
		defer signal.Stop(signals)
		select {
		case <-signals:
			cancel()
		case <-done:
			return
		}
		if s.running() == 0 || s.options.keepPods {
			return
		}
		select {
		case <-signals:
			s.killNow()
		case <-done:
		}
	}()
	return ctx, sync.OnceFunc(func() {
		close(done)
		cancel()
	})
}

// setCluster hears of the cluster whose benchmarks are to be ended.
func (s *stopper) setCluster(c *local.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cluster = c
}

// running returns how many benchmarks run on this machine.
func (s *stopper) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		return 0
	}
	return s.cluster.Running()
}

// killNow kills what runs, whether close has begun to end it or not.
func (s *stopper) killNow() {
	s.printf("killing %s now", countBenchmarks(s.running()))
	s.kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := s.grace()
	defer cancel()
	_ = s.cluster.Close(ctx, false) // where close waits for them, it says what went wrong
}

// grace returns a context that is done when the benchmarks that are told to end are to
// be killed.
func (s *stopper) grace() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), podsGrace) // the process's own is over by then
	go func() {
		select {
		case <-s.killed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// close closes the cluster, and says what becomes of the benchmarks that run.
func (s *stopper) close(c *local.Cluster) error {
	n := c.Running()
	switch {
	case n > 0 && s.options.keepPods:
		s.printf("stopping; %s left running: start the platform on %s again to follow them", countBenchmarks(n), s.options.data)
	case n > 0:
		s.printf("stopping; ending %s, at most %s: a second signal kills them now, --keep-pods leaves them running", countBenchmarks(n), podsGrace)
	}
	ctx, cancel := s.grace()
	defer cancel()
	return c.Close(ctx, s.options.keepPods)
}

// printf tells the user something. A terminal that has gone hears nothing of it.
func (s *stopper) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.options.out, format+"\n", args...)
}

func countBenchmarks(n int) string {
	if n == 1 {
		return "1 benchmark"
	}
	return fmt.Sprintf("%d benchmarks", n)
}

// openLocal opens the cluster of this machine.
func (p *platform) openLocal() (err error) {
	s := local.Settings{
		Dir: p.dir.Join("pods"), PodBinary: p.podBinary, Log: p.log, NoNamespaces: p.options.noNamespaces, Secrets: p.dir.Join("secrets"), Private: p.dir.Path,
	}
	if p.cluster, err = local.New(s); err != nil {
		return err
	}
	p.pods = p.cluster
	p.stopper.setCluster(p.cluster)
	p.onClose(func() error {
		err := p.stopper.close(p.cluster)
		p.log.Info("the local cluster is closed", zap.Error(err))
		return err
	})
	return nil
}
