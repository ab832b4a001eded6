package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// dryRunner sends objects to an API server that stores none of them. It reads the kinds
// of the server once.
type dryRunner struct {
	config *rest.Config
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newDryRunner(kubeconfig string) (*dryRunner, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // it holds nothing back
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &dryRunner{config, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))}, nil
}

// DryRun has the API server check each object of a JSON or YAML text as if it were created,
// with strict validation of fields, and returns the warnings. Objects that name no namespace
// are in the given one. The error is that of the first object that is refused; meta.IsNoMatchError
// reports whether the server does not know its kind.
func (c *Cluster) DryRun(ctx context.Context, namespace string, text []byte) (warnings []string, err error) {
	c.dryRunOnce.Do(func() { c.dryRun, c.dryRunErr = newDryRunner(c.Kubeconfig) })
	if c.dryRunErr != nil {
		return nil, c.dryRunErr
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return warnings, nil
		}
		if err != nil {
			return warnings, err
		}
		if len(object.Object) == 0 {
			continue
		}
		warned, err := c.dryRun.create(ctx, namespace, &object)
		warnings = append(warnings, warned...)
		if err != nil {
			return warnings, fmt.Errorf("%s %s%s: %w", object.GetKind(), object.GetName(), object.GetGenerateName(), err)
		}
	}
}

func (d *dryRunner) create(ctx context.Context, namespace string, object *unstructured.Unstructured) (warnings []string, err error) {
	kind := object.GroupVersionKind()
	mapping, err := d.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	var warned warningList
	config := rest.CopyConfig(d.config)
	config.WarningHandler = &warned
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if object.GetNamespace() != "" {
		namespace = object.GetNamespace()
	}
	resource := dynamic.ResourceInterface(client.Resource(mapping.Resource))
	if mapping.Scope.Name() == "namespace" {
		resource = client.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = resource.Create(ctx, object,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return warned.texts, err
}

// warningList collects the warnings of a server.
type warningList struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warningList) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}
