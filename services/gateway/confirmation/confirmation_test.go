package confirmation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/confirm"
	"github.com/benchmark-ai/bai/services/gateway/confirmation"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/points"
)

func want[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// sides describes the runs that were made, in order.
func (w *fixture) sides() string {
	w.t.Helper()
	var all []string
	for _, r := range w.made() {
		all = append(all, map[string]string{oldRun: "old", newRun: "new"}[r.RerunOf])
	}
	return strings.Join(all, " ")
}

// wantedSides is the order of the first runs of the request.
func wantedSides(n int) string {
	var all []string
	for i := range n {
		all = append(all, string(confirm.SideOf("request", i)))
	}
	return strings.Join(all, " ")
}

func TestPairsAreMadeOneRunAfterTheOtherUntilAllAreThere(t *testing.T) {
	w := newFixture(t)
	g := w.gateway(crashtest.New(0, false))
	w.ask("incident")
	for n := range 10 {
		for range 3 {
			w.pass(g)
		}
		want(t, "active", 1, len(w.active()))
		want(t, "made", n+1, len(w.made()))
		w.finish(event.Succeeded)
	}
	w.pass(g)
	w.pass(g)
	want(t, "sides", wantedSides(10), w.sides())
	p, _ := w.progress()
	want(t, "done", "all 5 pairs are there", p.Done)
	want(t, "gaps", []string{"new edition: the folder at /folder may have other files by now", "old edition: the folder at /folder may have other files by now"}, sorted(p.Gaps))
}

func sorted(all []string) []string {
	if len(all) == 2 && all[0] > all[1] {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

func TestARunIsRepeatedAsItWas(t *testing.T) {
	w := newFixture(t)
	g := w.gateway(crashtest.New(0, false))
	w.ask("incident")
	w.pass(g)
	r := w.made()[0]
	n := 1
	if confirm.SideOf("request", 0) == incident.SideOld {
		n = 0
	}
	want(t, "descriptor", strings.NewReplacer(
		"registry:5000/team/app:1", "registry:5000/team/app@sha256:"+strings.Repeat(fmt.Sprint(n), 64),
		"path = \"/set\"\n", "path = \"/set\"\nsha256 = \""+strings.Repeat("a", 64)+"\"\n").Replace(fmt.Sprintf(descriptor, n+1)), r.Descriptor)
	want(t, "labels", map[string]string{"task_name": "sums", "version": fmt.Sprint("v", n+1), "commit": "abc", "confirms": "incident"}, r.Labels)
	want(t, "lineage", event.Lineage{RerunOf: []string{oldRun, newRun}[n], Confirms: "incident"}, r.Lineage)
	want(t, "team and owner", []string{"perf", "ann"}, []string{r.Namespace, r.Owner})
	sub, _, err := store.Get[event.Submitted](t.Context(), w.store, store.KindSubmission, r.ID)
	if err != nil || sub.Bundle == nil || sub.Bundle.SHA256 != strings.Repeat("c", 64) {
		t.Errorf("the code: %+v, %v", sub.Bundle, err)
	}
}

func TestAPairOfWhichARunFailsIsMadeAgainAsFarAsRunsAreLeft(t *testing.T) {
	w := newFixture(t)
	g := w.gateway(crashtest.New(0, false))
	w.ask("incident")
	for n := range 20 {
		w.pass(g)
		outcome := event.Succeeded
		if n%2 == 0 {
			outcome = event.Failed
		}
		w.finish(outcome)
	}
	p, _ := w.progress()
	if len(w.made()) != 11 || p.Done != "no pair is left of max_runs = 12" {
		t.Errorf("%d runs, %q", len(w.made()), p.Done)
	}
}

func TestWhatCannotBeRepeatedIsSaidAndNoRunIsMade(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(w *fixture)
		want   string
	}{
		"the code is gone": {func(w *fixture) { w.noScript = true }, "is not kept here, or not any more"},
		"the runs are gone": {func(w *fixture) {
			_, err := store.Update(w.t.Context(), w.store, store.KindConfirmation, "perf/request", func(r confirm.Request, _ bool) (confirm.Request, bool, error) {
				r.Old, r.New = "gone", "gone"
				return r, true, nil
			})
			if err != nil {
				w.t.Fatal(err)
			}
		}, "run gone does not exist any more"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			g := w.gateway(crashtest.New(0, false))
			w.ask("incident")
			tt.change(w)
			w.pass(g)
			w.pass(g)
			if p, _ := w.progress(); !strings.Contains(p.Done, tt.want) || len(w.made()) > 0 {
				t.Errorf("%q, %d runs", p.Done, len(w.made()))
			}
		})
	}
}

func TestNothingIsLeftOnceNobodyWaits(t *testing.T) {
	w := newFixture(t)
	g := w.gateway(crashtest.New(0, false))
	w.ask("incident")
	w.pass(g)
	w.finish(event.Succeeded)
	w.pass(g)
	w.ask()
	w.pass(g)
	w.finish(event.Succeeded)
	made := w.made()
	want(t, "outcomes", []event.Outcome{event.Succeeded, event.Canceled}, []event.Outcome{made[0].Outcome, made[1].Outcome})
	if _, found := w.progress(); found {
		t.Error("the progress is left")
	}
	if docs, err := w.store.Docs(t.Context(), store.KindConfirmation, "", 10); err != nil || len(docs) > 0 {
		t.Errorf("left: %v, %v", docs, err)
	}
	w.ask("incident")
	for range 20 {
		w.pass(g)
		w.finish(event.Succeeded)
	}
	p, _ := w.progress()
	want(t, "runs that are asked for again", made[0].ID, p.Runs[0].Run)
	want(t, "all runs, with the pair that was given up", 12, len(w.made()))
}

// drive makes passes of a gateway that may be killed, then of another one, and ends the runs.
func (w *fixture) drive(p *crashtest.Process, passes int) {
	w.t.Helper()
	dying := w.gateway(p)
	for n := 0; n < passes && !p.Dead(); n++ {
		_ = dying.Reconcile(w.t.Context()) // the process may be killed
		if !p.Dead() {
			w.finish(event.Succeeded)
		}
	}
	w.now = w.now.Add(20 * time.Second) // the lease ends
}

func TestEachRunIsMadeOnceWhereverAGatewayIsKilled(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.ask("incident")
		w.drive(p, 12)
		w.drive(crashtest.New(0, false), 12)
		want(t, p.String(), wantedSides(10), w.sides())
		if got, _ := w.progress(); got.Done != "all 5 pairs are there" {
			t.Errorf("%s: %q", p, got.Done)
		}
	}
}

