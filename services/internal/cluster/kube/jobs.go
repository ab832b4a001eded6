package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Jobs are the platform's own Jobs, which have no objects but their pods. They need permission to create, get and delete jobs, and to list
// pods.
type Jobs struct{ c *Cluster }

// Jobs returns the Jobs of the cluster.
func (c *Cluster) Jobs() Jobs { return Jobs{c} }

// Create implements cluster.Creator.
func (j Jobs) Create(ctx context.Context, o cluster.Object) error { return j.c.Create(ctx, o) }

// Delete implements cluster.Deleter, for one Job and its pods.
func (j Jobs) Delete(ctx context.Context, r cluster.Ref) error {
	ctx, cancel := j.c.withTimeout(ctx)
	defer cancel()
	foreground := metav1.DeletePropagationForeground
	err := j.c.batch.Jobs(r.Scope).Delete(ctx, r.Job, metav1.DeleteOptions{PropagationPolicy: &foreground})
	return wrapError("delete job "+r.Job, ignoreGone(err))
}

// Observe returns a Job, with its pods if it has failed or none of them is ready, or cluster.ErrNotFound. A Job that is being deleted
// counts as not found.
func (j Jobs) Observe(ctx context.Context, r cluster.Ref) (cluster.Snapshot, error) {
	ctx, cancel := j.c.withTimeout(ctx)
	defer cancel()
	job, err := j.c.batch.Jobs(r.Scope).Get(ctx, r.Job, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && job.DeletionTimestamp != nil {
		return cluster.Snapshot{}, fmt.Errorf("job %s: %w", r.Job, cluster.ErrNotFound)
	}
	if err != nil {
		return cluster.Snapshot{}, wrapError("look at job "+r.Job, err)
	}
	seen := cluster.Snapshot{Ref: r, Job: job}
	if ready := job.Status.Ready; job.Status.Failed == 0 && (ready != nil && *ready > 0 || job.Status.CompletionTime != nil) {
		return seen, nil
	}
	list, err := j.c.core.Pods(r.Scope).List(ctx, metav1.ListOptions{LabelSelector: attemptOfRef(r).selector()})
	if err != nil {
		return cluster.Snapshot{}, wrapError("look for the pods of job "+r.Job, err)
	}
	seen.Pods = append([]corev1.Pod(nil), list.Items...)
	return seen, nil
}
