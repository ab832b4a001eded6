package kafka_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/internal/bustest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
)

const (
	head     = `"run":"r1","namespace":"pets","owner":"ann","attempt":1,"time":"2026-01-02T03:04:05Z","schema":1`
	trace    = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ownTrace = "00-24a20a4d1e4f3f9a4e5a4a7a7cd1d2d9-0000000000000000-01"
)

// submittedMessage is the message that each test writes. The step fetched returns an event for it.
func submittedMessage() kafkatest.Message {
	return kafkatest.Message{
		Key:     "r1",
		Value:   `{"id":"m1",` + head + `,"descriptor":"x"}`,
		Headers: map[string]string{"ce_type": "bai.submitted.v1", "traceparent": trace},
	}
}

func fetchedMessage() kafkatest.Message {
	return kafkatest.Message{
		Key:   "r1",
		Value: `{"id":"m2",` + head + `,"descriptor":"x","data":null}`,
		Headers: map[string]string{
			"ce_specversion": "1.0", "ce_id": "m2", "ce_type": "bai.fetched.v1", "ce_source": "g",
			"ce_time": "2026-01-02T03:04:05Z", "traceparent": trace,
		},
	}
}

func answerFetched(_ context.Context, s event.Submitted) ([]event.Event, error) {
	s.ID = "m2"
	return []event.Event{event.Fetched{Header: s.Header, Descriptor: s.Descriptor}}, nil
}

func TestWhatAStepReturnsIsPublished(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, "bai.submitted", "bai.fetched")
	broker.Write(t, "bai.submitted", submittedMessage())
	consume(t, settings(broker), service.On(answerFetched))
	want(t, broker.Read(t, "bai.fetched"), fetchedMessage())
}

func TestAnEventSaysWhenItWasWritten(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, "bai.submitted")
	before := time.Now().Add(-time.Second)
	broker.Write(t, "bai.submitted", submittedMessage())
	publishedAt := make(chan time.Time, 1)
	consume(t, settings(broker), service.On(func(_ context.Context, s event.Submitted) ([]event.Event, error) {
		publishedAt <- s.PublishedAt
		return nil, nil
	}))
	if at := <-publishedAt; at.Before(before) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("said at %s, want about now", at)
	}
}

func TestAnEventThatCannotBeHandledNowIsHandedOverAgain(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, "bai.submitted", "bai.fetched")
	broker.Write(t, "bai.submitted", submittedMessage())
	tries := 0
	logs := consume(t, settings(broker), service.On(func(ctx context.Context, s event.Submitted) ([]event.Event, error) {
		if tries++; tries < 5 {
			return nil, errors.New("the cluster is away")
		}
		return answerFetched(ctx, s)
	}))
	want(t, broker.Read(t, "bai.fetched"), fetchedMessage())
	wantLogged(t, logs, "handle", "waits", "goes on")
}

func TestWhatIsDoneIsSaidBeforeWhatWaits(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, "bai.submitted", "bai.fetched")
	second := submittedMessage()
	second.Key, second.Value = "r2", strings.Replace(second.Value, "r1", "r2", 1)
	broker.Write(t, "bai.submitted", submittedMessage(), second)
	consume(t, settings(broker), service.On(func(ctx context.Context, s event.Submitted) ([]event.Event, error) {
		if s.Run == "r2" {
			return nil, errors.New("the cluster is away for ever")
		}
		return answerFetched(ctx, s)
	}))
	want(t, broker.Read(t, "bai.fetched"), fetchedMessage())
}

func TestABrokerThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	addr, begin := kafkatest.StartLater(t, "bai.submitted", "bai.fetched")
	messages := make(chan string, 64)
	logs := consume(t, kafka.Settings{Brokers: []string{addr}, Retry: time.Millisecond}, service.On(answerFetched), zap.Hooks(func(e zapcore.Entry) error {
		messages <- e.Message
		return nil
	}))
	<-messages
	broker := begin()
	broker.Write(t, "bai.submitted", submittedMessage())
	want(t, broker.Read(t, "bai.fetched"), fetchedMessage())
	wantLogged(t, logs, "join", "waits", "goes on")
}

func TestABrokerThatGoesAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	addr, begin := kafkatest.StartLater(t, "bai.submitted", "bai.fetched")
	broker := begin()
	handled := make(chan string, 8)
	consume(t, kafka.Settings{Brokers: []string{addr}, Retry: time.Millisecond, Session: time.Second},
		service.On(func(ctx context.Context, s event.Submitted) ([]event.Event, error) {
			handled <- s.Run
			return answerFetched(ctx, s)
		}))
	broker.Write(t, "bai.submitted", submittedMessage())
	want(t, <-handled, "r1")
	broker.Read(t, "bai.fetched")
	broker.Stop()
	broker = begin()
	broker.Write(t, "bai.submitted", submittedMessage())
	want(t, <-handled, "r1")
	want(t, broker.Read(t, "bai.fetched"), fetchedMessage())
}

func TestATopicThatIsNotThereYetIsWaitedFor(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t)
	messages := make(chan string, 64)
	consume(t, settings(broker), service.On(answerFetched), zap.Hooks(func(e zapcore.Entry) error {
		messages <- e.Message
		return nil
	}))
	<-messages
	s := settings(broker)
	s.Topics = kafka.TopicSettings{Partitions: 2, Replication: 1}
	for range 2 { // the second time changes no state
		if err := kafka.CreateTopics(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	broker.Write(t, "bai.submitted", submittedMessage())
	for broker.Count(t, "bai.fetched") == 0 { // until the test's deadline
		time.Sleep(time.Millisecond)
	}
}

func TestPoisonBecomesADeadLetterAndEndsItsRun(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind, value string
		handle      service.Handler[event.Submitted]
		reason      string
		team, owner string // as far as the message has them
	}{
		"what is not JSON": {
			kind: "bai.submitted.v1", value: "hello", handle: answerFetched, team: "unknown", owner: "unknown",
			reason: "decode event.Submitted: poison: invalid character 'h' looking for beginning of value",
		},
		"another major version": {
			kind: "bai.submitted.v2", value: submittedMessage().Value, handle: answerFetched, team: "pets", owner: "ann",
			reason: `decode event.Submitted: poison: type "bai.submitted.v2", want "bai.submitted.v1"`,
		},
		"an event whose answer cannot be written": {
			kind: "bai.submitted.v1", value: submittedMessage().Value, team: "pets", owner: "ann",
			handle: func(_ context.Context, s event.Submitted) ([]event.Event, error) {
				return []event.Event{event.Status{Header: s.Header}}, nil
			},
			reason: "encode event.Status: poison: phase: must not be empty",
		},
		"an event whose answer is too large": {
			kind: "bai.submitted.v1", value: submittedMessage().Value, team: "pets", owner: "ann",
			handle: func(_ context.Context, s event.Submitted) ([]event.Event, error) {
				return []event.Event{event.Status{Header: s.Header, Phase: event.PhaseQueued, Message: strings.Repeat("x", kafka.MaxValue)}}, nil
			},
			reason: "poison: event of type bai.status.v1 has 1024138 bytes, 1024000 at most",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.Start(t, event.Topics()...)
			broker.Write(t, "bai.submitted", kafkatest.Message{Key: "r1", Value: tt.value, Headers: map[string]string{"ce_type": tt.kind, "bai_token": "secret"}})
			consume(t, settings(broker), service.On(tt.handle))
			want(t, broker.Read(t, "bai.dead"), kafkatest.Message{Key: "r1", Value: tt.value, Headers: map[string]string{
				"ce_type": tt.kind, "dead_topic": "bai.submitted", "dead_partition": "0", "dead_offset": "0", "dead_reason": tt.reason, "dead_cut": "",
			}})
			end := broker.Read(t, "bai.finished")
			for _, part := range []string{
				`"run":"r1"`, `"namespace":"` + tt.team + `"`, `"owner":"` + tt.owner + `"`,
				`"outcome":"failed"`, `"class":"platform"`, `"reason":"PoisonedEvent"`,
			} {
				if !strings.Contains(end.Value, part) {
					t.Errorf("the run ends with %s, want %s in it", end.Value, part)
				}
			}
		})
	}
}

func TestPoisonOnATopicThatARunCanDoWithoutEndsNoRun(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, event.Topics()...)
	broker.Write(t, "bai.status", kafkatest.Message{Key: "r1", Value: "hello"}, kafkatest.Message{Key: "r1", Value: "again"})
	consume(t, settings(broker), service.On(func(context.Context, event.Status) ([]event.Event, error) { return nil, nil }))
	broker.ReadN(t, "bai.dead", 2)
	want(t, broker.Count(t, "bai.finished"), 0)
}

