package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// file copies a file into put.
func (r *Reader) file(ctx context.Context, u *url.URL, req Request, put Sink) (Result, error) {
	name := Redact(req.URL)
	f, info, err := r.guard.open(u.Path, name)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	v := Validators{ETag: fmt.Sprintf("%x-%x", info.Size(), info.ModTime().UnixNano())}
	if v == req.Previous {
		return Result{Validators: v, Unchanged: true}, nil
	}
	if info.Size() > r.settings.MaxSize {
		return Result{}, tooLarge(name, r.settings.MaxSize)
	}
	err = put(ctx, info.Size(), func(w io.Writer) error { return copyFile(ctx, name, f, info.Size(), w, req.OnProgress) })
	return Result{Validators: v}, err
}

// open opens the file at path after resolving symbolic links, if that file may be read.
// No change between the check and the opening can lead it elsewhere.
func (g guard) open(path, name string) (*os.File, os.FileInfo, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, nil, unreadable(name, err)
	}
	for _, folder := range g.folders {
		if folder, err = filepath.EvalSymlinks(folder); err != nil || !within(folder, path) {
			continue
		}
		return openIn(folder, path, name)
	}
	return nil, nil, refusedFile(name)
}

func openIn(folder, path, name string) (*os.File, os.FileInfo, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, nil, unreadable(name, err)
	}
	defer func() { _ = root.Close() }() // it was only read
	rel := strings.TrimPrefix(path, strings.TrimSuffix(folder, "/")+"/")
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not block
	if err != nil {
		return nil, nil, unreadable(name, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		_ = f.Close() // it was only read
		return nil, nil, unreadable(name, err)
	}
	return f, info, nil
}

// copyFile copies a file that must have exactly size bytes.
func copyFile(ctx context.Context, name string, f io.Reader, size int64, w io.Writer, progress func(done, total int64)) error {
	buf := make([]byte, 1<<20)
	for at := int64(0); ; {
		n, rerr := f.Read(buf)
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		at += int64(n)
		progress(at, size)
		switch {
		case errors.Is(context.Cause(ctx), errDeadline):
			return failed(event.ClassInfra, "source %s is not read in time, after %d of %d bytes", name, at, size)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case at > size, errors.Is(rerr, io.EOF) && at < size:
			return failed(event.ClassUser, "source %s changes while it is read", name)
		case errors.Is(rerr, io.EOF):
			return nil
		case rerr != nil:
			return failed(event.ClassInfra, "source %s cannot be read: %v", name, rerr)
		}
	}
}

// unreadable returns the error for a file that cannot be read, without the target of
// its links.
func unreadable(name string, err error) *Error {
	if bad, ok := errors.AsType[*fs.PathError](err); ok {
		err = bad.Err
	}
	return failed(event.ClassUser, "source %s cannot be read: %v", name, err)
}
