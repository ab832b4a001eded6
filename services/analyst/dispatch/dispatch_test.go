package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/analyst/dispatch"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/analyst/receiver/hours"
	"github.com/benchmark-ai/bai/services/analyst/receiver/open"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// start is the time at which the clock of a test begins.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeReceiver takes notices.
type fakeReceiver struct {
	send func(ctx context.Context, n notice.Notice) error // nil takes all
	came chan notice.Notice                               // nil for none

	mu   sync.Mutex
	took []notice.Notice
}

// Send implements receiver.Receiver.
func (r *fakeReceiver) Send(ctx context.Context, n notice.Notice) (string, error) {
	if r.send != nil {
		if err := r.send(ctx, n); err != nil {
			return "", err
		}
	}
	r.mu.Lock()
	r.took = append(r.took, n)
	r.mu.Unlock()
	if r.came != nil {
		r.came <- n
	}
	return "thanks", nil
}

func openStore(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "bai.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// create stores a notice that waits.
func create(t *testing.T, docs store.Docs, to, id string, made time.Time) {
	t.Helper()
	n := notice.Notice{
		ID: id, Receiver: to, Namespace: "perf", Group: id, First: id, Became: incident.Firing, Made: made,
		Incidents: []incident.Incident{{ID: "of-" + id, State: incident.Firing, Rule: incident.Rule{Task: "sums"}}},
	}
	if err := notice.Enqueue(t.Context(), docs, n, made); err != nil {
		t.Fatal(err)
	}
}

func delivery(t *testing.T, docs store.Getter, key string) notice.Delivery {
	t.Helper()
	d, _, err := store.Get[notice.Delivery](t.Context(), docs, store.KindDelivery, key)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func channel(name string, r receiver.Receiver) receiver.Channel {
	return receiver.Channel{Name: name, Receiver: r}
}

// crash runs a round for a receiver that p ends, and then others without an end, hours later. It returns what arrived.
func crash(t *testing.T, p *crashtest.Process, s *sqlite.Store, rules receiver.Rules, rounds int) []notice.Notice {
	t.Helper()
	now := start
	clock := func() time.Time { return now }
	to := &fakeReceiver{}
	dying := &fakeReceiver{send: func(ctx context.Context, n notice.Notice) error {
		return p.Do(func() error { _, err := to.Send(ctx, n); return err })
	}}
	ctx, stop := p.Context(t.Context())
	defer stop()
	_, _ = dispatch.Over([]receiver.Channel{{Name: "team", Receiver: dying, Rules: rules}}, p.Store(s), clock, zap.NewNop()).Round(ctx, "team")
	for range rounds {
		now = now.Add(2 * time.Hour)
		if _, err := dispatch.Over([]receiver.Channel{{Name: "team", Receiver: to, Rules: rules}}, s, clock, zap.NewNop()).Round(t.Context(), "team"); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
	}
	return to.took
}

// wantMarked reports notices that came again and do not say so.
func wantMarked(t *testing.T, p *crashtest.Process, took []notice.Notice) {
	t.Helper()
	came := map[string]bool{}
	for _, n := range took {
		if came[n.ID] && !n.Again {
			t.Errorf("%s: %s came again, and does not say so", p, n.ID)
		}
		came[n.ID] = true
	}
}

func TestANoticeIsNeverLostAndOneThatMayHaveArrivedSaysSo(t *testing.T) {
	for p := range crashtest.Points() {
		s := openStore(t)
		create(t, s, "team", "n1", start)
		create(t, s, "team", "n2", start)
		took := crash(t, p, s, receiver.Rules{}, 1)
		if wantMarked(t, p, took); len(took) < 2 || len(took) > 3 {
			t.Errorf("%s: %d arrived", p, len(took))
		}
		for _, id := range []string{"n1", "n2"} {
			if d := delivery(t, s, "team/"+id); d.Status != notice.Sent || d.Answer != "thanks" || !d.Sending.IsZero() {
				t.Errorf("%s: %+v", p, d)
			}
		}
		_ = s.Close()
	}
}

func TestAfterADigestNothingOfItIsSentAgain(t *testing.T) {
	for p := range crashtest.Points() {
		s := openStore(t)
		for _, id := range []string{"n1", "n2", "n3"} {
			create(t, s, "team", id, start)
		}
		took := crash(t, p, s, receiver.Rules{Rate: 1}, 3)
		wantMarked(t, p, took)
		for _, n := range took {
			if len(n.Digest) != 3 || n.ID != took[0].ID {
				t.Errorf("%s: sent %s, a digest of %v", p, n.ID, n.Digest)
			}
		}
		if len(took) == 0 || len(took) > 2 || delivery(t, s, "team/n2").Status != notice.Summed {
			t.Errorf("%s: %d sent, n2 is %s", p, len(took), delivery(t, s, "team/n2").Status)
		}
		_ = s.Close()
	}
}

// run runs dispatchers until the test ends.
func run(t *testing.T, all ...*dispatch.Dispatcher) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, d := range all {
		running.Go(func() {
			if err := d.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func TestTwoDispatchersSendEachNoticeOnce(t *testing.T) {
	s := openStore(t)
	const count = 20
	to := &fakeReceiver{came: make(chan notice.Notice, 2*count)}
	for n := range count {
		create(t, s, "team", fmt.Sprintf("n%02d", n), start.Add(time.Duration(n)*time.Second))
	}
	channels := []receiver.Channel{channel("team", to)}
	run(t, dispatch.Over(channels, s, time.Now, zap.NewNop()), dispatch.Over(channels, s, time.Now, zap.NewNop()))
	for n := range count {
		if got := <-to.came; got.ID != fmt.Sprintf("n%02d", n) || got.Again {
			t.Errorf("notice %d is %s, again %t", n, got.ID, got.Again)
		}
	}
	if len(to.came) > 0 {
		t.Errorf("%d came too often", len(to.came))
	}
}

func TestAReceiverThatIsAwayDelaysNoOther(t *testing.T) {
	s := openStore(t)
	slow := &fakeReceiver{send: func(ctx context.Context, _ notice.Notice) error { <-ctx.Done(); return ctx.Err() }}
	fast := &fakeReceiver{came: make(chan notice.Notice, 1)}
	create(t, s, "away", "n1", start)
	create(t, s, "team", "n2", start)
	run(t, dispatch.Over([]receiver.Channel{channel("away", slow), channel("team", fast)}, s, time.Now, zap.NewNop()))
	if n := <-fast.came; n.ID != "n2" {
		t.Errorf("%s came", n.ID)
	}
}

func TestATestGoesTheSameWayPastRateAndQuietHours(t *testing.T) {
	s := openStore(t)
	now := start
	quiet, err := hours.Parse("00:00-23:59", "")
	if err != nil {
		t.Fatal(err)
	}
	to, no := &fakeReceiver{}, &fakeReceiver{send: func(context.Context, notice.Notice) error { return errors.New("no such chat") }}
	d := dispatch.Over([]receiver.Channel{
		{Name: "team", Receiver: to, Rules: receiver.Rules{Rate: 1, Quiet: quiet}}, channel("gone", no),
	}, s, func() time.Time { return now }, zap.NewNop())
	test := func(name, key string) notice.Delivery {
		t.Helper()
		n := notice.NewTest(name, "perf", "ann", key, start)
		if err := notice.Enqueue(t.Context(), s, n, start); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Round(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return delivery(t, s, name+"/"+n.ID)
	}
	for _, key := range []string{"1", "2"} {
		if got := test("team", key); got.Status != notice.Sent || got.Answer != "thanks" {
			t.Errorf("test %s is %s: %s", key, got.Status, got.Answer)
		}
	}
	if got := test("gone", "1"); got.Status != notice.Refused || got.Answer != "no such chat" || got.Attempts != 1 {
		t.Errorf("the test of a receiver that refuses is %s: %s", got.Status, got.Answer)
	}
	now = now.Add(time.Hour)
	if got := test("team", "3"); got.Status != notice.Refused || len(to.took) != 2 {
		t.Errorf("a test that nobody waits for any more is %s: %s", got.Status, got.Answer)
	}
}

func TestAReceiverThatIsAwayForDaysIsAskedForDaysAndLoggedOnce(t *testing.T) {
	s, now := openStore(t), start
	logs, log := observer.New(zap.InfoLevel)
	away := true
	to := &fakeReceiver{send: func(context.Context, notice.Notice) error {
		if away {
			return fmt.Errorf("%w: connection reset", receiver.ErrUnanswered)
		}
		return nil
	}}
	create(t, s, "team", "n1", start)
	d := dispatch.Over([]receiver.Channel{channel("team", to)}, s, func() time.Time { return now }, zap.New(logs))
	for range 600 {
		if _, err := d.Round(t.Context(), "team"); err != nil {
			t.Fatal(err)
		}
		now = now.Add(6 * time.Minute)
	}
	if got := delivery(t, s, "team/n1"); got.Status != notice.Waiting || got.Attempts != 600 || !got.Notice.Again {
		t.Errorf("%s after %d tries, again %t", got.Status, got.Attempts, got.Notice.Again)
	}
	away = false
	if _, err := d.Round(t.Context(), "team"); err != nil || len(to.took) != 1 {
		t.Errorf("Round: %v, %d arrived", err, len(to.took))
	}
	var lines []string
	for _, l := range log.All() {
		lines = append(lines, l.Message)
	}
	want := "the receiver did not take a notice, retrying|a notice has waited for a day: check the receiver and its settings|the receiver takes notices again|sent a notice"
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("logged %s", got)
	}
}

// createSent stores a notice that was sent, and its incident, which goes on.
func createSent(t *testing.T, docs store.Docs, to, id string, made time.Time) {
	t.Helper()
	create(t, docs, to, id, made)
	change(t, docs, store.KindDelivery, to+"/"+id, func(d *notice.Delivery) { d.Status, d.Attempts = notice.Sent, 1 })
	for _, err := range []error{
		docs.DeleteDoc(t.Context(), store.Doc{Kind: store.KindUnsentNotice, Key: to + "/" + id}),
		store.Create(t.Context(), docs, store.KindIncident, "perf/of-"+id, incident.Incident{ID: "of-" + id, State: incident.Firing}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// createTest stores a test that waits.
func createTest(t *testing.T, docs store.Docs, to string, made time.Time) {
	t.Helper()
	if err := notice.Enqueue(t.Context(), docs, notice.NewTest(to, "perf", "ann", "k", made), made); err != nil {
		t.Fatal(err)
	}
}

func TestAReceiverThatAsksToWaitIsLeftAloneAlsoByTheNextProcess(t *testing.T) {
	busy := &receiver.TemporaryError{Err: errors.New("busy"), After: time.Hour}
	for name, first := range map[string]func(s *sqlite.Store){
		"a notice":                    func(s *sqlite.Store) { create(t, s, "am", "n0", start.Add(-time.Hour)) },
		"a test":                      func(s *sqlite.Store) { createTest(t, s, "am", start) },
		"a notice that is sent again": func(s *sqlite.Store) { createSent(t, s, "am", "n0", start.Add(-time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			s, now, asked := openStore(t), start, 0
			to := &fakeReceiver{send: func(context.Context, notice.Notice) error { asked++; return busy }}
			round := func() {
				t.Helper()
				all := []receiver.Channel{{Name: "am", Receiver: to, Rules: receiver.Rules{Repeat: time.Minute}}}
				if _, err := dispatch.Over(all, s, func() time.Time { return now }, zap.NewNop()).Round(t.Context(), "am"); err != nil {
					t.Fatal(err)
				}
			}
			first(s)
			round()
			create(t, s, "am", "n1", start)
			for range 10 {
				now = now.Add(5 * time.Minute)
				round()
			}
			if asked != 1 {
				t.Errorf("it was asked %d times within the hour", asked)
			}
			now = now.Add(11 * time.Minute)
			if round(); asked != 2 {
				t.Errorf("it was asked %d times after the hour", asked)
			}
		})
	}
}

func TestWhatARefusalMeansForTheOthers(t *testing.T) {
	s := openStore(t)
	to := &fakeReceiver{send: func(_ context.Context, n notice.Notice) error {
		if n.ID == "n1" {
			return &receiver.RejectedError{Err: errors.New("too long")}
		}
		return nil
	}}
	create(t, s, "team", "n1", start)
	create(t, s, "team", "n2", start.Add(time.Second))
	if _, err := dispatch.Over([]receiver.Channel{channel("team", to)}, s, func() time.Time { return start.Add(time.Hour) }, zap.NewNop()).Round(t.Context(), "team"); err != nil {
		t.Fatal(err)
	}
	if first, second := delivery(t, s, "team/n1"), delivery(t, s, "team/n2"); first.Status != notice.Refused || first.Answer != "too long" || second.Status != notice.Sent {
		t.Errorf("n1 is %s (%s), n2 is %s", first.Status, first.Answer, second.Status)
	}
}

func TestANoticeIsRepeatedUntilItsIncidentsAreOver(t *testing.T) {
	s, now := openStore(t), start
	to := &fakeReceiver{}
	create(t, s, "am", "n1", start)
	i := incident.Incident{ID: "of-n1", State: incident.Firing, Cause: incident.CauseRegression}
	if err := store.Create(t.Context(), s, store.KindIncident, "perf/of-n1", i); err != nil {
		t.Fatal(err)
	}
	d := dispatch.Over([]receiver.Channel{{Name: "am", Receiver: to, Rules: receiver.Rules{Repeat: time.Minute}}}, s, func() time.Time { return now }, zap.NewNop())
	rounds := func(count int) int {
		t.Helper()
		for range count {
			if _, err := d.Round(t.Context(), "am"); err != nil {
				t.Fatal(err)
			}
			now = now.Add(30 * time.Second)
		}
		return len(to.took)
	}
	if got := rounds(7); got != 4 || to.took[3].Incidents[0].Cause != incident.CauseRegression {
		t.Errorf("%d sent in three minutes, want 4, the later ones with the incident as it is then", got)
	}
	i.State = incident.Resolved
	if _, err := store.Replace(t.Context(), s, store.KindIncident, "perf/of-n1", 1, i); err != nil {
		t.Fatal(err)
	}
	if got := rounds(7); got != 4 {
		t.Errorf("%d sent after the end, want none more", got-4)
	}
}

func TestADispatcherWithoutReceiversRunsUntilItIsStopped(t *testing.T) {
	d, err := dispatch.New(open.Settings{}, openStore(t), time.Now, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// listCounter counts the lists of each kind of document.
type listCounter struct {
	*sqlite.Store

	lists map[store.Kind]int
	lacks store.Kind // lists of this kind are empty
}

// Docs implements store.Lister.
func (c *listCounter) Docs(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	c.lists[kind]++
	if kind == c.lacks {
		return nil, nil
	}
	return c.Store.Docs(ctx, kind, after, limit)
}

func TestSentNoticesAreReadOnlyWhenOneIsDue(t *testing.T) {
	now := start
	s := &listCounter{Store: openStore(t), lists: map[store.Kind]int{}}
	to := &fakeReceiver{}
	d := dispatch.Over([]receiver.Channel{channel("team", to)}, s, func() time.Time { return now }, zap.NewNop())
	round := func() {
		t.Helper()
		if _, err := d.Round(t.Context(), "team"); err != nil {
			t.Fatal(err)
		}
	}
	create(t, s, "team", "n1", start)
	round()
	read := s.lists[store.KindDelivery]
	for range 100 {
		now = now.Add(5 * time.Second)
		round()
	}
	if got := s.lists[store.KindDelivery]; got != read {
		t.Errorf("%d lists of notices in 100 rounds without a new one", got-read)
	}
	create(t, s, "team", "n2", now)
	round()
	now = now.Add(2 * time.Hour)
	round()
	if got := s.lists[store.KindDelivery] - read; got != 2 || len(to.took) != 2 {
		t.Errorf("%d lists, want 2, one of them after hours; %d notices arrived", got, len(to.took))
	}
}

func TestANoticeThatAListLacksIsSent(t *testing.T) {
	s := &listCounter{Store: openStore(t), lists: map[store.Kind]int{}, lacks: store.KindDelivery}
	to := &fakeReceiver{}
	create(t, s, "team", "n1", start)
	d := dispatch.Over([]receiver.Channel{channel("team", to)}, s, func() time.Time { return start }, zap.NewNop())
	if _, err := d.Round(t.Context(), "team"); err != nil || len(to.took) != 1 {
		t.Errorf("%d arrived, %v", len(to.took), err)
	}
}

func TestANoticeThatDoesNotWaitLeavesTheQueue(t *testing.T) {
	s := openStore(t)
	to := &fakeReceiver{}
	round := func() {
		t.Helper()
		d := dispatch.Over([]receiver.Channel{channel("team", to)}, s, func() time.Time { return start }, zap.NewNop())
		if _, err := d.Round(t.Context(), "team"); err != nil {
			t.Fatal(err)
		}
	}
	create(t, s, "team", "sent", start)
	round()
	create(t, s, "team", "sent", start) // by a process that was killed before it knew that it had
	for key, value := range map[string]string{"team/damaged": `"no notice"`, "other/damaged": `"no notice"`} {
		if err := s.CreateDoc(t.Context(), store.Doc{Kind: store.KindDelivery, Key: key, Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"team/damaged", "team/unknown", "other/n1"} {
		if err := s.CreateDoc(t.Context(), store.Doc{Kind: store.KindUnsentNotice, Key: key, Value: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	round()
	var left []string
	for d, err := range store.AllDocs(t.Context(), s, store.KindUnsentNotice, "") {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, d.Key)
	}
	if len(left) != 1 || left[0] != "other/n1" || len(to.took) != 1 {
		t.Errorf("the queue has %q; %d arrived", left, len(to.took))
	}
}

// fakeMeter is a meter that notes what it is given.
type fakeMeter struct{ notes []string }

// RecordNotice implements dispatch.Meter.
func (m *fakeMeter) RecordNotice(receiver, became string) {
	m.notes = append(m.notes, receiver+" "+became)
}

// RecordWaiting implements dispatch.Meter.
func (m *fakeMeter) RecordWaiting(receiver string, age time.Duration) {
	m.notes = append(m.notes, fmt.Sprintf("%s %s", receiver, age))
}

func TestNoticesAndTheAgeOfTheOldestOneAreCounted(t *testing.T) {
	s, now, m := openStore(t), start, &fakeMeter{}
	away := true
	to := &fakeReceiver{send: func(_ context.Context, n notice.Notice) error {
		if away {
			return errors.New("no route")
		}
		if n.ID == "n2" {
			return &receiver.RejectedError{Err: errors.New("too long")}
		}
		return nil
	}}
	d := dispatch.Over([]receiver.Channel{channel("team", to)}, s, func() time.Time { return now }, zap.NewNop()).Count(m)
	create(t, s, "team", "n1", start)
	create(t, s, "team", "n2", start.Add(time.Second))
	round := func(after time.Duration) string {
		t.Helper()
		m.notes = nil
		now = now.Add(after)
		if _, err := d.Round(t.Context(), "team"); err != nil {
			t.Fatal(err)
		}
		return strings.Join(m.notes, ", ")
	}
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{
		{time.Minute, "team 1m0s, team 1m0s"}, {time.Second, "team 1m1s"}, {time.Hour, "team 1h1m1s, team refused, team sent, team 0s"}, {time.Second, "team 0s"},
	} {
		if got := round(tt.after); got != tt.want {
			t.Errorf("after %s: %s, want %s", tt.after, got, tt.want)
		}
		away = tt.after != time.Second
	}
}

func TestAProcessThatGetsALeaseBackRepeatsWhatAnotherHasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, to := storetest.NewMemory(), &fakeReceiver{}
		run(t, dispatch.Over([]receiver.Channel{{Name: "am", Receiver: to, Rules: receiver.Rules{Repeat: time.Minute}}}, s, time.Now, zap.NewNop()))
		time.Sleep(10 * time.Second) // by the clock of the test: there is nothing to do
		createSent(t, s, "am", "n1", time.Now())
		change(t, s, store.KindLease, "receiver/am", func(l *store.Lease) {
			l.Holder, l.Fence, l.ExpiresAt = "another", l.Fence+1, time.Now().Add(20*time.Second)
		})
		time.Sleep(2 * time.Minute)
		to.mu.Lock()
		defer to.mu.Unlock()
		if len(to.took) == 0 {
			t.Error("nothing is repeated within two minutes")
		}
	})
}

// change changes a document that exists.
func change[T any](t *testing.T, s store.Docs, kind store.Kind, key string, edit func(*T)) {
	t.Helper()
	_, err := store.Update(t.Context(), s, kind, key, func(is T, found bool) (T, bool, error) {
		edit(&is)
		return is, found, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
