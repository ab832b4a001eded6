package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/internal/broker"
	"github.com/benchmark-ai/bai/services/internal/kafka"
)

// outside is what the command line says of a broker and a store that are not the
// platform's own.
type outside struct {
	brokers, elasticsearch []string
}

// apply puts what the command line says over the settings.
func (o outside) apply(s *settings) {
	if len(o.brokers) > 0 {
		s.Kafka.Brokers = o.brokers
	}
	if len(o.elasticsearch) > 0 {
		s.Elasticsearch.Addresses = o.elasticsearch
	}
}

// openStore opens the store that settings name, or the one in the data directory.
func (p *platform) openStore(ctx context.Context) (err error) {
	path := p.dir.in("store.db")
	if len(p.settings.Elasticsearch.Addresses) > 0 {
		path = ""
	}
	kept, err := program.OpenStore(ctx, path, p.settings.Elasticsearch)
	if err != nil {
		return err
	}
	p.store = p.telemetry.Store(kept)
	p.telemetry.Runs(p.store)
	p.onClose(p.store.Close)
	return nil
}

// openBus connects to the brokers that settings name, or to one of its own.
func (p *platform) openBus(ctx context.Context) error {
	k := &p.settings.Kafka
	embedded := len(k.Brokers) == 0
	if embedded {
		b, err := broker.Start(broker.Settings{Dir: p.dir.in("broker"), Host: p.door.address(), Message: k.Topics.MaxMessage}) //nolint:contextcheck // it outlives the start
		if err != nil {
			return err
		}
		p.onClose(b.Close)
		k.Brokers = []string{b.Addr()}
		k.Topics.Partitions, k.Topics.Replication = cmp.Or(k.Topics.Partitions, 2), 1
		k.Session = cmp.Or(k.Session, 1500*time.Millisecond) // a process that was killed is soon replaced; each group costs two heartbeats a second
	}
	if k.KeyFile == "" {
		var err error
		if k.KeyFile, err = p.dir.keyFile(); err != nil {
			return err
		}
	}
	if err := k.CheckPods(); err != nil {
		return err
	}
	var err error
	if p.bus, err = kafka.NewBus(*k, p.log); err != nil {
		return err
	}
	p.onClose(func() error { p.bus.Close(); return nil })
	err = kafka.CreateTopics(ctx, *k)
	if err != nil && !embedded {
		if kafka.Forbidden(err) {
			return nil // they are there, or are waited for: who runs services need not be who makes topics
		}
		return fmt.Errorf("%w: make them with 'bai admin topics apply', or say kafka.topics.replication", err)
	}
	return err
}
