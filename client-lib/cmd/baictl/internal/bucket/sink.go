package bucket

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/benchmark-ai/bai/client-lib/bai/archive"
)

// Sizes of the parts of an upload.
const (
	large = 256 << 20 // bytes from which on a file is sent in parts
	part  = 64 << 20
)

// sink writes an export to a place.
type sink struct {
	*Bucket

	ctx     context.Context //nolint:containedctx // of the export: a sink is used for one
	old     []string        // files of the export that is overwritten
	written []string
	done    bool
}

// Sink returns a sink that writes an export to the location. The manifest comes last: an
// export without it is incomplete. If the location has objects and force is false, or
// the objects have no manifest that can be read, Sink returns *archive.ExistsError. With
// force an export is overwritten, and objects that its manifest does not name remain.
func (b *Bucket) Sink(ctx context.Context, force bool) (archive.Sink, error) { //nolint:ireturn // as archive has it
	s := &sink{Bucket: b, ctx: ctx}
	empty, err := b.empty(ctx)
	if err != nil || empty {
		return s, err
	}
	if !force {
		return nil, &archive.ExistsError{Path: b.location.String()}
	}
	if s.old, err = archive.Names(b.Source(ctx)); err != nil {
		return nil, err
	}
	if len(s.old) == 0 {
		return nil, &archive.ExistsError{
			Path: b.location.String(),
			Why:  "it has objects, and no " + archive.ManifestName + " of an export: choose another prefix, or delete the objects",
		}
	}
	return s, b.remove(ctx, archive.ManifestName) // from now on it is no export
}

// Create implements archive.Sink.
func (s *sink) Create(name string) (io.WriteCloser, error) {
	return &object{Spool: archive.NewSpool(os.TempDir()), sink: s, name: name}, nil
}

// object is a file that is written.
type object struct {
	*archive.Spool

	sink *sink
	name string
}

// Close implements io.Closer.
func (o *object) Close() (err error) {
	defer func() { err = errors.Join(err, o.Discard()) }()
	content, err := o.Content()
	if err != nil {
		return err
	}
	o.sink.written = append(o.sink.written, o.name)
	if whole, ok := content.(io.ReaderAt); ok && o.Size() >= large {
		return o.sink.parts(o.name, whole, o.Size())
	}
	_, err = o.sink.api.PutObject(o.sink.ctx, &s3.PutObjectInput{
		Bucket: &o.sink.location.Bucket, Key: o.sink.key(o.name), Body: content, ContentLength: aws.Int64(o.Size()),
	})
	return o.sink.wrapError("write", o.name, err)
}

// parts writes a file that is large.
func (s *sink) parts(name string, content io.ReaderAt, size int64) error {
	up, err := s.api.CreateMultipartUpload(s.ctx, &s3.CreateMultipartUploadInput{Bucket: &s.location.Bucket, Key: s.key(name)})
	if err != nil {
		return s.wrapError("write", name, err)
	}
	var done []types.CompletedPart
	for at, n := int64(0), int32(1); at < size; at, n = at+part, n+1 {
		length := min(part, size-at)
		out, err := s.api.UploadPart(s.ctx, &s3.UploadPartInput{
			Bucket: &s.location.Bucket, Key: s.key(name), UploadId: up.UploadId, PartNumber: aws.Int32(n),
			Body: io.NewSectionReader(content, at, length), ContentLength: aws.Int64(length),
		})
		if err != nil {
			s.abortUpload(name, up.UploadId)
			return s.wrapError("write", name, err)
		}
		done = append(done, types.CompletedPart{ETag: out.ETag, PartNumber: aws.Int32(n)})
	}
	_, err = s.api.CompleteMultipartUpload(s.ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &s.location.Bucket, Key: s.key(name), UploadId: up.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: done},
	})
	return s.wrapError("write", name, err)
}

// abortUpload has the bucket forget the parts of a file.
func (s *sink) abortUpload(name string, id *string) {
	ctx, cancel := s.cleanupContext()
	defer cancel()
	// The bucket's own rules do it too.
	_, _ = s.api.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.location.Bucket, Key: s.key(name), UploadId: id})
}

// cleanupContext is a context for clean-up after the export's context has ended.
func (s *sink) cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(s.ctx), 10*time.Second)
}

// Commit implements archive.Sink: it removes the objects of the overwritten export that
// the new one does not have.
func (s *sink) Commit() error {
	s.done = true
	for _, name := range s.old {
		if slices.Contains(s.written, name) {
			continue
		}
		if err := s.remove(s.ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Abort implements archive.Sink: it removes the objects that were written, and those of
// the overwritten export, which has no manifest any more.
func (s *sink) Abort() {
	if s.done {
		return
	}
	ctx, cancel := s.cleanupContext()
	defer cancel()
	slices.Reverse(s.written) // the manifest first
	for _, name := range append(s.written, s.old...) {
		if s.remove(ctx, name) != nil {
			return // it is no export without its manifest
		}
	}
}
