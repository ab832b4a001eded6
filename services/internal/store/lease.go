package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lease is the exclusive right to do a task until its end. A holder writes the Fence of its lease beside its data, so that a write after
// the end of the lease can be recognized.
type Lease struct {
	Name      string    `json:"name"`
	Holder    string    `json:"holder"`
	Fence     int64     `json:"fence"` // grows with every new holder, never with a renewal
	ExpiresAt time.Time `json:"ends"`

	version int64
}

// ErrHeld means that another holder has the lease.
var ErrHeld = errors.New("held by somebody else")

// Acquire takes or renews the lease called name for holder, until now + ttl, or returns ErrHeld. Any holder can take a lease that has
// ended, by its own time.
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

// Release ends the lease, so that the next holder need not wait for its end. If another holder has taken the lease meanwhile, Release does
// nothing. The document stays: the fence keeps growing.
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
