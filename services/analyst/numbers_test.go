package analyst_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// noNumber makes the points of a run those of samples that are all NaN.
func noNumber(p *store.RunPoints) {
	nan := store.Float(math.NaN())
	for i, s := range p.Points {
		p.Points[i] = store.Summary{
			Metric: s.Metric, Unit: s.Unit, Labels: s.Labels, Direction: s.Direction,
			Min: nan, Max: nan, Median: nan, P90: nan, P95: nan, P99: nan, Mean: nan, First: nan, Last: nan,
		}
	}
}

func TestARunWithoutANumberHasNoValueAndDelaysNoOtherTask(t *testing.T) {
	w := newFixture(t)
	other := strings.Replace(descriptor(silence), `"rates"`, `"zeta"`, 1)
	w.deliver(nil, w.put(other, 120, func(r *store.Run) { r.Labels = map[string]string{store.LabelTask: "zeta"} }))
	w.deliver(nil, w.put(descriptor(silence), 120))
	w.deliver(nil, w.changed(descriptor(silence), 1, noNumber))
	w.now = begin.Add(3 * day)
	w.tick()
	var got []string
	for _, i := range docs[incident.Incident](w, store.KindIncident) {
		got = append(got, i.Series.Task+" "+string(i.State)+" since "+i.LastGood.Run)
	}
	if diff := cmp.Diff(map[string]bool{"rates firing since r02": true, "zeta firing since r01": true}, setOf(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.deliver(nil, w.changed(descriptor(silence), 1, noNumber))
	want(t, "after another such run", []string{"missing rate firing from no run", "missing rate firing from no run"}, w.incidents())
	w.deliver(nil, w.put(descriptor(silence), 121))
	want(t, "after a value", []string{"missing rate firing from no run", "missing rate resolved from no run"}, w.incidents())
}

// brokenSeries is a store in which the series of one task cannot be listed.
type brokenSeries struct {
	analyst.Store

	task string
}

// Series implements store.PointReader.
func (b brokenSeries) Series(ctx context.Context, q store.SeriesQuery, cursor string, limit int) ([]store.Series, string, error) {
	if q.Task == b.task {
		return nil, "", errors.New("the shard is away")
	}
	return b.Store.Series(ctx, q, cursor, limit)
}

func TestATaskThatCannotBeLookedAtDelaysNoMissingValuesOfOthers(t *testing.T) {
	w := newFixture(t)
	for _, task := range []string{"alpha", "rates"} {
		text := strings.Replace(descriptor(silence), `"rates"`, `"`+task+`"`, 1)
		w.deliver(nil, w.put(text, 120, func(r *store.Run) { r.Labels = map[string]string{store.LabelTask: task} }))
	}
	w.now = begin.Add(3 * day)
	if err := analyst.Tick(t.Context(), w.deps(brokenSeries{w.store, "alpha"})); err == nil || !strings.Contains(err.Error(), `task "pets/alpha"`) {
		t.Errorf("the clock has error %v", err)
	}
	want(t, "incidents", []string{"missing rate firing from no run"}, w.incidents())
}

func setOf(all []string) map[string]bool {
	set := make(map[string]bool)
	for _, s := range all {
		set[s] = true
	}
	return set
}

func TestTheNewestValueIsFoundInWhicheverSeriesHasIt(t *testing.T) {
	w := newFixture(t)
	of := func(name string, change func(*store.RunPoints)) func(*store.RunPoints) {
		return func(p *store.RunPoints) {
			p.Points[0].Labels = map[string]string{"n": name}
			change(p)
		}
	}
	number := func(*store.RunPoints) {}
	w.deliver(nil, w.changed(descriptor(silence), 120, of("a", number)))
	w.deliver(nil, w.changed(descriptor(silence), 120, of("b", number)))
	w.deliver(nil, w.changed(descriptor(silence), 1, of("a", noNumber)))
	w.now = begin.Add(2*day + time.Hour)
	w.tick()
	want(t, "in time", nil, w.incidents())
	w.now = begin.Add(2*day + 3*time.Hour)
	w.tick()
	want(t, "late", []string{"missing rate firing from no run"}, w.incidents())
}

func TestAScheduledRunWithoutANumberIsMissedAtOnce(t *testing.T) {
	w := newFixture(t).listen()
	w.schedule(false)
	w.run(descriptor(nightly), 120, fired)
	ev := w.changed(descriptor(nightly), 1, noNumber)
	r, err := w.store.Run(t.Context(), ev.Run)
	if err != nil {
		t.Fatal(err)
	}
	fired(&r)
	r.Revision++
	if err := w.store.PutRun(t.Context(), r, store.Change{Run: r.ID, Revision: r.Revision, Event: "fired", Time: w.now, Phase: r.Phase}); err != nil {
		t.Fatal(err)
	}
	w.bus.PublishAndWait(ev)
	want(t, "incidents", []string{"missing rate firing from no run"}, w.incidents())
}

func TestAnIncidentThatCannotBeStoredIsAFaultOfItsSeriesAndStopsNoOther(t *testing.T) {
	w := newFixture(t)
	core, logs := observer.New(zap.ErrorLevel)
	d := w.deps(w.store)
	d.Log = zap.New(core)
	step := analyst.Summarised(d, func(in rule.Input) rule.Output {
		out := rule.Decide(in)
		if in.Rule.When == incident.Below {
			for i := range out.Incidents {
				out.Incidents[i].After = math.NaN()
			}
		}
		return out
	})
	first := strings.Replace(atOnce(tooSlow), "below = 100", "above = 80", 1)
	for range 3 {
		if _, err := step(t.Context(), w.put(descriptor(atOnce(tooSlow), first), 90)); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "incidents", []string{"above rate firing from r01"}, w.incidents())
	want(t, "notices", []string{"ops firing 1 and 0 more", "perf firing 1 and 0 more"}, w.sizes())
	if n := len(docs[any](w, store.KindOpenIncident)); n != 1 {
		t.Errorf("%d incidents are listed as open", n)
	}
	if n := logs.FilterMessage("a series cannot be analysed").Len(); n != 1 {
		t.Errorf("the fault is logged %d times: %v", n, logs.All())
	}
}
