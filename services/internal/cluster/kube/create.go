package kube

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/benchmark-ai/bai/descriptors/manifest"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// fieldManager is the name that the API server records for the writer of an object's fields.
const fieldManager = "benchmark-ai"

// Create implements cluster.Creator. An object with a field that the API server does not know is refused, and the field is not dropped.
func (c *Cluster) Create(ctx context.Context, o cluster.Object) error {
	kind := o.GetObjectKind().GroupVersionKind()
	object := kind.Kind + " " + o.GetName()
	if refused := c.validatePlacement(object, o); refused != nil {
		return refused
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return &cluster.RefusedError{Object: object, Class: event.ClassPlatform, Message: fmt.Sprintf("it cannot be written: %v", err)}
	}
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	made, err := c.objects.Resource(resourceOf(kind)).Namespace(o.GetNamespace()).Create(ctx, &unstructured.Unstructured{Object: fields},
		metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) && kind.Kind == "ConfigMap" {
		was, err := c.core.ConfigMaps(o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			return wrapError("look at "+object, err)
		}
		o.SetUID(was.UID)
	}
	if err != nil {
		return c.explain(ctx, kind, createError(object, err))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, o); err != nil {
		return fmt.Errorf("read %s, which was created: %w", object, err)
	}
	return nil
}

// validatePlacement refuses objects that the driver would never find again, with the class platform.
func (c *Cluster) validatePlacement(object string, o cluster.Object) *cluster.RefusedError {
	if _, ok := attemptOf(o); !ok {
		return &cluster.RefusedError{
			Object: object, Class: event.ClassPlatform,
			Message: "it lacks the labels of its run and attempt, without which nobody would find it",
		}
	}
	if o.GetNamespace() != c.settings.Scope() {
		return &cluster.RefusedError{
			Object: object, Class: event.ClassPlatform,
			Message: fmt.Sprintf("it is for the namespace %q, and the platform watches %q only: set both to the same",
				o.GetNamespace(), c.settings.Scope()),
		}
	}
	return nil
}

// explain adds to the refusal of an object that the cluster does not have its kind, and what brings that.
func (c *Cluster) explain(ctx context.Context, kind schema.GroupVersionKind, err error) error {
	refused, ok := errors.AsType[*cluster.RefusedError](err)
	if !ok || kind.Group == "" {
		return err
	}
	if served := c.servesKind(kind); served.Yes || served.UnknownReason != "" || ctx.Err() != nil {
		return err
	}
	brings := "install the operator that brings it"
	if known, ok := manifest.Find(kind.GroupVersion().String(), kind.Kind); ok && known.Operator != "" {
		brings = known.Operator + " brings it"
	}
	refused.Message = fmt.Sprintf("the cluster has no kind %s of %s: %s (%s)", kind.Kind, kind.GroupVersion(), brings, refused.Message)
	return refused
}
