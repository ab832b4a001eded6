package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// TopicSettings say how topics are made.
type TopicSettings struct {
	Partitions      int           `toml:"partitions"`   // of each topic but that of dead letters, which has one; zero means 6
	Replication     int           `toml:"replication"`  // copies of each partition; zero means 3
	Retention       time.Duration `toml:"keep"`         // how long events of runs are kept; zero means 30 days
	StreamRetention time.Duration `toml:"keep_streams"` // how long samples and lines are kept, which the store has too; zero means 7 days
	// bytes of what topics take at once, which services keep to; zero means 1048588, the least, which brokers take by default
	MaxMessage int `toml:"max_message"`
}

// Bounds of TopicSettings.MaxMessage. Messages of pods, which do not have the setting, fit into the least value; one fetch of a consumer
// has room for the greatest.
const (
	minMessageBytes = 1<<20 + 12
	maxMessageBytes = maxPrefetchBytes / 2
)

// Validate names every setting at fault, below the table called name.
func (s TopicSettings) Validate(name string) error {
	var errs []error
	for _, n := range []struct {
		key   string
		value int64
	}{
		{"partitions", int64(s.Partitions)},
		{"replication", int64(s.Replication)},
		{"keep", int64(s.Retention)},
		{"keep_streams", int64(s.StreamRetention)},
	} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("%s.%s: must not be negative", name, n.key))
		}
	}
	if s.MaxMessage != 0 && (s.MaxMessage < minMessageBytes || s.MaxMessage > maxMessageBytes) {
		errs = append(errs, fmt.Errorf("%s.max_message: %d, want %d to %d bytes", name, s.MaxMessage, minMessageBytes, maxMessageBytes))
	}
	return errors.Join(errs...)
}

// Topic is a topic that has to exist.
type Topic struct {
	Name        string
	Partitions  int
	Replication int
	Configs     map[string]string // as brokers name them: retention.ms
}

// Topics returns every topic of the platform. Writes to a topic of three replicas or more are acknowledged by two. The limit of messages is
// always set, even if it is the default of brokers, for brokers with another default.
func (s TopicSettings) Topics() []Topic {
	const day = 24 * time.Hour
	var topics []Topic
	for _, name := range event.Topics() {
		t := Topic{Name: name, Partitions: cmp.Or(s.Partitions, 6), Replication: cmp.Or(s.Replication, 3)}
		keep := cmp.Or(s.Retention, 30*day)
		switch name {
		case event.TopicMetrics, event.TopicLogs:
			keep = cmp.Or(s.StreamRetention, 7*day)
		case event.TopicDead:
			t.Partitions = 1
		}
		t.Configs = map[string]string{
			"cleanup.policy": "delete", "max.message.bytes": strconv.Itoa(cmp.Or(s.MaxMessage, minMessageBytes)),
			"retention.ms": strconv.FormatInt(keep.Milliseconds(), 10),
		}
		if t.Replication >= 3 {
			t.Configs["min.insync.replicas"] = "2"
		}
		topics = append(topics, t)
	}
	return topics
}

// Forbidden reports whether err means that the brokers do not let this user create or see a topic.
func Forbidden(err error) bool {
	return errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed)
}

// CreateTopics creates the missing topics of settings. An existing topic is left unchanged. If s has a signing key, messages of the created
// topics need a signature, also when a call ends early and the next one creates them. If the brokers do not answer, CreateTopics fails, and
// can be repeated.
func CreateTopics(ctx context.Context, s Settings) error {
	c, done, err := NewClient(s)
	if err != nil {
		return err
	}
	defer done()
	var policy SignaturePolicySource
	if s.SigningKeyFile != "" || len(s.SigningKeys) > 0 {
		policy = s.SignaturePolicy
	}
	missing, refused := Missing(ctx, c, s.Topics.Topics())
	if err := RequireSignaturesOfNew(ctx, policy, missing); err != nil {
		return errors.Join(refused, err)
	}
	if len(missing) == 0 {
		return refused
	}
	_, err = Create(ctx, c, missing)
	return errors.Join(refused, err)
}

// RequireSignaturesOfNew stores in a policy that all messages of topics need a signature. The caller creates them afterwards: a topic that
// was created first would take messages without a signature for ever, where the creator dies between. Without a policy it does nothing.
func RequireSignaturesOfNew(ctx context.Context, in SignaturePolicySource, topics []Topic) error {
	var names []string
	for _, t := range topics {
		names = append(names, t.Name)
	}
	if in == nil || len(SignaturePolicy{}.RequireAll(names...).Topics) == 0 {
		return nil
	}
	_, err := in.Update(ctx, func(was SignaturePolicy) SignaturePolicy { return was.RequireAll(names...) })
	return err
}

