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

// stopper ends a platform on signals. The first signal ends the platform, and within
// their grace period the benchmarks on this machine. The second signal kills the
// benchmarks. After that, or if there are none, a signal ends the process at once.
type stopper struct {
	options options
	killed  chan struct{} // closed when the benchmarks are to be killed
	kill    func()        // closes it

	mu       sync.Mutex
	clusters []*local.Cluster // of the default engine and of others, as they are opened
}

func newStopper(o options) *stopper {
	s := &stopper{options: o, killed: make(chan struct{})}
	s.kill = sync.OnceFunc(func() { close(s.killed) })
	return s
}

// contextUntilStopped returns a context that is done after a signal to end. A closed
// output is not such a signal. The caller calls release at the end.
func (s *stopper) contextUntilStopped(ctx context.Context) (stopped context.Context, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals, closed := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(signals, run.Signals()...)
	signal.Notify(closed, syscall.SIGPIPE) // not ignored, since child processes inherit that
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

// addCluster adds a cluster whose benchmarks are to be ended.
func (s *stopper) addCluster(c *local.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters = append(s.clusters, c)
}

// running returns the number of benchmarks that run on this machine.
func (s *stopper) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.clusters {
		n += c.Running()
	}
	return n
}

// killNow kills the running benchmarks, even while close is ending them.
func (s *stopper) killNow() {
	s.printf("killing %s now", countBenchmarks(s.running()))
	s.kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := s.grace()
	defer cancel()
	for _, c := range s.clusters {
		_ = c.Close(ctx, false) // if close waits for the benchmarks, it returns the errors
	}
}

// grace returns a context that is done when the benchmarks must be killed.
func (s *stopper) grace() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), podsGrace) // the context of the process is done by then
	go func() {
		select {
		case <-s.killed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// close closes the cluster, and tells the user what happens to the running benchmarks.
func (s *stopper) close(c *local.Cluster) error {
	n := c.Running()
	switch {
	case n > 0 && s.options.keepPods:
		s.printf("stopping; %s left running: start the platform on %s again to follow them", countBenchmarks(n), s.options.data)
	case n > 0:
		s.printf("stopping; ending %s, at most %s: a second signal kills them now, --keep-pods leaves them running",
			countBenchmarks(n), podsGrace)
	}
	ctx, cancel := s.grace()
	defer cancel()
	return c.Close(ctx, s.options.keepPods)
}

// printf prints a message for the user. It ignores a closed terminal.
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
	if p.cluster, err = p.openLocalCluster(p.dir.Join("pods")); err != nil {
		return err
	}
	p.pods = p.cluster
	return nil
}

// openLocalCluster opens a cluster of this machine whose pods are in a folder.
func (p *platform) openLocalCluster(dir string) (*local.Cluster, error) {
	c, err := local.New(local.Settings{
		Dir: dir, PodBinary: p.podBinary, Log: p.log, NoNamespaces: p.options.noNamespaces,
		Secrets: p.dir.Join("secrets"), Private: p.dir.Path,
	})
	if err != nil {
		return nil, err
	}
	p.stopper.addCluster(c)
	p.onClose(func() error {
		err := p.stopper.close(c)
		p.log.Info("the local cluster is closed", zap.String("dir", dir), zap.Error(err))
		return err
	})
	return c, nil
}
