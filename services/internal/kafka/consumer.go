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
	"github.com/benchmark-ai/bai/services/internal/service"
)

// Bounds of what a consumer has in hand.
const (
	maxTurn  = 256                   // messages that are published for and committed at once
	maxAhead = 8 << 20               // bytes that are fetched before they are handled
	maxDelay = 20 * time.Millisecond // for which answers wait for those to the messages behind
)

// consumer hands the events of one topic to one step, in order.
type consumer struct {
	bus   *Bus
	group string
	step  service.Step
	log   *zap.Logger

	waiter   waiter
	reader   *kafka.Reader
	balancer balancer
	ready    chan kafka.Message  // fetched, not yet handled
	room     *semaphore.Weighted // bytes of these
}

// run consumes until ctx is done. Whatever else ends it is its error.
func (c *consumer) run(ctx context.Context) error {
	c.waiter = waiter{bus: c.bus, name: c.group + " " + c.step.Topic, log: c.log, aside: c.step.Aside}
	// A group that is joined before its topic is there hears nothing of it.
	err := c.waiter.persist(ctx, "join", func() error { return c.bus.probe(ctx, c.step.Topic) })
	if err == nil {
		err = c.waiter.persist(ctx, "read from where on seals are demanded", func() error { return c.bus.mind(ctx, c.step.Topic) })
	}
	if err != nil {
		return nil // ctx is done: that is why it ends
	}
	c.ready, c.room = make(chan kafka.Message, maxTurn), semaphore.NewWeighted(maxAhead)
	c.balancer = newBalancer()
	c.reader = kafka.NewReader(kafka.ReaderConfig{
		Brokers:                c.bus.settings.Brokers,
		GroupID:                groupID(c.group, c.step.Topic),
		Topic:                  c.step.Topic,
		MinBytes:               1,
		MaxBytes:               maxAhead,
		MaxWait:                2 * time.Second, // an idle partition costs one request in this time; a rebalance waits for it
		QueueCapacity:          16,
		SessionTimeout:         c.bus.settings.Session,
		HeartbeatInterval:      c.bus.settings.Session / 3,
		RebalanceTimeout:       max(c.bus.settings.Session, 10*time.Second),
		JoinGroupBackoff:       300 * time.Millisecond,
		GroupBalancers:         []kafka.GroupBalancer{c.balancer},
		WatchPartitionChanges:  true,
		PartitionWatchInterval: time.Minute,
		Dialer:                 dialer(ctx, c.bus.transport),
	})
	turning, stop := context.WithCancel(ctx)
	defer stop()
	var beside sync.WaitGroup
	beside.Go(func() { c.pump(turning) })
	if _, nobody := c.bus.settings.Meter.(quiet); !nobody {
		beside.Go(func() { c.watch(turning) })
	}
	for err == nil {
		err = c.turn(ctx)
	}
	stop()
	beside.Wait()
	if ctx.Err() != nil {
		err = nil // it was told to end
	}
	return errors.Join(err, c.reader.Close())
}

// pump fetches messages until ctx is done.
func (c *consumer) pump(ctx context.Context) {
	for {
		m, err := c.reader.FetchMessage(ctx)
		if err != nil {
			if c.regain(ctx, err) != nil {
				return
			}
			continue
		}
		if c.room.Acquire(ctx, cost(m)) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case c.ready <- m:
		}
	}
}

// regain waits until the brokers answer after fetching failed with err. Its
// only error is ctx's.
func (c *consumer) regain(ctx context.Context, err error) error {
	return c.waiter.persist(ctx, "fetch", func() error {
		if failed := err; failed != nil {
			err = nil
			return failed
		}
		return c.bus.probe(ctx, c.step.Topic)
	})
}

// cost returns how much room m takes.
func cost(m kafka.Message) int64 { return min(int64(weight(m)), maxAhead) }

// take waits for a message, and returns it with all that have arrived behind.
func (c *consumer) take(ctx context.Context) ([]kafka.Message, error) {
	var ms []kafka.Message
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case m := <-c.ready:
		ms = append(ms, m)
	}
	for len(ms) < max(maxTurn, c.step.Most) {
		select {
		case m := <-c.ready:
			ms = append(ms, m)
		default:
			return ms, nil
		}
	}
	return ms, nil
}

// round is what was handled and is not yet committed.
type round struct {
	ms      []kafka.Message
	answers []kafka.Message
	begun   time.Time
}

