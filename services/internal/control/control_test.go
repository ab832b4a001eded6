package control_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/internal/control"
)

var errAway = errors.New("the store is away")

func TestSleepLastsAsLongAsItIsToldAndEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !control.Sleep(t.Context(), time.Minute) || time.Since(start) != time.Minute {
			t.Errorf("slept for %s, want 1m and true", time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if control.Sleep(ctx, time.Hour) || time.Since(start) != time.Minute+time.Second {
			t.Errorf("after %s it goes on, want false after 1m1s", time.Since(start))
		}
		if control.Sleep(ctx, 0) {
			t.Error("no wait at all is true though the context is done")
		}
	})
}

func TestAwaitAsksOftenAtFirstAndSeldomLater(t *testing.T) {
	for name, tt := range map[string]struct {
		readyAfter   time.Duration
		latest, most int // milliseconds that it notices too late, and times that it asks
	}{"at once": {0, 0, 1}, "after 100 ms": {100 * time.Millisecond, 10, 12}, "after 2 s": {2 * time.Second, 125, 60}, "after 1 h": {time.Hour, 1000, 3700}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, asked := time.Now(), 0
				ok := control.Await(t.Context(), func(context.Context) error {
					if asked++; time.Since(start) < tt.readyAfter {
						return errAway
					}
					return nil
				})
				if late := time.Since(start) - tt.readyAfter; !ok || late > time.Duration(tt.latest)*time.Millisecond || asked > tt.most {
					t.Errorf("%t, %s late, asked %d times, want true, at most %d ms and %d times", ok, late, asked, tt.latest, tt.most)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if control.Await(ctx, func(context.Context) error { return errAway }) {
			t.Error("it is ready, want false when the context is done")
		}
	})
}

func TestSignalsOfAWakeAreOneUntilItIsReceived(t *testing.T) {
	w := control.NewWake()
	w.Signal()
	w.Signal()
	<-w.C()
	select {
	case <-w.C():
		t.Error("the second signal is received too")
	default:
	}
}

func TestWaitsOfABackoffDoubleUpToTheirMaximumLessAFifthAtMost(t *testing.T) {
	for name, tt := range map[string]struct {
		backoff control.Backoff
		want    []time.Duration
	}{
		"each is twice the one before":         {control.Backoff{First: 1e9, Max: 5e9}, []time.Duration{1e9, 2e9, 4e9, 5e9, 5e9}},
		"the maximum is 32 times the first":    {control.Backoff{First: 1e6}, []time.Duration{1e6, 2e6, 4e6, 8e6, 16e6, 32e6, 32e6}},
		"none is over the maximum":             {control.Backoff{First: 10e9, Max: 1e9}, []time.Duration{1e9, 1e9}},
		"without a first wait there is no one": {control.Backoff{Max: 1e9}, []time.Duration{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 100 {
				b := tt.backoff
				expectWaits(t, &b, tt.want)
				b.Reset()
				expectWaits(t, &b, tt.want)
			}
		})
	}
}

func expectWaits(t *testing.T, b *control.Backoff, most []time.Duration) {
	t.Helper()
	for i, want := range most {
		if got := b.Next(); got > want || float64(got) < 0.79*float64(want) {
			t.Fatalf("wait %d is %s, want at most %s, and a fifth less at least", i+1, got, want)
		}
	}
}

func TestALoopDoesItsWorkAtOnceThenFromTimeToTimeAndWhenItIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, time.Minute, control.LoopSettings{})
		w.run(t)
		time.Sleep(90 * time.Second)
		w.loop.Wake()
		w.loop.Wake()
		time.Sleep(80 * time.Second)
		w.expect(t, 0, 60*time.Second, 90*time.Second, 150*time.Second)
	})
}

func TestAWakeBeforeRunOrDuringTheWorkIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, time.Hour, control.LoopSettings{})
		w.loop.Wake()
		w.lasts = time.Second
		w.run(t)
		time.Sleep(500 * time.Millisecond)
		w.loop.Wake()
		time.Sleep(time.Minute)
		w.expect(t, 0, time.Second)
	})
}

func TestTheWorkSaysWhenThereIsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, time.Minute, control.LoopSettings{})
		w.next = []time.Duration{5 * time.Second, -1, 0}
		w.run(t)
		time.Sleep(70 * time.Second)
		w.expect(t, 0, 5*time.Second, 5*time.Second, 65*time.Second)
	})
}

