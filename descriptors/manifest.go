package descriptors

import "github.com/benchmark-ai/bai/descriptors/manifest"

// ManifestKey is the key with the objects of a run of strategy manifest.
const ManifestKey = "manifest.objects"

// ReadManifest returns the objects of a run of strategy manifest, and what is wrong with them.
func (d *Descriptor) ReadManifest() ([]manifest.Document, []manifest.Problem) {
	if d.Manifest == nil {
		return nil, nil
	}
	return manifest.Read(d.Manifest.Objects)
}

// manifestReferences are the objects of the cluster that the manifest names.
func (d *Descriptor) manifestReferences() []Reference {
	documents, _ := d.ReadManifest()
	var all []Reference
	for _, r := range manifest.References(documents) {
		all = append(all, Reference{
			Path: ManifestKey, Kind: ReferenceKind(r.Kind), Name: r.Name, Pull: r.Pull,
			Line: r.Line, Column: r.Column,
		})
	}
	return all
}