func TestOneBadEventAmongManyDoesNotTakeTheOthersWithIt(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, event.Topics()...)
	write := func(id string) kafkatest.Message {
		m := submittedMessage()
		m.Value = strings.Replace(m.Value, "m1", id, 1)
		return m
	}
	broker.Write(t, "bai.submitted", write("a"), write("b"), kafkatest.Message{Key: "r1", Value: "bad"}, write("c"))
	got := make(chan string, 64)
	consume(t, settings(broker), service.Batch(10, func(_ context.Context, evs []event.Submitted) ([]event.Event, error) {
		for _, ev := range evs {
			got <- ev.ID
		}
		return nil, nil
	}))
	want(t, broker.Read(t, "bai.dead").Value, "bad")
	want(t, []string{<-got, <-got, <-got}, []string{"a", "b", "c"})
}

func TestABatchIsWhatHasArrivedAndNoMore(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, event.Topics()...)
	ms := make([]kafkatest.Message, 25)
	for i := range ms {
		ms[i] = submittedMessage()
	}
	broker.Write(t, "bai.submitted", ms...)
	sizes := make(chan int, 64)
	block := make(chan struct{})
	consume(t, settings(broker), service.Batch(10, func(_ context.Context, evs []event.Submitted) ([]event.Event, error) {
		sizes <- len(evs)
		<-block
		return nil, nil
	}))
	total := <-sizes
	close(block)
	for total < len(ms) {
		n := <-sizes
		if n > 10 {
			t.Errorf("a batch of %d events, want 10 at most", n)
		}
		total += n
	}
	want(t, total, len(ms))
}

func TestTheBusOverKafkaKeepsTheContract(t *testing.T) {
	t.Parallel()
	bustest.Run(t, func(t *testing.T) bustest.Bus {
		t.Helper()
		return bus(t, settings(kafkatest.StartWide(t, 3, event.Topics()...)), zap.NewNop())
	})
}

func TestATokenIsNeededToSpeakForARun(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef")
	tests := map[string]struct {
		speaker  kafka.Settings
		consumer bool
	}{
		"who holds the platform's key speaks for every run": {kafka.Settings{Key: key}, true},
		"who holds the run's token speaks for the run":      {kafka.Settings{Token: access.TokenFor(key, "r1")}, true},
		"who holds another run's token does not":            {kafka.Settings{Token: access.TokenFor(key, "r2")}, false},
		"who holds another key does not":                    {kafka.Settings{Key: []byte("fedcba9876543210")}, false},
		"who holds nothing does not":                        {kafka.Settings{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.Start(t, event.Topics()...)
			tt.speaker.Brokers = broker.Addrs
			if err := bus(t, tt.speaker, zap.NewNop()).Publish(t.Context(), status("r1", "hello")); err != nil {
				t.Fatal(err)
			}
			consumer := settings(broker)
			consumer.Key = key
			consume(t, consumer, service.On(func(_ context.Context, s event.Status) ([]event.Event, error) {
				return []event.Event{event.Command{Header: s.Header, Kind: "heard"}}, nil
			}))
			if !tt.consumer {
				wantForgedRefused(t, broker)
				return
			}
			got := broker.Read(t, "bai.commands")
			want(t, got.Headers["bai_token"], access.TokenFor(key, "r1"))
		})
	}
}

// wantForgedRefused checks that the message of r1 was not handled, and why.
func wantForgedRefused(t *testing.T, broker *kafkatest.Broker) {
	t.Helper()
	dead := broker.Read(t, "bai.dead")
	if !strings.Contains(dead.Headers["dead_reason"], `does not carry the token of run "r1"`) {
		t.Errorf("dead letter says %q", dead.Headers["dead_reason"])
	}
	if token, ok := dead.Headers["bai_token"]; ok {
		t.Errorf("dead letter shows the token %q", token)
	}
	want(t, dead.Headers["dead_forged"], "true")
	want(t, broker.Count(t, "bai.commands"), 0)
}

func TestEveryEventOfARunSharesATrace(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, event.Topics()...)
	b := bus(t, settings(broker), zap.NewNop())
	if err := b.Publish(t.Context(), status("r1", "a"), status("r1", "b"), status("r2", "c")); err != nil {
		t.Fatal(err)
	}
	var traces []string
	for _, m := range broker.ReadN(t, "bai.status", 3) {
		trace := m.Headers["traceparent"]
		if len(trace) != len(ownTrace) {
			t.Fatalf("traceparent %q", trace)
		}
		traces = append(traces, trace[:35])
	}
	if traces[0] != traces[1] || traces[0] == traces[2] {
		t.Errorf("traces %q: want the first two the same, the third another", traces)
	}
}

