package alarm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// shown yields the incidents of a team with their acknowledgements, by key. Both kinds of
// documents have the same keys, and are read side by side.
func (a *Alarms) shown(ctx context.Context, namespace string) iter.Seq2[store.Document[incident.Incident], error] {
	return func(yield func(store.Document[incident.Incident], error) bool) {
		next, stop := iter.Pull2(store.All[incident.Ack](ctx, a.deps.Store, store.KindAck, key(namespace, "")))
		defer stop()
		acks := ackCursor{next: next}
		for d, err := range store.All[incident.Incident](ctx, a.deps.Store, store.KindIncident, key(namespace, "")) {
			if err == nil {
				d.Value, err = acks.apply(d.Key, d.Value)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// ackCursor reads the acknowledgements of a team, by key.
type ackCursor struct {
	next func() (store.Document[incident.Ack], error, bool)
	ack  store.Document[incident.Ack] // the newest one that was read
	err  error
	done bool
}

// apply returns an incident with its acknowledgement, if there is one. Keys are given in their
// order.
func (c *ackCursor) apply(key string, i incident.Incident) (incident.Incident, error) {
	for !c.done && c.err == nil && c.ack.Key < key {
		var more bool
		c.ack, c.err, more = c.next()
		c.done = !more
	}
	if c.err == nil && !c.done && c.ack.Key == key {
		i = incident.WithAck(i, c.ack.Value)
	}
	return i, c.err
}

// Incident returns an incident of a team by its ID, or by the beginning of it that no other one
// has. The error is *FieldError or *MissingError.
func (a *Alarms) Incident(ctx context.Context, namespace, ref string) (incident.Incident, error) {
	i, err := findByID[incident.Incident](ctx, a.deps.Store, store.KindIncident, "incident", namespace, ref)
	if err != nil {
		return i, err
	}
	ack, _, found, err := store.Find[incident.Ack](ctx, a.deps.Store, store.KindAck, key(namespace, i.ID))
	if err != nil {
		return i, fmt.Errorf("read the acknowledgement of incident %s: %w", i.ID, err)
	}
	if found {
		i = incident.WithAck(i, ack)
	}
	return i, nil
}

// Acknowledge says something of an incident, and returns the incident as that makes it. To say
// the same again changes nothing. The error is *FieldError, *MissingError or, for an incident
// that is over, *StateError.
func (a *Alarms) Acknowledge(ctx context.Context, namespace, ref string, ack incident.Ack) (incident.Incident, error) {
	ack.At = a.now()
	if err := checkAck(ack); err != nil {
		return incident.Incident{}, err
	}
	i, err := findByID[incident.Incident](ctx, a.deps.Store, store.KindIncident, "incident", namespace, ref)
	if err != nil {
		return i, err
	}
	next, err := store.Update(ctx, a.deps.Store, store.KindAck, key(namespace, i.ID),
		func(is incident.Ack, found bool) (incident.Ack, bool, error) {
			shown := i
			if found {
				shown = incident.WithAck(i, is)
			}
			return nextAck(shown, is, found, ack)
		})
	if err != nil {
		return i, err
	}
	return incident.WithAck(i, next), nil
}

// findByID returns the document of a team whose ID is a text or begins with it. What names the
// field of the request, and the thing.
func findByID[T any](ctx context.Context, docs Store, kind store.Kind, what, namespace, ref string) (T, error) {
	var none T
	id, err := checkRef(what, ref)
	if err != nil {
		return none, err
	}
	v, _, err := store.Get[T](ctx, docs, kind, key(namespace, id))
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return v, err
	}
	found, err := docs.Docs(ctx, kind, key(namespace, id), 2)
	if err != nil {
		return none, fmt.Errorf("find %s %s: %w", what, id, err)
	}
	n := 0
	for _, d := range found {
		if strings.HasPrefix(d.Key, key(namespace, id)) {
			n++
		}
	}
	switch n {
	case 0:
		return none, &MissingError{Message: fmt.Sprintf("%s %s of team %s does not exist", what, id, namespace)}
	case 1:
		return store.Decode[T](found[0])
	}
	return none, &FieldError{Field: what, Message: fmt.Sprintf("%q is the beginning of several IDs", id), Remedy: "give more characters"}
}
