package admin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/admin"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// A replay signs the message, so it accepts only letters of services.
func TestALetterThatNoServiceWroteIsNotReplayed(t *testing.T) {
	t.Parallel()
	broker, docs := kafkatest.Start(t, event.Topics()...), kafka.SignaturePolicyStore{Docs: storetest.NewMemory()}
	s := kafka.Settings{Brokers: broker.Addrs, Key: key, SigningKeys: [][]byte{[]byte("the key of the seals")}, SignaturePolicy: docs}
	if _, err := kafka.RequireSignatures(t.Context(), s, docs); err != nil {
		t.Fatal(err)
	}
	// One message that a service cannot decode, and one that is forged.
	own := bus(t, s)
	if err := own.Republish(t.Context(), event.TopicFinished, "r1", []byte("no event"), nil); err != nil {
		t.Fatal(err)
	}
	forged := kafkatest.Message{Key: "r2", Value: `{"outcome":"succeeded"}`, Headers: map[string]string{"ce_type": "bai.finished.v1"}}
	broker.Write(t, event.TopicFinished, forged)
	letters := deadLettersOf(t, broker, own)
	// A reader of the letters writes one of them again, without the mark of forging.
	washed := letters[1]
	if washed.Key != "r2" || washed.Headers[kafka.DeadForged] == "" {
		t.Fatalf("the letter of what was forged is %+v", washed)
	}
	delete(washed.Headers, kafka.DeadForged)
	broker.Write(t, event.TopicDead, washed)
	old := kafkatest.Message{Key: "r3", Value: "old", Headers: map[string]string{kafka.DeadTopic: event.TopicFinished, kafka.DeadCut: ""}}
	broker.Write(t, event.TopicDead, old)

	for offset, tt := range []struct {
		vouched bool
		want    string
	}{{false, ""}, {true, "may not speak for run"}, {false, "no seal of a service"}, {false, "--unsealed"}} {
		err := replay(t, s, own, int64(offset), tt.vouched)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("letter %d: %v, want %q", offset, err, tt.want)
		}
	}
	if err := replay(t, s, own, 3, true); err != nil {
		t.Errorf("a letter that somebody vouches for: %v", err)
	}
}

// replay replays the letter at an offset, with or without an operator who vouches for it.
func replay(t *testing.T, s kafka.Settings, own *kafka.Bus, offset int64, trusted bool) error {
	t.Helper()
	l, err := admin.Find(t.Context(), s, offset)
	if err != nil {
		t.Fatal(err)
	}
	l.Trusted = trusted
	return admin.Replay(t.Context(), s, own, l)
}

// deadLettersOf returns the dead letters of two ends of runs that cannot be handled.
func deadLettersOf(t *testing.T, broker *kafkatest.Broker, own *kafka.Bus) []kafkatest.Message {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- own.Consume("g", service.On(func(context.Context, event.Finished) ([]event.Event, error) { return nil, nil }))(ctx)
	}()
	letters := broker.ReadN(t, event.TopicDead, 2)
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return letters
}
