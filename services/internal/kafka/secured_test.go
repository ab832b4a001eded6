package kafka_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
	realkafka "github.com/benchmark-ai/bai/services/test/testbed/kafka"
)

// TestConnectionsToAGuardedKafka publishes and consumes with each kind of authentication of a real broker, or is refused.
func TestConnectionsToAGuardedKafka(t *testing.T) {
	if os.Getenv(kafkatest.EnvRealBroker) != "" {
		t.Skip("it has a broker of its own, and was run")
	}
	broker := realkafka.StartGuarded(t, kafkatest.Password, kafkatest.Operator)
	password := writeFile(t, kafkatest.Password+"\n")
	withSASL := func(mechanism, file, ca string) kafka.Settings {
		return kafka.Settings{Brokers: []string{broker.Addr}, Access: access.Access{
			TLS: access.TLS{Enabled: true, CAFile: ca}, SASL: access.SASL{Mechanism: mechanism, User: kafkatest.Operator, PasswordFile: file},
		}}
	}
	certified := kafka.Settings{Brokers: []string{broker.Mutual.Addr}, Access: access.Access{
		TLS: access.TLS{CAFile: broker.CA, CertFile: broker.Mutual.CertFile, KeyFile: broker.Mutual.KeyFile},
	}}
	s := withSASL(access.ScramSHA512, password, broker.CA)
	s.Topics = kafka.TopicSettings{Partitions: 1, Replication: 1}
	if err := kafka.CreateTopics(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		settings kafka.Settings
		why      string // empty if it succeeds
	}{
		"SCRAM-SHA-512 within TLS":                    {withSASL(access.ScramSHA512, password, broker.CA), ""},
		"SCRAM-SHA-256 within TLS":                    {withSASL(access.ScramSHA256, password, broker.CA), ""},
		"a certificate of the client's":               {certified, ""},
		"another password":                            {withSASL(access.ScramSHA512, writeFile(t, "another"), broker.CA), "SASL Authentication Failed"},
		"PLAIN, which this broker does not take":      {withSASL(access.Plain, password, broker.CA), "Unsupported SASL Mechanism"},
		"a broker whose signer nobody knows":          {withSASL(access.ScramSHA512, password, ""), "certificate signed by unknown authority"},
		"no certificate where one is asked for":       {kafka.Settings{Brokers: []string{broker.Mutual.Addr}, Access: access.Access{TLS: access.TLS{CAFile: broker.CA}}}, "tls"},
		"a certificate that is not for that host":     {named(certified, "kafka.example.com"), "wanted to match kafka.example.com"},
		"plain TCP where the broker wants encryption": {kafka.Settings{Brokers: []string{broker.Addr}}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.settings.Retry, tt.settings.Session = time.Millisecond, time.Second
			core, logs := observer.New(zap.WarnLevel)
			b := bus(t, tt.settings, zap.New(core))
			if tt.why == "" {
				roundTrip(t, b, name)
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // it is retried until the context ends
			defer cancel()
			go func() {
				for logs.Len() == 0 && ctx.Err() == nil {
					time.Sleep(10 * time.Millisecond)
				}
				cancel()
			}()
			err := b.Publish(ctx, status(name, "x"))
			if err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("Publish: %v, want %q", err, tt.why)
			}
		})
	}
}

func named(s kafka.Settings, host string) kafka.Settings {
	s.TLS.ServerName = host
	return s
}

// roundTrip publishes an event and consumes it.
func roundTrip(t *testing.T, b *kafka.Bus, run string) {
	t.Helper()
	if err := b.Publish(t.Context(), status(run, "x")); err != nil {
		t.Fatal(err)
	}
	received := make(chan bool, 1)
	runUntilEnd(t, b.Consume(strings.Fields(run)[0], service.On(func(_ context.Context, s event.Status) ([]event.Event, error) {
		if s.Run == run {
			received <- true
		}
		return nil, nil
	})))
	select {
	case <-received:
	case <-time.After(time.Minute):
		t.Error("it is not heard")
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
