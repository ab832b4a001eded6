package transpile

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// ManifestRun stands for the run's ID in a manifest.
const ManifestRun = "00000000000000000000000000"

// Manifest returns the objects of the first attempt of a run of d, which was
// read from text, as YAML documents. The same descriptor and settings always
// give the same bytes: ManifestRun takes the place of the run's ID, nobody owns
// the run, and Secrets are empty. Its only error is *RefusedError.
func Manifest(d *descriptors.Descriptor, text []byte, s Settings) ([]byte, error) {
	header := event.NewHeader("manifest", ManifestRun, "default", "nobody", time.Unix(0, 0).UTC())
	run := event.Fetched{Header: header, Descriptor: string(text), Labels: d.Info.Labels, Data: expected(d)}
	plan, err := Objects(Input{Run: run, Descriptor: d}, s)
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
	return bytes.Join(documents, []byte("---\n")), nil
}

// expected returns the data of a descriptor as they would be once fetched, but
// for what only the fetcher knows.
func expected(d *descriptors.Descriptor) []event.Data {
	given := d.Data.Sources
	if d.Server != nil {
		given = append(slices.Clip(given), d.Server.Models...)
	}
	data := make([]event.Data, 0, len(given))
	for _, s := range given {
		data = append(data, event.Data{Source: s.Src, Path: s.Path, Unpack: s.Unpack, Writable: !s.ReadOnly})
	}
	if d.ML != nil && d.ML.Script != nil {
		data = append(data, event.Data{Source: d.ML.Script.Archive, Path: Scripts})
	}
	return data
}