// AwaitTopics is CreateTopics with retries while brokers are unavailable, without a limit; the log and Ready show the wait. Its only other
// error is a refusal of the brokers, which no wait can cure.
func (b *Bus) AwaitTopics(ctx context.Context) error {
	w := retrier{bus: b, name: "start", log: b.log}
	var refused error
	err := w.retry(ctx, "create topics", func() error {
		refused = nil
		err := b.pingBrokers(ctx) // its error says why they do not answer
		if err == nil {
			err = CreateTopics(ctx, b.settings)
		}
		if topicErr, ok := errors.AsType[*topicError](err); ok && !topicErr.isTemporary() {
			refused = err
			return nil
		}
		return err
	})
	return errors.Join(refused, err)
}

// Create creates missing topics, and returns the names of the created ones.
func Create(ctx context.Context, c *kafka.Client, topics []Topic) (created []string, err error) {
	return createTopics(ctx, c, topics, false)
}

// Missing returns the topics that Create would create. The brokers' controller decides that, as other brokers do not show topics that they
// do not know of yet, or that this user may not see. The error has the topics that it refuses to create, which may exist.
func Missing(ctx context.Context, c *kafka.Client, topics []Topic) ([]Topic, error) {
	const first, last = time.Second, 16 * time.Second // the library waits to the end of a try for topics that nobody creates
	var names []string
	var err error
	for wait := first; wait <= last; wait *= 4 {
		if names, err = validateTopics(ctx, c, topics, wait); ctx.Err() != nil || !isLate(err) {
			break
		}
	}
	var missing []Topic
	for _, t := range topics {
		if slices.Contains(names, t.Name) {
			missing = append(missing, t)
		}
	}
	return missing, err
}

// isLate reports whether a try may succeed with more time.
func isLate(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kafka.RequestTimedOut) || errors.Is(err, kafka.BrokerNotAvailable)
}

// validateTopics returns the names of the topics that would be created.
func validateTopics(ctx context.Context, c *kafka.Client, topics []Topic, wait time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return createTopics(ctx, c, topics, true)
}

// createTopics creates missing topics, or only validates the request, and returns the names of those that are created with success.
func createTopics(ctx context.Context, c *kafka.Client, topics []Topic, validateOnly bool) (created []string, err error) {
	req := &kafka.CreateTopicsRequest{ValidateOnly: validateOnly}
	for _, topic := range topics {
		req.Topics = append(req.Topics, topic.config())
	}
	var resp *kafka.CreateTopicsResponse
	err = RetryTransient(ctx, func(ctx context.Context) (err error) { // brokers that have just started may know no controller
		resp, err = c.CreateTopics(ctx, req)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create topics: %w", err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(resp.Errors)) {
		switch err := resp.Errors[name]; {
		case err == nil:
			created = append(created, name)
		case !errors.Is(err, kafka.TopicAlreadyExists):
			errs = append(errs, &topicError{topic: name, err: err})
		}
	}
	return created, errors.Join(errs...)
}

// topicError is why brokers that answer do not make a topic.
type topicError struct {
	topic string
	err   error
}

// Error implements error.
func (e *topicError) Error() string { return fmt.Sprintf("create topic %q: %v", e.topic, e.err) }

// Unwrap returns the error of the brokers.
func (e *topicError) Unwrap() error { return e.err }

// isTemporary reports whether the brokers may answer otherwise later. A controller that was started before its brokers has none that may
// take a partition: it calls all of them fenced, under the code that also means too few brokers.
func (e *topicError) isTemporary() bool {
	kafkaErr, ok := errors.AsType[kafka.Error](e.err)
	return ok && (kafkaErr.Temporary() || kafkaErr == kafka.InvalidReplicationFactor && strings.Contains(e.err.Error(), "currently fenced"))
}

// config returns t in the form of kafka-go.
func (t Topic) config() kafka.TopicConfig {
	c := kafka.TopicConfig{Topic: t.Name, NumPartitions: t.Partitions, ReplicationFactor: t.Replication}
	for _, name := range slices.Sorted(maps.Keys(t.Configs)) {
		c.ConfigEntries = append(c.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: t.Configs[name]})
	}
	return c
}
