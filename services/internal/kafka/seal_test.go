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
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

const (
	platformKey = "the key of the runs' tokens"
	sealKey     = "the key of the platform's seals"
	newKey      = "the next key of the platform's seals"
)

// sealing returns the settings of a service that seals, and heeds what docs note.
func sealing(b *kafkatest.Broker, docs *storetest.Memory, keys ...string) kafka.Settings {
	s := settings(b)
	s.Key, s.Seals = []byte(platformKey), kafka.SealsIn{Docs: docs}
	for _, k := range keys {
		s.SealKeys = append(s.SealKeys, []byte(k))
	}
	return s
}

func ended(run, message string) event.Finished {
	h := event.NewHeader(event.Derive(run, message), run, "pets", "ann", time.Unix(0, 0).UTC())
	return event.Finished{Header: h, Outcome: event.Succeeded, Message: message}
}

// utter publishes events with settings.
func utter(t *testing.T, s kafka.Settings, events ...event.Event) {
	t.Helper()
	if err := bus(t, s, zap.NewNop()).Publish(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
}

// listen returns what is heard of the ends of runs, and what is logged.
func listen(t *testing.T, s kafka.Settings) (<-chan string, *observer.ObservedLogs) {
	t.Helper()
	heard := make(chan string, 16)
	logs := consume(t, s, service.On(func(_ context.Context, f event.Finished) ([]event.Event, error) {
		heard <- f.Run + " " + f.Message
		return nil, nil
	}))
	return heard, logs
}

func require(t *testing.T, b *kafkatest.Broker, docs *storetest.Memory) {
	t.Helper()
	if _, err := kafka.RequireSeals(t.Context(), settings(b), kafka.SealsIn{Docs: docs}); err != nil {
		t.Fatal(err)
	}
}

// refusals counts what was refused.
type refusals struct {
	gauge

	n atomic.Int64
}

func (r *refusals) Refused(string, string) { r.n.Add(1) }

func TestAnEventFromThePodOfARunIsRefusedWhereSealsAreDemanded(t *testing.T) {
	t.Parallel()
	broker, docs, count := kafkatest.Start(t, event.Topics()...), storetest.NewMemory(), &refusals{}
	require(t, broker, docs)
	pod := settings(broker)
	pod.Token = kafka.TokenFor([]byte(platformKey), "r1")
	platform := sealing(broker, docs, sealKey)
	utter(t, pod, ended("r1", "forged"))
	utter(t, platform, ended("r2", "true"))
	platform.Meter = count
	heard, logs := listen(t, platform)
	want(t, <-heard, "r2 true")
	letter := broker.Read(t, event.TopicDead)
	want(t, letter.Key, "r1")
	want(t, letter.Headers[kafka.DeadForged], "true")
	until(t, func() bool { return logs.FilterMessage("dead letter").Len() == 1 })
	told := logs.FilterMessage("dead letter").All()[0].ContextMap()
	if told["topic"] != event.TopicFinished || told["partition"] != "0" || told["offset"] != "0" || !strings.Contains(fmt.Sprint(told["reason"]), "seal of a service") {
		t.Errorf("logged %v", told)
	}
	for _, field := range told {
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
	broker.Write(t, event.TopicSubmitted, given(), kafkatest.Message{Key: "r1", Value: "not an event"})
	consume(t, sealing(broker, docs, sealKey), service.On(fetched))
	broker.ReadN(t, event.TopicDead, 2)
	utter(t, settings(broker), ended("r9", "last"))
	want(t, broker.Read(t, event.TopicFinished).Key, "r9")
}

func TestASealThatIsNotTheMessagesOwnIsRefused(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	require(t, broker, docs)
	platform := sealing(broker, docs, sealKey)
	utter(t, platform, ended("r1", "true"))
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
	utter(t, sealing(broker, docs, "a key that somebody else has made"), ended("r3", "strange"))
	utter(t, platform, ended("r4", "last"))
	heard, _ := listen(t, platform)
	want(t, <-heard, "r1 true")
	want(t, <-heard, "r4 last")
	want(t, len(broker.ReadN(t, event.TopicDead, 3)), 3)
}

func TestEventsOfBeforeTheDemandAreHeardAlsoInAReplayFromTheFirst(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	utter(t, settings(broker), ended("r1", "of an earlier version"))
	platform := sealing(broker, docs, sealKey)
	utter(t, platform, ended("r2", "beside it"))
	utter(t, settings(broker), ended("r3", "of an earlier version"))
	require(t, broker, docs)
	utter(t, platform, ended("r4", "sealed"))
	utter(t, settings(broker), ended("r5", "forged"))
	require(t, broker, docs) // again: no less is demanded
	utter(t, platform, ended("r6", "sealed"))
	all := []string{"r1 of an earlier version", "r2 beside it", "r3 of an earlier version", "r4 sealed", "r6 sealed"}
	heard := make(chan string, 16)
	b := bus(t, platform, zap.NewNop())
	step := service.On(func(_ context.Context, f event.Finished) ([]event.Event, error) {
		heard <- f.Run + " " + f.Message
		return nil, nil
	})
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Consume("g", step)(ctx) }()
		for _, one := range all {
			want(t, <-heard, one)
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
	utter(t, old, ended("r1", "old"))
	utter(t, sealing(broker, docs, sealKey), ended("r2", "new"))
	for _, s := range []kafka.Settings{old, sealing(broker, docs, sealKey)} {
		b, heard := bus(t, s, zap.NewNop()), make(chan string, 4)
		part(t, b.Consume(s.Source+map[bool]string{true: "new", false: "old"}[s.Seals != nil], service.On(func(_ context.Context, f event.Finished) ([]event.Event, error) {
			heard <- f.Run
			return nil, nil
		})))
		want(t, <-heard+<-heard, "r1r2")
	}
}

func TestAProcessSaysWhereSealsAreNotDemanded(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	s := sealing(broker, docs, sealKey)
	utter(t, s, ended("r1", "first"))
	heard, logs := listen(t, s)
	want(t, <-heard, "r1 first")
	if n := logs.FilterMessageSnippet("messages without a seal are believed").Len(); n != 1 {
		t.Errorf("said %d times, want once", n)
	}
	if text := bus(t, s, zap.NewNop()).Unsealed(t.Context()); !strings.Contains(text, event.TopicFinished) || !strings.Contains(text, "bai admin seals require") {
		t.Errorf("says %q", text)
	}
	require(t, broker, docs)
	if text := bus(t, s, zap.NewNop()).Unsealed(t.Context()); text != "" {
		t.Errorf("says %q, want nothing", text)
	}
}

func TestARunningProcessLearnsThatSealsAreDemanded(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	s := sealing(broker, docs, sealKey)
	utter(t, settings(broker), ended("r0", "believed"))
	heard := make(chan string, 1)
	logs := consume(t, s, service.On(func(_ context.Context, f event.Finished) ([]event.Event, error) {
		select {
		case heard <- f.Run:
		default:
		}
		return nil, nil
	}))
	want(t, <-heard, "r0")
	require(t, broker, docs)
	until(t, func() bool {
		utter(t, settings(broker), ended("r1", "forged"))
		return logs.FilterMessage("dead letter").Len() > 0
	})
}

func TestWhoCannotTellASealWaits(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	require(t, broker, docs)
	utter(t, sealing(broker, docs, sealKey), ended("r1", "sealed"))
	core, logs := observer.New(zap.InfoLevel)
	b := bus(t, sealing(broker, docs), zap.New(core))
	part(t, b.Consume("g", service.On(func(context.Context, event.Finished) ([]event.Event, error) {
		t.Error("heard an event that nobody could check")
		return nil, nil
	})))
	until(t, func() bool { return logs.FilterMessage("waits").Len() > 0 })
	if err := b.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "kafka.seal_key_file") {
		t.Errorf("Ready: %v, want what to set", err)
	}
}

// away is a source that fails at first.
type away struct {
	kafka.SealSource

	left atomic.Int64
}

func (a *away) Seals(ctx context.Context) (kafka.Seals, error) {
	if a.left.Add(-1) >= 0 {
		return kafka.Seals{}, errors.New("the store is away")
	}
	return a.SealSource.Seals(ctx)
}

func TestNothingIsBelievedWhileNobodyKnowsWhatIsDemanded(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	require(t, broker, docs)
	s := sealing(broker, docs, sealKey)
	utter(t, settings(broker), ended("r1", "forged"))
	utter(t, s, ended("r2", "sealed"))
	source := &away{SealSource: s.Seals}
	source.left.Store(5)
	s.Seals = source
	heard, logs := listen(t, s)
	want(t, <-heard, "r2 sealed")
	said(t, logs, "read from where on seals are demanded", "waits", "goes on")
}

func TestTheFirstKeySealsAndAllAreAccepted(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), storetest.NewMemory()
	require(t, broker, docs)
	for i, tt := range []struct {
		keys   []string
		accept string // by whom of those before it is heard
	}{{[]string{sealKey}, "old"}, {[]string{sealKey, newKey}, "old"}, {[]string{newKey, sealKey}, "new"}, {[]string{newKey}, "new"}} {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(strings.Join(tt.keys, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := sealing(broker, docs)
		s.SealKeyFile = file
		utter(t, s, ended("r"+string(rune('1'+i)), tt.accept))
	}
	both, _ := listen(t, sealing(broker, docs, newKey, sealKey))
	for _, one := range []string{"r1 old", "r2 old", "r3 new", "r4 new"} {
		want(t, <-both, one)
	}
}

func TestAKeyThatIsNoneForSealsIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"none":               {"\n", "has no key, want one of 16 bytes or more on each line"},
		"one that is short":  {sealKey + "\nshort\n", "key 2 of the seals has 5 bytes, want 16 or more"},
		"that of the tokens": {platformKey + "\n", "the key of the seals is the platform's key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := kafka.NewBus(kafka.Settings{Brokers: []string{"b:1"}, Key: []byte(platformKey), SealKeyFile: file}, zap.NewNop())
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "short\n") {
				t.Errorf("NewBus: %v, want %q", err, tt.want)
			}
		})
	}
}
