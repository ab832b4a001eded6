// Package bucket stores exports of runs in S3 or a compatible store. The credentials come
// from the user's own environment, as for Amazon's tools, not from the platform.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/benchmark-ai/bai/client-lib/bai/archive"
)

// Scheme is how the URL of a place in a bucket begins.
const Scheme = "s3://"

// Location is a prefix in a bucket.
type Location struct{ Bucket, Prefix string }

// Parse reads s3://BUCKET/PREFIX.
func Parse(text string) (Location, error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	bucket, prefix, _ := strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	switch {
	case !ok || bucket == "" || strings.ContainsAny(bucket, "@:?#"):
		return Location{}, fmt.Errorf("%q is not s3://BUCKET/PREFIX", text)
	case prefix == "":
		return Location{}, fmt.Errorf("%q names no prefix: want s3://BUCKET/PREFIX", text)
	case strings.HasSuffix(prefix, archive.Suffix):
		return Location{}, fmt.Errorf("%q: in a bucket an export is a prefix, not a file: leave out %s", text, archive.Suffix)
	}
	return Location{Bucket: bucket, Prefix: prefix}, nil
}

// String is the place as it is typed.
func (p Location) String() string { return Scheme + p.Bucket + "/" + p.Prefix }

// Bucket is a place that can be reached.
type Bucket struct {
	location Location
	api      *s3.Client
}

// Open returns a client for a location. It connects on first use.
func Open(ctx context.Context, p Location) (*Bucket, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{})) // errors report failures; no log is needed
	if err != nil {
		return nil, fmt.Errorf("use %s: %w", p, err)
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	api := s3.NewFromConfig(c, func(o *s3.Options) {
		o.UsePathStyle = o.BaseEndpoint != nil // AWS_ENDPOINT_URL: not Amazon's
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
	return &Bucket{location: p, api: api}, nil
}

func (b *Bucket) key(name string) *string { return aws.String(b.location.Prefix + "/" + name) }

// wrapError describes a failure, without details that only developers read.
func (b *Bucket) wrapError(doing, name string, err error) error {
	action := fmt.Sprintf("%s %s/%s", doing, b.location, name)
	var apiErr smithy.APIError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &apiErr):
		return fmt.Errorf("%s: %w", action, err)
	}
	switch apiErr.ErrorCode() {
	case "NoSuchKey", "NotFound":
		return fmt.Errorf("%s: %w", action, fs.ErrNotExist)
	case "NoSuchBucket":
		return fmt.Errorf("%s: there is no bucket %q", action, b.location.Bucket)
	}
	return fmt.Errorf("%s: %s: %s", action, apiErr.ErrorCode(), apiErr.ErrorMessage())
}

// Source returns the export that lies at the place.
func (b *Bucket) Source(ctx context.Context) archive.Source { //nolint:ireturn // as archive has it
	return archive.Loose(func(name string) (io.ReadCloser, error) {
		out, err := b.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.location.Bucket, Key: b.key(name)})
		if err != nil {
			return nil, b.wrapError("read", name, err)
		}
		return out.Body, nil
	})
}

// empty reports whether nothing lies at the place.
func (b *Bucket) empty(ctx context.Context) (bool, error) {
	out, err := b.api.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b.location.Bucket, Prefix: b.key(""), MaxKeys: aws.Int32(1)})
	if err != nil {
		return false, b.wrapError("list", "", err)
	}
	return len(out.Contents) == 0, nil
}

func (b *Bucket) remove(ctx context.Context, name string) error {
	_, err := b.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.location.Bucket, Key: b.key(name)})
	return b.wrapError("delete", name, err)
}