func TestPublishGivesUpWithItsContextAndSaysWhy(t *testing.T) {
	t.Parallel()
	addr, begin := kafkatest.StartLater(t, "bai.status")
	b := bus(t, kafka.Settings{Brokers: []string{addr}, Retry: time.Millisecond}, zap.NewNop())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err := b.Publish(ctx, status("r1", "a"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("Publish: %v, want the deadline and the refusal", err)
	}
	if err := b.Ready(t.Context()); err == nil {
		t.Error("ready, though no broker is there")
	}
	broker := begin()
	if err := b.Publish(t.Context(), status("r1", "b")); err != nil {
		t.Fatal(err)
	}
	if got := broker.Read(t, "bai.status"); !strings.Contains(got.Value, `"b"`) {
		t.Errorf("got %s", got.Value)
	}
	if err := b.Ready(t.Context()); err != nil {
		t.Errorf("not ready: %v", err)
	}
}

func TestReadyNamesWhatWaits(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, event.Topics()...)
	broker.Write(t, "bai.submitted", submittedMessage())
	b := bus(t, settings(broker), zap.NewNop())
	var well atomic.Bool
	runUntilEnd(t, b.Consume("g", service.On(func(context.Context, event.Submitted) ([]event.Event, error) {
		if !well.Load() {
			return nil, errors.New("the store is away")
		}
		return nil, nil
	})))
	until(t, func() bool {
		err := b.Ready(t.Context())
		return err != nil && strings.Contains(err.Error(), "g bai.submitted handle waits: the store is away")
	})
	well.Store(true)
	until(t, func() bool { return b.Ready(t.Context()) == nil })
}

func TestSettingsThatCannotBeRightAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		settings kafka.Settings
		want     string
	}{
		"no broker":          {kafka.Settings{}, "kafka.brokers: at least one is needed"},
		"a negative wait":    {kafka.Settings{Brokers: []string{"b:1"}, Retry: -1}, "kafka.retry: must not be negative"},
		"a short key":        {kafka.Settings{Brokers: []string{"b:1"}, Key: []byte("short")}, "5 bytes, want 16 or more"},
		"a key of nowhere":   {kafka.Settings{Brokers: []string{"b:1"}, KeyFile: "/nowhere"}, "no such file"},
		"small messages":     {kafka.Settings{Brokers: []string{"b:1"}, Topics: kafka.TopicSettings{MaxMessage: 1 << 20}}, "kafka.topics.max_message: 1048576, want 1048588 to 4194304 bytes"},
		"a negative session": {kafka.Settings{Brokers: []string{"b:1"}, Session: -1}, "kafka.session: must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := kafka.NewBus(tt.settings, zap.NewNop()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("NewBus: %v, want %q", err, tt.want)
			}
		})
	}
}

func status(run, message string) event.Status {
	h := event.NewHeader(event.Derive(run, message), run, "pets", "ann", time.Unix(0, 0).UTC())
	return event.Status{Header: h, Phase: event.PhaseRunning, Message: message}
}

func settings(b *kafkatest.Broker) kafka.Settings {
	return kafka.Settings{Brokers: b.Addrs, Retry: time.Millisecond}
}

func bus(t *testing.T, s kafka.Settings, log *zap.Logger) *kafka.Bus {
	t.Helper()
	b, err := kafka.NewBus(s, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// consume runs step until the test ends, and returns the log.
func consume(t *testing.T, s kafka.Settings, step service.Step, opts ...zap.Option) *observer.ObservedLogs {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	runUntilEnd(t, bus(t, s, zap.New(core, opts...)).Consume("g", step))
	return logs
}

// runUntilEnd runs p until the test ends.
func runUntilEnd(tb testing.TB, p service.Runnable) {
	tb.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- p(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			tb.Errorf("stopped with %v, want nil", err)
		}
	})
}

// until polls cond until it returns true.
func until(t *testing.T, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited 20 s in vain")
		}
	}
}

// wantLogged checks the log lines about a step: each change of state, once.
func wantLogged(t *testing.T, logs *observer.ObservedLogs, step string, lines ...string) {
	t.Helper()
	var got []string
	for _, e := range logs.FilterField(zap.String("step", step)).All() {
		got = append(got, e.Message)
	}
	want(t, got, lines)
}

func want[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
