package analyst_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// slower asks for regressions.
const slower = "[[alarms]]\nmetric = \"rate\"\nwhen = \"regression\"\nmin_change = \"2%\"\nnotify = [\"ops\"]\n"

// changed stores the next run as put does, with points that are changed, and returns the event that they are stored.
func (w *fixture) changed(text string, value float64, change func(*store.RunPoints)) event.Summarised {
	w.t.Helper()
	ev := w.put(text, value)
	all, err := w.store.RunPoints(w.t.Context(), []string{ev.Run}, nil)
	if err != nil || len(all) != 1 {
		w.t.Fatalf("%d runs: %v", len(all), err)
	}
	change(&all[0])
	all[0].Revision++
	if err := w.store.PutPoints(w.t.Context(), all[0]); err != nil {
		w.t.Fatal(err)
	}
	ev.Revision = all[0].Revision
	return ev
}

// level publishes a number of runs whose values are about a level, with some noise.
func (w *fixture) level(n int, about float64, change func(*store.RunPoints)) {
	w.t.Helper()
	for i := range n {
		w.bus.PublishAndWait(w.changed(descriptor(slower), about+float64(i*7%5)/5, change))
	}
}

// version gives points a version.
func version(v string) func(*store.RunPoints) {
	return func(p *store.RunPoints) { p.Version = v }
}

// sizes returns the receiver, the transition and the number of incidents of each notice.
func (w *fixture) sizes() (all []string) {
	w.t.Helper()
	for _, d := range docs[notice.Delivery](w, store.KindDelivery) {
		all = append(all, fmt.Sprintf("%s %s %d and %d more", d.Notice.Receiver, d.Notice.Became, len(d.Notice.Incidents), d.Notice.More))
	}
	slices.Sort(all)
	return all
}

// wantCause reports incidents that are not one with a state and a cause.
func (w *fixture) wantCause(state incident.State, cause incident.Cause) {
	w.t.Helper()
	all := docs[incident.Incident](w, store.KindIncident)
	for _, i := range all {
		if i.State != state || i.Cause != cause {
			w.t.Errorf("incident %s is %s, cause %s: %q", i.ID, i.State, i.Cause, i.Reasons)
		}
	}
	if len(all) != 1 {
		w.t.Errorf("%d incidents", len(all))
	}
}

// spread gives a run a number of series with the value of its first one.
func spread(n int) func(*store.RunPoints) {
	return func(p *store.RunPoints) {
		s := p.Points[0]
		p.Points = nil
		for i := range n {
			s.Labels = map[string]string{"n": fmt.Sprint(i)}
			p.Points = append(p.Points, s)
		}
	}
}

func TestTwoMetricsOfARunThatRegressAreOneNotice(t *testing.T) {
	w := newFixture(t).listen()
	const alarm = "[[alarms]]\nmetric = %q\nbelow = 100\nnotify = [\"ops\"]\n"
	for _, rate := range []float64{120, 121, 122, 90, 91} {
		w.bus.PublishAndWait(w.changed(descriptor(fmt.Sprintf(alarm, "rate"), fmt.Sprintf(alarm, "speed")), rate, func(p *store.RunPoints) {
			s := p.Points[0]
			s.Metric = "speed"
			p.Points = append(p.Points, s)
		}))
	}
	want(t, "notices", []string{"ops firing 2 and 0 more"}, w.sizes())
}

func TestARunThatRegressesIn500MetricsIsOneNotice(t *testing.T) {
	w := newFixture(t).listen()
	for _, rate := range []float64{120, 90} {
		w.bus.PublishAndWait(w.changed(descriptor(atOnce(tooSlow)), rate, spread(500)))
	}
	want(t, "notices", []string{"ops firing 10 and 490 more", "perf firing 10 and 490 more"}, w.sizes())
}

// history stores the points of a number of days after a run, of which the first ones are about a level and the others about another.
func (w *fixture) history(after string, days, first int, about, then float64) {
	w.t.Helper()
	all, err := w.store.RunPoints(w.t.Context(), []string{after}, nil)
	if err != nil || len(all) != 1 {
		w.t.Fatalf("%d runs: %v", len(all), err)
	}
	p, level := all[0], about
	for n := range days {
		if n == first {
			level = then
		}
		v := store.Float(level + float64(n*7%5)/5)
		p.Run, p.Time, p.Points = fmt.Sprintf("h%03d", n), begin.Add(time.Duration(w.runs)*day), slices.Clone(p.Points)
		p.Points[0].Median, p.Points[0].Min, p.Points[0].Max, p.Points[0].Mean = v, v, v, v
		if err := w.store.PutPoints(w.t.Context(), p); err != nil {
			w.t.Fatal(err)
		}
		w.runs++
	}
}

