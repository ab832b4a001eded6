// Package transfer has the verbs that take runs out of a platform and into
// another.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/bai/archive"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/bucket"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
)

// sinkAt returns what writes an archive where the user wants it.
func sinkAt(ctx context.Context, target string, force bool) (archive.Sink, error) { //nolint:ireturn // as archive has it
	sink, err := sinkOf(ctx, target, force)
	_, exists := errors.AsType[*archive.ExistsError](err)
	if exists || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist) {
		return nil, &verdict.UsageError{Message: err.Error()}
	}
	return sink, err
}

func sinkOf(ctx context.Context, target string, force bool) (archive.Sink, error) { //nolint:ireturn // as archive has it
	switch {
	case strings.HasPrefix(target, bucket.Scheme):
		b, err := inBucket(ctx, target)
		if err != nil {
			return nil, err
		}
		return b.Sink(ctx, force)
	case strings.Contains(target, "://"):
		return nil, badPlace(target)
	case strings.HasSuffix(target, archive.Suffix):
		return archive.Tar(target, force)
	case packed(target):
		return nil, &verdict.UsageError{Message: fmt.Sprintf("%q: exports are folders or %s files: use %q, or %q for a folder of that name", target, archive.Suffix, unpacked(target)+archive.Suffix, target+"/")}
	}
	return archive.Folder(target, force)
}

// suffixes are those of files that hold others, of which baictl writes none.
func suffixes() []string {
	return []string{".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".zst", ".tzst", ".7z"}
}

// packed reports whether a name is one of a file that holds others.
func packed(name string) bool { return unpacked(name) != name }

// unpacked is the name of such a file without its suffixes.
func unpacked(name string) string {
	for {
		short := name
		for _, suffix := range suffixes() {
			short = strings.TrimSuffix(short, suffix)
		}
		if short == name || filepath.Base(short) == "." || short == "" || strings.HasSuffix(short, "/") {
			return name
		}
		name = short
	}
}

// sourceAt returns the archive that the user names.
func sourceAt(ctx context.Context, source string) (archive.Source, error) { //nolint:ireturn // as archive has it
	switch {
	case strings.HasPrefix(source, bucket.Scheme):
		b, err := inBucket(ctx, source)
		if err != nil {
			return nil, err
		}
		return b.Source(ctx), nil
	case strings.Contains(source, "://"):
		return nil, badPlace(source)
	}
	from, err := archive.Open(source)
	if err != nil {
		return nil, &verdict.UsageError{Message: err.Error()}
	}
	return from, nil
}

func inBucket(ctx context.Context, target string) (*bucket.Bucket, error) {
	p, err := bucket.Parse(target)
	if err != nil {
		return nil, &verdict.UsageError{Message: err.Error()}
	}
	return bucket.Open(ctx, p)
}

func badPlace(target string) error {
	return &verdict.UsageError{Message: fmt.Sprintf("%q: want a folder, a file that ends in %s, or s3://BUCKET/PREFIX", target, archive.Suffix)}
}
