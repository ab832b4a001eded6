package puller

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/bzip2"
	"context"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// form is how an archive is packed. Its content tells, not its name.
type form int

const (
	tarForm form = iota
	gzipForm
	bzip2Form
	zstdForm
	zipForm
)

// formOf looks at the first bytes.
func formOf(archive io.ReaderAt) (form, error) {
	head := make([]byte, magicSize)
	n, err := archive.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, infra("read: %v", err)
	}
	if n == 0 {
		return 0, user("it is empty, not an archive")
	}
	p := packingOf(head[:n])
	if p.unknown != "" {
		return 0, user("%s, which is not unpacked here: compress it with zstd or gzip", p.unknown)
	}
	return p.form, nil
}

// tar unpacks a tar archive, compressed or not.
func (u *unpacker) tar(ctx context.Context, form form, archive io.Reader) error {
	plain, err := decompress(form, archive)
	if err != nil {
		return err
	}
	defer func() { _ = plain.Close() }() // it was only read
	content := bufio.NewReaderSize(reader{ctx, plain}, tarBlock)
	if err := isTar(form, content); err != nil {
		return err
	}
	for r, n := tar.NewReader(content), 0; ; n++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if errors.Is(err, tar.ErrHeader) && n == 0 {
			return user(neither)
		}
		if err != nil {
			return err
		}
		if err := u.add(ctx, tarEntry(h), r); err != nil {
			return err
		}
	}
}

// tarBlock is how long the first header of a tar archive is.
const tarBlock = 512

const neither = "it is neither a tar archive, compressed with gzip, bzip2, zstd or nothing, nor a zip archive"

// isTar says what is no tar archive, by the beginning of what an archive holds. What
// cannot be read is said by who reads on.
func isTar(form form, content *bufio.Reader) error {
	head, err := content.Peek(tarBlock)
	if p := packingOf(head); form != tarForm && p.name != "" {
		return user("it is compressed twice, with %s in %s: compress it once", p.name, form.name())
	}
	if errors.Is(err, io.EOF) && len(head) > 0 {
		return user(neither)
	}
	return nil
}

func tarEntry(h *tar.Header) entry {
	e := entry{name: h.Name, link: h.Linkname, size: h.Size, executable: h.Mode&0o111 != 0}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		e.kind = file
	case tar.TypeDir:
		e.kind = folder
	case tar.TypeSymlink:
		e.kind = symlink
	case tar.TypeLink:
		e.kind = hardlink
	case tar.TypeXGlobalHeader:
		e.kind = nothing
	}
	return e
}

func decompress(form form, r io.Reader) (io.ReadCloser, error) {
	switch form {
	case gzipForm:
		return gzip.NewReader(r)
	case bzip2Form:
		return io.NopCloser(bzip2.NewReader(r)), nil
	case zstdForm:
		// One thread and a window of 128 MiB at most: what zstd --long makes.
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case tarForm, zipForm:
	}
	return io.NopCloser(r), nil
}

// zip unpacks a zip archive.
func (u *unpacker) zip(ctx context.Context, archive *os.File) error {
	info, err := archive.Stat()
	if err != nil {
		return infra("read: %v", err)
	}
	z, err := zip.NewReader(archive, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // admit says which
		return err
	}
	if len(z.File) > u.guard.files {
		return u.guard.tooMany()
	}
	for _, f := range z.File {
		if err := u.zipped(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// maxLink is one more than a link can be long.
const maxLink = mostName + 1

func (u *unpacker) zipped(ctx context.Context, f *zip.File) error {
	e := entry{name: f.Name, executable: f.Mode()&0o111 != 0}
	switch mode := f.Mode(); {
	case mode.IsDir():
		e.kind = folder
		return u.add(ctx, e, nil)
	case mode.IsRegular():
		e.kind, e.size = file, int64(min(f.UncompressedSize64, 1<<62)) //nolint:gosec // it fits
	case mode&os.ModeSymlink != 0:
		e.kind = symlink
	default:
		return u.add(ctx, e, nil)
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // it was only read
	if e.kind == symlink {
		to, err := io.ReadAll(io.LimitReader(reader{ctx, r}, maxLink))
		if err != nil {
			return err
		}
		e.link = string(to)
	}
	return u.add(ctx, e, r)
}
