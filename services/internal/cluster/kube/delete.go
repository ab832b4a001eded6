package kube

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Delete implements cluster.Deleter. The Jobs are the last that are told to go:
// once they are on their way there is nothing left to say.
func (c *Cluster) Delete(ctx context.Context, r cluster.Ref) error {
	ctx, cancel := c.call(ctx)
	defer cancel()
	at := attemptOfRef(r)
	list, err := c.batch.Jobs(r.Scope).List(ctx, metav1.ListOptions{LabelSelector: at.selector()})
	if err != nil {
		return explain("look for the jobs of "+r.Job, err)
	}
	jobs, meant := toDelete(r, list.Items)
	if !meant || len(list.Items) > 0 && len(jobs) == 0 {
		return nil
	}
	if len(list.Items) == 0 {
		if err := c.deleteOrphans(ctx, at); err != nil {
			return err
		}
	}
	if err := c.deleteSupplies(ctx, at); err != nil {
		return err
	}
	for _, j := range jobs {
		err := c.batch.Jobs(r.Scope).Delete(ctx, j.Name, dependentsFirst(j.UID))
		if err := gone(err); err != nil {
			return explain("delete job "+j.Name, err)
		}
	}
	return nil
}

// toDelete are the Jobs that are not on their way yet, and whether what is asked
// for is meant: another Job of its name is not.
func toDelete(r cluster.Ref, all []batchv1.Job) (jobs []batchv1.Job, meant bool) {
	for _, j := range all {
		if r.UID != "" && j.Name == r.Job && string(j.UID) != r.UID {
			return nil, false
		}
		if j.DeletionTimestamp == nil {
			jobs = append(jobs, j)
		}
	}
	return jobs, true
}

// deleteSupplies deletes what the pods of an attempt needed. Secrets are deleted
// unseen.
func (c *Cluster) deleteSupplies(ctx context.Context, at attempt) error {
	for _, kind := range c.kinds {
		if err := c.deleteKind(ctx, at, kind); err != nil {
			return err
		}
	}
	err := c.core.Secrets(at.scope).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: at.selector()})
	return explain("delete the secrets of run "+at.run, err)
}

func (c *Cluster) deleteKind(ctx context.Context, at attempt, kind schema.GroupVersionResource) error {
	all := c.objects.Resource(kind).Namespace(at.scope)
	list, err := all.List(ctx, metav1.ListOptions{LabelSelector: at.selector()})
	if apierrors.IsNotFound(err) {
		return nil // a kind that is not installed
	}
	if err != nil {
		return explain("look for the "+kind.Resource+" of run "+at.run, err)
	}
	for _, o := range list.Items {
		if o.GetDeletionTimestamp() != nil {
			continue
		}
		if err := gone(all.Delete(ctx, o.GetName(), deletion(kind, o.GetUID()))); err != nil {
			return explain("delete "+kind.Resource+" "+o.GetName(), err)
		}
	}
	return nil
}

// deleteOrphans deletes pods whose Job somebody has deleted without them.
func (c *Cluster) deleteOrphans(ctx context.Context, at attempt) error {
	list, err := c.core.Pods(at.scope).List(ctx, metav1.ListOptions{LabelSelector: at.selector()})
	if err != nil {
		return explain("look for the pods of run "+at.run, err)
	}
	for _, p := range list.Items {
		if p.DeletionTimestamp != nil || metav1.GetControllerOf(&p) != nil {
			continue
		}
		err := c.core.Pods(at.scope).Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if err := gone(err); err != nil {
			return explain("delete pod "+p.Name, err)
		}
	}
	return nil
}

// deletion deletes an object of a kind: at once, if it is one of Kubernetes' own
// that holds nothing up, else after what depends on it.
func deletion(kind schema.GroupVersionResource, uid types.UID) metav1.DeleteOptions {
	if kind.Group == "" {
		return metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid))}
	}
	return dependentsFirst(uid)
}

// dependentsFirst deletes one object, not another that has its name by then.
func dependentsFirst(uid types.UID) metav1.DeleteOptions {
	foreground := metav1.DeletePropagationForeground
	return metav1.DeleteOptions{PropagationPolicy: &foreground, Preconditions: metav1.NewUIDPreconditions(string(uid))}
}

// gone is err, unless it says that the object is not there any more.
func gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
