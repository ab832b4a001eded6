package summarise_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise"
	"github.com/benchmark-ai/bai/services/points"
)

// pointsText returns the points of a run as text.
func pointsText(t *testing.T, s store.PointReader, run string) string {
	t.Helper()
	all, err := s.RunPoints(t.Context(), []string{run}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		return "none"
	}
	p := all[0]
	text := fmt.Sprintf("%s %s complete %t", p.Namespace, p.Task, p.Complete)
	if p.Excluded != "" {
		text += " excluded " + string(p.Excluded)
	}
	for _, v := range p.Points {
		text += fmt.Sprintf("; %s %v n %d", v.Metric, float64(v.Median), v.N)
	}
	return text
}

// published returns the events that points are stored, each once, as text.
func (w *fixture) published() (all []string) {
	for _, ev := range eventtest.Published[event.Summarised](w.bus) {
		all = append(all, fmt.Sprintf("%s %s revision %d complete %t", ev.Run, ev.Namespace, ev.Revision, ev.Complete))
	}
	return all
}

func TestThatPointsAreStoredIsPublishedOnceTheyAre(t *testing.T) {
	w := newFixture(t)
	var stored []store.RunPoints
	w.bus.Consume("reader", service.On(func(ctx context.Context, ev event.Summarised) ([]event.Event, error) {
		all, err := w.store.RunPoints(ctx, []string{ev.Run}, nil)
		stored = append(stored, all...)
		return nil, err
	}))
	w.appendSamples(t, 1, true, at(1, "loss", 3, 30))
	w.bus.PublishAndWait(finished(1, "p1"))
	w.summaries(t)
	if len(stored) == 0 || stored[0].Revision != 1 || len(stored[0].Points) != 3 {
		t.Errorf("points at the time of the event: %+v", stored)
	}
	w.bus.Replay()
	if diff := cmp.Diff([]string{"r pets revision 1 complete true"}, w.published()); diff != "" {
		t.Errorf("after a replay (-want +got):\n%s", diff)
	}
}

// silentBus is a bus whose publications fail while its brokers are away.
type silentBus struct {
	*eventtest.Bus

	away bool
}

func (b *silentBus) Publish(ctx context.Context, events ...event.Event) error {
	if b.away {
		return errors.New("the brokers are away")
	}
	return b.Bus.Publish(ctx, events...)
}

func TestARunIsNotForgottenBeforeItsEventIsPublished(t *testing.T) {
	w := newFixture(t)
	begin := func(away bool) {
		d := summarise.Deps{Bus: &silentBus{w.bus, away}, Store: w.store, Now: func() time.Time { return w.now }, Log: zap.NewNop()}
		w.work = summarise.New(summarise.Settings{GracePeriod: gracePeriod}, d)["metrics-pusher/summarise/work"]
	}
	begin(true)
	w.appendSamples(t, 1, true, at(1, "loss", 3, 30))
	w.bus.PublishAndWait(finished(1, "p1"))
	w.until(t, func() bool { return pointsText(t, w.store, "r") != "none" })
	if _, noted := w.noted(t); !noted || len(w.published()) > 0 {
		t.Errorf("noted %t, published %q", noted, w.published())
	}
	begin(false)
	w.summaries(t)
	if diff := cmp.Diff([]string{"r pets revision 1 complete true"}, w.published()); diff != "" {
		t.Errorf("once the brokers are back (-want +got):\n%s", diff)
	}
}

