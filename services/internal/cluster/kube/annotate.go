package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotate implements cluster.Annotator. It writes through the status of the pod: the permission for that is none to change a container.
func (c *Cluster) Annotate(ctx context.Context, p corev1.Pod, name, value string) error {
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID, "annotations": map[string]string{name: value}}})
	if err != nil {
		return fmt.Errorf("annotate pod %s: %w", p.Name, err)
	}
	by := metav1.PatchOptions{FieldManager: fieldManager}
	_, err = c.core.Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch, by, "status")
	if hasOtherUID(err) {
		return nil
	}
	return wrapError("annotate pod "+p.Name, ignoreGone(err))
}

// hasOtherUID reports whether a status was not written because another object has the name of the one that was meant.
func hasOtherUID(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && cause.Field == "metadata.uid"
}
