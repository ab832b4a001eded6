package alarm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Mute makes a mute. To make it again changes nothing. The error is *FieldError or, for a team
// with too many mutes, *StateError.
func (a *Alarms) Mute(ctx context.Context, r MuteRequest) (incident.Mute, error) {
	m, err := newMute(r, a.now())
	if err != nil {
		return incident.Mute{}, err
	}
	n, err := a.dropEnded(ctx, m)
	if err != nil {
		return incident.Mute{}, err
	}
	if n >= maxMutes {
		return incident.Mute{}, &StateError{Message: fmt.Sprintf("team %s has %d mutes already (remove some: baictl alarms unmute ID)",
			m.Namespace, n)}
	}
	return store.Update(ctx, a.deps.Store, store.KindMute, key(m.Namespace, m.ID),
		func(is incident.Mute, found bool) (incident.Mute, bool, error) {
			if found {
				return is, false, nil
			}
			return m, true, nil
		})
}

// dropEnded deletes the mutes of a new mute's team that ended long ago, and returns how many
// others have not ended.
func (a *Alarms) dropEnded(ctx context.Context, next incident.Mute) (n int, err error) {
	for d, err := range store.All[incident.Mute](ctx, a.deps.Store, store.KindMute, key(next.Namespace, "")) {
		if err != nil {
			return n, err
		}
		switch ended := next.Since.Sub(d.Value.Until); {
		case ended > keepEnded:
			err := a.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindMute, Key: d.Key, Version: d.Version})
			if err != nil && !errors.Is(err, store.ErrConflict) {
				return n, fmt.Errorf("delete mute %s: %w", d.Value.ID, err)
			}
		case ended < 0 && d.Value.ID != next.ID:
			n++
		}
	}
	return n, nil
}

// Mutes returns a page of the mutes of a team, the newest first, and the token of the next
// page. Those that have ended are left out unless they are asked for. The error is *FieldError
// for a token that is unknown.
func (a *Alarms) Mutes(ctx context.Context, namespace string, ended bool, p Page) ([]incident.Mute, string, error) {
	now := a.now()
	since := func(m incident.Mute) time.Time { return m.Since }
	wanted := func(m incident.Mute) bool { return ended || m.Until.After(now) }
	return newest(store.All[incident.Mute](ctx, a.deps.Store, store.KindMute, key(namespace, "")), since, wanted, p)
}

// Unmute ends a mute, which is named by its ID or the beginning of it, and reports whether it
// existed. The error is *FieldError.
func (a *Alarms) Unmute(ctx context.Context, namespace, ref string) (existed bool, err error) {
	m, err := findByID[incident.Mute](ctx, a.deps.Store, store.KindMute, "mute", namespace, ref)
	if missing := new(MissingError); errors.As(err, &missing) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, a.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindMute, Key: key(namespace, m.ID)})
}
