// Package perftest converts the benchmarks of kube-perftest: its kinds, and its sets of them.
package perftest

import (
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/kube"
)

// kindSet is the kind of a set of benchmarks.
const kindSet = "BenchmarkSet"

// Is reports whether a document is one of kube-perftest's objects.
func Is(v document.Value) bool {
	name := v.Peek("kind").Raw()
	return name == kindSet || slices.ContainsFunc(kinds(), func(k kind) bool { return k.name == name })
}

// Convert returns the descriptor of an object, and a name for its file. Faults and remarks are those of the document.
func Convert(v document.Value) (d *draft.Draft, name string) {
	v.Drop("written by the operator: left out", "status")
	if group := v.Get("apiVersion"); !group.Has() {
		v.Fault("add apiVersion: perftest.stackhpc.com/v1alpha1", "has no apiVersion")
	} else if !strings.Contains(group.Scalar(), "/") {
		group.Fault("write perftest.stackhpc.com/v1alpha1", "is %q", group.Scalar())
	}
	d = &draft.Draft{}
	if v.Get("kind").Scalar() == kindSet {
		name = convertSet(d, v)
	} else {
		name = convertOne(d, v)
	}
	v.Unknown()
	return d, name
}

// convertOne converts a single benchmark.
func convertOne(d *draft.Draft, v document.Value) string {
	k, ok := kindOf(v.Get("kind"))
	if !ok {
		return ""
	}
	name := begin(d, k, v)
	k.finish(d, newValues(k.options, table(v, "spec"), nil))
	return name
}

// table returns the table of a key, which has to be there.
func table(v document.Value, key string) document.Value {
	t := v.Get(key)
	if !t.Has() {
		v.Fault("add it", "has no %s", key)
	}
	return t
}

// kindOf returns the kind that a value names.
func kindOf(v document.Value) (kind, bool) {
	name := v.Scalar()
	var names []string
	for _, k := range kinds() {
		if k.name == name {
			return k, true
		}
		names = append(names, k.name)
	}
	v.Fault("use one of "+strings.Join(names, ", "), "%q is no benchmark of kube-perftest", name)
	return kind{}, false
}

// begin writes the tables that are not those of a kind, and returns the name of the object.
func begin(d *draft.Draft, k kind, v document.Value) string {
	d.Comment("Converted from kube-perftest: %s %s.", v.Get("kind").Scalar(), v.Get("metadata", "name").Scalar())
	d.Table("").Set("spec_version", "1.0")
	d.Table("info").Set("description", k.about)
	return kube.Metadata(d, v.Get("metadata"), strings.ToLower(k.name))
}

// finish writes the tables of a kind.
func (k kind) finish(d *draft.Draft, v *values) {
	d.Table("hardware")
	d.Table("hardware.distributed")
	d.Table("hardware.requests")
	d.Table("hardware.limits")
	d.Table("network")
	d.Table("env").Set("docker_image", imagePrefix+k.image+imageTag)
	k.write(d, v)
	v.apply(d)
	if v.needsDevice && d.Table("network").Lacks("rdma") {
		kube.Apply(d, v.device())
	}
}

// missingDevice stands for the devices of RDMA, which only the user knows.
const missingDevice = "example.org/replace-this-device"

// device returns the setting of the devices of RDMA where only some benchmarks have resources
// with one, or none has.
func (v *values) device() kube.Setting {
	all, _ := v.read["resources"].([]kube.Setting)
	for _, s := range kube.WithRDMA(all) {
		if s.Key == kube.KeyRDMA {
			return s
		}
	}
	v.spec.Remark("transport RDMA needs the name by which the cluster counts the devices: write it in place of %q", missingDevice)
	return kube.RDMA(missingDevice, 1)
}
