package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// teamOf returns the team, which is the namespace, of a run's descriptor.
func teamOf(run event.Fetched) string { return cmp.Or(run.Namespace, "default") }

// allowed returns the objects that descriptors may name, and the rights that their pods may
// have, by their namespace. Without settings there are none. A cluster that holds pods to a
// level of Pod Security refuses privileged ones itself; at the level privileged the
// platform does.
func (p Planner) allowed() descriptors.Allowlists {
	lists := maps.Clone(p.Pods.Allow)
	if lists == nil {
		lists = descriptors.Allowlists{}
	}
	if p.Pods.Security != transpile.Privileged {
		list := lists[descriptors.AnyNamespace]
		list.Rights = append(slices.Clip(list.Rights), descriptors.RightPrivileged)
		lists[descriptors.AnyNamespace] = list
	}
	return lists
}

// uses reports whether this platform's cluster uses an object that a descriptor names.
// The local cluster has no claims, priority classes and queues, pulls no images, and gives
// pods no rights but those of its user.
func (p Planner) uses(r descriptors.Reference) bool {
	return !p.Local() || !r.Pull && r.Kind == descriptors.RefSecret
}

// checkReferences refuses a descriptor that names an object of the cluster which its
// namespace may not name. The gateway has checked that too, but a client that can write
// to the broker may publish an event without the gateway.
func (p Planner) checkReferences(run event.Fetched, d *descriptors.Descriptor) error {
	for _, r := range d.References() {
		message, remedy := p.allowed().Refusal(teamOf(run), r)
		if message == "" || !r.Reserved() && !p.uses(r) {
			continue
		}
		return refusal.Descriptor("%s: %s (%s)", r.Path, message, remedy)
	}
	return nil
}

// LabelGated returns the objects that a descriptor may name only if the labels of the
// objects allow it.
func (p Planner) LabelGated(run event.Fetched, d *descriptors.Descriptor) []descriptors.Reference {
	var all []descriptors.Reference
	for _, r := range d.References() {
		if r.Labeled() && p.uses(r) && !p.allowed().Allows(teamOf(run), r) {
			all = append(all, r)
		}
	}
	return all
}

// CheckLabels refuses an object without any of the labels that allow a run's descriptor
// to name it; has are the object's labels, or nil if there is no such object.
func (p Planner) CheckLabels(run event.Fetched, r descriptors.Reference, has map[string]string) error {
	want := p.allowed().Labels(teamOf(run))
	for _, label := range want {
		key, value, _ := strings.Cut(label, "=")
		if v, ok := has[key]; ok && v == value && !r.Reserved() {
			return nil
		}
	}
	return &cluster.RefusedError{
		Object: fmt.Sprintf("%s %s", r.Kind, r.Name), Reason: string(event.InvalidDescriptor), Class: event.ClassUser,
		Message: fmt.Sprintf("%s may name an object that has the label %s, or that executor.pods.allow.%q names",
			r.Path, strings.Join(want, " or "), teamOf(run)),
	}
}
