// Package manifest reads the objects of Kubernetes that a file holds.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Object is an object of Kubernetes.
type Object interface {
	metav1.Object
	runtime.Object
}

// Read returns the objects of a file of YAML documents. An unknown field, and a duplicate
// one, is an error.
func Read(path string) ([]Object, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the caller's
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, rbacv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(newReader(text))
	var all []Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		o, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		object, ok := o.(Object)
		if !ok {
			return nil, fmt.Errorf("%s: %T has no name", path, o)
		}
		all = append(all, object)
	}
}

func newReader(text []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(text)) }
