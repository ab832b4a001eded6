package launch

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// createInOrder creates the objects of a plan in their order, those that are there
// already excepted, and returns the UID of the one whose end ends the run if it is
// among those created.
//
// In Kubernetes the first, a ConfigMap, owns all others: a user who deletes it, where
// the platform is no more, deletes all of the run. A user who deletes the Job deletes
// its pods; the watcher then ends the run, and the rest is deleted by its labels.
// The Job owns nothing, because it comes last: were its pods there before their
// Secret, and the platform died in between, their node would wait for longer and
// longer.
func (l *Launcher) createInOrder(ctx context.Context, p Plan, objects []cluster.Object) (uid string, err error) {
	for i, o := range objects {
		if i > 0 && l.planner.Pods.Owner {
			o.SetOwnerReferences([]metav1.OwnerReference{ownedBy(objects[0])})
		}
		if err := l.deps.Cluster.Create(ctx, o); err != nil && !errors.Is(err, cluster.ErrExists) {
			return "", fmt.Errorf("create %s: %w", o.GetName(), err)
		}
		if p.isMainJob(o) {
			uid = string(o.GetUID())
		}
	}
	return uid, nil
}

// ownedBy says that an object goes with its owner. It needs no right to the
// owner, and does not delay the deletion of that.
func ownedBy(owner cluster.Object) metav1.OwnerReference {
	version, kind := owner.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}
}
