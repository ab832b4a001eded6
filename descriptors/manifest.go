package descriptors

import "github.com/benchmark-ai/bai/descriptors/manifest"

// Keys with the objects of a run of strategy manifest.
const (
	ManifestKey     = "manifest.objects"
	ManifestFileKey = "manifest.file"
)

// ObjectsKey is the key that has the objects of a run of strategy manifest.
func (d *Descriptor) ObjectsKey() string {
	if d.Manifest != nil && d.Manifest.File.Attached {
		return ManifestFileKey
	}
	return ManifestKey
}

// ReadManifest returns the objects of a run of strategy manifest, and what is wrong with them.
func (d *Descriptor) ReadManifest() ([]manifest.Document, []manifest.Problem) {
	if d.Manifest == nil {
		return nil, nil
	}
	if d.Manifest.File.Attached {
		return manifest.Read(d.Manifest.File.Text)
	}
	return manifest.Read(d.Manifest.Objects)
}

// manifestReferences are the objects of the cluster that the manifest names.
func (d *Descriptor) manifestReferences() []Reference {
	documents, _ := d.ReadManifest()
	var all []Reference
	for _, r := range manifest.References(documents) {
		all = append(all, Reference{
			Path: d.ObjectsKey(), Kind: ReferenceKind(r.Kind), Name: r.Name, Pull: r.Pull, Line: r.Line, Column: r.Column,
		})
	}
	return all
}
