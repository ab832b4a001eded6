package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/benchmark-ai/bai/deploy/images/debian"
)

// output is an OCI image layout that is written.
type output struct {
	path layout.Path
	dir  string
}

const (
	sbomType  = "application/vnd.cyclonedx+json"
	bomSuffix = ".cdx.json"                // of the file with the list of an image's parts, after the image's name
	imageName = "io.containerd.image.name" // annotation of an image in the index: its whole name
)

// newLayout makes an empty layout, in place of the one that was there. A folder
// of anything else is refused.
func newLayout(dir string) (*output, error) {
	if dir == "" {
		return nil, errors.New("-out is needed")
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err != nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is a folder of something else", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	p, err := layout.Write(dir, empty.Index)
	return &output{path: p, dir: dir}, err
}

// add writes an image, and what the Go programs in it are made of.
func (o *output) add(im image, programs ...string) error {
	if len(programs) == 0 {
		return o.addWith(im, nil)
	}
	return o.addWith(im, func(name, version string) ([]byte, error) { return bom(programs, name, version) })
}

// addWith writes an image, and the list of its parts, if there is one.
func (o *output) addWith(im image, list func(name, version string) ([]byte, error)) error {
	img, err := im.build()
	if err != nil {
		return err
	}
	name, tag, ok := strings.Cut(im.ref[strings.LastIndex(im.ref, "/")+1:], ":")
	if !ok {
		return fmt.Errorf("%q has no tag", im.ref)
	}
	annotations := map[string]string{imageName: im.ref, "org.opencontainers.image.ref.name": tag}
	if err := o.path.AppendImage(img, layout.WithAnnotations(annotations)); err != nil || list == nil {
		return err
	}
	text, err := list(name, tag)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.dir, name+bomSuffix), text, 0o644); err != nil {
		return err
	}
	return o.refer(img, text)
}

// refer adds what an image is made of, as an artifact that refers to it.
func (o *output) refer(img v1.Image, text []byte) error {
	a, err := artifact(img, text)
	if err != nil {
		return err
	}
	return o.path.WriteImage(a)
}

// artifact returns the list of the parts of an image as an artifact that refers to it. The same
// image and list give the same artifact.
func artifact(img v1.Image, text []byte) (v1.Image, error) {
	subject, err := partial.Descriptor(img)
	if err != nil {
		return nil, err
	}
	a := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), sbomType)
	if a, err = mutate.AppendLayers(a, static.NewLayer(text, sbomType)); err != nil {
		return nil, err
	}
	referrer, ok := mutate.Subject(a, v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest}).(v1.Image)
	if !ok {
		return nil, errors.New("the artifact is no image")
	}
	return referrer, nil
}

// bom lists the modules that Go programs are made of.
func bom(programs []string, name, version string) ([]byte, error) {
	all := map[string]cdx.Component{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("read what %s is made of: %w", program, err)
		}
		all["std"] = component(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = &debug.Module{Path: m.Path, Version: m.Replace.Version, Sum: m.Replace.Sum}
			}
			all[m.Path+"@"+m.Version] = component(m)
		}
	}
	components := make([]cdx.Component, 0, len(all))
	for _, key := range sorted(all) {
		components = append(components, all[key])
	}
	return encodeBOM(components, name, version)
}

// packageBOM lists the Debian packages of an image.
func packageBOM(l debian.Lock, name, version string) ([]byte, error) {
	components := make([]cdx.Component, 0, len(l.Packages))
	for _, p := range l.Packages {
		components = append(components, cdx.Component{
			BOMRef: p.Name + "@" + p.Version, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version,
			PackageURL: "pkg:deb/debian/" + p.Name + "@" + url.PathEscape(p.Version),
			Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: p.SHA256}},
		})
	}
	return encodeBOM(components, name, version)
}

func encodeBOM(components []cdx.Component, name, version string) ([]byte, error) {
	b := cdx.NewBOM()
	b.SerialNumber = ""
	b.Metadata = &cdx.Metadata{Component: &cdx.Component{BOMRef: name, Type: cdx.ComponentTypeContainer, Name: name, Version: version}}
	b.Components = &components
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(b); err != nil {
		return nil, fmt.Errorf("write what %s is made of: %w", name, err)
	}
	return out.Bytes(), nil
}

func component(m *debug.Module) cdx.Component {
	c := cdx.Component{
		BOMRef: m.Path + "@" + m.Version, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
		PackageURL: "pkg:golang/" + m.Path + "@" + m.Version,
	}
	if m.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}
