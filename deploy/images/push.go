package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push sends the images of a layout to a registry, with the lists of their parts. What the
// registry has is not sent again.
func push(args []string) error {
	flags := flag.NewFlagSet("push", flag.ContinueOnError)
	from := flags.String("from", "", "`folder` of the layout")
	to := flags.String("to", "", "`registry` and path in place of those in the names of the images")
	if err := flags.Parse(args); err != nil {
		return err
	}
	index, err := layout.ImageIndexFromPath(*from)
	if err != nil {
		return fmt.Errorf("-from %q is not a layout that 'images all' or 'images suite' wrote: %w", *from, err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("read the layout %s: %w", *from, err)
	}
	ctx := context.Background()
	p, err := remote.NewPusher(remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithContext(ctx))
	if err != nil {
		return err
	}
	for _, d := range m.Manifests {
		ref, err := destination(d.Annotations[imageName], *to)
		if err != nil {
			return err
		}
		if err := pushImage(ctx, p, *from, index, d.Digest, ref); err != nil {
			return fmt.Errorf("push %s: %w", ref, err)
		}
		fmt.Println(ref.Context().Digest(d.Digest.String()))
	}
	return nil
}

// destination returns where an image goes: below to, or else where its name says.
func destination(image, to string) (name.Reference, error) {
	if to != "" {
		image = path.Join(to, path.Base(image))
	}
	ref, err := name.NewTag(image)
	if err != nil {
		return nil, fmt.Errorf("an image cannot be called %q: %w", image, err)
	}
	return ref, nil
}

// pushImage sends an image, and then the list of its parts, if the layout in dir has one.
func pushImage(ctx context.Context, p *remote.Pusher, dir string, index v1.ImageIndex, digest v1.Hash, ref name.Reference) error {
	img, err := index.Image(digest)
	if err != nil {
		return err
	}
	if err := p.Push(ctx, ref, img); err != nil {
		return err
	}
	list := filepath.Join(dir, path.Base(ref.Context().RepositoryStr())+bomSuffix)
	text, err := os.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	a, err := artifact(img, text)
	if err != nil {
		return err
	}
	of, err := a.Digest()
	if err != nil {
		return err
	}
	if _, err := layout.Path(dir).Bytes(of); err != nil {
		return fmt.Errorf("%s is not the list that the layout has of the image: make the layout anew", list)
	}
	return p.Push(ctx, ref.Context().Digest(of.String()), a)
}
