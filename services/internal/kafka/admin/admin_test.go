package admin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kafkago "github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/kafka/admin"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
	realkafka "github.com/benchmark-ai/bai/services/test/testbed/kafka"
)

var key = []byte("the platform's own key")

// securedBroker is a broker that requires authentication.
type securedBroker struct {
	addrs    []string
	ca       string // certificates of TLS; empty for none
	password string // path of the file with the passwords of all users
}

// settings returns those of a user.
func (g securedBroker) settings(user string) kafka.Settings {
	return kafka.Settings{
		Brokers: g.addrs, Retry: time.Millisecond, Session: time.Second, Topics: kafka.TopicSettings{Partitions: 2, Replication: 1},
		Access:     access.Access{TLS: access.TLS{CAFile: g.ca}, SASL: access.SASL{Mechanism: access.ScramSHA512, User: user, PasswordFile: g.password}},
		Principals: access.Principals{"services": {"User:" + kafkatest.Services}, "pods": {"User:" + kafkatest.Pods}},
	}
}

func embedded(t *testing.T) securedBroker {
	t.Helper()
	b := kafkatest.StartSecured(t)
	return securedBroker{addrs: b.Addrs, ca: b.CA, password: passwordFile(t)}
}

func passwordFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(kafkatest.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// apply applies plans until brokers show all changes.
func apply(t *testing.T, g securedBroker) {
	t.Helper()
	s := g.settings(kafkatest.Operator)
	for range 100 {
		have, err := admin.ReadState(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		p := admin.Decide(s.Topics.Topics(), s.Principals.ACLs(), have)
		if p.Empty() {
			return
		}
		if err := admin.Apply(t.Context(), s, p, false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // until the brokers show the changes
	}
	t.Fatal("what was applied is planned again and again")
}

func TestWhatIsAppliedIsPlannedNoMore(t *testing.T) { onBoth(t, apply) }

func TestRightsOfOneHostAndDenialsAreReadAsSuch(t *testing.T) {
	onBoth(t, func(t *testing.T, g securedBroker) {
		t.Helper()
		s := g.settings(kafkatest.Operator)
		c, done, err := kafka.NewClient(s)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		entry := kafkago.ACLEntry{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: event.TopicLogs, ResourcePatternType: kafkago.PatternTypeLiteral,
			Principal: "User:" + kafkatest.Pods, Host: "10.0.0.1", Operation: kafkago.ACLOperationTypeWrite, PermissionType: kafkago.ACLPermissionTypeAllow,
		}
		denied := entry
		denied.Host, denied.PermissionType = "*", kafkago.ACLPermissionTypeDeny
		resp, err := c.CreateACLs(t.Context(), &kafkago.CreateACLsRequest{ACLs: []kafkago.ACLEntry{entry, denied}})
		if err != nil || errors.Join(resp.Errors...) != nil {
			t.Fatal(err, resp)
		}
		right := access.ACL{Principal: "User:" + kafkatest.Pods, Resource: "topic", Name: event.TopicLogs, Operation: "Write"}
		want := []admin.Rule{{ACL: right, Deny: true}, {ACL: right, Host: "10.0.0.1"}}
		waitState(t, s, func(have admin.State) bool { return cmp.Diff(want, have.ACLs) == "" })
	})
}

func TestTopicsAreChangedAsSettingsChange(t *testing.T) {
	onBoth(t, func(t *testing.T, g securedBroker) {
		t.Helper()
		apply(t, g)
		s := g.settings(kafkatest.Operator)
		s.Topics.Retention, s.Topics.Partitions = time.Hour, 3
		var want []string
		for _, name := range event.Topics() {
			if name != event.TopicMetrics && name != event.TopicLogs {
				want = append(want, "~ topic "+name+": retention.ms 2592000000 -> 3600000")
			}
		}
		change(t, s, want, false)
		waitState(t, s, func(have admin.State) bool {
			return have.Topics[event.TopicStatus].Configs["retention.ms"] == "3600000"
		})
		change(t, s, nil, true)
		waitState(t, s, func(have admin.State) bool { return have.Topics[event.TopicStatus].Partitions == 3 })
	})
}

// change applies a plan, which begins with lines, and grows topics if grow is set.
func change(t *testing.T, s kafka.Settings, lines []string, grow bool) {
	t.Helper()
	have, err := admin.ReadState(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	p := admin.Decide(s.Topics.Topics(), s.Principals.ACLs(), have)
	if n := len(event.Topics()) - 1; len(p.Grow) != n || !slices.Equal(lines, p.Lines()[:len(lines)]) {
		t.Fatalf("plan %q, want %q and %d that grow", p.Lines(), lines, n)
	}
	if err := admin.Apply(t.Context(), s, p, grow); err != nil {
		t.Fatal(err)
	}
}

// waitState waits until cond is true for the brokers' state.
func waitState(t *testing.T, s kafka.Settings, cond func(admin.State) bool) {
	t.Helper()
	for range 250 {
		have, err := admin.ReadState(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if cond(have) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the brokers do not say what they were told")
}

// bus returns a bus of a user, which can write for a run only with its token or the key.
func bus(t *testing.T, s kafka.Settings) *kafka.Bus {
	t.Helper()
	b, err := kafka.NewBus(s, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func header(run, id string) event.Header {
	return event.Header{ID: id, Run: run, Namespace: "pets", Owner: "ann", Attempt: 1, Time: time.Unix(1, 0).UTC(), Schema: event.Major}
}

func lines(run, id string) event.Logs {
	return event.Logs{Header: header(run, id), Stream: event.Stream{Role: "benchmark", Pod: "p", Container: "c", Kind: "stdout"}, Lines: []event.Line{{Text: "hello", Time: 2e9}}}
}

func TestAPodCanNeitherEndARunNorSpeakForAnother(t *testing.T) {
	onBoth(t, func(t *testing.T, g securedBroker) {
		t.Helper()
		apply(t, g)
		s := g.settings(kafkatest.Pods)
		s.Token = access.TokenFor(key, "r1")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		pod := bus(t, s)
		if err := pod.Publish(ctx, lines("r1", "own"), lines("r2", "foreign")); err != nil {
			t.Fatalf("what pods may write: %v", err)
		}
		second := header("r1", "again")
		second.Attempt = 2
		for name, ev := range map[string]event.Event{
			"the end of a run":   event.Finished{Header: header("r1", "end"), Outcome: event.Succeeded},
			"a cancel of a run":  event.Command{Header: header("r1", "cancel"), Kind: event.CommandCancel},
			"a run of its own":   event.Submitted{Header: header("r3", "own"), Descriptor: "x"},
			"a run's next round": event.Retried{Header: second, Class: event.ClassInfra, Reason: event.Evicted, Message: "moved"},
		} {
			if err := tryPublish(ctx, pod, g, ev); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want that it finds no way to write it", name, err)
			}
		}
		for _, err := range kafka.Scan(ctx, s, event.TopicLogs, 0, 0) {
			if !kafka.Forbidden(err) {
				t.Errorf("reading what pods write: %v, want that it has no right to that", err)
			}
			break
		}
		checkConsumed(t, g)
	})
}

// tryPublish returns the result of a pod's attempt to write an event.
func tryPublish(ctx context.Context, pod *kafka.Bus, g securedBroker, ev event.Event) error {
	short, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	err := pod.Publish(short, ev)
	for m, readErr := range all(ctx, g.settings(kafkatest.Operator), ev.Topic()) {
		if readErr != nil {
			return readErr
		}
		return fmt.Errorf("%s was written", m.Value)
	}
	return err
}

// checkConsumed has the services consume the pod's messages: its message for another run is a dead letter, whose replay fails.
func checkConsumed(t *testing.T, g securedBroker) {
	t.Helper()
	s := g.settings(kafkatest.Services)
	s.Key = key
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	runs := make(chan string, 8)
	part := bus(t, s).Consume("metrics-pusher-logs", service.On(func(_ context.Context, l event.Logs) ([]event.Event, error) {
		runs <- l.Run
		return nil, nil
	}))
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	if run := <-runs; run != "r1" {
		t.Errorf("heard %s first, want r1", run)
	}
	operator := g.settings(kafkatest.Operator)
	var letters []admin.DeadLetter
	for ctx.Err() == nil && len(letters) == 0 {
		for l, err := range admin.DeadLetters(ctx, operator, 0) {
			if err != nil {
				t.Fatal(err)
			}
			letters = append(letters, l)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(letters) != 1 || letters[0].Run != "r2" || letters[0].Topic != event.TopicLogs || !strings.Contains(letters[0].Reason, "does not carry the token") {
		t.Errorf("dead letters %+v, want what was written for r2", letters)
	}
	for _, l := range letters {
		wantReplayRefused(t, g, l)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(runs) > 0 {
		t.Errorf("heard %s too", <-runs)
	}
}

// wantReplayRefused tries to replay a pod's message for another run with the platform's key, also as a letter of an earlier version.
func wantReplayRefused(t *testing.T, g securedBroker, l admin.DeadLetter) {
	t.Helper()
	s := g.settings(kafkatest.Operator)
	s.Key = key
	b := bus(t, s)
	before := sizes(t, s, l.Topic)
	if err := admin.Replay(t.Context(), s, b, l); err == nil || !strings.Contains(err.Error(), `whoever wrote it may not speak for run "r2"`) {
		t.Errorf("replay of what was forged: %v, want that it is refused", err)
	}
	if d := cmp.Diff(before, sizes(t, s, l.Topic)); d != "" {
		t.Errorf("the replay has written something: %s", d)
	}
	var shown strings.Builder
	if err := l.Show(&shown); err != nil || !strings.Contains(shown.String(), "forged     it is not replayed") {
		t.Errorf("shown: %q, %v", shown.String(), err)
	}
}

// TestADeadLetterOfAnEarlierVersionIsReadAsItWasMeant, without headers about forging and cuts.
func TestADeadLetterOfAnEarlierVersionIsReadAsItWasMeant(t *testing.T) {
	g := embedded(t)
	apply(t, g)
	s := g.settings(kafkatest.Operator)
	b := bus(t, s)
	for reason, value := range map[string]string{
		`poison: the message does not carry the token of run "r": whoever wrote it may not speak for that run`: "{}",
		"it is long": strings.Repeat("x", kafka.MaxDead),
	} {
		if err := b.Republish(t.Context(), event.TopicDead, "r", []byte(value), map[string]string{kafka.DeadReason: reason, kafka.DeadTopic: event.TopicLogs}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for l, err := range admin.DeadLetters(t.Context(), s, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if longText := len(l.Value) > 2; l.Forged == longText || (l.Truncated == "value") != longText {
			t.Errorf("letter of %d bytes: forged %t, cut %q", len(l.Value), l.Forged, l.Truncated)
		}
	}
	if n != 2 {
		t.Errorf("%d letters", n)
	}
}

func TestADeadLetterIsReplayedWhole(t *testing.T) {
	const whole = 1_046_800 // bytes, that brokers take and a letter has no room for
	onBoth(t, func(t *testing.T, g securedBroker) {
		t.Helper()
		apply(t, g)
		s := g.settings(kafkatest.Operator)
		s.Key = key
		b := bus(t, s)
		letters := writeUnreadable(t, b, s, `{"short":1}`, strings.Repeat("x", whole))
		for i, l := range letters {
			if want := []string{"", "value of 1046800 bytes"}[i]; l.Truncated != want {
				t.Errorf("of letter %d is cut: %q, want %q", i, l.Truncated, want)
			}
			if err := admin.Replay(t.Context(), s, b, l); err != nil {
				t.Error(err)
			}
		}
		longText := fmt.Sprintf("r %d", whole)
		if d := cmp.Diff([]string{longText, longText, "r 11", "r 11"}, sizes(t, s, event.TopicCommands)); d != "" {
			t.Error(d)
		}
		var shown strings.Builder
		if err := letters[0].Show(&shown); err != nil || !strings.Contains(shown.String(), "from       bai.commands, partition") || !strings.Contains(shown.String(), `{"short":1}`) {
			t.Errorf("shown: %q, %v", shown.String(), err)
		}
	})
}

func TestADeadLetterThatIsNotThereIsNamed(t *testing.T) {
	onBoth(t, func(t *testing.T, g securedBroker) {
		t.Helper()
		apply(t, g)
		if _, err := admin.Find(t.Context(), g.settings(kafkatest.Operator), 99); err == nil || !strings.Contains(err.Error(), "dead letter 99: there is none") {
			t.Errorf("a letter that is not there: %v", err)
		}
	})
}

// sizes are the key and the size of each message of a topic, sorted.
func sizes(t *testing.T, s kafka.Settings, topic string) []string {
	t.Helper()
	var out []string
	for m, err := range all(t.Context(), s, topic) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %d", m.Key, len(m.Value)))
	}
	slices.Sort(out)
	return out
}

func all(ctx context.Context, s kafka.Settings, topic string) func(func(kafkago.Message, error) bool) {
	return func(yield func(kafkago.Message, error) bool) {
		for partition := range s.Topics.Partitions {
			for m, err := range kafka.Scan(ctx, s, topic, partition, 0) {
				if !yield(m, err) {
					return
				}
			}
		}
	}
}

// writeUnreadable writes messages that cannot be decoded, and returns their dead letters.
func writeUnreadable(t *testing.T, b *kafka.Bus, s kafka.Settings, values ...string) []admin.DeadLetter {
	t.Helper()
	for _, v := range values {
		if err := b.Republish(t.Context(), event.TopicCommands, "r", []byte(v), map[string]string{"ce_type": "bai.unknown.v9"}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	part := b.Consume("fetcher", service.On(func(context.Context, event.Command) ([]event.Event, error) { return nil, nil }))
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	var letters []admin.DeadLetter
	for len(letters) < len(values) && ctx.Err() == nil {
		letters = letters[:0]
		for l, err := range admin.DeadLetters(ctx, s, 0) {
			if err != nil {
				t.Fatal(err)
			}
			letters = append(letters, l)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(letters) != len(values) {
		t.Fatalf("%d dead letters, want %d", len(letters), len(values))
	}
	return letters
}

// onBoth runs a test on the embedded broker and, if there is one, on a real one.
func onBoth(t *testing.T, test func(*testing.T, securedBroker)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, embedded(t)) })
	t.Run("real", func(t *testing.T) {
		b := realkafka.StartGuarded(t, kafkatest.Password, kafkatest.Operator, kafkatest.Services, kafkatest.Pods)
		test(t, securedBroker{addrs: []string{b.Addr}, ca: b.CA, password: passwordFile(t)})
	})
}
