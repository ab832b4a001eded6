package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

const (
	platformKey = "the key of the runs' tokens"
	signingKey  = "the key of the platform's seals"
	newKey      = "the next key of the platform's seals"
)

// signingSettings returns the settings of a service that signs, and that uses the policy in docs.
func signingSettings(b *kafkatest.Broker, docs *storetest.Memory, keys ...string) kafka.Settings {
	s := settings(b)
	s.Key, s.SignaturePolicy = []byte(platformKey), kafka.SignaturePolicyStore{Docs: docs}
	for _, k := range keys {
		s.SigningKeys = append(s.SigningKeys, []byte(k))
	}
	return s
}

func finishedEvent(run, message string) event.Finished {
	h := event.NewHeader(event.Derive(run, message), run, "pets", "ann", time.Unix(0, 0).UTC())
	return event.Finished{Header: h, Outcome: event.Succeeded, Message: message}
}

// publish publishes events with settings.
func publish(t *testing.T, s kafka.Settings, events ...event.Event) {
	t.Helper()
	if err := bus(t, s, zap.NewNop()).Publish(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
}

// consumeFinished returns the consumed ends of runs, and the log.
func consumeFinished(t *testing.T, s kafka.Settings) (<-chan string, *observer.ObservedLogs) {
	t.Helper()
	received := make(chan string, 16)
	logs := consume(t, s, service.On(func(_ context.Context, f event.Finished) ([]event.Event, error) {
		received <- f.Run + " " + f.Message
		return nil, nil
	}))
	return received, logs
}

func require(t *testing.T, b *kafkatest.Broker, docs *storetest.Memory) {
	t.Helper()
	if _, err := kafka.RequireSignatures(t.Context(), settings(b), kafka.SignaturePolicyStore{Docs: docs}); err != nil {
		t.Fatal(err)
	}
}

// refusalCounter counts refused messages.
type refusalCounter struct {
	lagMeter

	n atomic.Int64
}

func (r *refusalCounter) RecordRefused(string, string) { r.n.Add(1) }

func TestAnEventFromThePodOfARunIsRefusedWhereSealsAreDemanded(t *testing.T) {
	t.Parallel()
	broker, docs, count := kafkatest.Start(t, event.Topics()...), storetest.NewMemory(), &refusalCounter{}
	require(t, broker, docs)
	pod := settings(broker)
	pod.Token = access.TokenFor([]byte(platformKey), "r1")
	platform := signingSettings(broker, docs, signingKey)
	publish(t, pod, finishedEvent("r1", "forged"))
	publish(t, platform, finishedEvent("r2", "true"))
	platform.Meter = count
	received, logs := consumeFinished(t, platform)
	want(t, <-received, "r2 true")
	letter := broker.Read(t, event.TopicDead)
	want(t, letter.Key, "r1")
	want(t, letter.Headers[kafka.DeadForged], "true")
	until(t, func() bool { return logs.FilterMessage("dead letter").Len() == 1 })
	logged := logs.FilterMessage("dead letter").All()[0].ContextMap()
	if logged["topic"] != event.TopicFinished || logged["partition"] != "0" || logged["offset"] != "0" || !strings.Contains(fmt.Sprint(logged["reason"]), "seal of a service") {
		t.Errorf("logged %v", logged)
	}
	for _, field := range logged {
		if text, ok := field.(string); ok && strings.Contains(text, pod.Token) {
			t.Errorf("the run's token is logged: %s", text)
		}
	}
	want(t, count.n.Load(), 1)
}

func TestAForgedEventDoesNotEndTheRunThatItNames(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	require(t, broker, docs)
	broker.Write(t, event.TopicSubmitted, submittedMessage(), kafkatest.Message{Key: "r1", Value: "not an event"})
	consume(t, signingSettings(broker, docs, signingKey), service.On(answerFetched))
	broker.ReadN(t, event.TopicDead, 2)
	publish(t, settings(broker), finishedEvent("r9", "last"))
	want(t, broker.Read(t, event.TopicFinished).Key, "r9")
}

func TestASealThatIsNotTheMessagesOwnIsRefused(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	require(t, broker, docs)
	platform := signingSettings(broker, docs, signingKey)
	publish(t, platform, finishedEvent("r1", "true"))
	own := broker.Read(t, event.TopicFinished)
	seal := own.Headers["bai_seal"]
	if len(seal) != 64 {
		t.Fatalf("the seal is %q", seal)
	}
	changed := own
	changed.Value = strings.Replace(own.Value, "true", "false", 1)
	foreign := own
	foreign.Key, foreign.Value = "r2", strings.ReplaceAll(own.Value, "r1", "r2")
	broker.Write(t, event.TopicFinished, changed, foreign)
	publish(t, signingSettings(broker, docs, "a key that somebody else has made"), finishedEvent("r3", "strange"))
	publish(t, platform, finishedEvent("r4", "last"))
	received, _ := consumeFinished(t, platform)
	want(t, <-received, "r1 true")
	want(t, <-received, "r4 last")
	want(t, len(broker.ReadN(t, event.TopicDead, 3)), 3)
}

func TestEventsOfBeforeTheDemandAreHeardAlsoInAReplayFromTheFirst(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	publish(t, settings(broker), finishedEvent("r1", "of an earlier version"))
	platform := signingSettings(broker, docs, signingKey)
	publish(t, platform, finishedEvent("r2", "beside it"))
	publish(t, settings(broker), finishedEvent("r3", "of an earlier version"))
	require(t, broker, docs)
	publish(t, platform, finishedEvent("r4", "sealed"))
	publish(t, settings(broker), finishedEvent("r5", "forged"))
	require(t, broker, docs) // a second time: not less is required
	publish(t, platform, finishedEvent("r6", "sealed"))
	all := []string{"r1 of an earlier version", "r2 beside it", "r3 of an earlier version", "r4 sealed", "r6 sealed"}
	received := make(chan string, 16)
	b := bus(t, platform, zap.NewNop())
	step := service.On(func(_ context.Context, f event.Finished) ([]event.Event, error) {
		received <- f.Run + " " + f.Message
		return nil, nil
	})
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Consume("g", step)(ctx) }()
		for _, one := range all {
			want(t, <-received, one)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := b.Rewind(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOldAndNewServicesHearEachOtherUntilSealsAreDemanded(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	old := settings(broker)
	old.Key = []byte(platformKey)
	publish(t, old, finishedEvent("r1", "old"))
	publish(t, signingSettings(broker, docs, signingKey), finishedEvent("r2", "new"))
	for _, s := range []kafka.Settings{old, signingSettings(broker, docs, signingKey)} {
		b, received := bus(t, s, zap.NewNop()), make(chan string, 4)
		runUntilEnd(t, b.Consume(s.Source+map[bool]string{true: "new", false: "old"}[s.SignaturePolicy != nil], service.On(func(_ context.Context, f event.Finished) ([]event.Event, error) {
			received <- f.Run
			return nil, nil
		})))
		want(t, <-received+<-received, "r1r2")
	}
}

func TestAProcessSaysWhereSealsAreNotDemanded(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	s := signingSettings(broker, docs, signingKey)
	publish(t, s, finishedEvent("r1", "first"))
	received, logs := consumeFinished(t, s)
	want(t, <-received, "r1 first")
	if n := logs.FilterMessageSnippet("messages without a seal are believed").Len(); n != 1 {
		t.Errorf("said %d times, want once", n)
	}
	if text := bus(t, s, zap.NewNop()).UnsignedWarning(t.Context()); !strings.Contains(text, event.TopicFinished) || !strings.Contains(text, "bai admin seals require") {
		t.Errorf("says %q", text)
	}
	require(t, broker, docs)
	if text := bus(t, s, zap.NewNop()).UnsignedWarning(t.Context()); text != "" {
		t.Errorf("says %q, want nothing", text)
	}
}

func TestARunningProcessLearnsThatSealsAreDemanded(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	s := signingSettings(broker, docs, signingKey)
	publish(t, settings(broker), finishedEvent("r0", "believed"))
	received := make(chan string, 1)
	logs := consume(t, s, service.On(func(_ context.Context, f event.Finished) ([]event.Event, error) {
		select {
		case received <- f.Run:
		default:
		}
		return nil, nil
	}))
	want(t, <-received, "r0")
	require(t, broker, docs)
	until(t, func() bool {
		publish(t, settings(broker), finishedEvent("r1", "forged"))
		return logs.FilterMessage("dead letter").Len() > 0
	})
}

func TestWhoCannotTellASealWaits(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	require(t, broker, docs)
	publish(t, signingSettings(broker, docs, signingKey), finishedEvent("r1", "sealed"))
	core, logs := observer.New(zap.InfoLevel)
	b := bus(t, signingSettings(broker, docs), zap.New(core))
	runUntilEnd(t, b.Consume("g", service.On(func(context.Context, event.Finished) ([]event.Event, error) {
		t.Error("heard an event that nobody could check")
		return nil, nil
	})))
	until(t, func() bool { return logs.FilterMessage("waits").Len() > 0 })
	if err := b.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "kafka.seal_key_file") {
		t.Errorf("Ready: %v, want what to set", err)
	}
}

// flakyPolicySource is a source that fails at first.
type flakyPolicySource struct {
	kafka.SignaturePolicySource

	failuresLeft atomic.Int64
}

func (a *flakyPolicySource) Policy(ctx context.Context) (kafka.SignaturePolicy, error) {
	if a.failuresLeft.Add(-1) >= 0 {
		return kafka.SignaturePolicy{}, errors.New("the store is away")
	}
	return a.SignaturePolicySource.Policy(ctx)
}

func TestNothingIsBelievedWhileNobodyKnowsWhatIsDemanded(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	require(t, broker, docs)
	s := signingSettings(broker, docs, signingKey)
	publish(t, settings(broker), finishedEvent("r1", "forged"))
	publish(t, s, finishedEvent("r2", "sealed"))
	source := &flakyPolicySource{SignaturePolicySource: s.SignaturePolicy}
	source.failuresLeft.Store(5)
	s.SignaturePolicy = source
	received, logs := consumeFinished(t, s)
	want(t, <-received, "r2 sealed")
	wantLogged(t, logs, "read from where on seals are demanded", "waits", "goes on")
}

// dyingPolicySource ends the process that updates the policy, before or after it is stored.
type dyingPolicySource struct {
	kafka.SignaturePolicySource

	before, after func() error
}

func (d dyingPolicySource) Update(
	ctx context.Context, change func(kafka.SignaturePolicy) kafka.SignaturePolicy,
) (kafka.SignaturePolicy, error) {
	if err := d.before(); err != nil {
		return kafka.SignaturePolicy{}, err
	}
	p, err := d.SignaturePolicySource.Update(ctx, change)
	return p, errors.Join(err, d.after())
}

func TestNoTopicIsMadeWithoutSealsWhereverItsMakerDies(t *testing.T) {
	t.Parallel()
	died, lives := func() error { return errors.New("died") }, func() error { return nil }
	for name, dying := range map[string]dyingPolicySource{
		"before the policy is stored": {before: died, after: lives}, "after the policy is stored": {before: lives, after: died},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker, docs := kafkatest.Start(t, event.TopicFinished), storetest.NewMemory()
			s := signingSettings(broker, docs, signingKey)
			s.Topics = kafka.TopicSettings{Partitions: 1, Replication: 1}
			dying.SignaturePolicySource = s.SignaturePolicy
			first := s
			first.SignaturePolicy = dying
			if err := kafka.CreateTopics(t.Context(), first); err == nil || !strings.Contains(err.Error(), "died") {
				t.Fatalf("CreateTopics: %v", err)
			}
			if n := missingTopics(t, s); n != len(event.Topics())-1 {
				t.Errorf("%d topics are missing, want all but one", n)
			}
			for range 2 { // the second time changes nothing
				createSealed(t, s)
			}
		})
	}
}

