package set_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// notifying is a descriptor whose end is of interest.
func notifying(sweep string) string {
	return strings.Replace(descriptor(sweep), "[info]\n", "[info]\nnotify = [\"perf\"]\n", 1)
}

// ends describes the notices of ends, one a line.
func (w *fixture) ends() string {
	w.t.Helper()
	var all []string
	for d, err := range store.All[notice.Delivery](w.t.Context(), w.store, store.KindDelivery, "") {
		if err != nil {
			w.t.Fatal(err)
		}
		e := d.Value.Notice.Ends[0]
		all = append(all, fmt.Sprintf("%s %s: %s %s %v %q", d.Value.Notice.Receiver, d.Value.Status, e.Task, e.Outcome, e.Runs, e.Message))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestTheEndOfASetIsNotifiedOfOnce(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(notifying(sixCells))
	g.pass()
	want(t, "notices before the end", w.ends(), "")
	g.runToEnd(s.ID)
	for range 3 {
		g.pass()
	}
	w.wait(2 * time.Minute)
	g.pass()
	want(t, "notices", w.ends(), "perf waiting: t succeeded {6 0 0} \"\"\nto-ann waiting: t succeeded {6 0 0} \"\"")
}

func TestANoticeOfASetSaysWhyItFailed(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	g.put(notifying("[sweep.product]\nsize = [\"1K\"]\nn = [1]"))
	g.pass()
	w.finishRuns(event.Failed)
	g.pass()
	g.pass()
	want(t, "notices", w.ends(), "perf waiting: t failed {0 1 0} \"the first failure is in cell size=1K,n=1: it ended\"\n"+
		"to-ann waiting: t failed {0 1 0} \"the first failure is in cell size=1K,n=1: it ended\"")
}

func TestEachEndOfASetThatIsResumedIsNotifiedOf(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(notifying("max_parallel = 2" + sixCells))
	g.pass()
	canceled := "perf waiting: t canceled {0 0 2} \"\"\nto-ann waiting: t canceled {0 0 2} \"\""
	if _, err := g.Cancel(t.Context(), "ann", s.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	g.runToEnd(s.ID)
	g.pass()
	want(t, "notices of the first end", w.ends(), canceled)
	if _, err := g.Resume(t.Context(), "ann", s.ID); err != nil {
		t.Fatal(err)
	}
	g.pass()
	want(t, "notices while the set goes on", w.ends(), canceled)
	g.runToEnd(s.ID)
	for _, other := range []*gateway{g, w.gateway()} {
		w.wait(20 * time.Second)
		other.pass()
	}
	want(t, "notices of both ends", w.ends(), "perf waiting: t canceled {0 0 2} \"\"\nperf waiting: t canceled {4 0 2} \"\"\n"+
		"to-ann waiting: t canceled {0 0 2} \"\"\nto-ann waiting: t canceled {4 0 2} \"\"")
}

func TestTheEndOfASetIsNotifiedOfWhereverAGatewayDies(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		dying := w.crashingGateway(p)
		_, _, _ = dying.submit(submit.Request{Key: "k", Descriptor: []byte(notifying("[sweep.product]\nsize = [\"1K\"]\nn = [1]"))})
		for range 4 {
			_, _ = dying.Reconcile(t.Context())
			w.finishRuns(event.Succeeded)
			w.wait(2 * time.Second)
		}
		g := w.gateway()
		if _, _, err := g.submit(submit.Request{Key: "k", Descriptor: []byte(notifying("[sweep.product]\nsize = [\"1K\"]\nn = [1]"))}); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			w.wait(time.Minute)
			g.pass()
			w.finishRuns(event.Succeeded)
		}
		want(t, p.String(), w.ends(), "perf waiting: t succeeded {1 0 0} \"\"\nto-ann waiting: t succeeded {1 0 0} \"\"")
	}
}
