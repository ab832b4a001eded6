package analyst

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// notifyOfEnd stores the notices of the end of a run. Their IDs follow from run and receiver, so each is stored once.
func (a *analyst) notifyOfEnd(ctx context.Context, r store.Run, p store.RunPoints) error {
	now := a.now().UTC()
	d := endNotified(r, p.PointRun, now)
	if d == nil {
		return nil
	}
	end := endOf(r, p, d)
	for _, name := range a.receivers(end.Namespace, r.Owner, d.Info.Notify) {
		if err := notice.Enqueue(ctx, a.store, notice.NewEnd(name, end), now); err != nil {
			return fmt.Errorf("notify %s of the end of the run: %w", name, err)
		}
	}
	a.wake()
	return nil
}

// submitters returns the submitters of incidents, by the IDs of these.
func (a *analyst) submitters(ctx context.Context, all []incident.Incident) (map[string]string, error) {
	owners := make(map[string]string)
	for _, i := range all {
		owner, err := a.submitter(ctx, i)
		if err != nil {
			return nil, err
		}
		owners[i.ID] = owner
	}
	return owners, nil
}

// submitter returns the owner of the first run of an incident, or of the newest run of its task if it has none. It is empty if nobody is
// notified as submitter, or the run was deleted.
func (a *analyst) submitter(ctx context.Context, i incident.Incident) (string, error) {
	if !slices.Contains(i.Rule.Notify, descriptors.Submitter) {
		return "", nil
	}
	if i.FirstBad != nil && i.FirstBad.Run != "" {
		r, err := a.firstRun(ctx, i)
		return r.Owner, err
	}
	f := store.RunFilter{Namespace: i.Rule.Namespace, Labels: map[string]string{store.LabelTask: i.Rule.Task}}
	runs, _, err := a.store.Runs(ctx, f, "", 1)
	if err != nil {
		return "", fmt.Errorf("read the newest run of task %q: %w", i.Rule.Task, err)
	}
	if len(runs) == 0 {
		return "", nil
	}
	return runs[0].Owner, nil
}

// firstRun returns the first run of an incident; an empty one if it has none, or that was deleted.
func (a *analyst) firstRun(ctx context.Context, i incident.Incident) (store.Run, error) {
	if i.FirstBad == nil || i.FirstBad.Run == "" {
		return store.Run{}, nil
	}
	r, err := a.store.Run(ctx, i.FirstBad.Run)
	if errors.Is(err, store.ErrNotFound) {
		return store.Run{}, nil
	}
	if err != nil {
		return store.Run{}, fmt.Errorf("read run %s: %w", i.FirstBad.Run, err)
	}
	return r, nil
}

// labelsOf returns the labels of the first notice of a group: those of the first run of its worst incident.
func (a *analyst) labelsOf(ctx context.Context, n notice.Notice) (map[string]string, error) {
	if len(n.Incidents) == 0 {
		return nil, nil
	}
	r, err := a.firstRun(ctx, n.Incidents[0])
	return notice.LabelsOf(r.Labels), err
}
