package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/zap"
)

// How long an upload goes on after it failed or was canceled.
const (
	finishTimeout = 5 * time.Second  // of a request under way
	abortTimeout  = 10 * time.Second // of the abort of a multipart upload
)

// tryTimeout is how long one try of a request of an upload may take. A part has a few MiB,
// and a server may take minutes to put the parts together.
const tryTimeout = 10 * time.Minute

// uploader writes to a bucket of S3. The writer of gocloud.dev uses the same library, but
// has 16 MiB of each object in memory beside its parts, and leaves the parts of a
// canceled upload in the bucket.
type uploader struct {
	api    *s3.Client
	bucket string
	log    *zap.Logger
}

// upload is the function that OpenForWrite returns.
func (u uploader) upload(ctx context.Context, key string, r io.Reader, partSize, concurrency int) error {
	_, err := transfermanager.New(&uploadClient{Client: u.api, log: u.log}, func(o *transfermanager.Options) {
		o.PartSizeBytes, o.MultipartUploadThreshold, o.Concurrency = int64(partSize), int64(partSize), concurrency
		o.RequestChecksumCalculation = u.api.Options().RequestChecksumCalculation
		o.FailTimeout = abortTimeout
	}).UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket: aws.String(u.bucket), Key: aws.String(key), Body: r,
		ContentType: aws.String("application/octet-stream"), IfNoneMatch: aws.String("*"),
	})
	return err
}

// uploadClient sends the requests of one upload. A server may carry out a request whose
// client has gone: a part that is cut off may arrive after the upload was aborted, and
// remain. So no request begins once its context is done, and a request under way then has
// finishTimeout to end.
type uploadClient struct {
	*s3.Client

	log        *zap.Logger
	unanswered atomic.Bool // the server may still carry out one of the requests
}

// PutObject implements transfermanager.S3APIClient.
func (c *uploadClient) PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	ctx, cancel := withGracePeriod(ctx)
	defer cancel()
	return c.Client.PutObject(ctx, in, append(opts, limitTries)...)
}

// CreateMultipartUpload implements transfermanager.S3APIClient.
func (c *uploadClient) CreateMultipartUpload(ctx context.Context, in *s3.CreateMultipartUploadInput,
	opts ...func(*s3.Options),
) (*s3.CreateMultipartUploadOutput, error) {
	ctx, cancel := withGracePeriod(ctx)
	defer cancel()
	return c.Client.CreateMultipartUpload(ctx, in, append(opts, limitTries)...)
}

// UploadPart implements transfermanager.S3APIClient.
func (c *uploadClient) UploadPart(ctx context.Context, in *s3.UploadPartInput, opts ...func(*s3.Options)) (*s3.UploadPartOutput, error) {
	ctx, cancel := withGracePeriod(ctx)
	defer cancel()
	return c.Client.UploadPart(ctx, in, append(opts, limitTries, c.watchAnswers)...)
}

// CompleteMultipartUpload implements transfermanager.S3APIClient.
func (c *uploadClient) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput,
	opts ...func(*s3.Options),
) (*s3.CompleteMultipartUploadOutput, error) {
	ctx, cancel := withGracePeriod(ctx)
	defer cancel()
	return c.Client.CompleteMultipartUpload(ctx, in, append(opts, limitTries)...)
}

// AbortMultipartUpload implements transfermanager.S3APIClient. It aborts until the
// bucket lists no part of the upload, as S3 asks for:
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html.
// Where that does not succeed before ctx is done the log says so, as its caller
// would lose the reason of the abort with any error.
func (c *uploadClient) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput,
	opts ...func(*s3.Options),
) (*s3.AbortMultipartUploadOutput, error) {
	if err := c.abort(ctx, in, opts); err != nil {
		c.log.Error("parts of an aborted upload may stay in the bucket: abort the upload there, or have a lifecycle rule do it",
			zap.String("bucket", *in.Bucket), zap.String("key", *in.Key), zap.String("upload", *in.UploadId), zap.Error(err))
	}
	return &s3.AbortMultipartUploadOutput{}, nil
}

func (c *uploadClient) abort(ctx context.Context, in *s3.AbortMultipartUploadInput, opts []func(*s3.Options)) error {
	var last error
	for quiet, try := time.Now(), 1; ; try++ {
		parts, err := c.abortOnce(ctx, in, opts)
		switch {
		case err == nil && parts > 0:
			last, quiet = fmt.Errorf("%d parts are listed after %d aborts", parts, try), time.Now()
		case err == nil || last == nil || ctx.Err() == nil: // an error of ctx alone says less than the one before
			last = err
		}
		retry, wait := decideAbort(abortTry{Number: try, PartsLeft: last != nil, Unanswered: c.unanswered.Load(), Quiet: time.Since(quiet)})
		if !retry {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return last
		}
	}
}

// abortOnce aborts an upload, and returns the number of remaining parts, as far as one
// page of the list shows them. If a bucket refuses to list parts, an abort is taken to
// remove all that have arrived.
func (c *uploadClient) abortOnce(ctx context.Context, in *s3.AbortMultipartUploadInput, opts []func(*s3.Options)) (parts int, err error) {
	if _, err := c.Client.AbortMultipartUpload(ctx, in, opts...); err != nil && !noSuchUpload(err) {
		return 0, fmt.Errorf("abort: %w", err)
	}
	out, err := c.ListParts(ctx, &s3.ListPartsInput{Bucket: in.Bucket, Key: in.Key, UploadId: in.UploadId}, opts...)
	if noSuchUpload(err) || errorInfoS3(err).status == http.StatusForbidden {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("list parts: %w", err)
	}
	return len(out.Parts), nil
}

func noSuchUpload(err error) bool { return err != nil && errorInfoS3(err).reason == "NoSuchUpload" }

// watchAnswers notes a request that gets no answer, or one that another server
// gave in the place of the one that carries the request out.
func (c *uploadClient) watchAnswers(o *s3.Options) {
	o.HTTPClient = answerWatcher{HTTPClient: o.HTTPClient, unanswered: &c.unanswered}
}

type answerWatcher struct {
	s3.HTTPClient

	unanswered *atomic.Bool
}

// Do implements s3.HTTPClient.
func (w answerWatcher) Do(r *http.Request) (*http.Response, error) {
	resp, err := w.HTTPClient.Do(r)
	if err != nil || resp.StatusCode >= http.StatusInternalServerError {
		w.unanswered.Store(true)
	}
	return resp, err
}

// limitTries ends each try of a request after tryTimeout: the library has no limit of its
// own for S3, and a server that takes a request and never answers would hold it for ever.
func limitTries(o *s3.Options) { o.HTTPClient = tryLimiter{o.HTTPClient} }

type tryLimiter struct{ s3.HTTPClient }

// Do implements s3.HTTPClient.
func (l tryLimiter) Do(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), tryTimeout, errNoAnswer)
	resp, err := l.HTTPClient.Do(r.WithContext(ctx))
	if err != nil {
		defer cancel()
		if errors.Is(context.Cause(ctx), errNoAnswer) {
			err = errNoAnswer
		}
		return nil, err
	}
	resp.Body = &limitedBody{resp.Body, cancel}
	return resp, nil
}

var errNoAnswer = fmt.Errorf("the server has not answered within %s", tryTimeout)

// limitedBody ends the limit of its request when it is closed.
type limitedBody struct {
	io.ReadCloser

	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *limitedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// withGracePeriod returns a context that is done finishTimeout after ctx is, or at once
// where ctx is done already.
func withGracePeriod(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return ctx, func() {}
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(finishTimeout):
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() { stop(); cancel() }
}