// createSealed creates topics, beside one that was there, and wants seals on all but that.
func createSealed(t *testing.T, s kafka.Settings) {
	t.Helper()
	if err := kafka.CreateTopics(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	policy, err := s.SignaturePolicy.Policy(t.Context())
	if open := policy.UnsignedTopics(); err != nil || len(open) != 1 || open[0] != event.TopicFinished {
		t.Errorf("without seals: %q, %v, want the topic that was there alone", open, err)
	}
	if n := missingTopics(t, s); n != 0 {
		t.Errorf("%d topics are missing", n)
	}
}

// missingTopics returns how many topics of the settings brokers lack.
func missingTopics(t *testing.T, s kafka.Settings) int {
	t.Helper()
	c, done, err := kafka.NewClient(s)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	missing, err := kafka.Missing(t.Context(), c, s.Topics.Topics())
	if err != nil {
		t.Fatal(err)
	}
	return len(missing)
}

func TestTheFirstKeySealsAndAllAreAccepted(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	require(t, broker, docs)
	for i, tt := range []struct {
		keys   []string
		accept string // the service that accepts its message, with the old or the new key
	}{{[]string{signingKey}, "old"}, {[]string{signingKey, newKey}, "old"}, {[]string{newKey, signingKey}, "new"}, {[]string{newKey}, "new"}} {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(strings.Join(tt.keys, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := signingSettings(broker, docs)
		s.SigningKeyFile = file
		publish(t, s, finishedEvent("r"+string(rune('1'+i)), tt.accept))
	}
	both, _ := consumeFinished(t, signingSettings(broker, docs, newKey, signingKey))
	for _, one := range []string{"r1 old", "r2 old", "r3 new", "r4 new"} {
		want(t, <-both, one)
	}
}

func TestAKeyThatIsNoneForSealsIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"none":               {"\n", "has no key, want one of 16 bytes or more on each line"},
		"one that is short":  {signingKey + "\nshort\n", "key 2 of the seals has 5 bytes, want 16 or more"},
		"that of the tokens": {platformKey + "\n", "the key of the seals is the platform's key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := kafka.NewBus(kafka.Settings{Brokers: []string{"b:1"}, Key: []byte(platformKey), SigningKeyFile: file}, zap.NewNop())
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "short\n") {
				t.Errorf("NewBus: %v, want %q", err, tt.want)
			}
		})
	}
}
