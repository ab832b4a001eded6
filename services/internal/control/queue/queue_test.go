package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/internal/control/queue"
)

var errAway = errors.New("the store is away")

func TestAKeyIsWorkedOnOnceHoweverOftenItWasAddedAndByOneWorkerAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWorkers(t)
		p.do = func(string, int) (queue.Result, error) {
			time.Sleep(time.Second)
			return queue.Result{}, nil
		}
		for range 5 {
			p.q.Add("a")
		}
		p.run(4)
		time.Sleep(500 * time.Millisecond)
		for range 5 {
			p.q.Add("a")
		}
		p.q.Add("b")
		time.Sleep(time.Minute)
		p.expect(t, "a at 0s", "b at 500ms", "a at 1s")
	})
}

func TestAKeyIsWorkedOnAgainWhenItsResultSaysSo(t *testing.T) {
	for name, tt := range map[string]struct {
		result queue.Result
		err    error
		want   []int // seconds
	}{
		"not at all":                          {queue.Result{}, nil, []int{0}},
		"at once":                             {queue.Result{RequeueAfter: -1}, nil, []int{0, 0, 0, 0}},
		"after a while":                       {queue.Result{RequeueAfter: 3 * time.Second}, nil, []int{0, 3, 6, 9}},
		"after its back-off":                  {queue.Result{Requeue: true}, nil, []int{0, 1, 3, 7}},
		"after its back-off, but not later":   {queue.Result{Requeue: true, RequeueAfter: 3 * time.Second}, nil, []int{0, 1, 3, 6}},
		"an error has it back off":            {queue.Result{}, errAway, []int{0, 1, 3, 7}},
		"an error may have a wait of its own": {queue.Result{RequeueAfter: 2 * time.Second}, errAway, []int{0, 2, 4, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newWorkers(t)
				p.do = func(_ string, n int) (queue.Result, error) {
					if n == 4 {
						return queue.Result{}, nil
					}
					return tt.result, tt.err
				}
				p.q.Add("a")
				p.run(1)
				time.Sleep(time.Hour)
				var want []string
				for _, at := range tt.want {
					want = append(want, fmt.Sprintf("a at %ds", at))
				}
				p.expect(t, want...)
			})
		})
	}
}

func TestABackOffEndsAtItsMaximumAndBeginsAnewAfterASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWorkers(t)
		p.do = func(_ string, n int) (queue.Result, error) {
			if n == 6 || n == 8 {
				return queue.Result{}, nil
			}
			return queue.Result{}, errAway
		}
		p.q.Add("a")
		p.run(1)
		time.Sleep(time.Minute)
		p.q.Add("a")
		time.Sleep(time.Minute)
		p.expect(t, "a at 0s", "a at 1s", "a at 3s", "a at 7s", "a at 15s", "a at 23s", "a at 1m0s", "a at 1m1s")
		if got := p.messages(); got != "[failed, retrying works again failed, retrying works again]" {
			t.Errorf("logged %s, want a row of failures once, and its end", got)
		}
	})
}

func TestAKeyThatIsAddedDoesNotWaitForItsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWorkers(t)
		p.do = func(_ string, n int) (queue.Result, error) {
			if n < 2 {
				return queue.Result{RequeueAfter: time.Hour}, nil
			}
			return queue.Result{}, nil
		}
		p.q.Add("a")
		p.run(1)
		time.Sleep(time.Minute)
		p.q.AddAfter("a", time.Second)
		time.Sleep(time.Minute)
		p.expect(t, "a at 0s", "a at 1m1s")
	})
}

func TestAKeyRestsWithoutAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWorkers(t)
		p.do = func(key string, _ int) (queue.Result, error) {
			if key == "a" {
				return queue.Result{Rest: time.Minute}, nil
			}
			return queue.Result{}, nil
		}
		p.q.Add("a")
		p.run(1)
		time.Sleep(time.Second)
		p.q.Add("a")
		p.q.Add("b")
		time.Sleep(3 * time.Minute)
		p.expect(t, "a at 0s", "b at 1s", "a at 1m0s")
	})
}

func TestKeysThatAreAddedWhileNobodyWorksAreWorkedOnByTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWorkers(t)
		p.q.Add("a")
		p.q.AddAfter("a", time.Hour)
		p.run(1)
		synctest.Wait()
		p.stop()
		p.q.Add("b")
		p.run(1)
		p.expect(t, "a at 0s", "b at 0s")
	})
}

func TestRunReturnsWhenItsWorkersHaveAndForgetsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWorkers(t)
		p.do = func(string, int) (queue.Result, error) {
			time.Sleep(time.Minute)
			return queue.Result{}, errAway
		}
		p.q.Add("a")
		p.run(1)
		synctest.Wait()
		p.q.Add("b")
		p.stop()
		if took := time.Since(p.start); took != time.Minute {
			t.Errorf("it returns after %s, want 1m", took)
		}
		p.run(1)
		p.expect(t, "a at 0s")
		if got := p.messages(); got != "[]" {
			t.Errorf("logged %s for work that was told to end", got)
		}
	})
}

// workers runs a queue and records each call.
type workers struct {
	q     *queue.Queue[string]
	logs  *observer.ObservedLogs
	start time.Time
	ctx   context.Context
	do    func(key string, n int) (queue.Result, error) // n counts calls of the key from 1

	stop func()

	mu    sync.Mutex
	calls []string
	count map[string]int
}

func newWorkers(t *testing.T) *workers {
	t.Helper()
	logs, log := observed()
	p := &workers{logs: logs, start: time.Now(), ctx: t.Context(), count: make(map[string]int)}
	p.q = queue.New(log, queue.Settings[string]{First: time.Second, Max: 8 * time.Second})
	p.do = func(string, int) (queue.Result, error) { return queue.Result{}, nil }
	p.stop = func() {}
	t.Cleanup(func() { p.stop() })
	return p
}

func (p *workers) run(workers int) {
	ctx, cancel := context.WithCancel(p.ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = p.q.Run(ctx, workers, p.work) }()
	p.stop = sync.OnceFunc(func() { cancel(); <-done })
}

func (p *workers) work(_ context.Context, key string) (queue.Result, error) {
	p.mu.Lock()
	p.calls = append(p.calls, fmt.Sprintf("%s at %s", key, time.Since(p.start)))
	p.count[key]++
	n := p.count[key]
	p.mu.Unlock()
	return p.do(key, n)
}

func (p *workers) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if diff := cmp.Diff(want, p.calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func (p *workers) messages() string {
	var all []string
	for _, e := range p.logs.All() {
		all = append(all, e.Message)
	}
	return fmt.Sprint(all)
}

func observed() (*observer.ObservedLogs, *zap.Logger) {
	core, logs := observer.New(zap.InfoLevel)
	return logs, zap.New(core)
}
