package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/cmd/bai/internal/consistency"
	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/internal/broker"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// externalServices are the command line's addresses of an external broker and store.
type externalServices struct {
	brokers, elasticsearch []string
}

// apply sets the addresses of the command line in the settings.
func (o externalServices) apply(s *settings) {
	if len(o.brokers) > 0 {
		s.Kafka.Brokers = o.brokers
	}
	if len(o.elasticsearch) > 0 {
		s.Elasticsearch.Addresses = o.elasticsearch
	}
}

// openStore opens the store in the settings, or else the one in the data directory.
func (p *platform) openStore(ctx context.Context) (err error) {
	path := p.dir.Join("store.db")
	if len(p.settings.Elasticsearch.Addresses) > 0 {
		path = ""
	}
	files := consistency.FileStamps(p.dir.Path) // before the store creates files
	opened, err := program.OpenStore(ctx, path, p.settings.Elasticsearch)
	if errors.Is(err, sqlite.ErrDamaged) || errors.Is(err, sqlite.ErrNotDatabase) {
		return consistency.UnreadableStore(path, err)
	}
	if err != nil {
		return err
	}
	p.sqlite, _ = opened.(*sqlite.Store)
	if s := p.sqlite; s != nil && len(p.settings.Kafka.Brokers) == 0 {
		if err := p.checkConsistency(ctx, s, files); errors.Is(err, sqlite.ErrDamaged) {
			return errors.Join(consistency.UnreadableStore(path, err), opened.Close())
		} else if err != nil {
			return errors.Join(err, opened.Close())
		}
	}
	p.store = p.telemetry.Store(opened)
	p.incidents, _ = opened.(store.IncidentIndex)
	p.telemetry.Runs(p.store)
	p.onClose(p.store.Close)
	return nil
}

// openBus connects to the brokers in the settings, or starts an embedded broker.
func (p *platform) openBus(ctx context.Context) error {
	k := &p.settings.Kafka
	k.SignaturePolicy = kafka.SignaturePolicyStore{Docs: p.store}
	if err := p.openKeys(); err != nil {
		return err
	}
	embedded := len(k.Brokers) == 0
	if embedded {
		if err := p.sealNew(ctx); err != nil {
			return err
		}
		users, err := p.brokerUsers()
		if err != nil {
			return err
		}
		b, err := broker.Start(broker.Settings{Dir: p.dir.Join("broker"), Host: p.door.address(), MaxMessageBytes: k.Topics.MaxMessage, VerifyAll: p.replay || p.marks == nil, Users: users, Log: p.log}) //nolint:contextcheck // it outlives the start
		if err != nil {
			return err
		}
		p.onClose(b.Close)
		for _, damage := range b.Repairs() {
			p.log.Warn("the broker's files were damaged, as when the machine stops, and are mended; all events are heard again",
				zap.String("what", damage))
			p.replay = true
		}
		k.Brokers = []string{b.Addr()}
		k.Topics.Partitions, k.Topics.Replication = cmp.Or(k.Topics.Partitions, 2), 1
		// a killed process is soon replaced; each group costs two heartbeats per second
		k.Session = cmp.Or(k.Session, 1500*time.Millisecond)
	}
	if err := k.CheckPods(); err != nil {
		return err
	}
	var err error
	if p.bus, err = kafka.NewBus(*k, p.log); err != nil {
		return err
	}
	p.onClose(func() error { p.bus.Close(); return nil })
	if embedded {
		return kafka.CreateTopics(ctx, *k)
	}
	p.externalBus = true
	return nil
}

// openKeys creates the keys that the settings do not name.
func (p *platform) openKeys() (err error) {
	k := &p.settings.Kafka
	if k.KeyFile == "" {
		if k.KeyFile, err = p.dir.KeyFile(); err != nil {
			return err
		}
	}
	if k.SigningKeyFile == "" {
		k.SigningKeyFile, err = p.dir.SealFile()
	}
	return err
}

// sealNew requires signatures of all messages if the broker is new. The messages in the
// folder of an earlier version have none.
func (p *platform) sealNew(ctx context.Context) error {
	if _, err := os.Stat(p.dir.Join("broker/data")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := p.settings.Kafka.SignaturePolicy.Update(ctx,
		func(was kafka.SignaturePolicy) kafka.SignaturePolicy { return was.RequireAll(kafka.SignedTopics()...) })
	return err
}

// topics creates the topics of external brokers once these answer. All users of the
// topics wait for them.
func (p *platform) topics(ctx context.Context) error {
	if err := p.bus.AwaitTopics(ctx); err != nil && ctx.Err() == nil && !kafka.Forbidden(err) {
		return fmt.Errorf("%w: make them with 'bai admin topics apply', or say kafka.topics.replication", err)
	}
	<-ctx.Done() // on missing permission, an operator creates the topics, and their users wait
	return nil
}
