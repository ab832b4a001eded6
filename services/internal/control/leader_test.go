package control_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

const ttl = 12 * time.Second

func TestALeaderHoldsItsLeaseAndRenewsItAtAThirdOfItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFlakyDocs()
		l := leader(d, "a")
		first := hold(t, l)
		for _, tt := range []struct {
			wait   time.Duration
			writes int
		}{{0, 1}, {ttl/3 - 1, 1}, {1, 2}, {ttl / 4, 2}} {
			time.Sleep(tt.wait)
			if lease := hold(t, l); lease.Fence != first.Fence || d.count() != tt.writes {
				t.Errorf("after %s more: fence %d and %d writes, want fence %d and %d", tt.wait, lease.Fence, d.count(), first.Fence, tt.writes)
			}
		}
	})
}

func TestOneOfTwoLeadersHoldsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFlakyDocs()
		a, b := leader(d, "a"), leader(d, "b")
		first := hold(t, a)
		if _, err := b.Hold(t.Context()); !errors.Is(err, store.ErrHeld) {
			t.Errorf("beside a, b gets %v, want %v", err, store.ErrHeld)
		}
		a.Release(t.Context())
		if second := hold(t, b); second.Fence != first.Fence+1 {
			t.Errorf("b has fence %d after %d, want the next", second.Fence, first.Fence)
		}
		if lease, err := a.Hold(t.Context()); !errors.Is(err, store.ErrHeld) || lease.Fence != 0 {
			t.Errorf("beside b, a gets %+v and %v, want none and %v", lease, err, store.ErrHeld)
		}
	})
}

func TestALeaderThatFoundAHigherFenceAsksTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, now := newFlakyDocs(), time.Now()
		a := control.NewLeader(d, "work", "a", ttl, control.LeaderSettings{Now: func() time.Time { return now }})
		hold(t, a)
		time.Sleep(2 * ttl) // while the clock of a stands still
		hold(t, leader(d, "b"))
		hold(t, a)
		a.Invalidate()
		if _, err := a.Hold(t.Context()); !errors.Is(err, store.ErrHeld) {
			t.Errorf("it says %v, want %v", err, store.ErrHeld)
		}
	})
}

func TestALeaderWhoseClockWentBackRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, now := newFlakyDocs(), time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
		a := control.NewLeader(d, "work", "a", ttl, control.LeaderSettings{Now: func() time.Time { return now }})
		hold(t, a)
		now = now.Add(-time.Hour)
		if lease := hold(t, a); d.count() != 2 || !lease.ExpiresAt.Equal(now.Add(ttl)) {
			t.Errorf("after %d writes it ends at %s, want 2 and %s", d.count(), lease.ExpiresAt, now.Add(ttl))
		}
	})
}

func TestALeaderWorksUnderARenewedLeaseAndHandsItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFlakyDocs()
		err := leader(d, "a").Do(t.Context(), func(ctx context.Context, fence int64) error {
			if err := leader(d, "b").Do(ctx, nil); fence != 1 || !errors.Is(err, store.ErrHeld) {
				t.Errorf("with fence %d, b gets %v, want 1 and %v", fence, err, store.ErrHeld)
			}
			if !control.Sleep(ctx, 10*ttl) {
				t.Errorf("its context ends: %v", context.Cause(ctx))
			}
			if err := leader(d, "b").Do(ctx, nil); !errors.Is(err, store.ErrHeld) {
				t.Errorf("after a long time b gets %v, want %v", err, store.ErrHeld)
			}
			return errAway
		})
		if !errors.Is(err, errAway) || errors.Is(err, control.ErrLost) {
			t.Errorf("it says %v, want %v alone", err, errAway)
		}
		if lease := hold(t, leader(d, "b")); lease.Fence != 2 {
			t.Errorf("b has fence %d at once, want 2", lease.Fence)
		}
	})
}

