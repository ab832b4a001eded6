package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// image is what one image is made of.
type image struct {
	ref        string
	rootfs     string // tar
	files      []file
	roots      bool // with the certificate authorities that the web trusts
	entrypoint string
	user       string
	env        []string // beside PATH
}

// file is one file of an image.
type file struct{ from, to string }

// build makes an image. No time but the epoch is in it, and nothing of this
// machine.
func (im image) build() (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	var layers []v1.Layer
	if im.rootfs != "" {
		l, err := tarball.LayerFromFile(im.rootfs, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	if len(im.files) > 0 {
		l, err := im.layer()
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	for _, l := range layers {
		var err error
		if img, err = mutate.Append(img,
			mutate.Addendum{Layer: l, MediaType: types.OCILayer, History: v1.History{CreatedBy: "images"}}); err != nil {
			return nil, err
		}
	}
	c, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.Architecture, c.OS, c.Created = "amd64", "linux", v1.Time{Time: time.Unix(0, 0).UTC()}
	c.Config = v1.Config{User: im.user,
		Env: append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, im.env...)}
	if im.entrypoint != "" {
		c.Config.Entrypoint = []string{im.entrypoint}
	}
	return mutate.ConfigFile(img, c)
}

// layer holds the files.
func (im image) layer() (v1.Layer, error) {
	var buf bytes.Buffer
	w := writer{tar.NewWriter(&buf), map[string]bool{}}
	if err := w.folder("tmp", 0o1777); err != nil {
		return nil, err
	}
	if im.roots {
		text, err := authorities()
		if err != nil {
			return nil, err
		}
		if err := w.file("/etc/ssl/certs/ca-certificates.crt", text, 0o444); err != nil {
			return nil, err
		}
		if err := w.file("/etc/passwd", []byte("root:x:0:0:root:/:/sbin/nologin\nnobody:x:65532:65532:nobody:/tmp:/sbin/nologin\n"),
			0o444); err != nil {
			return nil, err
		}
	}
	for _, f := range im.files {
		body, err := os.ReadFile(f.from)
		if err != nil {
			return nil, err
		}
		if err := w.file(f.to, body, 0o555); err != nil {
			return nil, err
		}
	}
	if err := w.tar.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// writer writes files after the folders that they lie in.
type writer struct {
	tar  *tar.Writer
	seen map[string]bool
}

func (w writer) folder(name string, mode int64) error {
	if w.seen[name] {
		return nil
	}
	w.seen[name] = true
	return w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode, ModTime: time.Unix(0, 0)})
}

func (w writer) file(to string, body []byte, mode int64) error {
	name := strings.TrimPrefix(path.Clean(to), "/")
	for i, c := range name {
		if c == '/' {
			if err := w.folder(name[:i], 0o755); err != nil {
				return err
			}
		}
	}
	if err := w.tar.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(body)), ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err := w.tar.Write(body)
	return err
}

// authorities are the certificates that Mozilla's programs trust, as of the
// version in go.mod.
func authorities() ([]byte, error) {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // not without a condition, which a file cannot hold
		}
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("write the authorities: %w", err)
		}
	}
	return b.Bytes(), nil
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