func TestTheValuesOfASummarisedRunAreItsPoints(t *testing.T) {
	w := newFixture(t)
	environment := store.RunEnvironment{Pods: []store.PodEnvironment{{
		Origin: storetest.NewOrigin("r", "p1"), Environment: event.Environment{Platform: "v9", Machine: event.Machine{Node: "node-a", CPUModel: "EPYC"}},
	}}}
	if err := store.Create(t.Context(), w.store, store.KindEnvironment, "r", environment); err != nil {
		t.Fatal(err)
	}
	w.appendSamples(t, 1, true, at(1, "loss", 3, 30), at(2, "loss", 1, 10), at(3, "loss", 2, 20))
	w.bus.PublishAndWait(finished(1, "p1"))
	w.summaries(t)
	want := "pets train complete true; loss 2 n 3; run.duration 9 n 0; run.queued 2 n 0"
	if diff := cmp.Diff(want, pointsText(t, w.store, "r")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all, err := w.store.RunPoints(t.Context(), []string{"r"}, nil)
	if err != nil || all[0].Hardware != "EPYC" || all[0].Platform != "v9" || len(all[0].Machine) != 32 || all[0].Revision == 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestPointsFollowASummaryThatChanges(t *testing.T) {
	w := newFixture(t)
	w.appendSamples(t, 1, false, at(1, "loss", 1, 1))
	w.bus.PublishAndWait(finished(1, "p1"))
	w.now = w.now.Add(gracePeriod)
	w.until(t, func() bool { n, _ := w.noted(t); return n != nil })
	want := "pets train complete false; loss 1 n 1; run.duration 9 n 0; run.queued 2 n 0"
	if diff := cmp.Diff(want, pointsText(t, w.store, "r")); diff != "" {
		t.Errorf("in part (-want +got):\n%s", diff)
	}
	w.appendSamples(t, 1, true, at(1, "loss", 1, 1), at(2, "loss", 2, 2), at(3, "accuracy", 3, 3))
	w.start()
	w.summaries(t)
	want = "pets train complete true; accuracy 3 n 1; loss 1.5 n 2; run.duration 9 n 0; run.queued 2 n 0"
	if diff := cmp.Diff(want, pointsText(t, w.store, "r")); diff != "" {
		t.Errorf("once all is there (-want +got):\n%s", diff)
	}
	events := []string{"r pets revision 1 complete false", "r pets revision 2 complete true"}
	if diff := cmp.Diff(events, w.published()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestARunWithoutSamplesHasPointsAndNoSummary(t *testing.T) {
	w := newFixture(t)
	passed := 0
	d := summarise.Deps{Bus: w.bus, Store: w.store, Now: func() time.Time { return w.now }, Log: zap.NewNop(), Summarised: func(context.Context, store.Run) error {
		passed++
		return nil
	}}
	w.work = summarise.New(summarise.Settings{}, d)["metrics-pusher/summarise/work"]
	w.appendSamples(t, 1, true)
	w.bus.PublishAndWait(finished(1, "p1"))
	if s := w.summaries(t); s.Run != "" || passed > 0 {
		t.Errorf("summaries %s, passed on %d times", text(s), passed)
	}
	want := "pets train complete true; run.duration 9 n 0; run.queued 2 n 0"
	if diff := cmp.Diff(want, pointsText(t, w.store, "r")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"r pets revision 0 complete true"}, w.published()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestARunIsSummarisedOnceItsRecordHasItsEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		later time.Duration
		ends  bool
		want  string
	}{
		"the record is a moment behind": {0, true, "complete true samples 1; pets train complete true; loss 1 n 1; run.duration 9 n 0; run.queued 2 n 0"},
		"the record never has its end":  {24 * time.Hour, false, "complete true samples 1; none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &fixture{store: storetest.Open(t), bus: eventtest.NewBus(t), now: time.Unix(1000, 0)}
			w.start()
			w.appendSamples(t, 1, true, at(1, "loss", 1, 1))
			w.bus.PublishAndWait(finished(1, "p1"))
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := w.work(ctx); err != nil {
				t.Fatal(err)
			}
			if s := w.read(t); s.Run != "" {
				t.Fatalf("summarised before: %s", text(s))
			}
			if tt.ends {
				putEnded(t, w.store, "r", nil)
			}
			w.now = w.now.Add(tt.later)
			w.start()
			s := w.summaries(t)
			if diff := cmp.Diff(tt.want, fmt.Sprintf("complete %t samples %d; %s", s.Complete, s.Samples, pointsText(t, w.store, "r"))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAProcessThatIsKilledAtAnyEffectLeavesWhatIsMended(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.appendSamples(t, 1, true, at(1, "loss", 3, 30))
		passed := 0
		run := func(s summarise.Store, bus summarise.Bus) {
			d := summarise.Deps{Bus: bus, Store: s, Now: func() time.Time { return w.now }, Log: zap.NewNop(), Summarised: func(context.Context, store.Run) error {
				if err := p.Alive(); s != summarise.Store(w.store) && err != nil {
					return err
				}
				passed++
				return nil
			}}
			w.work = summarise.New(summarise.Settings{GracePeriod: gracePeriod}, d)["metrics-pusher/summarise/work"]
		}
		w.bus.PublishAndWait(finished(1, "p1"))
		run(p.Store(w.store), p.Bus(w.bus))
		w.until(t, func() bool { _, noted := w.noted(t); return p.Dead() || !noted })
		run(w.store, w.bus)
		if s := w.summaries(t); !s.Complete || s.Samples != 1 || passed == 0 {
			t.Errorf("%s: summaries %s, passed on %d times", p, text(s), passed)
		}
		if diff := cmp.Diff([]string{"r pets revision 1 complete true"}, w.published()); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", p, diff)
		}
		want := "pets train complete true; loss 3 n 1; run.duration 9 n 0; run.queued 2 n 0"
		if diff := cmp.Diff(want, pointsText(t, w.store, "r")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p, diff)
		}
	}
}

// refusingStore is a store that refuses points.
type refusingStore struct{ *sqlite.Store }

func (refusingStore) PutPoints(context.Context, store.RunPoints) error { return store.ErrRefused }

func TestPointsThatAreRefusedHoldUpNothing(t *testing.T) {
	w := newFixture(t)
	core, logs := observer.New(zap.InfoLevel)
	d := summarise.Deps{Bus: w.bus, Store: refusingStore{w.store}, Now: func() time.Time { return w.now }, Log: zap.New(core)}
	w.work = summarise.New(summarise.Settings{}, d)["metrics-pusher/summarise/work"]
	w.appendSamples(t, 1, true, at(1, "loss", 3, 30))
	w.bus.PublishAndWait(finished(1, "p1"))
	if s := w.summaries(t); !s.Complete {
		t.Errorf("summaries: %s", text(s))
	}
	if n := logs.FilterMessage("the points of a run are refused").Len(); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}

// earlierRuns stores runs as they were before the store had points, and returns what is to be known of the points of each.
func earlierRuns(t *testing.T, s *storetest.Memory, n int) map[string]string {
	t.Helper()
	want := make(map[string]string)
	put := func(id string, change func(*store.Run), docs ...any) {
		t.Helper()
		putEnded(t, s, id, change)
		for i := 0; i < len(docs); i += 2 {
			kind, _ := docs[i].(store.Kind)
			if err := store.Create(t.Context(), s, kind, id, docs[i+1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	summary := func(complete bool) store.Summaries {
		return store.Summaries{Complete: complete, Summaries: []store.Summary{{Metric: "loss", N: 1, Median: 7}}}
	}
	for i := range n {
		id := fmt.Sprintf("r%03d", i)
		put(id, nil, store.KindSummary, summary(true))
		want[id] = "pets train complete true; loss 7 n 1; run.duration 9 n 0; run.queued 2 n 0"
	}
	put("failed", func(r *store.Run) { r.Outcome = event.Failed }, store.KindSummary, summary(false))
	want["failed"] = "pets train complete false excluded failed; loss 7 n 1"
	put("import", nil, store.KindSummary, summary(true), store.KindImport, map[string]any{"done": true})
	want["import"] = "pets train complete true excluded import; loss 7 n 1; run.duration 9 n 0; run.queued 2 n 0"
	put("asked", nil, store.KindSummary, summary(true), store.KindImport, map[string]any{"done": true, "history": true})
	want["asked"] = "pets train complete true; loss 7 n 1; run.duration 9 n 0; run.queued 2 n 0"
	put("bare", nil)
	want["bare"] = "pets train complete true; run.duration 9 n 0; run.queued 2 n 0"
	put("waits", func(r *store.Run) { r.Collectors = []string{"p"} })
	want["waits"] = "none"
	put("damaged", nil, store.KindSummary, "no summary")
	want["damaged"] = "none"
	put("runs", func(r *store.Run) { r.Phase, r.Outcome, r.Ended = event.PhaseRunning, "", nil })
	want["runs"] = "none"
	return want
}

// reindexed reports whether the store says that all earlier runs have points.
func reindexed(ctx context.Context, s store.Getter) bool {
	d, _, err := store.Get[struct{ Done bool }](ctx, s, store.KindReindex, "points")
	return err == nil && d.Done
}

// reindexUntil runs processes that store points of earlier runs, each on its own store, until a condition is true.
func reindexUntil(t *testing.T, holds func() bool, stores ...summarise.Store) {
	t.Helper()
	reindexFrom(t, 1000, holds, stores...)
}

// reindexFrom is reindexUntil at a time in seconds since 1970.
func reindexFrom(t *testing.T, seconds int64, holds func() bool, stores ...summarise.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	done := make(chan error, len(stores))
	for _, s := range stores {
		run := summarise.Reindex(summarise.Deps{Store: s, Now: func() time.Time { return time.Unix(seconds, 0) }, Log: zap.NewNop()})
		go func() { done <- run(ctx) }()
	}
	for ctx.Err() == nil && !holds() {
		time.Sleep(time.Millisecond)
	}
	cancel()
	for range stores {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// wantPoints checks the points of each run.
func wantPoints(t *testing.T, description string, s store.PointReader, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	for run := range want {
		got[run] = pointsText(t, s, run)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", description, diff)
	}
}

func TestRunsFromBeforeTheStoreHadPointsGetTheirs(t *testing.T) {
	s := storetest.NewMemory()
	want := earlierRuns(t, s, summarise.ReindexPage+5)
	reindexUntil(t, func() bool { return reindexed(t.Context(), s) }, s, s)
	wantPoints(t, "both processes together", s, want)
}

// pagedStore is a store that counts the runs whose points are put.
type pagedStore struct {
	*storetest.Memory

	put []string
}

func (p *pagedStore) PutPoints(ctx context.Context, r store.RunPoints) error {
	p.put = append(p.put, r.Run)
	return p.Memory.PutPoints(ctx, r)
}

func TestTheNextProcessContinuesAfterTheLastPage(t *testing.T) {
	s := &pagedStore{Memory: storetest.NewMemory()}
	want := earlierRuns(t, s.Memory, 2*summarise.ReindexPage)
	first := func() bool {
		d, _, err := store.Get[struct{ Runs int }](t.Context(), s, store.KindReindex, "points")
		return err == nil && d.Runs == summarise.ReindexPage
	}
	away := &flakyList{pagedStore: s}
	reindexUntil(t, first, away)
	s.put = nil
	reindexUntil(t, func() bool { return reindexed(t.Context(), s) }, s)
	if n := len(s.put); n > summarise.ReindexPage+5 {
		t.Errorf("points of %d runs are put again", n)
	}
	wantPoints(t, "after two processes", s, want)
	s.put = nil
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := summarise.Reindex(summarise.Deps{Store: s, Now: time.Now, Log: zap.NewNop()})(ctx); err != nil || len(s.put) > 0 {
		t.Errorf("%v; points of %s are put once more", err, strings.Join(s.put, ", "))
	}
}

func TestRunsThatHaveEndedSinceTheStartAndHavePointsAreLeftAlone(t *testing.T) {
	s := &pagedStore{Memory: storetest.NewMemory()}
	for _, id := range []string{"before", "since", "bare"} {
		putEnded(t, s.Memory, id, func(r *store.Run) {
			if id == "before" {
				*r.Ended = time.Unix(9, 0).UTC()
			}
			if id != "bare" {
				if err := s.PutPoints(t.Context(), points.Of(*r, points.Results{})); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	s.put = nil
	reindexFrom(t, 10, func() bool { return reindexed(t.Context(), s) }, s)
	slices.Sort(s.put)
	if got := strings.Join(s.put, " "); got != "bare before" {
		t.Errorf("points of %q are stored", got)
	}
}

// flakyList is a store that lists one page of runs.
type flakyList struct {
	*pagedStore

	pages int
}

func (f *flakyList) Runs(ctx context.Context, q store.RunFilter, token string, limit int) ([]store.Run, string, error) {
	if f.pages++; f.pages > 1 {
		return nil, "", errors.New("away")
	}
	return f.pagedStore.Runs(ctx, q, token, limit)
}

func TestPointsOfEarlierRunsAreStoredWhoeverIsKilled(t *testing.T) {
	for p := range crashtest.Points() {
		s := storetest.NewMemory()
		want := earlierRuns(t, s, 2)
		reindexUntil(t, func() bool { return p.Dead() || reindexed(t.Context(), s) }, p.Store(s))
		release(t, s)
		reindexUntil(t, func() bool { return reindexed(t.Context(), s) }, s)
		wantPoints(t, p.String(), s, want)
	}
}

// release lets the lease of a killed process end.
func release(t *testing.T, s *storetest.Memory) {
	t.Helper()
	const name = "metrics-pusher/reindex"
	_, err := store.Update(t.Context(), s, store.KindLease, name, func(l store.Lease, found bool) (store.Lease, bool, error) {
		l.ExpiresAt = time.Time{}
		return l, found, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
