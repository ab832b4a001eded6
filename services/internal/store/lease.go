package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lease is the right to do something alone until it ends. Whoever acts under a
// lease writes its Fence beside what it writes, so that one whose lease ended
// while it slept can be told.
type Lease struct {
	Name      string    `json:"name"`
	Holder    string    `json:"holder"`
	Fence     int64     `json:"fence"` // grows with every new holder, never with a renewal
	ExpiresAt time.Time `json:"ends"`

	version int64
}

// ErrHeld says that somebody else holds the lease.
var ErrHeld = errors.New("held by somebody else")

// Acquire takes or renews the lease called name for holder, until now + ttl, or
// says ErrHeld. A lease that has ended, by its own time, can be taken by anybody.
func Acquire(ctx context.Context, docs Docs, name, holder string, now time.Time, ttl time.Duration) (Lease, error) {
	l, version, err := Get[Lease](ctx, docs, KindLease, name)
	if errors.Is(err, ErrNotFound) {
		l = Lease{Name: name, Holder: holder, Fence: 1, ExpiresAt: now.Add(ttl), version: 1}
		return l, asErrHeld(name, Create(ctx, docs, KindLease, name, l))
	}
	if err != nil {
		return Lease{}, fmt.Errorf("look at lease %q: %w", name, err)
	}
	if l.Holder != holder && now.Before(l.ExpiresAt) {
		return Lease{}, fmt.Errorf("lease %q: %w: %q until %s", name, ErrHeld, l.Holder, l.ExpiresAt.Format(time.RFC3339))
	}
	if l.Holder != holder {
		l.Fence++
	}
	l.Holder, l.ExpiresAt = holder, now.Add(ttl)
	l.version, err = Replace(ctx, docs, KindLease, name, version, l)
	return l, asErrHeld(name, err)
}

// Release gives the lease back, so that the next holder need not wait for its
// end. A lease that somebody else has taken meanwhile is left alone. The
// document stays: the fence goes on growing.
func Release(ctx context.Context, docs Docs, l Lease) error {
	version := l.version
	l.ExpiresAt = time.Time{}
	_, err := Replace(ctx, docs, KindLease, l.Name, version, l)
	if errors.Is(err, ErrConflict) {
		return nil
	}
	return err
}

// asErrHeld turns a lost race for the lease into ErrHeld.
func asErrHeld(name string, err error) error {
	if errors.Is(err, ErrExists) || errors.Is(err, ErrConflict) {
		return fmt.Errorf("lease %q: %w", name, ErrHeld)
	}
	return err
}
