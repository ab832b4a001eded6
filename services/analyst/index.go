package analyst

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/group"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// index adds an incident to the list of all incidents of its namespace.
func (a *analyst) index(ctx context.Context, namespace string, i incident.Incident) error {
	err := store.Create(ctx, a.store, store.KindIncidentIndex, incident.IndexKey(namespace, i.Opened, i.ID), incident.IndexEntryOf(i))
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("list incident %s: %w", i.ID, err)
	}
	return nil
}

// indexed returns the keys of the incidents in the list.
func (t *ticker) indexed(ctx context.Context) (map[string]bool, error) {
	known := map[string]bool{}
	for d, err := range store.AllDocs(ctx, t.store, store.KindIncidentIndex, "") {
		if err != nil {
			return nil, err
		}
		namespace, rest, _ := strings.Cut(d.Key, "/")
		_, id, _ := strings.Cut(rest, "/")
		known[documentKey(namespace, id)] = true
	}
	return known, nil
}

// indexGroup adds the incidents of a group to the list that lack there: they are older than the list, or come from a process that is.
func (t *ticker) indexGroup(ctx context.Context, g group.Group, known map[string]bool) error {
	for _, id := range g.Members {
		if known[documentKey(g.Namespace, id)] {
			continue
		}
		i, _, found, err := store.Find[incident.Incident](ctx, t.store, store.KindIncident, documentKey(g.Namespace, id))
		if err != nil && !damaged(err) {
			return err
		}
		if !found || err != nil {
			continue
		}
		if err := t.index(ctx, g.Namespace, i); err != nil {
			return err
		}
	}
	return nil
}

// completeIndex notes that all incidents are in the list.
func (t *ticker) completeIndex(ctx context.Context) error {
	_, err := t.store.Doc(ctx, store.KindIncidentIndex, incident.IndexComplete)
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	err = store.Create(ctx, t.store, store.KindIncidentIndex, incident.IndexComplete, incident.IndexEntry{})
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}
