package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
)

// Rewind has every consumer that Consume has made begin anew at the first event
// of its topic. None of them may run, here or elsewhere.
//
// Brokers that are new keep nothing of groups yet, and make what they need for
// it when they are first asked: that is waited for, and so is that a group is
// left by consumers who were killed, for twice the session.
func (b *Bus) Rewind(ctx context.Context) error {
	b.mu.Lock()
	groups := slices.Clone(b.groups)
	b.mu.Unlock()
	var errs []error
	for _, group := range groups { // one by one: each has a coordinator of its own
		if err := b.rewind(ctx, group); err != nil {
			errs = append(errs, fmt.Errorf("delete consumer group %q: %w", group, err))
		}
	}
	return errors.Join(errs...)
}

// coordination is how long brokers may take to say who looks after a group.
const coordination = 30 * time.Second

func (b *Bus) rewind(ctx context.Context, group string) error {
	begun := time.Now()
	for wait := b.settings.Retry; ; wait = min(2*wait, time.Second) {
		err := b.forget(ctx, group)
		passed := time.Since(begun)
		switch {
		case err == nil || errors.Is(err, kafka.GroupIdNotFound):
			return nil
		case settling(err) && passed < coordination, errors.Is(err, kafka.NonEmptyGroup) && passed < 2*b.settings.Session:
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

// settling says whether brokers are about to find out who looks after a group.
func settling(err error) bool {
	return errors.Is(err, kafka.GroupCoordinatorNotAvailable) || errors.Is(err, kafka.NotCoordinatorForGroup) || errors.Is(err, kafka.GroupLoadInProgress)
}

// forget has the brokers forget how far a group is.
func (b *Bus) forget(ctx context.Context, group string) error {
	r, err := b.producer.client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return err
	}
	return r.Errors[group]
}
