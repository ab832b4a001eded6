package types

import (
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/manifest"
)

const maxCopies = 100

// manifests are the types of the table manifest.
func manifests() decode.ValueTypes {
	return decode.ValueTypes{
		"manifest": text("Kubernetes objects as YAML documents, 32 at most", func(_ decode.Value, s string) any { return s }),
		"pod selector": {
			Type: "string or table of strings",
			Rule: "a label selector, as kubectl takes it, or a table of labels and values; one label at least has a value with `$(BAI_OBJECTS)` in it",
			Read: podSelector,
		},
		"copies": between(1, maxCopies),
		"condition": text("`condition=TYPE`, or `jsonpath={.status.phase}=VALUE`", func(v decode.Value, s string) any {
			if _, err := manifest.ParseCondition(s); err != nil {
				v.Fault(fault.BadCondition, err.Error(), "")
				return nil
			}
			return s
		}),
	}
}

// podSelector reads a label selector.
func podSelector(v decode.Value) any {
	var text string
	switch v.Kind { //nolint:exhaustive // others are of the wrong type
	case syntax.String:
		text = v.Text
	case syntax.Table:
		terms := make([]string, 0, len(v.Node.Entries))
		for _, e := range v.Node.Entries {
			if e.Value.Kind != syntax.String {
				v.FaultAt(e.Value.At, fault.WrongType, "must be a string, the value of a label", "")
				return nil
			}
			terms = append(terms, e.Name+"="+e.Value.Text)
		}
		text = strings.Join(terms, ",")
	default:
		v.WrongType("a string, or a table of labels")
		return nil
	}
	s, err := manifest.ParseSelector(text)
	switch {
	case err != nil:
		v.Fault(fault.BadSelector, err.Error(), "write it as for kubectl get pods -l")
		return nil
	case s.Named(manifest.ObjectsVariable) == nil:
		v.Fault(fault.OpenSelector, fmt.Sprintf("%q selects pods of other runs as well", text),
			"name a label with the name of the objects, as in trainer="+manifest.ObjectsVariable)
		return nil
	}
	return s.String()
}
