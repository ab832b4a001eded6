package bucket

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/zap"
)

// FinishTimeout and AbortTimeout bound how long an upload goes on after it failed.
const (
	FinishTimeout = finishTimeout
	AbortTimeout  = abortTimeout
)

// LimitSilence limits for how long a server may send nothing.
var LimitSilence = limitSilence

// Uploader returns the function that writes to a bucket over a client.
func Uploader(api *s3.Client, bucket string, log *zap.Logger) func(ctx context.Context, key string, r io.Reader, bytes, once int) error {
	return uploader{api: api, bucket: bucket, log: log}.upload
}
