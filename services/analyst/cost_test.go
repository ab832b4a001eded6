package analyst_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/price"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise"
)

// Alarms on what a run costs.
const (
	tooExpensive = "[[alarms]]\nmetric = \"cost.amount\"\nabove = 5\nunit = \"USD\"\nnotify = [\"ops\"]\n"
	tooHungry    = "[[alarms]]\nmetric = \"energy.joules\"\nabove = 1000\nnotify = [\"ops\"]\n"
	moreCostly   = "[[alarms]]\nmetric = \"cost.amount\"\nwhen = \"regression\"\nmin_change = \"2%\"\nnotify = [\"ops\"]\n"
)

// pricedFixture is a fixture with a metrics-pusher, which knows that an m5.large costs 4 USD an hour.
type pricedFixture struct {
	*fixture

	summarised chan string // IDs of runs
}

func newPricedFixture(t *testing.T) pricedFixture {
	t.Helper()
	w := pricedFixture{newFixture(t).listen(), make(chan string, 1000)}
	parts := summarise.New(summarise.Settings{}, summarise.Deps{
		Bus: w.bus, Store: w.store, Prices: price.Table{"m5.large": "4 USD"}, Now: func() time.Time { return w.now }, Log: zap.NewNop(),
		Summarised: func(_ context.Context, r store.Run) error {
			w.summarised <- r.ID
			return nil
		},
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- parts["metrics-pusher/summarise/work"](ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

// bill runs the task, a day after the run before, on a machine for a time, with a GPU that takes some power for 10 seconds. It returns when the
// analyst has looked at what the run has cost.
func (w pricedFixture) bill(text, machine string, took time.Duration, watts float64) {
	w.t.Helper()
	w.now = begin.Add(time.Duration(w.runs) * day)
	w.runs++
	r, c := storetest.NewRun(fmt.Sprintf("r%02d", w.runs), w.now)
	started, ended := w.now, w.now.Add(took)
	r.Phase, r.Outcome, r.Started, r.Ended, r.Descriptor, r.Attempt = event.PhaseFinished, event.Succeeded, &started, &ended, text, 1
	r.Labels = map[string]string{store.LabelTask: "rates"}
	r.Machines = map[int][]event.MachineUse{1: {{Node: "a", InstanceType: machine, From: started, Until: ended}}}
	if err := errors.Join(w.store.PutRun(w.t.Context(), r, c), w.collect(r.ID, watts)); err != nil {
		w.t.Fatal(err)
	}
	w.now = ended.Add(time.Minute)
	ev := event.Finished{Header: event.NewHeader("f-"+r.ID, r.ID, r.Namespace, r.Owner, w.now), Outcome: event.Succeeded, Collectors: []string{"p"}}
	w.bus.PublishAndWait(ev)
	for id := range w.summarised {
		if id == r.ID {
			break
		}
	}
	w.bus.PublishAndWait(ev) // changes nothing, and waits for whoever delivers events
}

// collect stores all that the pod of a run brings: samples of the power of a GPU.
func (w pricedFixture) collect(run string, watts float64) error {
	var errs []error
	for _, stream := range []string{event.StreamMetrics, event.StreamOutput, event.StreamFIFO} {
		o := storetest.NewOrigin(run, "p")
		o.Kind, o.Attempt = stream, 1
		b := store.Samples{Origin: o, End: &event.End{}}
		for second := int64(0); stream == event.StreamMetrics && second <= 10; second++ {
			s := storetest.NewSample(second, "system.gpu.power", watts)
			s.Unit, s.Time, s.Labels = "W", second*1e9, map[string]string{"gpu": "0"}
			b.Samples = append(b.Samples, s)
		}
		b.End.Count = int64(len(b.Samples))
		errs = append(errs, w.store.AppendSamples(w.t.Context(), []store.Samples{b}))
		if stream == event.StreamOutput {
			errs = append(errs, w.store.AppendLines(w.t.Context(), []store.Lines{{Origin: o, End: &event.End{Last: -1}}}))
		}
	}
	return errors.Join(errs...)
}

// messages returns what the incidents say, by metric.
func (w *fixture) messages() map[string]string {
	w.t.Helper()
	all := make(map[string]string)
	for _, i := range docs[incident.Incident](w, store.KindIncident) {
		all[i.Rule.Metric] = i.Message
	}
	return all
}

func TestAnAlarmOnCostAndEnergyFiresOnceForARunThatTakesMoreOfBoth(t *testing.T) {
	w := newPricedFixture(t)
	text := descriptor(tooExpensive, tooHungry)
	w.bill(text, "m5.large", time.Hour, 50)
	w.bill(text, "m5.large", time.Hour, 50)
	want(t, "incidents of 4 USD and 500 J", nil, w.incidents())
	w.bill(text, "m5.large", 2*time.Hour, 200)
	w.bill(text, "m5.large", 2*time.Hour, 200)
	want(t, "incidents of 8 USD and 2,000 J", []string{"above cost.amount firing from r03", "above energy.joules firing from r03"}, w.incidents())
	want(t, "notices", []string{"ops firing 2 and 0 more"}, w.sizes())
	for metric, says := range map[string]string{"cost.amount": "8 USD", "energy.joules": "2000 J"} {
		if got := w.messages()[metric]; !strings.Contains(got, says) {
			t.Errorf("%s: %q, want %s", metric, got, says)
		}
	}
}

func TestARegressionOfTheCostNeedsNoDirectionInTheDescriptor(t *testing.T) {
	w := newPricedFixture(t)
	for i := range 25 {
		took := time.Hour + time.Duration(i*7%5)*10*time.Second
		if i >= 15 {
			took += 6 * time.Minute
		}
		w.bill(descriptor(moreCostly), "m5.large", took, 50)
	}
	want(t, "incidents", []string{"regression cost.amount firing from r16"}, w.incidents())
	want(t, "notices", []string{"ops firing 1 and 0 more"}, w.sizes())
}

func TestACostWithoutAPriceOpensNothingAndIsAbsentWithTheReason(t *testing.T) {
	w := newPricedFixture(t)
	for range 4 {
		w.bill(descriptor(tooExpensive), "x9.huge", 100*time.Hour, 50)
	}
	want(t, "incidents", nil, w.incidents())
	all, err := w.store.RunPoints(t.Context(), []string{"r01"}, []string{"cost.amount"})
	if err != nil || len(all) != 1 || len(all[0].Points) != 0 {
		t.Errorf("points %+v, %v, want none", all, err)
	}
	s, _, err := store.Get[store.Summaries](t.Context(), w.store, store.KindSummary, "r01")
	if err != nil {
		t.Fatal(err)
	}
	const reason = "the platform's settings have no price of instance type x9.huge"
	if len(s.Unknown) == 0 || s.Unknown[0].Metric != "cost.amount" || !strings.HasPrefix(s.Unknown[0].Reason, reason) {
		t.Errorf("unknown: %+v, want %s", s.Unknown, reason)
	}
}
