// Package bucket keeps exports of runs in S3, or in what speaks like it. Who may
// do what there is said by the user's own environment, as for Amazon's tools: the
// platform's credentials are not used.
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

// Place is a prefix in a bucket.
type Place struct{ Bucket, Prefix string }

// Parse reads s3://BUCKET/PREFIX.
func Parse(text string) (Place, error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	bucket, prefix, _ := strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	switch {
	case !ok || bucket == "" || strings.ContainsAny(bucket, "@:?#"):
		return Place{}, fmt.Errorf("%q is not s3://BUCKET/PREFIX", text)
	case prefix == "":
		return Place{}, fmt.Errorf("%q names no prefix: want s3://BUCKET/PREFIX", text)
	case strings.HasSuffix(prefix, archive.Suffix):
		return Place{}, fmt.Errorf("%q: in a bucket an export is a prefix, not a file: leave out %s", text, archive.Suffix)
	}
	return Place{Bucket: bucket, Prefix: prefix}, nil
}

// String is the place as it is typed.
func (p Place) String() string { return Scheme + p.Bucket + "/" + p.Prefix }

// Bucket is a place that can be reached.
type Bucket struct {
	place Place
	api   *s3.Client
}

// Open returns what reaches a place. It does so when it is first used.
func Open(ctx context.Context, p Place) (*Bucket, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{})) // what goes wrong is told by errors
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
	return &Bucket{place: p, api: api}, nil
}

func (b *Bucket) key(name string) *string { return aws.String(b.place.Prefix + "/" + name) }

// wrong says what went wrong, without what only this program's makers read.
func (b *Bucket) wrong(doing, name string, err error) error {
	what := fmt.Sprintf("%s %s/%s", doing, b.place, name)
	var told smithy.APIError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &told):
		return fmt.Errorf("%s: %w", what, err)
	}
	switch told.ErrorCode() {
	case "NoSuchKey", "NotFound":
		return fmt.Errorf("%s: %w", what, fs.ErrNotExist)
	case "NoSuchBucket":
		return fmt.Errorf("%s: there is no bucket %q", what, b.place.Bucket)
	}
	return fmt.Errorf("%s: %s: %s", what, told.ErrorCode(), told.ErrorMessage())
}

// Source returns the export that lies at the place.
func (b *Bucket) Source(ctx context.Context) archive.Source { //nolint:ireturn // as archive has it
	return archive.Loose(func(name string) (io.ReadCloser, error) {
		out, err := b.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.place.Bucket, Key: b.key(name)})
		if err != nil {
			return nil, b.wrong("read", name, err)
		}
		return out.Body, nil
	})
}

// empty reports whether nothing lies at the place.
func (b *Bucket) empty(ctx context.Context) (bool, error) {
	out, err := b.api.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b.place.Bucket, Prefix: b.key(""), MaxKeys: aws.Int32(1)})
	if err != nil {
		return false, b.wrong("list", "", err)
	}
	return len(out.Contents) == 0, nil
}

func (b *Bucket) remove(ctx context.Context, name string) error {
	_, err := b.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.place.Bucket, Key: b.key(name)})
	return b.wrong("delete", name, err)
}