func TestALeaderHandsItsLeaseBackAfterTheEndOfItsContextToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFlakyDocs()
		ctx, cancel := context.WithTimeout(t.Context(), ttl/3+1700*time.Millisecond) // while a renewal is under way
		defer cancel()
		d.set(false, 500*time.Millisecond)
		if err := leader(d, "a").Do(ctx, wait); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it says %v", err)
		}
		d.set(false, 0)
		hold(t, leader(d, "b"))
	})
}

func TestTheWorkOfALostLeaseEndsBeforeAnotherCanBegin(t *testing.T) {
	away := func(_ context.Context, d *flakyDocs) { d.set(true, 0) }
	for name, tt := range map[string]struct {
		lose  func(ctx context.Context, d *flakyDocs)
		clock time.Duration // by which that of the leader jumps
		after time.Duration // its work has ended by then
	}{
		"the store is away":           {lose: away, after: ttl * 5 / 6},
		"the store does not answer":   {lose: func(_ context.Context, d *flakyDocs) { d.set(false, time.Hour) }, after: ttl * 5 / 6},
		"another has it after a jump": {lose: func(ctx context.Context, d *flakyDocs) { steal(ctx, t, d) }, after: ttl / 3},
		"another had it and handed it back": {lose: func(ctx context.Context, d *flakyDocs) {
			handBack(ctx, t, d, steal(ctx, t, d))
		}, after: ttl / 3},
		"its clock jumps while it cannot ask": {lose: away, clock: time.Hour, after: ttl / 3},
		"its clock goes back while it cannot": {lose: away, clock: -time.Hour, after: ttl * 5 / 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, jump := newFlakyDocs(), new(atomic.Int64)
				a := leaderOf(d, jump)
				start := time.Now()
				err := a.Do(t.Context(), func(ctx context.Context, _ int64) error {
					tt.lose(ctx, d)
					jump.Store(int64(tt.clock))
					<-ctx.Done()
					if !errors.Is(context.Cause(ctx), control.ErrLost) {
						t.Errorf("its context ends for %v, want %v", context.Cause(ctx), control.ErrLost)
					}
					if took := time.Since(start); took != tt.after {
						t.Errorf("it ends after %s, want %s", took, tt.after)
					}
					d.set(false, 0)
					return ctx.Err()
				})
				if !errors.Is(err, control.ErrLost) {
					t.Errorf("it says %v, want %v", err, control.ErrLost)
				}
			})
		})
	}
}

func TestALeaderWhoseClockJumpsWhileNobodyElseIsThereGoesOn(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			d, ahead := newFlakyDocs(), new(atomic.Int64)
			a := leaderOf(d, ahead)
			err := a.Do(t.Context(), func(ctx context.Context, _ int64) error {
				ahead.Store(int64(jump))
				if !control.Sleep(ctx, 5*ttl) {
					t.Errorf("after a jump of %s its context ends: %v", jump, context.Cause(ctx))
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestARenewalThatFailsIsTriedAgainBeforeTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFlakyDocs()
		err := leader(d, "a").Do(t.Context(), func(ctx context.Context, _ int64) error {
			for range 10 {
				d.set(true, 0)
				control.Sleep(ctx, ttl/2-time.Millisecond)
				d.set(false, 0)
				control.Sleep(ctx, ttl/4+time.Millisecond)
			}
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("it ends with %v", err)
		}
	})
}

func TestWorkThatIsDoneThoughItsLeaseWasLostIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFlakyDocs()
		err := leader(d, "a").Do(t.Context(), func(ctx context.Context, _ int64) error {
			steal(ctx, t, d)
			<-ctx.Done()
			return nil
		})
		if err != nil {
			t.Errorf("it says %v", err)
		}
	})
}

func TestALeaderThatLostItsLeaseLeavesItToItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFlakyDocs()
		_ = leader(d, "a").Do(t.Context(), func(ctx context.Context, _ int64) error {
			steal(ctx, t, d)
			return wait(ctx, 0)
		})
		if _, err := leader(d, "c").Hold(t.Context()); !errors.Is(err, store.ErrHeld) {
			t.Errorf("another gets %v, want %v", err, store.ErrHeld)
		}
	})
}

