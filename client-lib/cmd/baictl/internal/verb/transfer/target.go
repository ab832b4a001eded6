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
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
)

// sinkAt returns a sink that writes an archive to the target.
func sinkAt(ctx context.Context, target string, force bool) (archive.Sink, error) { //nolint:ireturn // as archive has it
	sink, err := sinkOf(ctx, target, force)
	_, exists := errors.AsType[*archive.ExistsError](err)
	if exists || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist) {
		return nil, &exitcode.UsageError{Message: err.Error()}
	}
	return sink, err
}

func sinkOf(ctx context.Context, target string, force bool) (archive.Sink, error) { //nolint:ireturn // as archive has it
	switch {
	case strings.HasPrefix(target, bucket.Scheme):
		b, err := openBucket(ctx, target)
		if err != nil {
			return nil, err
		}
		return b.Sink(ctx, force)
	case strings.Contains(target, "://"):
		return nil, badTargetError(target)
	case strings.HasSuffix(target, archive.Suffix):
		return archive.Tar(target, force)
	case isPacked(target):
		return nil, &exitcode.UsageError{Message: fmt.Sprintf(
			"%q: exports are folders or %s files: use %q, or %q for a folder of that name", target, archive.Suffix,
			trimSuffixes(target)+archive.Suffix, target+"/")}
	}
	return archive.Folder(target, force)
}

// suffixes are those of archive formats that baictl does not write.
func suffixes() []string {
	return []string{".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".zst", ".tzst", ".7z"}
}

// isPacked reports whether a name is one of a file that holds others.
func isPacked(name string) bool { return trimSuffixes(name) != name }

// trimSuffixes is the name of such a file without its suffixes.
func trimSuffixes(name string) string {
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
		b, err := openBucket(ctx, source)
		if err != nil {
			return nil, err
		}
		return b.Source(ctx), nil
	case strings.Contains(source, "://"):
		return nil, badTargetError(source)
	}
	from, err := archive.Open(source)
	if err != nil {
		return nil, &exitcode.UsageError{Message: err.Error()}
	}
	return from, nil
}

func openBucket(ctx context.Context, target string) (*bucket.Bucket, error) {
	p, err := bucket.Parse(target)
	if err != nil {
		return nil, &exitcode.UsageError{Message: err.Error()}
	}
	return bucket.Open(ctx, p)
}

func badTargetError(target string) error {
	return &exitcode.UsageError{Message: fmt.Sprintf("%q: want a folder, a file that ends in %s, or s3://BUCKET/PREFIX", target,
		archive.Suffix)}
}
