package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/zap"
	"gocloud.dev/blob"
)

// Location is a folder or the prefix of a bucket, for objects that others read: their names are not keys of a Store. Several goroutines and
// several processes may use it.
type Location struct {
	dir    string        // of a folder
	bucket *blob.Bucket  // of a bucket, below the prefix
	writer *bucketWriter // of a bucket
}

// CheckLocation returns the fault of the URL of a location: file:///an/absolute/folder or s3://bucket/prefix.
func CheckLocation(raw string) error {
	u, err := parse(raw)
	if err == nil && u.Scheme != "file" && u.Scheme != schemeS3 {
		err = fmt.Errorf("%q is neither a folder nor a bucket: write file:///folder or s3://bucket/prefix", u.Redacted())
	}
	return err
}

// OpenLocation opens the location at a URL. It sends no request, and makes no folder yet.
func OpenLocation(ctx context.Context, raw string, opener BucketOpener, log *zap.Logger) (*Location, error) {
	if err := CheckLocation(raw); err != nil {
		return nil, err
	}
	u, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "file" {
		return &Location{dir: u.Path}, nil
	}
	s, err := openCloud(ctx, Settings{URL: raw}, u, opener, log)
	if err != nil {
		return nil, err
	}
	return &Location{bucket: s.bucket, writer: s.bucketWriter}, nil
}

// Close releases the resources of the location.
func (l *Location) Close() error {
	if l.bucket == nil {
		return nil
	}
	return l.bucket.Close()
}

// PutOnce stores the bytes that fill writes as the object name, all or none. It stores nothing, and returns nil, if the name has an object,
// which may be the one of another writer at the same time. A file that a killed writer leaves behind is hidden: its name begins with a dot.
func (l *Location) PutOnce(ctx context.Context, name string, fill func(w io.Writer) error) error {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("write object %q: not a name", name)
	}
	put := l.putFile
	if l.bucket != nil {
		put = l.putObject
	}
	if err := put(ctx, name, fill); err != nil {
		return fmt.Errorf("write object %s: %w", name, err)
	}
	return nil
}

func (l *Location) putObject(ctx context.Context, name string, fill func(w io.Writer) error) error {
	if exists, err := l.bucket.Exists(ctx, name); err != nil || exists {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := l.writer.create(ctx, name, -1)
	if err := fill(w); err != nil {
		cancel()
		_ = w.Close() // returns the cancel error, and removes the partial object
		return err
	}
	err := w.Close()
	if err == nil {
		return nil
	}
	if exists, failed := l.bucket.Exists(ctx, name); failed == nil && exists {
		return nil // another writer was faster
	}
	return err
}

func (l *Location) putFile(ctx context.Context, name string, fill func(w io.Writer) error) error {
	path := filepath.Join(l.dir, name)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(l.dir, 0o755); err != nil { //nolint:gosec // others read it
		return err
	}
	f, err := os.CreateTemp(l.dir, "."+name+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	err = fill(f)
	if err == nil {
		err = errors.Join(ctx.Err(), f.Chmod(0o644), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(l.dir)
}

// syncDir forces the names in a folder onto the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator says where
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