// turn carries what has arrived all the way: handle, publish, commit. It gives up
// with ctx.
func (c *consumer) turn(ctx context.Context) error {
	ms, err := c.take(ctx)
	if err != nil {
		return err
	}
	r := round{begun: time.Now()}
	for len(ms) > 0 {
		n := c.together(ms)
		answers, err := c.handle(ctx, ms[:n])
		if err != nil {
			if answers, err = c.insist(ctx, &r, ms[:n]); err != nil {
				return err
			}
		}
		r.ms, r.answers, ms = append(r.ms, ms[:n]...), append(r.answers, answers...), ms[n:]
		if time.Since(r.begun) < maxDelay && len(ms) > 0 {
			continue
		}
		if err := c.settle(ctx, &r); err != nil {
			return err
		}
	}
	return nil
}

// together returns how many of ms are handed over at once.
func (c *consumer) together(ms []kafka.Message) int {
	n := 1
	for n < min(len(ms), c.step.Most) && ms[n].Partition == ms[0].Partition {
		n++
	}
	return n
}

// insist handles ms, however often it takes. Others' events are not to wait for
// that: what was handled before is settled first.
func (c *consumer) insist(ctx context.Context, r *round, ms []kafka.Message) (answers []kafka.Message, err error) {
	if err := c.settle(ctx, r); err != nil {
		return nil, err
	}
	err = c.waiter.persist(ctx, "handle", func() (err error) {
		answers, err = c.handle(ctx, ms)
		return err
	})
	return answers, err
}

// handle returns what follows from ms: what the step says, or dead letters
// where no attempt can ever succeed.
func (c *consumer) handle(ctx context.Context, ms []kafka.Message) ([]kafka.Message, error) {
	out, err := c.ask(ctx, ms)
	if !errors.Is(err, event.ErrPoison) {
		return out, err
	}
	if meter, ok := c.bus.settings.Meter.(RefusalMeter); ok && len(ms) == 1 && (errors.Is(err, errUnsealed) || errors.Is(err, errForged)) {
		meter.Refused(c.group, c.step.Topic)
	}
	switch {
	case len(ms) == 1 && c.step.Aside:
		return nil, nil
	case len(ms) == 1:
		return c.bury(ms[0], err), nil
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

// ask returns what the step says to ms.
func (c *consumer) ask(ctx context.Context, ms []kafka.Message) ([]kafka.Message, error) {
	in := make([]event.Message, len(ms))
	for i, m := range ms {
		if err := c.bus.admit(ctx, m); err != nil {
			return nil, err
		}
		in[i] = read(m)
	}
	after, end := c.begin(ms)
	begun := time.Now()
	events, err := c.step.Handle(ctx, in)
	c.bus.settings.Meter.Heard(c.group, c.step.Topic, len(ms), time.Since(begun), err)
	end(err)
	if err != nil {
		return nil, err
	}
	return c.bus.write(events, c.group, after)
}

// bury returns m as a dead letter, and with it the end of its run where that
// cannot go on without m.
func (c *consumer) bury(m kafka.Message, reason error) []kafka.Message {
	out := []kafka.Message{c.bus.sealer.seal(deadLetter(m, reason, c.bus.sizes))}
	end, ok := poisoned(m, reason)
	if !ok {
		return out
	}
	ends, err := c.bus.write([]event.Event{end}, c.group, causes([]kafka.Message{m}))
	if err != nil { // what m says of its run is in it, so that it need not be an event that can be written
		c.log.Error("the run of a dead letter is not ended", zap.String("run", end.Run), zap.Error(err))
	}
	return append(out, ends...)
}

// settle publishes the answers of r, then commits what they answer, and begins
// r anew. Its only errors are ctx's.
func (c *consumer) settle(ctx context.Context, r *round) error {
	rest, ms := r.answers, r.ms
	if len(ms) == 0 {
		return nil
	}
	err := c.waiter.persist(ctx, "publish", func() (err error) {
		rest, err = c.bus.producer.send(ctx, rest)
		return err
	})
	if err != nil {
		return err
	}
	c.mourn(r.answers)
	c.bus.count(r.answers)
	if err := c.waiter.persist(ctx, "commit", func() error { return c.reader.CommitMessages(ctx, ms...) }); err != nil {
		return err
	}
	for _, m := range ms {
		c.room.Release(cost(m))
	}
	c.bus.acts.Add(int64(len(ms)))
	*r = round{begun: time.Now()}
	return nil
}

// mourn logs the dead letters among ms.
func (c *consumer) mourn(ms []kafka.Message) {
	for _, m := range ms {
		if m.Topic == event.TopicDead {
			c.log.Error("dead letter", zap.ByteString("run", m.Key), zap.String("partition", header(m, DeadPartition)),
				zap.String("offset", header(m, DeadOffset)), zap.String("reason", header(m, DeadReason)))
		}
	}
}
