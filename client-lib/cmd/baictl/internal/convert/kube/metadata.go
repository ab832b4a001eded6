package kube

import (
	"slices"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/descriptors"
)

// Metadata converts the metadata of an object: its name becomes the task name, its labels
// those of the run. It returns the name, or other if there is none.
func Metadata(d *draft.Draft, v document.Value, other string) string {
	name := v.Get("name").Scalar()
	Name(d, v.Get("name"), name, other)
	Labels(d, v.Get("labels"))
	v.Drop("baictl submit --namespace names the namespace of a run: left out", "namespace")
	v.Drop("runs have no annotations: left out", "annotations")
	v.Drop("set by the cluster: left out", "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink",
		"finalizers", "ownerReferences")
	if name == "" {
		return other
	}
	return name
}

// Name writes the text of a value as the name of the task.
func Name(d *draft.Draft, v document.Value, text, other string) {
	label := draft.Label(text)
	if label == "" {
		label = other
	}
	if text != "" && label != text {
		v.Remark("%q becomes %q: names have 1 to 63 letters, digits, - _ and .", text, label)
	}
	d.Table("info").Set("task_name", label)
}

// Labels writes the labels of an object that a run can have.
func Labels(d *draft.Draft, v document.Value) {
	if !v.Has() {
		return
	}
	var labels draft.Inline
	for _, key := range v.Keys() {
		one := v.Get(key)
		value := one.Scalar()
		switch {
		case !draft.IsLabel(key) || value != "" && !draft.IsLabel(value) || descriptors.ReservedLabel(key) || key == "task_name":
			one.Remark("runs cannot have this label: left out")
		case !slices.ContainsFunc(labels, func(p draft.Pair) bool { return p.Key == key }):
			labels = append(labels, draft.Pair{Key: key, Value: value})
		}
	}
	if len(labels) > 0 {
		d.Table("info").Set("labels", labels)
	}
}