func TestTwoGatewaysThatBothHoldTheLeaseMakeEachRunOnce(t *testing.T) {
	w := newFixture(t)
	w.ask("incident")
	both := []*confirmation.Runner{
		w.newGateway(storetest.PrivateLeases{Memory: w.store, Suffix: "a"}, w), w.newGateway(storetest.PrivateLeases{Memory: w.store, Suffix: "b"}, w),
	}
	for range 15 {
		var all sync.WaitGroup
		for _, g := range both {
			all.Go(func() { _ = g.Reconcile(t.Context()) }) // the slower one loses the race
		}
		all.Wait()
		want(t, "active", true, len(w.active()) <= 1)
		w.finish(event.Succeeded)
	}
	want(t, "sides", wantedSides(10), w.sides())
}

func TestNoRunGoesOnOnceNobodyWaitsWhereverAGatewayIsKilled(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.ask("incident")
		dying := w.gateway(p)
		_ = dying.Reconcile(t.Context()) // the process may be killed
		w.ask()
		_ = dying.Reconcile(t.Context())
		w.now = w.now.Add(20 * time.Second)
		g := w.gateway(crashtest.New(0, false))
		for range 2 {
			w.pass(g)
		}
		for _, r := range w.active() {
			if r.Phase != event.PhaseCanceling {
				t.Errorf("%s: a run is %s", p, r.Phase)
			}
		}
		for _, kind := range []store.Kind{store.KindConfirmation, store.KindConfirmationRuns} {
			if docs, err := w.store.Docs(t.Context(), kind, "", 10); err != nil || len(docs) > 0 {
				t.Errorf("%s: left: %v, %v", p, docs, err)
			}
		}
	}
}

