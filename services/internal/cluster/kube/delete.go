package kube

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Delete implements cluster.Deleter. It deletes the dependencies of the pods, then the Jobs, and last the owner of all objects. A call
// after that only has to give up pods whose node is lost; callers repeat Delete for this.
func (c *Cluster) Delete(ctx context.Context, r cluster.Ref) error {
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	at := attemptOfRef(r)
	list, err := c.batch.Jobs(r.Scope).List(ctx, metav1.ListOptions{LabelSelector: at.selector()})
	if err != nil {
		return wrapError("look for the jobs of "+r.Job, err)
	}
	jobs, matches := jobsToDelete(r, list.Items)
	if !matches {
		return nil
	}
	if len(jobs) == 0 { // no Job is left, or all are being deleted
		if err := c.deletePods(ctx, at); err != nil {
			return err
		}
	}
	if owner := ownerOf(r, list.Items); owner != nil {
		return c.deleteOwned(ctx, at, jobs, *owner)
	}
	if len(jobs) > 0 || len(list.Items) == 0 {
		if err := c.deleteDependencies(ctx, at, r.Job); err != nil {
			return err
		}
	}
	if err := c.deleteJobs(ctx, at, jobs); err != nil {
		return err
	}
	return c.deleteKind(ctx, at, configMaps(), "")
}

// deleteOwned deletes the Jobs of an attempt and the owner of all its objects: the cluster deletes the other objects with the owner.
func (c *Cluster) deleteOwned(ctx context.Context, at attempt, jobs []batchv1.Job, owner metav1.OwnerReference) error {
	for _, kind := range c.kinds {
		if isBuiltIn(kind) {
			continue
		}
		if err := c.deleteKind(ctx, at, kind, ""); err != nil {
			return err
		}
	}
	if len(jobs) == 0 { // Delete was called before, and the owner may be gone
		return c.deleteKind(ctx, at, configMaps(), "")
	}
	if err := c.deleteJobs(ctx, at, jobs); err != nil {
		return err
	}
	err := c.core.ConfigMaps(at.scope).Delete(ctx, owner.Name, deleteOptions(configMaps(), owner.UID))
	return wrapError("delete configmap "+owner.Name, ignoreGone(err))
}

func (c *Cluster) deleteJobs(ctx context.Context, at attempt, jobs []batchv1.Job) error {
	for _, j := range jobs {
		err := c.batch.Jobs(at.scope).Delete(ctx, j.Name, foregroundDeletion(j.UID))
		if err := ignoreGone(err); err != nil {
			return wrapError("delete job "+j.Name, err)
		}
	}
	return nil
}

// ownerOf returns the ConfigMap with the attempt's name that owns all of its Jobs, nil if there is none: the owner of the other objects is
// unknown then.
func ownerOf(r cluster.Ref, jobs []batchv1.Job) *metav1.OwnerReference {
	var owner *metav1.OwnerReference
	for i := range jobs {
		all := jobs[i].OwnerReferences
		n := slices.IndexFunc(all, func(o metav1.OwnerReference) bool { return o.Kind == "ConfigMap" && o.Name == r.Job })
		if n < 0 {
			return nil
		}
		owner = &all[n]
	}
	return owner
}

// jobsToDelete returns the Jobs that are not being deleted yet. It is false if the Job with the name in r has another UID.
func jobsToDelete(r cluster.Ref, all []batchv1.Job) (jobs []batchv1.Job, matches bool) {
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

// deleteDependencies deletes the objects that the pods of an attempt needed, except the owner of all. Secrets are deleted without reading
// them.
func (c *Cluster) deleteDependencies(ctx context.Context, at attempt, owner string) error {
	for _, kind := range c.kinds {
		if err := c.deleteKind(ctx, at, kind, owner); err != nil {
			return err
		}
	}
	err := c.core.Secrets(at.scope).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: at.selector()})
	return wrapError("delete the secrets of run "+at.run, err)
}

// deleteKind deletes the objects of a kind, except the ConfigMap that is the owner of all.
func (c *Cluster) deleteKind(ctx context.Context, at attempt, kind schema.GroupVersionResource, owner string) error {
	all := c.objects.Resource(kind).Namespace(at.scope)
	list, err := all.List(ctx, metav1.ListOptions{LabelSelector: at.selector()})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && (kind == volumeClaims() || kind == networkPolicies()) {
		return nil // the kind is not installed, or this platform may have created none of it
	}
	if err != nil {
		return wrapError("look for the "+kind.Resource+" of run "+at.run, err)
	}
	for _, o := range list.Items {
		if o.GetDeletionTimestamp() != nil || kind == configMaps() && o.GetName() == owner {
			continue
		}
		if err := ignoreGone(all.Delete(ctx, o.GetName(), deleteOptions(kind, o.GetUID()))); err != nil {
			return wrapError("delete "+kind.Resource+" "+o.GetName(), err)
		}
	}
	return nil
}

// deletePods deletes pods whose Job was deleted without them, and gives up pods that should have ended long ago: their node may never end
// them, and while they exist no other pod takes their place. If the node comes back, it ends pods that are not in the cluster any more.
func (c *Cluster) deletePods(ctx context.Context, at attempt) error {
	list, err := c.core.Pods(at.scope).List(ctx, metav1.ListOptions{LabelSelector: at.selector()})
	if err != nil {
		return wrapError("look for the pods of run "+at.run, err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}
		switch now := time.Now(); {
		case isOverdue(p, now, c.settings.lostAfter()):
			c.log.Warn("a pod is deleted by force: its node has not said that it ended, and is taken for lost",
				zap.String("pod", p.Name), zap.String("node", p.Spec.NodeName),
				zap.Duration("should have ended", now.Sub(p.DeletionTimestamp.Time)))
			options.GracePeriodSeconds = new(int64)
		case p.DeletionTimestamp != nil || metav1.GetControllerOf(p) != nil:
			continue
		}
		if err := ignoreGone(c.core.Pods(at.scope).Delete(ctx, p.Name, options)); err != nil {
			return wrapError("delete pod "+p.Name, err)
		}
	}
	return nil
}

// deleteOptions returns the options to delete an object of a kind: at once for a built-in kind, else after its dependents.
func deleteOptions(kind schema.GroupVersionResource, uid types.UID) metav1.DeleteOptions {
	if isBuiltIn(kind) {
		return metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid))}
	}
	return foregroundDeletion(uid)
}

// foregroundDeletion deletes one object, not another that has its name by then.
func foregroundDeletion(uid types.UID) metav1.DeleteOptions {
	foreground := metav1.DeletePropagationForeground
	return metav1.DeleteOptions{PropagationPolicy: &foreground, Preconditions: metav1.NewUIDPreconditions(string(uid))}
}

// ignoreGone returns err, unless err means that the object is gone or replaced.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
