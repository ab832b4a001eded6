package wiring

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
)

// Objects are the settings of the object store, and of access to its bucket.
type Objects struct {
	blob.Settings

	S3 bucket.S3 `toml:"s3"`
}

// Validate names every setting at fault.
func (o Objects) Validate() error {
	how := bucket.Settings{S3: o.S3}.Validate()
	if how != nil {
		how = errors.New(strings.ReplaceAll(how.Error(), "buckets.s3", "objects.s3"))
	}
	return errors.Join(o.Settings.Validate(), how)
}

// Open opens the object store. The store logs files that it cannot remove.
func (o Objects) Open(ctx context.Context, log *zap.Logger) (*blob.Store, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	clouds, err := bucket.New(bucket.Settings{S3: o.S3})
	if err != nil {
		return nil, fmt.Errorf("open object store %s: %w", o.URL, err)
	}
	return blob.OpenIn(ctx, o.Settings, clouds, log)
}
