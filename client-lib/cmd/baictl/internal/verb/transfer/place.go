// Package transfer has the verbs that take runs out of a platform and into
// another.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	}
	return archive.Folder(target, force)
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
