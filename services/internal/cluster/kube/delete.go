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

// Delete implements cluster.Deleter. The Jobs are told to go after what their pods
// need, and last what owns them all: once the Jobs are on their way there is little
// left to do, but to give up pods whose node is lost, for which Delete is to be
// called again.
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
	if len(jobs) == 0 { // none is left, or all are on their way
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

// deleteOwned deletes the Jobs of an attempt, and the owner of all that is its: the
// cluster deletes the rest with it, without being asked for each.
func (c *Cluster) deleteOwned(ctx context.Context, at attempt, jobs []batchv1.Job, owner metav1.OwnerReference) error {
	for _, kind := range c.kinds {
		if isBuiltIn(kind) {
			continue
		}
		if err := c.deleteKind(ctx, at, kind, ""); err != nil {
			return err
		}
	}
	if len(jobs) == 0 { // it was asked for before, and the owner may be gone
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

// ownerOf is the ConfigMap of an attempt's name that all of its Jobs are owned by,
// nil where there is none: then nothing is known of who owns the rest.
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

// jobsToDelete are the Jobs that are not on their way yet, and whether what is asked
// for is meant: another Job of its name is not.
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

// deleteDependencies deletes what the pods of an attempt needed, but for the owner of
// all. Secrets are deleted unseen.
func (c *Cluster) deleteDependencies(ctx context.Context, at attempt, owner string) error {
	for _, kind := range c.kinds {
		if err := c.deleteKind(ctx, at, kind, owner); err != nil {
			return err
		}
	}
	err := c.core.Secrets(at.scope).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: at.selector()})
	return wrapError("delete the secrets of run "+at.run, err)
}

// deleteKind deletes the objects of a kind, but for the ConfigMap that is the owner
// of all.
func (c *Cluster) deleteKind(ctx context.Context, at attempt, kind schema.GroupVersionResource, owner string) error {
	all := c.objects.Resource(kind).Namespace(at.scope)
	list, err := all.List(ctx, metav1.ListOptions{LabelSelector: at.selector()})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && (kind == volumeClaims() || kind == networkPolicies()) {
		return nil // a kind that is not installed, or of which this platform may have made none
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

// deletePods deletes pods whose Job somebody has deleted without them, and gives
// up those that should have ended long ago: what their node has not done by then
// it may never do, and as long as they are there nothing takes their place. Should
// the node come back, it ends what is not in the cluster any more.
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
				zap.String("pod", p.Name), zap.String("node", p.Spec.NodeName), zap.Duration("should have ended", now.Sub(p.DeletionTimestamp.Time)))
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

// deleteOptions deletes an object of a kind: at once, if it is one of Kubernetes' own
// that holds nothing up, else after what depends on it.
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

// ignoreGone is err, unless it says that the object is not there any more.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
