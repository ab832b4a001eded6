package alarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Incidents returns a page of the incidents of a team, the newest first, and the token of the
// next page. It reads those that are open, if all that it looks for are, else as many as the page
// has, and those between them that are not looked for. The error is *FieldError for a state or a
// token that is unknown.
func (a *Alarms) Incidents(ctx context.Context, namespace string, f IncidentFilter, p Page) ([]incident.Incident, string, error) {
	if err := f.check(); err != nil {
		return nil, "", err
	}
	opened := func(i incident.Incident) time.Time { return i.Opened }
	if f.onlyOpen() {
		return newest(a.open(ctx, namespace), opened, f.matches, p)
	}
	complete, err := a.indexComplete(ctx)
	switch {
	case err != nil:
		return nil, "", err
	case complete:
		return a.indexed(ctx, namespace, f, p)
	}
	return newest(a.shown(ctx, namespace), opened, f.matches, p)
}

// Watched returns the incidents of a team that are open, or ended a short time ago, in the order of
// their changes. States of the filter, and Open, have no effect.
func (a *Alarms) Watched(ctx context.Context, namespace string, f IncidentFilter) (all []incident.Incident, err error) {
	f.States, f.Open = nil, false
	for d, err := range a.open(ctx, namespace) {
		if err != nil {
			return nil, err
		}
		if f.matches(d.Value) {
			all = append(all, d.Value)
		}
	}
	slices.SortFunc(all, func(x, y incident.Incident) int {
		return cmp.Or(x.Updated.Compare(y.Updated), strings.Compare(x.ID, y.ID))
	})
	return all, nil
}

// open yields the incidents of a team that are open, or ended a short time ago, with their
// acknowledgements.
func (a *Alarms) open(ctx context.Context, namespace string) iter.Seq2[store.Document[incident.Incident], error] {
	return func(yield func(store.Document[incident.Incident], error) bool) {
		for d, err := range store.AllDocs(ctx, a.deps.Store, store.KindOpenIncident, key(namespace, "")) {
			one := store.Document[incident.Incident]{Key: d.Key}
			found := err != nil
			if err == nil {
				one.Value, found, err = a.read(ctx, namespace, strings.TrimPrefix(d.Key, key(namespace, "")))
			}
			if (found || err != nil) && !yield(one, err) {
				return
			}
		}
	}
}

// read returns an incident with its acknowledgement, which one that is over does not need.
func (a *Alarms) read(ctx context.Context, namespace, id string) (i incident.Incident, found bool, err error) {
	i, _, found, err = store.Find[incident.Incident](ctx, a.deps.Store, store.KindIncident, key(namespace, id))
	if err != nil || !found || i.State.Over() {
		return i, found, err
	}
	ack, _, acked, err := store.Find[incident.Ack](ctx, a.deps.Store, store.KindAck, key(namespace, id))
	if err != nil {
		return i, found, fmt.Errorf("read the acknowledgement of incident %s: %w", id, err)
	}
	if acked {
		i = incident.WithAck(i, ack)
	}
	return i, true, nil
}

// indexComplete reports whether all incidents are in the index: a platform whose analyst is older
// has none.
func (a *Alarms) indexComplete(ctx context.Context) (bool, error) {
	_, err := a.deps.Store.Doc(ctx, store.KindIncidentIndex, incident.IndexComplete)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// indexed is a page of the incidents that the index names behind a position, as newest has it.
func (a *Alarms) indexed(
	ctx context.Context, namespace string, f IncidentFilter, p Page,
) (page []incident.Incident, next string, err error) {
	after, err := parseToken(p.Token)
	if err != nil {
		return nil, "", err
	}
	prefix := key(namespace, "")
	begin := prefix
	if after != nil {
		begin = incident.IndexKey(namespace, after.at, strings.TrimPrefix(after.key, prefix))
	}
	for d, err := range a.entries(ctx, prefix, begin) {
		if err != nil {
			return nil, "", err
		}
		if !f.selects(d) {
			continue
		}
		i, found, err := a.read(ctx, namespace, d.ID)
		switch {
		case err != nil:
			return nil, "", err
		// an analyst that was killed leaves entries of incidents that another one opened, later
		case !found || !i.Opened.Equal(d.Opened) || !f.matches(i):
			continue
		case len(page) == p.Size:
			last := page[p.Size-1]
			return page, position{last.Opened, key(namespace, last.ID)}.token(), nil
		}
		page = append(page, i)
	}
	return page, "", nil
}

// entriesPage is how many entries of the index are read at once.
const entriesPage = 500

// entries yields the entries of the index whose keys have a prefix, behind a key.
func (a *Alarms) entries(ctx context.Context, prefix, after string) iter.Seq2[incident.IndexEntry, error] {
	return func(yield func(incident.IndexEntry, error) bool) {
		for after != "" {
			page, next, err := a.entriesAfter(ctx, prefix, after)
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(incident.IndexEntry{}, fmt.Errorf("list incidents: %w", err))
				return
			}
			after = next
		}
	}
}

// entriesAfter returns the entries behind a key, and the key of the last one; that is empty if there are no more.
func (a *Alarms) entriesAfter(ctx context.Context, prefix, after string) (page []incident.IndexEntry, next string, err error) {
	docs, err := a.deps.Store.Docs(ctx, store.KindIncidentIndex, after, entriesPage)
	if err != nil {
		return nil, "", err
	}
	for _, d := range docs {
		if !strings.HasPrefix(d.Key, prefix) {
			return page, "", nil
		}
		e, err := store.Decode[incident.IndexEntry](d)
		if err != nil {
			return page, "", err
		}
		page, next = append(page, e), d.Key
	}
	if len(docs) < entriesPage {
		next = ""
	}
	return page, next, nil
}
