package plan

import (
	"encoding/json"
	"maps"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// customParams is the table custom_params of a descriptor, by the names that it has there.
type customParams struct {
	PythonVersion    string         `json:"python_version,omitempty"`
	SagemakerJobName string         `json:"sagemaker_job_name,omitempty"`
	Merge            bool           `json:"merge,omitempty"`
	Dashboard        string         `json:"dashboard,omitempty"`
	Region           string         `json:"region,omitempty"`
	HyperParams      map[string]any `json:"hyper_params,omitempty"`
}

// addCustomParams adds the table custom_params of a descriptor to the Jobs of a workload.
func addCustomParams(w transpile.Workload, d *descriptors.Descriptor) error {
	if d.CustomParams == nil {
		return nil
	}
	text, err := json.Marshal(customParams(*d.CustomParams))
	if err != nil {
		return refusal.Descriptor("custom_params: %v", err)
	}
	for _, o := range w.Objects {
		if o.GetObjectKind().GroupVersionKind().Kind != "Job" {
			continue
		}
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = make(map[string]string, 1)
		}
		annotations[cluster.AnnotationCustomParams] = string(text)
		o.SetAnnotations(annotations)
	}
	return nil
}
