package analyst

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// decideGroup stores a group with the notices that follow in its outbox, and enqueues them then: of several analysts, one whose decision is
// stored has notices. It enqueues first what others have left in the outbox.
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
	all := make([]incident.Incident, len(stored))
	for i := range stored {
		all[i] = stored[i].Incident
	}
	if a.reviewed != nil && (slices.ContainsFunc(stored, a.changed) || !group.Due(before, all, a.now().UTC())) {
		return nil
	}
	if err := a.record(ctx, stored, members); err != nil {
		return err
	}
	if err := a.enqueue(ctx, is.Notices(all)); err != nil {
		return err
	}
	owners, err := a.submitters(ctx, all)
	if err != nil {
		return err
	}
	receivers := func(i incident.Incident) []string { return a.receivers(a.namespace, owners[i.ID], i.Rule.Notify) }
	next, notices := group.Decide(is, all, receivers, a.now().UTC())
	if err := a.label(ctx, &next, notices); err != nil {
		return err
	}
	if reflect.DeepEqual(before, next) {
		return nil
	}
	if version, err = put(ctx, a.store, store.KindIncidentGroup, key, version, next); err != nil || len(notices) == 0 {
		return err
	}
	if err := a.enqueue(ctx, notices); err != nil {
		return err
	}
	next.Outbox = nil
	_, err = put(ctx, a.store, store.KindIncidentGroup, key, version, next)
	if lostRace(err) { // the other writer has enqueued them too
		return nil
	}
	return err
}

// changed reports whether an incident has changed since it was reviewed. One that was not ended long ago.
func (a *analysis) changed(i versioned) bool {
	version, ok := a.reviewed[i.ID]
	return ok && version != i.version
}

// label gives the notices that follow from a group their labels, also in its outbox: a receiver such as GitHub has all notices of a group
// at one commit, whichever run is the first of its incidents when another one is made.
func (a *analyst) label(ctx context.Context, g *group.Group, all []notice.Notice) (err error) {
	known := make(map[string]map[string]string)
	maps.Copy(known, g.Labels)
	for k, n := range all {
		if known[n.Receiver] == nil {
			if known[n.Receiver], err = a.labelsOf(ctx, n); err != nil {
				return err
			}
		}
		all[k].Labels, g.Outbox[k].Notice.Labels = known[n.Receiver], known[n.Receiver]
	}
	maps.DeleteFunc(known, func(_ string, labels map[string]string) bool { return labels == nil })
	if len(known) > 0 {
		g.Labels = known
	}
	return nil
}

// enqueue has notices sent.
func (a *analyst) enqueue(ctx context.Context, all []notice.Notice) error {
	for _, n := range all {
		if err := notice.Enqueue(ctx, a.store, n, n.Made); err != nil {
			return err
		}
	}
	if len(all) > 0 {
		a.wake()
	}
	return nil
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