func TestBothRunsOfAPairPreferOneNodeAndPairsPreferOthers(t *testing.T) {
	w := newFixture(t)
	g := w.gateway(crashtest.New(0, false))
	w.ask("incident")
	for n := range 6 {
		w.pass(g)
		w.node = fmt.Sprint("node-", n/2)
		w.finish(event.Succeeded)
	}
	var got []string
	for _, r := range w.made() {
		if r.Nodes == nil {
			r.Nodes = &event.NodePreference{}
		}
		got = append(got, fmt.Sprintf("on %v, not on %v", r.Nodes.On, r.Nodes.NotOn))
	}
	want(t, "nodes", []string{
		"on [], not on []", "on [node-0], not on []", "on [], not on [node-0]", "on [node-1], not on []", "on [], not on [node-0 node-1]", "on [node-2], not on []",
	}, got)
}

// spent stores what a run cost, in dollars.
func (w *fixture) spent(run string, amount float64) {
	w.t.Helper()
	r, err := w.store.Run(w.t.Context(), run)
	if err != nil {
		w.t.Fatal(err)
	}
	v := store.Float(amount)
	all := &store.Summaries{Run: run, Complete: true, Summaries: []store.Summary{{
		Metric: descriptors.CostAmount, Unit: "USD", N: 1, Min: v, Max: v, Median: v, P90: v, P95: v, P99: v, Mean: v, First: v, Last: v, Direction: event.Lower,
	}}}
	if err := w.store.PutPoints(w.t.Context(), points.Of(r, points.Results{Summaries: all, Revision: 1})); err != nil {
		w.t.Fatal(err)
	}
}

func TestRunsEndWhereTheirCostWouldPassTheLimit(t *testing.T) {
	w := newFixture(t)
	g := w.gateway(crashtest.New(0, false))
	w.ask("incident")
	w.limit("7 USD")
	w.spent(oldRun, 2)
	w.spent(newRun, 2)
	for range 6 {
		w.pass(g)
		w.finish(event.Succeeded)
	}
	p, _ := w.progress()
	if len(w.made()) != 2 || p.Done != "a further pair costs about 4 USD, the runs before it about 4 USD, and max_cost is 7 USD" || strings.Contains(fmt.Sprint(p.Gaps), "max_cost") {
		t.Errorf("%d runs, %q, %q", len(w.made()), p.Done, p.Gaps)
	}
}

func TestALimitOfCostWithoutAPriceIsNotKeptAndSaysSo(t *testing.T) {
	w := newFixture(t)
	g := w.gateway(crashtest.New(0, false))
	w.ask("incident")
	w.limit("7 USD")
	for range 12 {
		w.pass(g)
		w.finish(event.Succeeded)
	}
	p, _ := w.progress()
	if len(w.made()) != 10 || !slices.ContainsFunc(p.Gaps, func(gap string) bool { return strings.Contains(gap, "max_cost = 7 USD is not kept") }) {
		t.Errorf("%d runs, %q, %q", len(w.made()), p.Done, p.Gaps)
	}
}

// limit gives the request a limit of cost.
func (w *fixture) limit(cost string) {
	w.t.Helper()
	_, err := store.Update(w.t.Context(), w.store, store.KindConfirmation, "perf/request", func(r confirm.Request, found bool) (confirm.Request, bool, error) {
		r.MaxCost = cost
		return r, found, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// slowStore is a store in which time passes whenever a request is read.
type slowStore struct {
	*storetest.Memory

	onRead func()
}

// Doc implements store.Getter.
func (s slowStore) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if kind == store.KindConfirmation {
		s.onRead()
	}
	return s.Memory.Doc(ctx, kind, key)
}

func TestAPassOverManyRequestsRenewsTheLease(t *testing.T) {
	w := newFixture(t)
	for i := range 30 {
		r := confirm.Request{ID: fmt.Sprint("request", i), Namespace: "perf", Incidents: []string{"i"}, First: "i", Old: oldRun, New: newRun, Pairs: 1, MaxRuns: 2, Deadline: w.now.Add(time.Hour)}
		if err := store.Create(t.Context(), w.store, store.KindConfirmation, fmt.Sprint("perf/request", i), r); err != nil {
			t.Fatal(err)
		}
	}
	w.pass(w.newGateway(slowStore{w.store, func() { w.now = w.now.Add(2 * time.Second) }}, w))
	if err := w.gateway(crashtest.New(0, false)).Reconcile(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Errorf("another gateway makes runs: %v", err)
	}
}