func TestALeaderThatDoesNotKnowThatItLostItsLeaseHandsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFlakyDocs()
		a := leader(d, "a")
		hold(t, a)
		steal(t.Context(), t, d)
		a.Release(t.Context())
		if _, err := leader(d, "c").Hold(t.Context()); !errors.Is(err, store.ErrHeld) {
			t.Errorf("another gets %v, want %v", err, store.ErrHeld)
		}
	})
}

func TestALeaderThatDiesAtAnyEffectIsFollowedByAnotherWithAHigherFence(t *testing.T) {
	for _, effect := range []string{"before", "after"} {
		for n := 1; n <= 6; n++ { // acquire, 3 effects of the work with a renewal in between, release
			t.Run(fmt.Sprintf("%s effect %d", effect, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := newFlakyDocs()
					crashed := &crashing{flakyDocs: d, left: n, done: effect == "after"}
					dead, kill := context.WithCancel(t.Context())
					crashed.kill = kill
					fence := work(dead, t, crashed, "a")
					taken := d.count() > 0
					next := work(t.Context(), t, d, "b")
					if want := fence + 1; taken && fence > 0 && next != want {
						t.Errorf("the next has fence %d, want %d", next, want)
					}
					all, err := d.Docs(t.Context(), store.KindOrder, "", 10)
					if err != nil || len(all) != 3 {
						t.Errorf("%d of 3 effects are there: %v", len(all), err)
					}
				})
			})
		}
	}
}

// work has a leader do three effects, each once, with a renewal in between, and returns its fence. It goes on until they are done or its
// process is killed.
func work(ctx context.Context, t *testing.T, d store.Docs, holder string) (fence int64) {
	t.Helper()
	ctx, done := context.WithTimeout(ctx, 10*ttl)
	defer done()
	err := leader(d, holder).Lead(ctx, func(led context.Context, f int64) error {
		fence = f
		for _, key := range []string{"1", "2", "3"} {
			err := store.Create(led, d, store.KindOrder, key, f)
			if err != nil && !errors.Is(err, store.ErrExists) {
				return err
			}
			control.Sleep(led, ttl/4)
		}
		done()
		return nil
	})
	if err != nil {
		t.Errorf("lead: %v", err)
	}
	return fence
}

func TestOfSeveralLeadersOneWorksAtATimeAndAnotherFollowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFlakyDocs()
		var mu sync.Mutex
		working, most, last := 0, 0, int64(0)
		var all sync.WaitGroup
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*8*ttl)
			defer cancel()
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				_ = leader(d, fmt.Sprint(i)).Lead(ctx, func(ctx context.Context, fence int64) error {
					mu.Lock()
					working++
					most, last = max(most, working), fence
					mu.Unlock()
					<-ctx.Done()
					mu.Lock()
					working--
					mu.Unlock()
					return nil
				})
			})
		}
		time.Sleep(3 * ttl)
		d.set(true, 0) // until the leader has lost the lease
		time.Sleep(2 * ttl)
		d.set(false, 0)
		all.Wait()
		if most != 1 || last < 3 {
			t.Errorf("%d worked at a time, the last with fence %d, want 1 and 3 at least", most, last)
		}
	})
}

func TestALeaderThatCannotTakeItsLeaseSaysSoOnceAndIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, log := observed()
		d := newFlakyDocs()
		d.set(true, 0)
		l := control.NewLeader(d, "work", "a", ttl, control.LeaderSettings{Log: log})
		ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
		defer cancel()
		go func() {
			time.Sleep(3 * ttl)
			if err := l.Ready(ctx); !errors.Is(err, errAway) {
				t.Errorf("it is ready: %v, want %v", err, errAway)
			}
			d.set(false, 0)
			time.Sleep(ttl)
			if err := l.Ready(ctx); err != nil {
				t.Errorf("while it leads it is not ready: %v", err)
			}
		}()
		_ = l.Lead(ctx, wait)
		var got []string
		for _, e := range logs.All() {
			got = append(got, e.Message)
		}
		if fmt.Sprint(got) != "[cannot lead, retrying can lead again leads]" {
			t.Errorf("logged %q", got)
		}
	})
}

