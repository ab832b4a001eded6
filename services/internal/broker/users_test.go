package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/benchmark-ai/bai/services/internal/broker"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// clientAs returns a client with the credentials of a user; with an empty name it has none.
func clientAs(t *testing.T, addr, user, password string) *kgo.Client {
	t.Helper()
	opts := []kgo.Opt{kgo.SeedBrokers(addr), kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.ConsumeTopics(event.TopicLogs), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	if user != "" {
		opts = append(opts, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism()))
	}
	c, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// within returns the time for which a client may try: clients retry refused requests.
func within(t *testing.T, allowed bool) (context.Context, context.CancelFunc) {
	t.Helper()
	if allowed {
		return context.WithTimeout(t.Context(), 5*time.Minute)
	}
	return context.WithTimeout(t.Context(), time.Second)
}

// canWrite reports whether a client can write to a topic.
func canWrite(t *testing.T, c *kgo.Client, topic string, allowed bool) bool {
	t.Helper()
	ctx, cancel := within(t, allowed)
	defer cancel()
	err := c.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr()
	return err == nil
}

// canRead reports whether a client can read the records.
func canRead(t *testing.T, c *kgo.Client, allowed bool) bool {
	t.Helper()
	ctx, cancel := within(t, allowed)
	defer cancel()
	return c.PollFetches(ctx).NumRecords() > 0
}

// permissions are the allowed operations of a user.
type permissions struct{ logs, finished, reads bool }

func TestTheBrokerAsksWhoSpeaks(t *testing.T) {
	t.Parallel()
	s := broker.Settings{Dir: t.TempDir(), Users: []broker.User{
		{Name: "bai", Password: "secret", Superuser: true}, {Name: "pods", Password: "another", WriteTopics: []string{event.TopicLogs}},
	}}
	for _, when := range []string{"at first", "once more", "with another password"} {
		if when == "with another password" {
			s.Users[0].Password, s.Users[1].Password = "secret2", "another2"
		}
		t.Run(when, func(t *testing.T) { checkPermissions(t, s) })
	}
}

// checkPermissions checks the permissions of users and of clients without a user.
func checkPermissions(t *testing.T, s broker.Settings) {
	t.Helper()
	b, err := broker.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	tests := map[string]struct {
		user, password string
		want           permissions
	}{
		"the platform":             {"bai", s.Users[0].Password, permissions{true, true, true}},
		"a pod":                    {"pods", s.Users[1].Password, permissions{logs: true}},
		"nobody":                   {},
		"who guesses":              {"bai", "guess", permissions{}},
		"who has the pods' secret": {"bai", s.Users[1].Password, permissions{}},
		"the library's own":        {"admin", "admin", permissions{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientAs(t, b.Addr(), tt.user, tt.password)
			got := permissions{canWrite(t, c, event.TopicLogs, tt.want.logs), canWrite(t, c, event.TopicFinished, tt.want.finished), canRead(t, c, tt.want.reads)}
			if got != tt.want {
				t.Errorf("may do %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestAFolderOfABrokerThatAskedNobodyIsGuardedFromNowOn(t *testing.T) {
	t.Parallel()
	s := broker.Settings{Dir: t.TempDir()}
	b, err := broker.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	if c := clientAs(t, b.Addr(), "", ""); !canWrite(t, c, event.TopicLogs, true) {
		t.Error("a broker without users refuses")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	s.Users = []broker.User{{Name: "bai", Password: "secret", Superuser: true}}
	if b, err = broker.Start(s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	c := clientAs(t, b.Addr(), "bai", "secret")
	if !canRead(t, c, true) {
		t.Error("what was written before cannot be read")
	}
	if nobody := clientAs(t, b.Addr(), "", ""); canWrite(t, nobody, event.TopicLogs, false) || canRead(t, nobody, false) {
		t.Error("nobody asks for a password")
	}
}
