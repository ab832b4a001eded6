package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// Bounds of the messages that a consumer holds.
const (
	maxBatchMessages = 256                   // messages that are published for and committed at once
	maxPrefetchBytes = 8 << 20               // bytes that are fetched before they are handled
	maxCommitDelay   = 20 * time.Millisecond // for which answers wait for those to the messages behind
)

// consumer passes the events of one topic to one step, in order.
type consumer struct {
	bus   *Bus
	group string
	step  service.Step
	log   *zap.Logger

	retrier        retrier
	reader         *kafka.Reader
	balancer       balancer
	ready          chan kafka.Message  // fetched, not yet handled
	prefetchBudget *semaphore.Weighted // bytes of these
}

// run consumes until ctx is done. It returns any other reason to end as an error.
func (c *consumer) run(ctx context.Context) error {
	c.retrier = retrier{bus: c.bus, name: c.group + " " + c.step.Topic, log: c.log, optional: c.step.Optional}
	// A group that joins before its topic exists gets no messages of it.
	err := c.retrier.retry(ctx, "join", func() error { return c.bus.probe(ctx, c.step.Topic) })
	if err == nil {
		err = c.retrier.retry(ctx, "read from where on seals are demanded", func() error { return c.bus.checkSigning(ctx, c.step.Topic) })
	}
	if err != nil {
		return nil // ctx is done: that is why run ends
	}
	c.ready, c.prefetchBudget = make(chan kafka.Message, maxBatchMessages), semaphore.NewWeighted(maxPrefetchBytes)
	c.balancer = newBalancer()
	c.reader = kafka.NewReader(kafka.ReaderConfig{
		Brokers:                c.bus.settings.Brokers,
		GroupID:                groupID(c.group, c.step.Topic),
		Topic:                  c.step.Topic,
		MinBytes:               1,
		MaxBytes:               maxPrefetchBytes,
		MaxWait:                2 * time.Second, // an idle partition costs one request in this time; a rebalance waits for it
		QueueCapacity:          16,
		SessionTimeout:         c.bus.settings.Session,
		HeartbeatInterval:      c.bus.settings.Session / 3,
		RebalanceTimeout:       max(c.bus.settings.Session, 10*time.Second),
		JoinGroupBackoff:       300 * time.Millisecond,
		GroupBalancers:         []kafka.GroupBalancer{c.balancer},
		WatchPartitionChanges:  true,
		PartitionWatchInterval: time.Minute,
		Dialer:                 access.Dialer(ctx, c.bus.transport),
	})
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	var background sync.WaitGroup
	background.Go(func() { c.pump(runCtx) })
	if _, nobody := c.bus.settings.Meter.(noopMeter); !nobody {
		background.Go(func() { c.reportLag(runCtx) })
	}
	for err == nil {
		err = c.processBatch(ctx)
	}
	stop()
	background.Wait()
	if ctx.Err() != nil {
		err = nil // the end was requested
	}
	return errors.Join(err, c.reader.Close())
}

// pump fetches messages until ctx is done.
func (c *consumer) pump(ctx context.Context) {
	for {
		m, err := c.reader.FetchMessage(ctx)
		if err != nil {
			if c.awaitBrokers(ctx, err) != nil {
				return
			}
			continue
		}
		if c.prefetchBudget.Acquire(ctx, cost(m)) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case c.ready <- m:
		}
	}
}

// awaitBrokers waits until the brokers answer after fetching failed with err. Its
// only error is ctx's.
func (c *consumer) awaitBrokers(ctx context.Context, err error) error {
	return c.retrier.retry(ctx, "fetch", func() error {
		if failed := err; failed != nil {
			err = nil
			return failed
		}
		return c.bus.probe(ctx, c.step.Topic)
	})
}

// cost returns the part of prefetchBudget that m takes.
func cost(m kafka.Message) int64 { return min(int64(weight(m)), maxPrefetchBytes) }

// nextMessages waits for a message, and returns it with all that have arrived behind it.
func (c *consumer) nextMessages(ctx context.Context) ([]kafka.Message, error) {
	var ms []kafka.Message
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case m := <-c.ready:
		ms = append(ms, m)
	}
	for len(ms) < max(maxBatchMessages, c.step.MaxBatch) {
		select {
		case m := <-c.ready:
			ms = append(ms, m)
		default:
			return ms, nil
		}
	}
	return ms, nil
}

// uncommittedBatch has the handled messages that are not yet committed.
type uncommittedBatch struct {
	ms      []kafka.Message
	answers []kafka.Message
	begun   time.Time
}

