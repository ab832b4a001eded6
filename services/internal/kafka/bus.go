// Package kafka carries events between services.
//
// Delivery is at least once: an event is committed only after all events that its step returned have been published. A step must therefore
// return the same events when it gets the same event again, maybe while another process gets it too.
package kafka

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// Settings say where the brokers are, and with which right is written to them.
type Settings struct {
	Brokers []string `toml:"brokers"` // host:port of each
	// first wait before anything is tried again, doubled up to 32 times that; zero means 250 ms
	Retry time.Duration `toml:"retry"`
	// how long the group waits for a consumer that was killed; zero means 6 s, the least that brokers allow by default
	Session time.Duration `toml:"session"`
	// file with the platform's key, at least 16 bytes, the same for all services; without it nobody checks who speaks for which run
	KeyFile         string                `toml:"key_file"`
	Key             []byte                `toml:"-"` // the platform's key itself, instead of KeyFile
	SignaturePolicy SignaturePolicySource `toml:"-"` // says from where on seals are demanded; nil: nowhere
	Token           string                `toml:"-"` // instead of a key, for who may speak for one run only: that run's token

	// file with the key of the seals, at least 16 bytes, the same for all services and no pod's; where it has several lines, each a key,
	// the first seals and all are accepted. Without it events are not sealed
	SigningKeyFile string   `toml:"seal_key_file"`
	SigningKeys    [][]byte `toml:"-"` // the keys themselves, instead of SigningKeyFile

	Source string `toml:"-"` // who publishes, for others to read; empty means bai

	Compression string `toml:"compression"` // of what is published, by pods too: gzip, snappy, lz4, zstd or none; empty means snappy

	ClientID string `toml:"client_id"` // by which brokers tell clients apart in their logs and quotas; empty means Source
	access.Access
	Pods access.Access `toml:"pods"` // with which pods of runs write what they measure; the executor hands it to them

	Meter  Meter  `toml:"-"` // nil means that nobody counts
	Tracer Tracer `toml:"-"` // nil means that nobody traces

	Topics     TopicSettings     `toml:"topics"`
	Principals access.Principals `toml:"principals"` // to whom rights are given
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if len(s.Brokers) == 0 {
		errs = append(errs, errors.New("kafka.brokers: at least one is needed"))
	}
	if s.Retry < 0 {
		errs = append(errs, errors.New("kafka.retry: must not be negative"))
	}
	if s.Session < 0 {
		errs = append(errs, errors.New("kafka.session: must not be negative"))
	}
	if _, ok := codecs()[s.Compression]; !ok {
		errs = append(errs, fmt.Errorf("kafka.compression: %q, want gzip, snappy, lz4, zstd or none", s.Compression))
	}
	errs = append(errs, s.Access.Validate("kafka", s.Brokers), s.Pods.Validate("kafka.pods", s.Brokers),
		s.Topics.Validate("kafka.topics"), s.Principals.Validate("kafka.principals"))
	if len(s.Key) > 0 && len(s.Key) < access.MinKey {
		errs = append(errs, fmt.Errorf("the platform's key has %d bytes, want %d or more", len(s.Key), access.MinKey))
	}
	return errors.Join(append(errs, checkSigningKeys(s.SigningKeys, s.Key))...)
}

// Bus is shared by all consumers and publishers of a process.
type Bus struct {
	settings    Settings
	transport   *kafka.Transport
	producer    producer
	credentials access.Credentials
	signer      signer
	sizes       sizes
	log         *zap.Logger
	activity    atomic.Int64 // events that were published or handled

	mu             sync.Mutex
	groups         []string            // that this process consumes in
	policyCache    policyCache         // from where on seals are demanded, as last read
	failing        map[string]error    // steps that fail and are retried, with the error
	loggedFailures map[string]struct{} // steps whose failure was logged last
}

