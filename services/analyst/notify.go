package analyst

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/group"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// notify decides what people are to hear of a group, once some of its incidents have changed, again while other analysts are faster.
func (a *analysis) notify(ctx context.Context, id string, members []string) (err error) {
	for range maxTries {
		if err = a.decideGroup(ctx, id, members); err == nil || !lostRace(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("notify of group %s: %w", id, err)
	}
	return nil
}

// decideGroup enqueues a group's notices, and then stores the group, which says that there are such notices.
func (a *analysis) decideGroup(ctx context.Context, id string, members []string) error {
	key := documentKey(a.namespace, id)
	is, version, _, err := store.Find[group.Group](ctx, a.store, store.KindIncidentGroup, key)
	if err != nil {
		return err
	}
	before := is
	is.Namespace, is.ID, is.Members = a.namespace, id, union(is.Members, members)
	stored, err := a.incidentsOf(ctx, a.namespace, is.Members)
	if err != nil {
		return err
	}
	if err := a.record(ctx, stored, members); err != nil {
		return err
	}
	all := make([]incident.Incident, len(stored))
	for i := range stored {
		all[i] = stored[i].Incident
	}
	owners, err := a.submitters(ctx, all)
	if err != nil {
		return err
	}
	receivers := func(i incident.Incident) []string { return a.receivers(a.namespace, owners[i.ID], i.Rule.Notify) }
	next, notices := group.Decide(is, all, receivers, a.now().UTC())
	for _, n := range notices {
		if n.Labels, err = a.labelsOf(ctx, n); err != nil {
			return err
		}
		if err := notice.Enqueue(ctx, a.store, n, n.Made); err != nil {
			return err
		}
	}
	if len(notices) > 0 {
		a.wake()
	}
	if reflect.DeepEqual(before, next) {
		return nil
	}
	return put(ctx, a.store, store.KindIncidentGroup, key, version, next)
}

// record writes the records of those of some incidents that have changed. The incidents are pending until that is done.
func (a *analyst) record(ctx context.Context, all []versioned, changed []string) error {
	if a.records == nil {
		return nil
	}
	for _, i := range all {
		if !slices.Contains(changed, i.ID) {
			continue
		}
		err := a.records.PutIncident(ctx, i.Record(i.version))
		if errors.Is(err, store.ErrRefused) { // it stops no notice
			a.log.Error("an incident cannot be searched", zap.String("incident", i.ID), zap.Error(err))
			continue
		}
		if err != nil {
			return fmt.Errorf("write the record of incident %s: %w", i.ID, err)
		}
	}
	return nil
}
