package kube

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// maxEventQueries is for how many pods Observe lists events if there is no cache.
const maxEventQueries = 8

// Observe implements cluster.Observer. Jobs and pods come from the API server; events come from the cache if it is complete, else from the
// API server.
func (c *Cluster) Observe(ctx context.Context, r cluster.Ref) (cluster.Snapshot, error) {
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	at := attemptOfRef(r)
	jobs, err := c.listJobs(ctx, at, r)
	if err != nil {
		return cluster.Snapshot{}, wrapError("look at job "+r.Job, err)
	}
	list, err := c.core.Pods(r.Scope).List(ctx, metav1.ListOptions{LabelSelector: at.selector()})
	if err != nil {
		return cluster.Snapshot{}, wrapError("look for the pods of job "+r.Job, err)
	}
	for i := range list.Items {
		nameMeasured(&list.Items[i])
	}
	selected, err := c.listSelected(ctx, jobs)
	if err != nil {
		return cluster.Snapshot{}, wrapError("look for the pods of "+r.Job, err)
	}
	seen, found := snapshotOf(at, &r, jobs, append(pointers(list.Items), selected...))
	if !found {
		return cluster.Snapshot{}, fmt.Errorf("job %s: %w", r.Job, cluster.ErrNotFound)
	}
	if seen.Events, err = c.listEvents(ctx, seen); err != nil {
		return cluster.Snapshot{}, err
	}
	return seen, nil
}

// listJobs returns the Job in r, and the Jobs of the attempt's other roles unless MainOnly is set. Objects of operators count as the Jobs
// that they stand for.
func (c *Cluster) listJobs(ctx context.Context, at attempt, r cluster.Ref) ([]*batchv1.Job, error) {
	var jobs []*batchv1.Job
	job, err := c.batch.Jobs(r.Scope).Get(ctx, r.Job, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return nil, err
	case err == nil:
		if owner, ok := attemptOf(job); ok && owner == at {
			jobs = append(jobs, job)
		}
		if c.settings.MainOnly {
			return jobs, nil
		}
	}
	objects, err := c.listObjects(ctx, at)
	if err != nil {
		return nil, err
	}
	if c.settings.MainOnly {
		return slices.DeleteFunc(objects, func(j *batchv1.Job) bool { return j.Name != r.Job }), nil
	}
	list, err := c.batch.Jobs(r.Scope).List(ctx, metav1.ListOptions{LabelSelector: at.selector()})
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(pointers(list.Items), func(j *batchv1.Job) bool { return j.Name == r.Job })
	return slices.Concat(jobs, objects, others), nil
}

func pointers[T any](values []T) []*T {
	all := make([]*T, len(values))
	for i := range values {
		all[i] = &values[i]
	}
	return all
}

// listEvents returns those about a job and its pods.
func (c *Cluster) listEvents(ctx context.Context, seen cluster.Snapshot) ([]corev1.Event, error) {
	if c.settings.MainOnly {
		return nil, nil
	}
	c.mu.Lock()
	shared := c.cache
	c.mu.Unlock()
	if shared != nil && shared.syncError() == nil {
		return shared.events.eventsFor(eventSubjects(seen)), nil
	}
	var all []corev1.Event
	for _, uid := range eventSubjects(seen)[:min(maxEventQueries+1+len(seen.Others), len(eventSubjects(seen)))] {
		list, err := c.core.Events(seen.Ref.Scope).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(uid)).String(),
		})
		if err != nil {
			return nil, wrapError("look for the events of job "+seen.Ref.Job, err)
		}
		for _, e := range list.Items {
			if isInformative(&e) {
				all = append(all, e)
			}
		}
	}
	return sortEvents(all), nil
}

// eventSubjects returns the objects that events may be about.
func eventSubjects(seen cluster.Snapshot) []types.UID {
	var all []types.UID
	if seen.Job != nil {
		all = append(all, seen.Job.UID)
	}
	for i := range seen.Others {
		all = append(all, seen.Others[i].UID)
	}
	for i := range seen.Pods {
		all = append(all, seen.Pods[i].UID)
	}
	return all
}
