package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/deploy/images/debian"
)

// suite are the flags of the commands about images of Debian packages.
type suite struct {
	*flag.FlagSet

	dir, only string
	source    debian.Source
}

func newSuite(name string) *suite {
	s := &suite{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError)}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	s.StringVar(&s.dir, "dir", "suite", "`folder` with a folder for each image")
	s.StringVar(&s.only, "only", "", "`names` of some images, separated by commas; empty means all")
	s.StringVar(&s.source.Mirror, "mirror", "http://deb.debian.org", "`address` of a mirror of Debian's archives")
	s.StringVar(&s.source.Snapshot, "snapshot", "http://snapshot.debian.org/archive",
		"`address` of an archive for versions that the mirror has no more")
	s.StringVar(&s.source.Cache, "cache", filepath.Join(cache, "benchmark-ai", "deb"), "`folder` for packages")
	return s
}

// each calls do for the images that the flags name, in the order of their names.
func (s *suite) each(do func(name string, im debian.Image) error) error {
	files, err := filepath.Glob(filepath.Join(s.dir, "*", "image"))
	if err != nil {
		return err
	}
	var only []string
	if s.only != "" {
		only = strings.Split(s.only, ",")
	}
	found := 0
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		if only != nil && !slices.Contains(only, name) {
			continue
		}
		found++
		im, err := debian.ReadImage(filepath.Dir(file))
		if err != nil {
			return err
		}
		if err := do(name, im); err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
	}
	if found == 0 || only != nil && found != len(only) {
		return fmt.Errorf("%s has not all of the images that are asked for (-only %q)", s.dir, s.only)
	}
	return nil
}

// locks writes the lock of each image anew.
func locks(args []string) error {
	s := newSuite("locks")
	if err := s.Parse(args); err != nil {
		return err
	}
	return s.each(func(name string, im debian.Image) error {
		l, err := debian.Resolve(context.Background(), im.Packages, time.Now())
		if err != nil {
			return err
		}
		fmt.Println(name, len(l.Packages), "packages")
		return im.WriteLock(l)
	})
}

// suites writes the images as a layout.
func suites(args []string) error {
	s := newSuite("suite")
	out := s.String("out", "", "`folder` of the layout, which is made anew")
	prefix := s.String("prefix", "docker.io/benchmark-ai/suite-", "`text` before the names of the images")
	version := s.String("tag", "1", "`tag` of the images")
	if err := s.Parse(args); err != nil {
		return err
	}
	l, err := newLayout(*out)
	if err != nil {
		return err
	}
	return s.each(func(name string, im debian.Image) error {
		ref := *prefix + name + ":" + tag(*version)
		fmt.Println(ref)
		return s.add(l, ref, im)
	})
}

// add adds an image to a layout, with the list of its packages.
func (s *suite) add(l *output, ref string, im debian.Image) error {
	rootfs, err := os.CreateTemp("", "rootfs-*.tar")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(rootfs.Name()) }()
	err = im.Write(context.Background(), s.source, rootfs)
	if err := errors.Join(err, rootfs.Close()); err != nil {
		return err
	}
	lock, err := im.Lock()
	if err != nil {
		return err
	}
	return l.addWith(image{ref: ref, rootfs: rootfs.Name(), env: im.Env},
		func(name, version string) ([]byte, error) { return packageBOM(lock, name, version) })
}

// rootfs writes the root file system of one image as a tar archive.
func rootfs(args []string) error {
	s := newSuite("rootfs")
	out := s.String("out", "", "`file` of the archive")
	if err := s.Parse(args); err != nil {
		return err
	}
	if s.only == "" || strings.Contains(s.only, ",") {
		return errors.New("-only names one image")
	}
	return s.each(func(_ string, im debian.Image) error {
		f, err := os.Create(*out)
		if err != nil {
			return err
		}
		return errors.Join(im.Write(context.Background(), s.source, f), f.Close())
	})
}
