package transpile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// ManifestRun is the run ID in a manifest.
const ManifestRun = "00000000000000000000000000"

// Manifest returns the objects of the first attempt of a run of d, which was read from
// text, as YAML documents. The run has code sent along if d asks for it or withCode is
// set. The same descriptor and settings always give the same bytes: the run ID is
// ManifestRun, the owner is nobody, and Secrets are empty. Manifest asks no registry. A
// comment before the objects tells how an image's own entrypoint is run. The only error
// is *refusal.Error.
func Manifest(d *descriptors.Descriptor, text []byte, withCode bool, s Settings) ([]byte, error) {
	plan, err := Preview(d, text, withCode, s)
	if err != nil {
		return nil, err
	}
	documents := make([][]byte, 0, len(plan.Objects))
	for _, o := range plan.Objects {
		document, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", o.GetName(), err)
		}
		documents = append(documents, document)
	}
	return append([]byte(entrypoints(d, s)), bytes.Join(documents, []byte("---\n"))...), nil
}

// entrypoints returns a comment about the images whose own entrypoint is run.
func entrypoints(d *descriptors.Descriptor, s Settings) string {
	var comment strings.Builder
	for _, i := range entrypointImages(d, s) {
		if i.asked {
			fmt.Fprintf(&comment, "# image %q: at launch its registry is asked for its entrypoint, which is then run as\n"+
				"# a command is; where it gives no answer, output is read from the container's log.\n", i.query.Name)
			continue
		}
		fmt.Fprintf(&comment, "# image %q: its entrypoint is run as it is; its output is read from the container's log.\n", i.query.Name)
	}
	return comment.String()
}

// Preview returns the plan that Manifest prints, with the given registry answers.
func Preview(d *descriptors.Descriptor, text []byte, withCode bool, s Settings, images ...cluster.Image) (Workload, error) {
	header := event.NewHeader("manifest", ManifestRun, "default", "nobody", time.Unix(0, 0).UTC())
	run := event.Fetched{Header: header, Descriptor: string(text), Labels: d.Info.Labels, Data: expectedData(d, withCode)}
	return Objects(Input{Run: run, Descriptor: d, Images: images}, s)
}

// expectedData returns the data of a descriptor as if they were fetched, without the
// values that only the fetcher knows.
func expectedData(d *descriptors.Descriptor, withCode bool) []event.Data {
	given := d.Data.Sources
	if d.Server != nil {
		given = append(slices.Clip(given), d.Server.Models...)
	}
	data := make([]event.Data, 0, len(given))
	for _, s := range given {
		data = append(data, event.Data{Source: s.Src, Path: s.Path, Unpack: s.Unpack, Writable: !s.ReadOnly})
	}
	if withCode || d.ML != nil && d.ML.Script != nil {
		data = append(data, pod.Code(event.Bundle{}))
	}
	return data
}
