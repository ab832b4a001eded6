// Package manifest reads the objects of runs of strategy manifest: Kubernetes objects as YAML
// documents. It knows the kinds of objects that run pods to an end, what of an object the
// rules of runs forbid, and the conditions that say how an object has ended. It is pure.
package manifest

import (
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// MaxDocuments is how many documents a manifest may have.
const MaxDocuments = 32

// A Document is one object of a manifest.
type Document struct {
	// Object is the object as JSON has it: of maps with string keys, lists, strings, int64,
	// float64, bool and nil. Callers that change it make a copy first.
	Object map[string]any

	Line, Column int // of the beginning in the manifest

	root *node
}

// A Problem is something that a manifest may not have, at a place of its text.
type Problem struct {
	Line, Column int
	Code         string // of the fault
	Message      string
	Remedy       string
}

// String is the problem with its place in the manifest.
func (p Problem) String() string {
	return fmt.Sprintf("line %d, column %d: %s (%s)", p.Line, p.Column, p.Message, p.Remedy)
}

// Read returns the documents of a text, and everything in them that no run may have. The
// documents are those that can be read: they may be fewer than the text has.
func Read(text string) ([]Document, []Problem) {
	roots, problems := parse(text)
	var all []Document
	for _, root := range roots {
		object, ok := root.plain().(map[string]any)
		if !ok {
			problems = append(problems, root.problem(fault.BadManifest, "is not an object", "write apiVersion, kind and metadata"))
			continue
		}
		all = append(all, Document{Object: object, Line: root.line, Column: root.column, root: root})
	}
	if len(roots) == 0 && len(problems) == 0 {
		problems = append(problems,
			Problem{Line: 1, Column: 1, Code: fault.BadManifest, Message: "has no object", Remedy: "write apiVersion, kind and metadata"})
	}
	if len(roots) > MaxDocuments {
		extra := roots[MaxDocuments]
		problems = append(problems,
			extra.problem(fault.BadManifest, fmt.Sprintf("is one of %d documents; a manifest has %d at most", len(roots), MaxDocuments),
				"leave some out"))
	}
	return all, append(problems, check(all)...)
}

// APIVersion returns the group and version of the object's kind.
func (d Document) APIVersion() string { return d.text("apiVersion") }

// Kind returns the object's kind.
func (d Document) Kind() string { return d.text("kind") }

// Name returns the object's name in the manifest, or the beginning that generateName gives.
func (d Document) Name() string {
	meta, _ := d.Object["metadata"].(map[string]any)
	if name, ok := meta["name"].(string); ok {
		return name
	}
	name, _ := meta["generateName"].(string)
	return strings.TrimRight(name, "-.")
}

func (d Document) text(key string) string {
	s, _ := d.Object[key].(string)
	return s
}

// Ends reports whether the run waits for the end of the object: it is of a known kind that
// ends, or of a kind for which own says how it ends.
func (d Document) Ends(own bool) bool {
	k, known := Find(d.APIVersion(), d.Kind())
	return known && !k.Succeeded.IsZero() || !known && own
}

// OfPlatform reports whether every platform takes objects of the kind: the platform makes
// such objects for each run.
func (d Document) OfPlatform() bool {
	return d.APIVersion() == "batch/v1" && d.Kind() == "Job" || d.APIVersion() == "v1" && (d.Kind() == "ConfigMap" || d.Kind() == "Service")
}

// ResourceKind returns the name by which settings list the kind, as Workflow.v1alpha1.argoproj.io.
func (d Document) ResourceKind() string { return ResourceKind(d.APIVersion(), d.Kind()) }

// ResourceKind returns the name by which settings list a kind.
func ResourceKind(apiVersion, kind string) string {
	group, version, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		return kind + "." + apiVersion
	}
	return kind + "." + version + "." + group
}