func TestAnotherDetectorOverTheHistoryOfAYearNotifiesNobody(t *testing.T) {
	w := newFixture(t)
	d := w.deps(w.store)
	old := analyst.Summarised(d, func(rule.Input) rule.Output { return rule.Output{} })
	first := w.changed(descriptor(slower), 100, version("v1"))
	if _, err := old(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.history(first.Run, 365, 100, 100, 92)
	if _, err := analyst.Summarised(d, rule.Decide)(t.Context(), w.changed(descriptor(slower), 92, version("v1"))); err != nil {
		t.Fatal(err)
	}
	all := docs[incident.Incident](w, store.KindIncident)
	for _, i := range all {
		if !i.Silent {
			t.Errorf("incident %s is %s, and not silent", i.ID, i.State)
		}
	}
	if len(all) != 1 {
		t.Errorf("%d incidents", len(all))
	}
	want(t, "notices", nil, w.sizes())
}

func TestAFasterMachineIsNoAlarm(t *testing.T) {
	w := newFixture(t).listen()
	w.level(15, 100, func(p *store.RunPoints) { p.Machine = "0a" })
	w.level(15, 92, func(p *store.RunPoints) { p.Machine = "0b" })
	want(t, "incidents", nil, w.incidents())
	want(t, "notices", nil, w.sizes())
}

func TestOtherDataAreAChangeOfTheMethod(t *testing.T) {
	w := newFixture(t).listen()
	w.level(15, 100, func(p *store.RunPoints) { p.Version, p.Data = "v1", "0a" })
	w.level(10, 92, func(p *store.RunPoints) { p.Version, p.Data = "v2", "0b" })
	w.wantCause(incident.Firing, incident.CauseMethod)
}

func TestAVersionThatIsTakenBackEndsItsIncident(t *testing.T) {
	w := newFixture(t).listen()
	w.level(15, 100, version("v1"))
	w.level(10, 92, version("v2"))
	w.wantCause(incident.Firing, incident.CauseRegression)
	w.level(4, 100, version("v3"))
	w.wantCause(incident.Resolved, incident.CauseRegression)
	want(t, "notices", []string{"ops firing 1 and 0 more", "ops resolved 1 and 0 more"}, w.sizes())
}

func TestOneSlowRunNotifiesNobody(t *testing.T) {
	w := newFixture(t).listen()
	w.level(15, 100, version("v1"))
	w.level(1, 92, version("v1"))
	w.level(10, 100, version("v1"))
	want(t, "notices", nil, w.sizes())
}

// moved asks for changes in both directions.
const moved = "[[alarms]]\nmetric = \"rate\"\nwhen = \"change\"\nmin_change = \"2%\"\nnotify = [\"ops\"]\n"

// stray runs a task whose values are about a level but for some in the middle.
func (w *fixture) stray(values ...float64) {
	w.t.Helper()
	w.level(15, 100, version("v1"))
	for _, v := range values {
		w.level(1, v, version("v1"))
	}
	w.level(15, 100, version("v1"))
}

func TestASpikeNotifiesNobody(t *testing.T) {
	w := newFixture(t).listen()
	w.stray(40)
	want(t, "notices", nil, w.sizes())
}

func TestTwoSlowRunsInARowNotifyNobody(t *testing.T) {
	w := newFixture(t).listen()
	w.stray(80, 81)
	want(t, "notices", nil, w.sizes())
}

func TestFourSlowRunsInARowNotifyNobody(t *testing.T) {
	w := newFixture(t).listen()
	w.stray(80, 81, 79, 80)
	want(t, "notices", nil, w.sizes())
}

func TestTheSecondRunOfATaskOpensNothing(t *testing.T) {
	for _, alarm := range []string{slower, moved} {
		w := newFixture(t).listen()
		w.run(descriptor(alarm), 100)
		w.run(descriptor(alarm), 10)
		want(t, "incidents", nil, w.incidents())
		want(t, "notices", nil, w.sizes())
	}
}

func TestAnImprovementIsANoticeOnlyIfTheAlarmIsOfChanges(t *testing.T) {
	for alarm, notices := range map[string][]string{slower: nil, moved: {"ops firing 1 and 0 more"}} {
		w := newFixture(t).listen()
		for i := range 25 {
			rate := 100 + float64(i*7%5)/5
			if i >= 15 {
				rate += 8
			}
			w.run(descriptor(alarm), rate)
		}
		want(t, "notices", notices, w.sizes())
	}
}

func TestARemovedThresholdEndsItsIncidentAndIsHeardOfNoMore(t *testing.T) {
	w := newFixture(t).listen()
	w.slow()
	for range 5 {
		w.run(descriptor(), 50)
	}
	want(t, "incidents", []string{"below rate resolved from r04"}, w.incidents())
	want(t, "notices", []string{
		"ops firing 1 and 0 more", "ops resolved 1 and 0 more", "perf firing 1 and 0 more", "perf resolved 1 and 0 more",
	}, w.sizes())
}

func TestAnAcknowledgedIncidentIsHeardOfAtTheEndOfThatAndWhenItIsWorseAgain(t *testing.T) {
	heard := func(n int) []string { return slices.Repeat([]string{"ops firing 1 and 0 more"}, n) }
	w := newFixture(t).listen()
	only := strings.Replace(descriptor(tooSlow), `"perf", `, "", 1)
	runs := func(rates ...float64) {
		t.Helper()
		for _, rate := range rates {
			w.run(only, rate)
		}
	}
	runs(120, 121, 122, 90, 91)
	want(t, "notices when it fires", heard(1), w.sizes())
	w.ack(incident.Ack{Reason: "known, mended on Wednesday", Until: w.now.Add(36 * time.Hour)})
	w.tick()
	runs(90)
	want(t, "notices while it is acknowledged", heard(1), w.sizes())
	runs(91)
	want(t, "notices after the acknowledgement", heard(2), w.sizes())
	w.ack(incident.Ack{Reason: "known"})
	w.tick()
	runs(90, 91)
	want(t, "notices while it is acknowledged again", heard(2), w.sizes())
	runs(70, 71)
	want(t, "notices when it is worse", heard(3), w.sizes())
	want(t, "incidents", []string{"below rate firing from r04"}, w.incidents())
}

func TestAnAcknowledgedChangeThatGoesAwayIsHeardOfOnce(t *testing.T) {
	w := newFixture(t).listen()
	w.level(15, 100, version("v1"))
	w.level(10, 92, version("v2"))
	w.ack(incident.Ack{Reason: "known"})
	w.tick()
	w.level(4, 100, version("v3"))
	w.wantCause(incident.Resolved, incident.CauseRegression)
	want(t, "notices", []string{"ops firing 1 and 0 more", "ops resolved 1 and 0 more"}, w.sizes())
}
