package executor

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/executor/transpile"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// teamOf is the namespace that a run's descriptor belongs to.
func teamOf(run event.Fetched) string { return cmp.Or(run.Namespace, "default") }

// uses reports whether this platform's cluster uses an object that a descriptor
// names: the local one has no claims and pulls no images.
func (s Settings) uses(r descriptors.Reference) bool {
	return s.engine() != EngineLocal || !r.Pull && r.Kind == descriptors.RefSecret
}

// checkReferences refuses a descriptor that names an object of the cluster which
// its namespace may not name. The gateway has refused it before, but anybody who can
// write to the broker may write an event that no gateway has seen.
func checkReferences(run event.Fetched, d *descriptors.Descriptor, s Settings) error {
	for _, r := range d.References() {
		message, remedy := s.allowed().Refusal(teamOf(run), r)
		if message == "" || !r.Reserved() && !s.uses(r) {
			continue
		}
		return &transpile.RefusedError{Reason: event.InvalidDescriptor, Message: fmt.Sprintf("%s: %s (%s)", r.Path, message, remedy)}
	}
	return nil
}

// labelGatedReferences are the objects that a descriptor may name only if their labels allow it.
func labelGatedReferences(run event.Fetched, d *descriptors.Descriptor, s Settings) []descriptors.Reference {
	var all []descriptors.Reference
	for _, r := range d.References() {
		if s.uses(r) && !s.allowed().Allows(teamOf(run), r) {
			all = append(all, r)
		}
	}
	return all
}

// checkLabels refuses an object that has none of the labels which allow a run's
// descriptor to name it; has is nil where there is no such object.
func checkLabels(run event.Fetched, r descriptors.Reference, has map[string]string, s Settings) error {
	want := s.allowed().Labels(teamOf(run))
	for _, label := range want {
		key, value, _ := strings.Cut(label, "=")
		if v, ok := has[key]; ok && v == value && !r.Reserved() {
			return nil
		}
	}
	return &cluster.RefusedError{
		Object: fmt.Sprintf("%s %s", r.Kind, r.Name), Reason: string(event.InvalidDescriptor), Class: event.ClassUser,
		Message: fmt.Sprintf("%s may name an object that has the label %s, or that executor.pods.allow.%q names", r.Path, strings.Join(want, " or "), teamOf(run)),
	}
}