// processBatch handles the messages that have arrived, publishes the answers and commits. It returns an error if ctx is done.
func (c *consumer) processBatch(ctx context.Context) error {
	ms, err := c.nextMessages(ctx)
	if err != nil {
		return err
	}
	r := uncommittedBatch{begun: time.Now()}
	for len(ms) > 0 {
		n := c.callSize(ms)
		answers, err := c.handle(ctx, ms[:n])
		if err != nil {
			if answers, err = c.handleWithRetry(ctx, &r, ms[:n]); err != nil {
				return err
			}
		}
		r.ms, r.answers, ms = append(r.ms, ms[:n]...), append(r.answers, answers...), ms[n:]
		if time.Since(r.begun) < maxCommitDelay && len(ms) > 0 {
			continue
		}
		if err := c.commit(ctx, &r); err != nil {
			return err
		}
	}
	return nil
}

// callSize returns how many of ms are handed over at once.
func (c *consumer) callSize(ms []kafka.Message) int {
	n := 1
	for n < min(len(ms), c.step.MaxBatch) && ms[n].Partition == ms[0].Partition {
		n++
	}
	return n
}

// handleWithRetry handles ms, with retries. It first commits the messages handled before, so that they do not wait for the retries.
func (c *consumer) handleWithRetry(ctx context.Context, r *uncommittedBatch, ms []kafka.Message) (answers []kafka.Message, err error) {
	if err := c.commit(ctx, r); err != nil {
		return nil, err
	}
	err = c.retrier.retry(ctx, "handle", func() (err error) {
		answers, err = c.handle(ctx, ms)
		return err
	})
	return answers, err
}

// handle returns the answers to ms: those of the step, or dead letters if no attempt can ever succeed.
func (c *consumer) handle(ctx context.Context, ms []kafka.Message) ([]kafka.Message, error) {
	out, err := c.callStep(ctx, ms)
	if !errors.Is(err, event.ErrPoison) {
		return out, err
	}
	if meter, ok := c.bus.settings.Meter.(refusalMeter); ok && len(ms) == 1 &&
		(errors.Is(err, errUnsigned) || errors.Is(err, access.ErrForged)) {
		meter.RecordRefused(c.group, c.step.Topic)
	}
	switch {
	case len(ms) == 1 && c.step.Optional:
		return nil, nil
	case len(ms) == 1:
		return c.deadLetter(ms[0], err), nil
	}
	out = nil
	for i := range ms {
		answers, err := c.handle(ctx, ms[i:i+1])
		if err != nil {
			return nil, err
		}
		out = append(out, answers...)
	}
	return out, nil
}

// callStep returns the step's answers to ms.
func (c *consumer) callStep(ctx context.Context, ms []kafka.Message) ([]kafka.Message, error) {
	in := make([]event.Message, len(ms))
	for i, m := range ms {
		if err := c.bus.authenticate(ctx, m); err != nil {
			return nil, err
		}
		in[i] = toEvent(m)
	}
	parents, end := c.startSpans(ms)
	start := time.Now()
	events, err := c.step.Handle(ctx, in)
	c.bus.settings.Meter.RecordHandled(c.group, c.step.Topic, len(ms), time.Since(start), err)
	end(err)
	if err != nil {
		return nil, err
	}
	return c.bus.encode(events, c.group, parents)
}

// deadLetter returns m as a dead letter, with the end of its run if that cannot go on without m.
func (c *consumer) deadLetter(m kafka.Message, reason error) []kafka.Message {
	out := []kafka.Message{c.bus.signer.sign(deadLetter(m, reason, c.bus.sizes))}
	end, ok := poisonedRunEnd(m, reason)
	if !ok {
		return out
	}
	ends, err := c.bus.encode([]event.Event{end}, c.group, parentTracesOf([]kafka.Message{m}))
	if err != nil { // the event repeats texts of m, so that encoding it may fail
		c.log.Error("the run of a dead letter is not ended", zap.String("run", end.Run), zap.Error(err))
	}
	return append(out, ends...)
}

// commit publishes the answers of r, commits their messages, and resets r. It returns only the error of ctx.
func (c *consumer) commit(ctx context.Context, r *uncommittedBatch) error {
	rest, ms := r.answers, r.ms
	if len(ms) == 0 {
		return nil
	}
	err := c.retrier.retry(ctx, "publish", func() (err error) {
		rest, err = c.bus.producer.send(ctx, rest)
		return err
	})
	if err != nil {
		return err
	}
	c.logDeadLetters(r.answers)
	c.bus.countPublished(r.answers)
	if err := c.retrier.retry(ctx, "commit", func() error { return c.reader.CommitMessages(ctx, ms...) }); err != nil {
		return err
	}
	for _, m := range ms {
		c.prefetchBudget.Release(cost(m))
	}
	c.bus.activity.Add(int64(len(ms)))
	*r = uncommittedBatch{begun: time.Now()}
	return nil
}

// logDeadLetters logs the dead letters among ms.
func (c *consumer) logDeadLetters(ms []kafka.Message) {
	for _, m := range ms {
		if m.Topic == event.TopicDead {
			c.log.Error("dead letter", zap.ByteString("run", m.Key), zap.String("partition", header(m, DeadPartition)),
				zap.String("offset", header(m, DeadOffset)), zap.String("reason", header(m, DeadReason)))
		}
	}
}
