package types

import (
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/manifest"
)

const maxCopies = 100

// manifests are the types of the table manifest.
func manifests() decode.ValueTypes {
	return decode.ValueTypes{
		"manifest": text("Kubernetes objects as YAML documents, 32 at most", func(_ decode.Value, s string) any { return s }),
		"copies":   between(1, maxCopies),
		"condition": text("`condition=TYPE`, or `jsonpath={.status.phase}=VALUE`", func(v decode.Value, s string) any {
			if _, err := manifest.ParseCondition(s); err != nil {
				v.Fault(fault.BadCondition, err.Error(), "")
				return nil
			}
			return s
		}),
	}
}
