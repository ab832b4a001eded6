package inject

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/benchmark-ai/bai/descriptors/manifest"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/refusal"
)

// setPods puts into the pods of an object of a known kind what pods of runs have.
func (c copyBuilder) setPods(d document, object map[string]any) error {
	if d.kind.PodMetadata != "" {
		meta := c.PodMeta
		c.setTexts(object, d.kind.PodMetadata+".labels", c.copyLabels(meta.Labels))
		c.setTexts(object, d.kind.PodMetadata+".annotations",
			over(meta.Annotations, map[string]string{cluster.AnnotationContainer: d.kind.Container}))
	}
	setDefaults(object, d.kind.Defaults)
	for _, group := range d.kind.Pods(object) {
		setDefaults(group.Group, group.Of.Defaults)
		if group.Of.Restart != "" {
			manifest.Set(group.Group, group.Of.Restart, string(corev1.RestartPolicyNever), true)
		}
		if err := c.setPod(d, group); err != nil {
			return err
		}
	}
	return nil
}

func setDefaults(in, defaults map[string]any) {
	for path, value := range defaults {
		manifest.Set(in, path, value, false)
	}
}

func (c copyBuilder) setTexts(object map[string]any, path string, texts map[string]string) {
	for name, text := range texts {
		manifest.Set(object, path, map[string]any{}, false)
		if table, ok, _ := unstructured.NestedMap(object, strings.Split(path, ".")...); ok {
			table[name] = text
			_ = unstructured.SetNestedMap(object, table, strings.Split(path, ".")...) // the tables are there
		}
	}
}

// setPod puts into a template of pods what pods of runs have.
func (c copyBuilder) setPod(d document, group manifest.Pods) error {
	at := fmt.Sprintf("%s: %s %q", c.Descriptor.ObjectsKey(), d.Kind(), d.Name())
	var own corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(group.Template, &own, true); err != nil {
		return refusal.Descriptor("%s has a pod template that is none: %v", at, err)
	}
	measured := measuredOf(&own.Spec, d.kind.Container)
	if measured == nil {
		return refusal.Descriptor("%s has a pod template without containers", at)
	}
	for _, other := range slices.Concat(own.Spec.InitContainers, own.Spec.Containers) {
		if strings.HasPrefix(other.Name, cluster.ContainerStep) || other.Name == cluster.ContainerBenchmark && other.Name != measured.Name {
			return refusal.Descriptor("%s has a container %q, a name that has a meaning for the platform: choose another", at, other.Name)
		}
	}
	platform := c.Pod(Pods{Kind: d.kind, Group: group.Group, Measured: measured, All: c.pods})
	platform.Labels = c.copyLabels(platform.Labels)
	platform.Annotations = over(platform.Annotations, map[string]string{cluster.AnnotationContainer: measured.Name})
	if d.kind.Deadline == "" {
		platform.Spec.ActiveDeadlineSeconds = c.Deadline
	}
	addVariables(&own.Spec, corev1.EnvVar{Name: pod.EnvObjects, Value: c.names.Base},
		corev1.EnvVar{Name: pod.EnvCopy, Value: strconv.Itoa(c.number)})
	if len(measured.Command) > 0 {
		measured.Command = slices.Concat(c.Command, measured.Command)
	} else if c.Descriptor.Output != nil && len(c.Descriptor.Output.Parsers) > 0 &&
		(len(platform.Spec.Containers[0].Command) == 0 || len(measured.Args) > 0) {
		return refusal.Descriptor("output.parsers read the output of a command, and container %q of %s %q has none: write its command",
			measured.Name, d.Kind(), d.Name())
	}
	addParts(&own, measured, platform)
	made, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&own)
	if err != nil {
		return refusal.Descriptor("%s has a pod template that cannot be written: %v", at, err)
	}
	maps.Copy(group.Template, made)
	return nil
}