// NewBus returns a Bus. It reads the key file, and does not wait for the brokers. The caller closes it when all its users have ended.
func NewBus(s Settings, log *zap.Logger) (*Bus, error) {
	if s.KeyFile != "" && len(s.Key) == 0 {
		key, err := os.ReadFile(s.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the platform's key: %w", err)
		}
		if s.Key = bytes.TrimSpace(key); len(s.Key) < access.MinKey {
			return nil, fmt.Errorf("read the platform's key: %s has %d bytes, want %d or more", s.KeyFile, len(s.Key), access.MinKey)
		}
	}
	if s.SigningKeyFile != "" && len(s.SigningKeys) == 0 {
		var err error
		if s.SigningKeys, err = readSigningKeys(s.SigningKeyFile); err != nil {
			return nil, err
		}
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s.Retry = cmp.Or(s.Retry, 250*time.Millisecond)
	s.Session = cmp.Or(s.Session, 6*time.Second)
	s.Source = cmp.Or(s.Source, "bai")
	s.ClientID = cmp.Or(s.ClientID, s.Source)
	if s.Meter == nil {
		s.Meter = noopMeter{}
	}
	if s.Tracer == nil {
		s.Tracer = noopMeter{}
	}
	t, err := newTransport(s)
	if err != nil {
		return nil, err
	}
	return &Bus{
		settings:  s,
		transport: t,
		producer: producer{
			client: newClient(s.Brokers, t), partitions: kafka.Murmur2Balancer{Consistent: true}, compression: codecs()[s.Compression],
			sign: signer{keys: s.SigningKeys}.sign,
		},
		credentials:    access.Credentials{Key: s.Key, Token: s.Token},
		signer:         signer{keys: s.SigningKeys},
		sizes:          s.Topics.sizes(),
		log:            log,
		failing:        make(map[string]error),
		loggedFailures: make(map[string]struct{}),
	}, nil
}

// Close closes the idle connections.
func (b *Bus) Close() { b.transport.CloseIdleConnections() }

// Consume returns a runnable that passes the events of a group to step, in order, and publishes the events that step returns. Consumers of
// one group share the events.
//
// The runnable runs once, until its context is done. It waits for unavailable brokers and for a topic that does not exist yet, without a
// limit.
//
// An event that can never be handled becomes a dead letter. If the run of the event cannot go on without it, the bus ends the run.
func (b *Bus) Consume(group string, step service.Step) service.Runnable {
	step.MaxBatch = max(step.MaxBatch, 1)
	b.mu.Lock()
	b.groups = append(b.groups, groupID(group, step.Topic))
	b.mu.Unlock()
	return func(ctx context.Context) error {
		c := &consumer{bus: b, group: group, step: step, log: b.log.With(zap.String("group", group), zap.String("topic", step.Topic))}
		return c.run(ctx)
	}
}

// groupID returns the consumer group of a topic's readers. Each topic has a group of its own, so that a consumer that joins or leaves does
// not stop the consumers of other topics.
func groupID(group, topic string) string { return group + "/" + topic }

// Token returns the token that lets the pods of a run write for it. Only a holder of the key can make it.
func (b *Bus) Token(run string) string { return b.credentials.For(run) }

// Publish writes events, those of one run in their order, and returns when all brokers that must have them do. While brokers are
// unavailable it retries until ctx is done; after that some of the events may have been written. An event that can never be written is
// event.ErrPoison.
func (b *Bus) Publish(ctx context.Context, events ...event.Event) error {
	parents, end := b.startPublishSpans(events)
	msgs, err := b.encode(events, b.settings.Source, parents)
	if err == nil {
		err = b.sendWithRetry(ctx, "publish", msgs)
	}
	end(err)
	return err
}

// sendWithRetry writes msgs, with retries until ctx is done.
func (b *Bus) sendWithRetry(ctx context.Context, name string, msgs []kafka.Message) error {
	rest, w := msgs, retrier{bus: b, name: name, log: b.log}
	err := w.retry(ctx, "publish", func() (err error) {
		rest, err = b.producer.send(ctx, rest)
		return err
	})
	if err == nil {
		b.activity.Add(1)
		b.countPublished(msgs)
	}
	return err
}

// countPublished counts the published messages.
func (b *Bus) countPublished(msgs []kafka.Message) {
	topics := make(map[string]int, 1)
	for _, m := range msgs {
		topics[m.Topic]++
	}
	for topic, n := range topics {
		b.settings.Meter.RecordPublished(topic, n)
	}
}

// Republish writes a message once more to its topic, with its headers, signed again for its run. The message must have been signed before,
// or come from a topic to which pods cannot write. Otherwise Republish behaves like Publish.
func (b *Bus) Republish(ctx context.Context, topic, run string, value []byte, headers map[string]string) error {
	m := kafka.Message{Topic: topic, Key: []byte(run), Value: value}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		m.Headers = append(m.Headers, kafka.Header{Key: name, Value: []byte(headers[name])})
	}
	if token := b.credentials.For(run); token != "" {
		m.Headers = append(m.Headers, kafka.Header{Key: access.TokenHeader, Value: []byte(token)})
	}
	m = b.signer.sign(m)
	if err := b.sizes.fit(m); err != nil {
		return err
	}
	return b.sendWithRetry(ctx, "republish", []kafka.Message{m})
}

// Ready returns the failures that the process waits for, nil if there are none: brokers that do not answer over a new connection now, and
// steps that are being retried.
func (b *Bus) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := b.pingBrokers(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(b.failing)) {
		errs = append(errs, fmt.Errorf("%s waits: %w", name, b.failing[name]))
	}
	return errors.Join(errs...)
}

// pingBrokers checks whether one of the brokers accepts a new connection and answers over it: over an open connection a broker may answer
// that accepts no new ones.
func (b *Bus) pingBrokers(ctx context.Context) error {
	var errs []error
	for _, addr := range b.settings.Brokers {
		err := b.pingBroker(ctx, addr)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("ask brokers %s: %w", strings.Join(b.settings.Brokers, ", "), errors.Join(errs...))
}

func (b *Bus) pingBroker(ctx context.Context, addr string) error {
	conn, err := access.Dialer(ctx, b.transport).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is written
	if at, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(at); err != nil {
			return err
		}
	}
	_, err = conn.ApiVersions()
	return err
}

// probe checks whether the brokers answer, and whether topic exists.
func (b *Bus) probe(ctx context.Context, topic string) error {
	if _, err := b.producer.client.ApiVersions(ctx, &kafka.ApiVersionsRequest{}); err != nil {
		return fmt.Errorf("ask brokers %s: %w", strings.Join(b.settings.Brokers, ", "), err)
	}
	_, err := b.producer.count(ctx, topic)
	return err
}
