package bucket

import (
	"context"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// forgotten is how long it may take to have a bucket forget the pieces of what
// was given up, though who gave it up waits no more.
const forgotten = 10 * time.Second

// uploader writes to a bucket of S3. What gocloud.dev has for that uses the same
// library, but has 16 MiB of each object in memory beside its pieces, and leaves
// those of what is canceled in the bucket.
type uploader struct {
	api    *s3.Client
	bucket string
}

// upload is what Hold returns.
func (u uploader) upload(ctx context.Context, key string, r io.Reader, bytes, once int) error {
	_, err := transfermanager.New(u.api, func(o *transfermanager.Options) {
		o.PartSizeBytes, o.MultipartUploadThreshold, o.Concurrency = int64(bytes), int64(bytes), once
		o.RequestChecksumCalculation = u.api.Options().RequestChecksumCalculation
		o.FailTimeout = forgotten
	}).UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket: aws.String(u.bucket), Key: aws.String(key), Body: r,
		ContentType: aws.String("application/octet-stream"), IfNoneMatch: aws.String("*"),
	})
	return err
}
