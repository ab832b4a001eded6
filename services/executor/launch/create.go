package launch

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// createInOrder creates the objects of a plan in order, except those that exist, and
// returns the UID of the main Job if it creates that.
//
// In Kubernetes the first object, a ConfigMap, owns all others. So a user can delete it
// after the platform is uninstalled, and all objects of the run are deleted. If a user
// deletes the Job, its pods are deleted, the watcher ends the run, and the other
// objects are deleted by their labels. The Job owns nothing, because it is created
// last: pods that exist before their Secret would wait with growing back-off if the
// platform crashed in between.
func (l *Launcher) createInOrder(ctx context.Context, p Plan, objects []cluster.Object) (uid string, err error) {
	for i, o := range objects {
		if i > 0 && l.planner.Pods.Owner {
			o.SetOwnerReferences([]metav1.OwnerReference{ownedBy(objects[0])})
		}
		if err := l.deps.Cluster.Create(ctx, o); err != nil && !errors.Is(err, cluster.ErrExists) {
			return "", asOutage(fmt.Errorf("create %s: %w", o.GetName(), err))
		}
		if p.isMainJob(o) {
			uid = string(o.GetUID())
		}
	}
	return uid, nil
}

// ownedBy returns a reference that deletes an object with its owner. It needs no
// permission on the owner, and does not delay the owner's deletion.
func ownedBy(owner cluster.Object) metav1.OwnerReference {
	version, kind := owner.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}
}
