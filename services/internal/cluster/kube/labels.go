package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Labels implements cluster.Labeler. It requests only metadata from the API server, so that this process never gets the values of a Secret.
func (c *Cluster) Labels(ctx context.Context, kind, scope, name string) (map[string]string, error) {
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	object := kind + " " + name
	o, err := c.metadata.Resource(resourceOf(schema.GroupVersionKind{Version: "v1", Kind: kind})).Namespace(scope).Get(ctx, name,
		metav1.GetOptions{})
	if err == nil {
		return o.Labels, nil
	}
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("look at the labels of %s: %w", object, cluster.ErrNotFound)
	}
	if p := permissionError(err); p != nil {
		return nil, &cluster.RefusedError{
			Object: object, Class: event.ClassPlatform,
			Message: fmt.Sprintf("its labels cannot be read: %v. Grant the executor this verb, or name the object in executor.pods.allow",
				p),
		}
	}
	return nil, wrapError("look at the labels of "+object, err)
}
