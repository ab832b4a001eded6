package schedule_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// suiteOf returns a suite of two cells with that cron rule, which never makes two sets at a
// time.
func suiteOf(cron string) string {
	one, _, _ := strings.Cut(descriptor("single_run", ""), "[schedule]")
	text := fmt.Sprintf("[suite]\nname = \"nightly\"\nscheduling = %q\n[suite.schedule]\nconcurrency = \"forbid\"\n", cron)
	for _, name := range []string{"a", "b"} {
		text += fmt.Sprintf("[[suite.entries]]\nname = %q\ndescriptor = \"one.toml\"\n", name)
	}
	return text + "[[suite.descriptors]]\nname = \"one.toml\"\ntext = " + strconv.Quote(one) + "\n"
}

func TestAFiringOfASuiteIsOneSet(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put("n", suiteOf("*/10 * * * *"))
	g.reconcileAt("10:00")
	g.reconcileAt("10:10")
	want(t, "history", history(t, g, s.ID), "10:10 Overlap missed\n10:00 set running missed")
	g.runSets()
	g.reconcileAt("10:20")
	g.runSets()
	want(t, "fired", g.firedSets(), "10:00 finished, 10:20 finished")
	for _, one := range g.allSets() {
		if one.Schedule != s.ID || one.Entries != 2 || one.Labels["suite"] != "nightly" || one.Outcome != event.Succeeded {
			t.Errorf("set %+v", one)
		}
	}
	for _, run := range w.setRuns() {
		if run.Cell != "a" && run.Cell != "b" || run.File != "one.toml" || run.Schedule != "" {
			t.Errorf("run %+v", run)
		}
	}
}

// A gateway crashes before or after each of its effects, and another gateway continues.
func TestAFiringOfASuiteIsOneSetWhereverItsGatewayDies(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.gateway().put("n", suiteOf("*/10 * * * *"))
		w.setClock("10:00")
		_, _ = w.crashingGateway(p).Reconcile(t.Context()) // the gateway may crash
		w.setClock("10:00:20")
		second := w.gateway()
		_, _ = second.Reconcile(t.Context()) // the crashed gateway may still hold the lease
		second.reconcileAt("10:00:40")
		second.runSets()
		want(t, p.String(), second.firedSets(), "10:00 finished")
		want(t, p.String()+": runs", fmt.Sprint(len(w.setRuns())), "2")
	}
}
