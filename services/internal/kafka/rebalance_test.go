package kafka_test

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// deliveryLog records which events of each run were handled, and which were skipped.
type deliveryLog struct {
	mu        sync.Mutex
	next      map[string]int // the first event of each run that was not handled
	delivered int
	skipped   []string
}

func (l *deliveryLog) note(run, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int
	_, _ = fmt.Sscan(message, &n) // written below
	switch {
	case n == l.next[run]:
		l.next[run]++
		l.delivered++
	case n > l.next[run]:
		l.skipped = append(l.skipped, fmt.Sprintf("%s: %d before %d", run, n, l.next[run]))
	}
}

// String returns what was handled, for a test that waits in vain.
func (l *deliveryLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d events handled, the next of each run is %v, skipped %q", l.delivered, l.next, l.skipped)
}

func (l *deliveryLog) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delivered
}

// TestConsumersThatComeAndGoLoseNothing has members of a group join and leave while events flow: each event is handled, and none before the
// earlier ones of its run.
func TestConsumersThatComeAndGoLoseNothing(t *testing.T) {
	t.Parallel()
	const runs, each, rounds = 12, 100, 6
	broker := kafkatest.StartWide(t, 6, event.Topics()...)
	s := settings(broker)
	s.Session = time.Second
	delivered := &deliveryLog{next: make(map[string]int)}
	core, logs := observer.New(zap.InfoLevel)
	t.Cleanup(func() {
		if t.Failed() {
			logLast(t, delivered, logs)
		}
	})
	join := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		part := bus(t, s, zap.New(core)).Consume("g", service.Batch(7, func(_ context.Context, evs []event.Status) ([]event.Event, error) {
			for _, ev := range evs {
				delivered.note(ev.Run, ev.Message)
			}
			return nil, nil
		}))
		go func() { done <- part(ctx) }()
		return done
	}
	all, stopAll := context.WithCancel(t.Context())
	stays := join(all)
	var publisher sync.WaitGroup
	publisher.Go(func() { publishRuns(t, bus(t, s, zap.New(core)), runs, each) })
	for n := range rounds { // a new member stays until a number of events is handled, then leaves
		ctx, stop := context.WithCancel(t.Context())
		done := join(ctx)
		untilSlow(t, func() bool { return delivered.total() >= runs*each*(n+1)/(rounds+1) })
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	publisher.Wait()
	untilSlow(t, func() bool { return delivered.total() == runs*each })
	stopAll()
	if err := <-stays; err != nil {
		t.Error(err)
	}
	if len(delivered.skipped) > 0 {
		t.Errorf("handled before what precedes them: %q", delivered.skipped)
	}
}

// logLast logs what was handled, the last that the members said, and where all goroutines are.
func logLast(t *testing.T, delivered *deliveryLog, logs *observer.ObservedLogs) {
	t.Helper()
	t.Log(delivered)
	all := logs.All()
	for _, e := range all[max(0, len(all)-30):] {
		t.Log(e.Time.Format(time.TimeOnly), e.Level, e.Message, e.ContextMap())
	}
	var stacks strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
	t.Log(stacks.String())
}

// publishRuns publishes each events of each of runs runs.
func publishRuns(t *testing.T, b *kafka.Bus, runs, each int) {
	t.Helper()
	for i := range each {
		var evs []event.Event
		for r := range runs {
			evs = append(evs, status(fmt.Sprint("r", r), fmt.Sprint(i)))
		}
		if err := b.Publish(t.Context(), evs...); err != nil {
			t.Error(err)
		}
	}
}

// untilSlow polls cond until it returns true: members join and leave within seconds, on a machine without other work.
func untilSlow(t *testing.T, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited 3 min in vain")
		}
	}
}

func TestMembersThatDieWhileTheyJoinAreRemoved(t *testing.T) {
	t.Parallel()
	broker := kafkatest.StartWide(t, 2, event.TopicStatus)
	kafkatest.MembersThatDieLeave(t, broker.Addrs[0], event.TopicStatus)
}

// TestADescriptorAtTheLimitPasses publishes descriptors of the greatest length, with the characters that take the most room in JSON.
func TestADescriptorAtTheLimitPasses(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, event.Topics()...)
	b := bus(t, settings(broker), zap.NewNop())
	texts := []string{"x", "\n", `"`, `\`, "<", "\t", "\u2028", "é"}
	for _, text := range texts {
		s := event.Submitted{Header: status("r1", text).Header, Descriptor: strings.Repeat(text, parser.MaxSize/len(text))}
		if err := b.Publish(t.Context(), s); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	got := make(chan string, len(texts))
	consume(t, settings(broker), service.On(func(_ context.Context, s event.Submitted) ([]event.Event, error) {
		got <- s.Descriptor
		return []event.Event{event.Fetched{Header: s.Header, Descriptor: s.Descriptor}}, nil
	}))
	for _, text := range texts {
		if d := <-got; d != strings.Repeat(text, parser.MaxSize/len(text)) {
			t.Errorf("%q: heard %d bytes", text, len(d))
		}
	}
	untilSlow(t, func() bool { return broker.Count(t, event.TopicFetched) == len(texts) })
	want(t, broker.Count(t, event.TopicDead), 0)
}

// TestWhatIsTooLargeIsRefusedBeforeItIsPublished: descriptors are refused when they
// are submitted, everything else here.
func TestWhatIsTooLargeIsRefusedBeforeItIsPublished(t *testing.T) {
	t.Parallel()
	if _, faults := parser.Parse("large.toml", []byte(strings.Repeat("#", parser.MaxSize+1))); len(faults) == 0 {
		t.Error("a descriptor over the limit has no fault")
	}
	broker := kafkatest.Start(t, event.Topics()...)
	err := bus(t, settings(broker), zap.NewNop()).Publish(t.Context(), status("r1", "small"), status("r1", strings.Repeat("x", kafka.MaxValue)))
	if err == nil || !strings.Contains(err.Error(), "1024000 at most") {
		t.Errorf("Publish: %v, want how large it is and may be", err)
	}
	want(t, broker.Count(t, event.TopicStatus), 0)
}

// TestGroupsBeginAnewWhatTheyHaveHeard has brokers that never saw a group rewind
// it, and then one that has.
func TestGroupsBeginAnewWhatTheyHaveHeard(t *testing.T) {
	t.Parallel()
	broker := kafkatest.StartWide(t, 3, event.Topics()...)
	s := settings(broker)
	s.Session = time.Second
	b := bus(t, s, zap.NewNop())
	received := make(chan string, 64)
	step := service.On(func(_ context.Context, s event.Status) ([]event.Event, error) {
		received <- s.Run
		return nil, nil
	})
	one, other := b.Consume("one", step), b.Consume("other", step)
	if err := b.Rewind(t.Context()); err != nil {
		t.Fatalf("groups that nobody knows: %v", err)
	}
	if err := b.Publish(t.Context(), status("a", "1"), status("b", "1"), status("c", "1")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 2)
		for _, part := range []service.Runnable{one, other} {
			go func() { done <- part(ctx) }()
		}
		for range 6 {
			<-received
		}
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if err := b.Rewind(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(received) > 0 {
		t.Errorf("%d are heard twice", len(received))
	}
}
