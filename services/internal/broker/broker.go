// Package broker is the embedded broker: it implements Kafka's protocol and stores its data in a directory. With users it requires
// authentication, else it listens on loopback alone. It is a single process and uses one core; acknowledged records survive the end of the
// process by any signal. After a crash of the machine it repairs its files: incomplete ends are cut off, missing files are created, and
// groups behind the end of a log are reset to the end. It reports lost records.
package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/broker/expiry"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/lock"
)

// Settings say where the broker is. Only Dir is required.
type Settings struct {
	Dir           string `toml:"dir"`        // the broker's own directory, made if it is not there
	Addr          string `toml:"addr"`       // host:port; empty means a port of Host that is chosen once and kept in Dir
	Host          string `toml:"host"`       // address at which a port is chosen; empty means loopback
	Partitions    int    `toml:"partitions"` // of a topic that is made; zero means 2
	MaxTopicBytes int64  `toml:"disk"`       // bytes that one topic may take, about; zero means 512 MiB
	// bytes that are taken at once; zero means 1 MiB and a little, as of brokers elsewhere
	MaxMessageBytes int           `toml:"message"`
	VerifyAll       bool          `toml:"-"`       // read every record before the start: the machine may have stopped since the last one
	Users           []User        `toml:"-"`       // who may speak to it; none means everybody on this machine, and nobody else
	Session         time.Duration `toml:"session"` // least time after which a consumer that is silent may be taken for dead; zero means 1 s
	Log             *zap.Logger   `toml:"-"`       // nil means none
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.Dir == "" {
		errs = append(errs, errors.New("broker.dir: must not be empty"))
	}
	if s.Partitions < 0 {
		errs = append(errs, errors.New("broker.partitions: must not be negative"))
	}
	if s.MaxMessageBytes < 0 {
		errs = append(errs, errors.New("broker.message: must not be negative"))
	}
	if err := refuseOpen(s.Addr, s.Host, s.Users); err != nil {
		errs = append(errs, err)
	}
	if s.MaxTopicBytes != 0 && s.MaxTopicBytes < minDisk {
		errs = append(errs, fmt.Errorf("broker.disk: %d, want %d or more", s.MaxTopicBytes, minDisk))
	}
	return errors.Join(errs...)
}

// User is a user of the broker, with authentication by SCRAM-SHA-256.
type User struct {
	Name, Password string
	Superuser      bool     // may do everything
	WriteTopics    []string // topics with write permission, for a user that is no superuser
}

// Bounds.
const (
	minDisk           = 16 << 20
	defaultMaxMessage = 1<<20 + 12
	stopTimeout       = 10 * time.Second
	startTimeout      = 30 * time.Second
	lockFile          = "lock"
	portFile          = "port"
	dataFiles         = "data"
)

// Broker is a broker that runs.
type Broker struct {
	addr    string
	users   []User
	cluster *kfake.Cluster
	unwatch func() // ends the removal of dead members; nil if it was not started
	lock    *lock.Lock
	repairs []string
}

// Start starts the broker of a directory, with every topic of the platform. It fails if another process uses the directory, or if the port
// of the directory is taken.
func Start(s Settings) (*Broker, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the broker's directory: %w", err)
	}
	dirLock, err := acquire(filepath.Join(s.Dir, lockFile))
	if err != nil {
		return nil, err
	}
	b := &Broker{lock: dirLock, users: s.Users}
	if err := b.start(s); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Broker) start(s Settings) error {
	m := repairer{dir: filepath.Join(s.Dir, dataFiles), deep: s.VerifyAll, configs: s.configs}
	if err := m.repair(); err != nil {
		return err
	}
	l, err := listen(s.Addr, cmp.Or(s.Host, "127.0.0.1"), filepath.Join(s.Dir, portFile))
	if err != nil {
		return err
	}
	b.addr = l.Addr().String()
	err = removeUserFiles(filepath.Join(s.Dir, dataFiles))
	if err == nil {
		b.cluster, err = kfake.NewCluster(append(authOptions(s.Users),
			kfake.ListenFn(singleListener(l)),
			kfake.NumBrokers(1),
			kfake.DataDir(filepath.Join(s.Dir, dataFiles)),
			kfake.GroupMinSessionTimeout(max(s.Session, time.Second)),
			kfake.BrokerConfigs(map[string]string{
				"log.cleaner.backoff.ms": "60000",
				"message.max.bytes":      strconv.Itoa(cmp.Or(s.MaxMessageBytes, defaultMaxMessage)),
			}),
		)...)
	}
	if err != nil {
		_ = l.Close() // it may be closed already
		return fmt.Errorf("start the broker of %s: %w", s.Dir, err)
	}
	if err := b.topics(s); err != nil {
		return err
	}
	if err := b.createACLs(); err != nil {
		return err
	}
	back, err := b.resetOffsets()
	if err != nil {
		return err
	}
	b.repairs = append(m.repairs, back...)
	b.unwatch = expiry.Watch(b.cluster, b.client, cmp.Or(s.Log, zap.NewNop()))
	return saveAddr(filepath.Join(s.Dir, portFile), b.addr)
}

// Repairs returns the damage, repairs and losses that the start found, a sentence each; none if the files were whole.
func (b *Broker) Repairs() []string { return slices.Clone(b.repairs) }

// Addr returns host:port of the broker.
func (b *Broker) Addr() string { return b.addr }

// Close stops the broker. If the broker does not stop in 10 s, Close returns an error, and the end of the process stops the rest.
func (b *Broker) Close() error {
	done := make(chan struct{})
	go func() {
		if b.unwatch != nil {
			b.unwatch()
		}
		if b.cluster != nil {
			b.cluster.Close()
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(stopTimeout):
		return fmt.Errorf("stop the broker at %s: it did not within %s", b.addr, stopTimeout)
	}
	return b.lock.Close()
}

// topics creates the missing topics. Only size limits the records of a topic: a partition that a time limit has emptied would begin again
// at offset 0 after a restart, and its readers would wait for their earlier offsets.
func (b *Broker) topics(s Settings) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	for _, name := range event.Topics() {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, s.partitions(name), 1
		configs := s.configs(name)
		for _, k := range slices.Sorted(maps.Keys(configs)) {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = k, new(configs[k])
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	return b.create(req)
}

// partitions returns how many a topic has.
func (s Settings) partitions(topic string) int32 {
	if topic == event.TopicDead {
		return 1
	}
	return int32(cmp.Or(s.Partitions, 2)) //nolint:gosec // a handful
}

// configs returns the limits of a topic.
func (s Settings) configs(topic string) map[string]string {
	each := cmp.Or(s.MaxTopicBytes, 512<<20) / int64(s.partitions(topic))
	return map[string]string{
		"retention.ms":    "-1",
		"retention.bytes": strconv.FormatInt(each, 10),
		"segment.bytes":   strconv.FormatInt(max(each/8, 1<<20), 10),
	}
}

func (b *Broker) create(req *kmsg.CreateTopicsRequest) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	client, err := b.client()
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	defer client.Close()
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	var errs []error
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			errs = append(errs, fmt.Errorf("create topic %q: %w", t.Topic, err))
		}
	}
	return errors.Join(errs...)
}