func TestALoopSaysARowOfFailuresOnceAndOnceThatItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, time.Minute, control.LoopSettings{Failing: "waits", Working: "goes on"})
		w.fails = map[int]bool{2: true, 3: true, 5: true}
		w.run(t)
		for _, want := range []bool{true, false, false, true, false, true} {
			synctest.Wait()
			if err := w.loop.Ready(t.Context()); (err == nil) != want || err != nil && !errors.Is(err, errAway) {
				t.Errorf("after %s it is ready: %v, want %t", time.Since(w.start), err, want)
			}
			time.Sleep(time.Minute)
		}
		w.logged(t, "waits", "goes on", "waits", "goes on")
	})
}

func TestAFailingLoopBacksOffAndAWakeWaitsForThat(t *testing.T) {
	for name, tt := range map[string]struct {
		eager bool
		want  int // calls within 2s
	}{
		"a wake does not end the wait":          {false, 1},
		"a wake ends the wait of an eager loop": {true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorker(t, time.Hour, control.LoopSettings{Backoff: control.Backoff{First: 10 * time.Second, Max: time.Hour}, Eager: tt.eager})
				w.fails = map[int]bool{1: true, 2: true, 3: true}
				w.run(t)
				time.Sleep(time.Second)
				w.loop.Wake()
				time.Sleep(time.Second)
				w.count(t, tt.want)
				time.Sleep(9 * time.Second)
				w.count(t, 2)
			})
		})
	}
}

func TestWorkThatFailsMayChooseItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, time.Hour, control.LoopSettings{Backoff: control.Backoff{First: time.Minute}})
		w.fails, w.next = map[int]bool{1: true, 2: true}, []time.Duration{time.Second, time.Second}
		w.run(t)
		time.Sleep(time.Minute)
		w.expect(t, 0, time.Second, 2*time.Second)
	})
}

func TestWorkThatFailsAfterItWasSteadyFailsForTheFirstTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, time.Hour, control.LoopSettings{Backoff: control.Backoff{First: time.Second}, Steady: time.Minute, Failing: "broke"})
		w.fails, w.lasts = map[int]bool{1: true, 2: true, 3: true, 4: true}, 2*time.Minute
		w.run(t)
		time.Sleep(8*time.Minute + 5*time.Second)
		w.logged(t, "broke", "broke", "broke", "broke")
	})
}

func TestALoopReturnsWhenItIsToldToAndDoesNotLogThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, log := observed()
		ctx, cancel := context.WithCancel(t.Context())
		loop := control.NewLoop("x", time.Minute, log, func(ctx context.Context) (time.Duration, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, control.LoopSettings{})
		time.AfterFunc(time.Second, cancel)
		if err := loop.Run(ctx); err != nil || loop.Ready(t.Context()) != nil || logs.Len() != 0 {
			t.Errorf("it returns %v, ready %v, and logs %v", err, loop.Ready(t.Context()), logs.All())
		}
	})
}

// worker is work that records its calls.
type worker struct {
	loop  *control.Loop
	logs  *observer.ObservedLogs
	start time.Time

	mu    sync.Mutex
	calls []time.Duration

	fails map[int]bool // by number of the call, from 1
	next  []time.Duration
	lasts time.Duration
}

func newWorker(t *testing.T, every time.Duration, s control.LoopSettings) *worker {
	t.Helper()
	logs, log := observed()
	w := &worker{start: time.Now(), logs: logs}
	w.loop = control.NewLoop("work", every, log, w.work, s)
	return w
}

func (w *worker) work(ctx context.Context) (next time.Duration, err error) {
	w.mu.Lock()
	w.calls = append(w.calls, time.Since(w.start))
	n := len(w.calls)
	w.mu.Unlock()
	control.Sleep(ctx, w.lasts)
	if n <= len(w.next) {
		next = w.next[n-1]
	}
	if w.fails[n] {
		err = errAway
	}
	return next, err
}

// run runs the loop until the test ends.
func (w *worker) run(t *testing.T) {
	t.Helper()
	done := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- w.loop.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the loop ends with %v", err)
		}
	})
}

func (w *worker) count(t *testing.T, want int) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) != want {
		t.Fatalf("called after %v, want %d calls", w.calls, want)
	}
}

func (w *worker) expect(t *testing.T, want ...time.Duration) {
	t.Helper()
	w.count(t, len(want))
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, got := range w.calls {
		if d := got - want[i]; d < 0 || d > time.Microsecond {
			t.Errorf("call %d came after %s, want %s", i+1, got, want[i])
		}
	}
}

func (w *worker) logged(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	var got []string
	for _, e := range w.logs.All() {
		got = append(got, e.Message)
	}
	if len(got) != len(want) {
		t.Fatalf("logged %q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("logged %q, want %q", got, want)
		}
	}
}

func observed() (*observer.ObservedLogs, *zap.Logger) {
	core, logs := observer.New(zap.InfoLevel)
	return logs, zap.New(core)
}
