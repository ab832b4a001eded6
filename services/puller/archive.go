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

// archiveFormat is the compression of an archive. The content decides, not the name.
type archiveFormat int

const (
	tarFormat archiveFormat = iota
	gzipFormat
	bzip2Format
	zstdFormat
	zipFormat
)

// detectFormat reads the first bytes.
func detectFormat(archive io.ReaderAt) (archiveFormat, error) {
	head := make([]byte, magicSize)
	n, err := archive.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, infraError("read: %v", err)
	}
	if n == 0 {
		return 0, userError("it is empty, not an archive")
	}
	p := detectPacking(head[:n])
	if p.unsupported != "" {
		return 0, userError("%s, which is not unpacked here: compress it with zstd or gzip", p.unsupported)
	}
	return p.format, nil
}

// unpackTar unpacks a tar archive, compressed or not.
func (u *unpacker) unpackTar(ctx context.Context, form archiveFormat, archive io.Reader) error {
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
			return userError(notAnArchive)
		}
		if err != nil {
			return err
		}
		if err := u.addEntry(ctx, tarEntry(h), r); err != nil {
			return err
		}
	}
}

// tarBlock is how long the first header of a tar archive is.
const tarBlock = 512

const notAnArchive = "it is neither a tar archive, compressed with gzip, bzip2, zstd or nothing, nor a zip archive"

// isTar returns an error if content does not begin like a tar archive. It leaves read errors to the next reader.
func isTar(form archiveFormat, content *bufio.Reader) error {
	head, err := content.Peek(tarBlock)
	if p := detectPacking(head); form != tarFormat && p.name != "" {
		return userError("it is compressed twice, with %s in %s: compress it once", p.name, form.name())
	}
	if errors.Is(err, io.EOF) && len(head) > 0 {
		return userError(notAnArchive)
	}
	return nil
}

func tarEntry(h *tar.Header) entry {
	e := entry{name: h.Name, link: h.Linkname, size: h.Size, executable: h.Mode&0o111 != 0}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		e.kind = fileEntry
	case tar.TypeDir:
		e.kind = dirEntry
	case tar.TypeSymlink:
		e.kind = symlinkEntry
	case tar.TypeLink:
		e.kind = hardlinkEntry
	case tar.TypeXGlobalHeader:
		e.kind = skippedEntry
	}
	return e
}

func decompress(form archiveFormat, r io.Reader) (io.ReadCloser, error) {
	switch form {
	case gzipFormat:
		return gzip.NewReader(r)
	case bzip2Format:
		return io.NopCloser(bzip2.NewReader(r)), nil
	case zstdFormat:
		// One thread and a window of 128 MiB at most, as zstd --long uses.
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case tarFormat, zipFormat:
	}
	return io.NopCloser(r), nil
}

// unpackZip unpacks a zip archive.
func (u *unpacker) unpackZip(ctx context.Context, archive *os.File) error {
	info, err := archive.Stat()
	if err != nil {
		return infraError("read: %v", err)
	}
	z, err := zip.NewReader(archive, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // admit returns the entry's error
		return err
	}
	if len(z.File) > u.guard.files {
		return u.guard.tooManyError()
	}
	for _, f := range z.File {
		if err := u.unpackZipEntry(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// maxLink is one more than a link can be long.
const maxLink = maxNameBytes + 1

func (u *unpacker) unpackZipEntry(ctx context.Context, f *zip.File) error {
	e := entry{name: f.Name, executable: f.Mode()&0o111 != 0}
	switch mode := f.Mode(); {
	case mode.IsDir():
		e.kind = dirEntry
		return u.addEntry(ctx, e, nil)
	case mode.IsRegular():
		e.kind, e.size = fileEntry, int64(min(f.UncompressedSize64, 1<<62)) //nolint:gosec // it fits
	case mode&os.ModeSymlink != 0:
		e.kind = symlinkEntry
	default:
		return u.addEntry(ctx, e, nil)
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // it was only read
	if e.kind == symlinkEntry {
		to, err := io.ReadAll(io.LimitReader(reader{ctx, r}, maxLink))
		if err != nil {
			return err
		}
		e.link = string(to)
	}
	return u.addEntry(ctx, e, r)
}