func leader(d store.Docs, holder string) *control.Leader {
	return control.NewLeader(d, "work", holder, ttl, control.LeaderSettings{})
}

// leaderOf returns a leader whose clock is ahead of others.
func leaderOf(d store.Docs, ahead *atomic.Int64) *control.Leader {
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())).Round(0) }
	return control.NewLeader(d, "work", "a", ttl, control.LeaderSettings{Now: now})
}

func hold(t *testing.T, l *control.Leader) store.Lease {
	t.Helper()
	lease, err := l.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// wait is work that lasts until its context ends.
func wait(ctx context.Context, _ int64) error {
	<-ctx.Done()
	return ctx.Err()
}

// steal makes another contender take the lease, with a clock that is an hour ahead.
func steal(ctx context.Context, t *testing.T, d store.Docs) store.Lease {
	t.Helper()
	lease, err := store.Acquire(ctx, d, "work", "thief", time.Now().Add(time.Hour), ttl)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func handBack(ctx context.Context, t *testing.T, d store.Docs, lease store.Lease) {
	t.Helper()
	if err := store.Release(ctx, d, lease); err != nil {
		t.Fatal(err)
	}
}

// flakyDocs is a store that counts writes, and may be away or slow.
type flakyDocs struct {
	*storetest.Memory

	mu     sync.Mutex
	writes int
	away   bool
	slow   time.Duration
}

func newFlakyDocs() *flakyDocs { return &flakyDocs{Memory: storetest.NewMemory()} }

func (d *flakyDocs) set(away bool, slow time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away, d.slow = away, slow
}

func (d *flakyDocs) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes
}

// ask waits as a call does, and counts a call that writes.
func (d *flakyDocs) ask(ctx context.Context, writes int) error {
	d.mu.Lock()
	slow, away := d.slow, d.away
	d.mu.Unlock()
	if slow > 0 && !control.Sleep(ctx, slow) {
		return ctx.Err()
	}
	if away {
		return errAway
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes += writes
	return ctx.Err()
}

func (d *flakyDocs) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if err := d.ask(ctx, 0); err != nil {
		return store.Doc{}, err
	}
	return d.Memory.Doc(ctx, kind, key)
}

func (d *flakyDocs) CreateDoc(ctx context.Context, doc store.Doc) error {
	if err := d.ask(ctx, 1); err != nil {
		return err
	}
	return d.Memory.CreateDoc(ctx, doc)
}

func (d *flakyDocs) ReplaceDoc(ctx context.Context, doc store.Doc) (int64, error) {
	if err := d.ask(ctx, 1); err != nil {
		return 0, err
	}
	return d.Memory.ReplaceDoc(ctx, doc)
}

// crashing is the store of a process that crashes at its left-th write, before it or after, and does no call from then on.
type crashing struct {
	*flakyDocs

	done bool // the last write is done
	kill func()

	mu   sync.Mutex
	left int
	dead bool
}

func (c *crashing) write(do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return errAway
	}
	c.left--
	if c.left > 0 {
		return do()
	}
	c.dead = true
	c.kill()
	if c.done {
		_ = do()
	}
	return errAway
}

func (c *crashing) CreateDoc(ctx context.Context, doc store.Doc) error {
	return c.write(func() error { return c.flakyDocs.CreateDoc(context.WithoutCancel(ctx), doc) })
}

func (c *crashing) ReplaceDoc(ctx context.Context, doc store.Doc) (version int64, err error) {
	err = c.write(func() error {
		version, err = c.flakyDocs.ReplaceDoc(context.WithoutCancel(ctx), doc)
		return err
	})
	return version, err
}
