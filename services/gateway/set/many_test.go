package set_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// countingStore counts the documents that one gateway reads.
type countingStore struct {
	*storetest.Memory

	reads  map[store.Kind]int
	onRead func(store.Kind) // nil: nothing happens
}

// Doc implements store.Getter.
func (s *countingStore) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if s.reads[kind]++; s.onRead != nil {
		s.onRead(kind)
	}
	return s.Memory.Doc(ctx, kind, key)
}

// counted returns a gateway whose reads are counted.
func (w *fixture) counted() (*gateway, *countingStore) {
	s := &countingStore{Memory: w.store, reads: make(map[store.Kind]int)}
	return w.newGateway(s, w), s
}

// putMany creates sets with six cells each, of which one run at a time is active.
func (g *gateway) putMany(n int) (all []set.Set) {
	g.w.t.Helper()
	for i := range n {
		s, _, err := g.submit(submit.Request{Key: fmt.Sprint("many", i), Descriptor: []byte(descriptor("max_parallel = 1" + sixCells)), File: "f.toml"})
		if err != nil {
			g.w.t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func TestASetWhoseRunsGoOnNeedsNoPlan(t *testing.T) {
	w := newFixture(t)
	first := w.gateway()
	all := first.putMany(40)
	first.pass()
	if _, err := first.Cancel(t.Context(), "ann", all[1].ID, "ann"); err != nil {
		t.Fatal(err)
	}
	first.pass()
	w.wait(20 * time.Second) // the lease ends
	g, docs := w.counted()
	g.pass()
	g.pass()
	want(t, "plans that were read", docs.reads[store.KindSetRequest], 0)
	w.finish(w.active()[0], event.Succeeded)
	g.pass()
	g.pass()
	want(t, "plans that were read after the end of a run", docs.reads[store.KindSetRequest], 1)
	want(t, "runs", len(w.runs()), 41)
}

func TestThePlansOfManySetsAreReadOnce(t *testing.T) {
	w := newFixture(t)
	g, docs := w.counted()
	all := g.putMany(40)
	g.runToEnd(all[0].ID)
	g.pass()
	want(t, "runs", len(w.runs()), 240)
	want(t, "plans that were read", docs.reads[store.KindSetRequest], 40)
}

func TestThePlansThatWereUsedLastStayInMemory(t *testing.T) {
	w := newFixture(t)
	var all []set.Set
	for i := range 10 { // of which some fit into the memory for plans
		text := descriptor(sixCells) + strings.Repeat("# "+strings.Repeat("x", 97)+"\n", 2500)
		s, _, err := w.gateway().submit(submit.Request{Key: fmt.Sprint(i), Descriptor: []byte(text), File: "f.toml"})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	g, docs := w.counted()
	read := func(i int) bool {
		before := docs.reads[store.KindSetRequest]
		if _, _, err := g.Cells(t.Context(), all[i], "", 1); err != nil {
			t.Fatal(err)
		}
		return docs.reads[store.KindSetRequest] > before
	}
	for i := range all {
		if !read(i) {
			t.Errorf("plan %d was in memory before", i)
		}
		if read(0) || read(i) {
			t.Errorf("plan 0 or %d is not in memory after it was used", i)
		}
	}
	if !read(1) {
		t.Error("all plans are in memory, whatever their size")
	}
}

func TestAPassOverManySetsRenewsTheLease(t *testing.T) {
	w := newFixture(t)
	g, docs := w.counted()
	other := w.gateway()
	g.putMany(20)
	docs.onRead = func(kind store.Kind) {
		if kind == store.KindSet {
			w.wait(2 * time.Second)
		}
	}
	if _, err := g.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Reconcile(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Errorf("another gateway runs sets: %v", err)
	}
}

func TestAPassEndsWhenAnotherGatewayRunsSets(t *testing.T) {
	w := newFixture(t)
	g, docs := w.counted()
	other := w.gateway()
	g.putMany(20)
	g.pass()
	w.wait(2 * time.Second)
	docs.reads[store.KindSet] = 0
	docs.onRead = func(kind store.Kind) {
		if kind == store.KindSet && docs.reads[kind] == 5 {
			w.wait(20 * time.Second) // the process slept
			if _, err := other.Reconcile(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := g.Reconcile(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Errorf("the pass goes on: %v", err)
	}
	want(t, "sets that were read", docs.reads[store.KindSet], 5)
}

func TestAGatewayThatDoesNotRunSetsForgetsThoseThatItAccepted(t *testing.T) {
	w := newFixture(t)
	leader := w.gateway()
	g, docs := w.counted()
	first := leader.putMany(1)[0]
	leader.pass()
	for i := range 5 {
		if _, _, err := g.submit(submit.Request{Key: fmt.Sprint(i), Descriptor: []byte(descriptor(sixCells)), File: "f.toml"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Reconcile(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Fatalf("it runs sets: %v", err)
	}
	leader.runToEnd(first.ID)
	w.wait(2 * time.Minute)
	leader.pass() // the sets are closed
	leader.putMany(2)
	leader.pass()
	w.wait(20 * time.Second) // the lease ends
	docs.reads[store.KindSet] = 0
	if _, err := g.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "sets that were read", docs.reads[store.KindSet], 1)
}

// The sets are finished and closed before a list of the store has shown them to the gateway.
func TestAGatewayForgetsASetThatNoListHasShownItInTime(t *testing.T) {
	w := newFixture(t)
	leader := w.gateway()
	g, docs := w.counted()
	first := leader.putMany(1)[0]
	leader.pass()
	if _, _, err := g.submit(submit.Request{Key: "k", Descriptor: []byte(descriptor(sixCells)), File: "f.toml"}); err != nil {
		t.Fatal(err)
	}
	leader.runToEnd(first.ID)
	w.wait(2 * time.Minute)
	leader.pass() // the sets are closed
	w.wait(20 * time.Second)
	docs.reads[store.KindSet] = 0
	if _, err := g.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "sets that were read", docs.reads[store.KindSet], 0)
}

// A gateway keeps the values that it has read only as long as it runs the sets.
func TestAGatewayThatRunsSetsNoMoreForgetsTheirValues(t *testing.T) {
	w := newFixture(t)
	g, docs := w.counted()
	s := g.put(stopDescriptor("max_parallel = 2\n" + stopWhen))
	for range 7 {
		g.pass()
		w.finishRuns(event.Succeeded)
		w.summariseEnded("latency", recorded)
	}
	g.pass()
	if len(g.get(s.ID).Open) == 0 || docs.reads[store.KindSummary] == 0 {
		t.Fatalf("nothing was measured: %s", summary(g.get(s.ID)))
	}
	before := docs.reads[store.KindSummary]
	w.wait(20 * time.Second)
	other := w.gateway()
	other.pass()
	if _, err := g.Reconcile(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Fatalf("it runs sets: %v", err)
	}
	w.wait(20 * time.Second)
	w.finishRuns(event.Succeeded)
	w.summariseEnded("latency", recorded)
	g.pass()
	if n := docs.reads[store.KindSummary]; n < before+before/2 {
		t.Errorf("%d summaries were read after %d", n, before)
	}
}
