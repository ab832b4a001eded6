package inject

import (
	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/manifest"
	"github.com/benchmark-ai/bai/services/plan/refusal"
)

// Bounds of a run.
const (
	maxPods    = 1000 // of all objects
	maxObjects = 1000
)

// document is an object of a manifest on its way into the cluster.
type document struct {
	manifest.Document

	kind  manifest.Kind
	known bool
	ends  bool
}

// documents returns the objects of the manifest, and the number of the one that ends the run.
func (in Input) documents() (all []document, main int, err error) {
	if in.OneMachine {
		return nil, 0, refusal.Descriptor("hardware.strategy is manifest, and the local cluster has no controllers that run objects of a manifest: run it on a platform with Kubernetes")
	}
	if in.Descriptor.Manifest == nil {
		return nil, 0, refusal.Descriptor("hardware.strategy is manifest, and there is no table manifest")
	}
	read, problems := in.Descriptor.ReadManifest()
	if len(problems) > 0 {
		return nil, 0, refusal.Descriptor("%s: %v", in.Descriptor.ObjectsKey(), problems[0])
	}
	main = -1
	for i, one := range read {
		kind, known := manifest.Find(one.APIVersion(), one.Kind())
		if _, listed := in.Kinds[one.ResourceKind()]; !listed && !one.OfPlatform() && !in.AnyKind {
			return nil, 0, refusal.Descriptor("%s: line %d: this platform takes no %s: its settings list the kinds (executor.pods.manifests)", in.Descriptor.ObjectsKey(), one.Line, one.ResourceKind())
		}
		made := document{Document: one, kind: kind, known: known, ends: one.Ends(in.Descriptor.Manifest.Succeeded != "") &&
			(known || !one.OfPlatform())}
		if made.ends && main < 0 {
			main = i
		}
		all = append(all, made)
	}
	if main < 0 {
		return nil, 0, refusal.Descriptor("%s: none of the objects is of a kind whose end is known (manifest.succeeded)",
			in.Descriptor.ObjectsKey())
	}
	return all, main, nil
}

// countPods returns the number of pods of a run, as far as it is known, and at least one. It
// refuses too many, and keys that need a pod template which no object has.
func (in Input) countPods(all []document) (int, error) {
	n, injected := 0, false
	for _, d := range all {
		for _, group := range d.kind.Pods(d.Object) {
			n, injected = n+group.Count*in.Descriptor.Manifest.Copies, true
		}
	}
	if key := in.needsPods(); key != "" && !injected {
		return 0, refusal.Descriptor("%s goes into the pods of a run, and none of the objects has a pod template that the platform knows: leave it out, or name another kind", key)
	}
	if objects := len(all) * in.Descriptor.Manifest.Copies; objects > maxObjects {
		return 0, refusal.Descriptor("%s: all copies have %d objects; a run has %d at most", in.Descriptor.ObjectsKey(), objects, maxObjects)
	}
	if n > maxPods {
		return 0, refusal.Descriptor("%s: all objects have %d pods; a run has %d at most", in.Descriptor.ObjectsKey(), n, maxPods)
	}
	return max(1, n), nil
}

// needsPods returns a key of the descriptor that has an effect in pods of known kinds only, or "".
func (in Input) needsPods() string {
	d := in.Descriptor
	out := d.Output
	if out == nil {
		out = &descriptors.Output{}
	}
	for _, key := range []struct {
		name string
		used bool
	}{
		{"data.sources", len(d.Data.Sources) > 0},
		{"volumes", len(d.Volumes) > 0},
		{"output.artifacts", len(out.Artifacts) > 0},
		{"output.parsers", len(out.Parsers) > 0},
		{"output.otlp", out.OTLP},
		{"output.system", out.System != nil},
		{"output.prometheus", len(out.Prometheus) > 0},
		{"ml", d.ML != nil},
		{"env.vars", len(d.Env.Vars) > 0},
		{"env.secrets", len(d.Env.Secrets) > 0},
		{"env.secret_files", len(d.Env.SecretFiles) > 0},
	} {
		if key.used {
			return key.name
		}
	}
	return ""
}

func plain(all []document) []manifest.Document {
	documents := make([]manifest.Document, 0, len(all))
	for _, d := range all {
		documents = append(documents, d.Document)
	}
	return documents
}
