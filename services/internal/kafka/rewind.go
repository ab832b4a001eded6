package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/service"
)

// Rewind resets the groups of all consumers of Consume to the first event of their topics. None of the consumers may run, in any process.
//
// It waits for unavailable brokers without a limit. New brokers have no state of groups yet, and create it at the first request: Rewind
// waits for that. It also waits, for twice the session, until a group has lost consumers that were killed.
func (b *Bus) Rewind(ctx context.Context) error {
	b.mu.Lock()
	groups := slices.Clone(b.groups)
	b.mu.Unlock()
	w := retrier{bus: b, name: "rewind", log: b.log}
	if err := w.retry(ctx, "ask brokers", func() error { return b.pingBrokers(ctx) }); err != nil {
		return err
	}
	var errs []error
	for _, group := range groups { // one by one: each has a coordinator of its own
		if err := b.rewind(ctx, group); err != nil {
			errs = append(errs, fmt.Errorf("delete consumer group %q: %w", group, err))
		}
	}
	return errors.Join(errs...)
}

// Backlog returns how many events the groups of those names that this process
// consumes in have not handled yet.
func (b *Bus) Backlog(ctx context.Context, names ...string) (int64, error) {
	b.mu.Lock()
	groups := slices.Clone(b.groups)
	b.mu.Unlock()
	var total int64
	for _, id := range groups {
		at := strings.LastIndexByte(id, '/') // no topic has one
		name, topic := id[:at], id[at+1:]
		if !slices.Contains(names, name) {
			continue
		}
		n, err := b.producer.count(ctx, topic)
		if err != nil {
			return 0, fmt.Errorf("ask how far group %q is: %w", id, err)
		}
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		behind, err := (&consumer{bus: b, group: name, step: service.Step{Topic: topic}}).lag(ctx, all)
		if err != nil {
			return 0, err
		}
		for _, n := range behind {
			total += n
		}
	}
	return total, nil
}

// Activity returns a number that grows with every event that this process publishes or
// has handled.
func (b *Bus) Activity() int64 { return b.activity.Load() }

// coordinationTimeout is how long brokers may take to find the coordinator of a group.
const coordinationTimeout = 30 * time.Second

func (b *Bus) rewind(ctx context.Context, group string) error {
	start := time.Now()
	for wait := b.settings.Retry; ; wait = min(2*wait, time.Second) {
		err := b.deleteGroup(ctx, group)
		passed := time.Since(start)
		switch {
		case err == nil || errors.Is(err, kafka.GroupIdNotFound):
			return nil
		case isCoordinatorUnavailable(err) && passed < coordinationTimeout, errors.Is(err, kafka.NonEmptyGroup) &&
			passed < 2*b.settings.Session:
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// isCoordinatorUnavailable reports whether brokers are about to find the coordinator of a group.
func isCoordinatorUnavailable(err error) bool {
	return errors.Is(err, kafka.GroupCoordinatorNotAvailable) || errors.Is(err, kafka.NotCoordinatorForGroup) ||
		errors.Is(err, kafka.GroupLoadInProgress)
}

// deleteGroup deletes the offsets of a group.
func (b *Bus) deleteGroup(ctx context.Context, group string) error {
	r, err := b.producer.client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return err
	}
	return r.Errors[group]
}
