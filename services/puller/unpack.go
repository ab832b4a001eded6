package puller

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"syscall"
)

// unpackAll unpacks one object to all its places. First is a data set with the object's file, nil if there is none.
func (p *puller) unpackAll(ctx context.Context, g objectGroup, first *dataSet) error {
	var archive *os.File
	for _, s := range g.unpack {
		if p.isUnpacked(s) {
			p.progress.addPlaced()
			continue
		}
		if archive == nil {
			f, err := p.archive(ctx, s, first)
			if err != nil {
				return withDataSet(s, err)
			}
			defer func() { _ = f.Close() }() // it was only read
			archive = f
		}
		if err := p.unpack(ctx, s, archive); err != nil {
			return withDataSet(s, err)
		}
		p.progress.addPlaced()
	}
	return nil
}

// archive opens a verified object.
func (p *puller) archive(ctx context.Context, s dataSet, first *dataSet) (*os.File, error) {
	if first != nil {
		return checkOpened(os.Open(p.setPath(*first)))
	}
	if local := p.store.local(s.Object); local != "" {
		f, err := checkOpened(os.Open(local))
		if err != nil {
			return nil, err
		}
		sum := sha256.New()
		if err = sumOf(ctx, f, sum); err == nil {
			p.progress.addBytes(s.Size)
			err = verifyDigest(s, sum)
		}
		return f, closeOnError(f, err)
	}
	if err := p.copyObject(ctx, s, "", p.progress.addBytes); err != nil {
		return nil, err
	}
	f, err := checkOpened(os.Open(p.tempPath(s)))
	if err != nil {
		return nil, err
	}
	return f, closeOnError(f, os.Remove(p.tempPath(s))) // the file disappears with its last reader
}

func checkOpened(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, infraError("object store: %v", err)
	}
	return f, nil
}

// closeOnError closes f if there is an error.
func closeOnError(f *os.File, err error) error {
	if err != nil {
		_ = f.Close() // it was only read
	}
	return err
}

// unpack unpacks an archive into a folder that appears at its place when it is whole.
func (p *puller) unpack(ctx context.Context, s dataSet, archive *os.File) error {
	if err := errors.Join(os.RemoveAll(p.setPath(s)), os.RemoveAll(p.tempPath(s)), os.Mkdir(p.tempPath(s), 0o700)); err != nil {
		return infraError("make its folder: %v", err)
	}
	root, err := os.OpenRoot(p.tempPath(s))
	if err != nil {
		return infraError("open its folder: %v", err)
	}
	defer func() { _ = root.Close() }() // it was only a handle of the folder
	u := &unpacker{
		root: root, guard: newGuard(s.Size, p.cfg.MaxFiles, p.cfg.MaxUnpacked), volume: p.volume(s.shared),
		writable: s.Writable, buf: make([]byte, 256<<10),
	}
	if err = u.unpackArchive(ctx, archive); err == nil {
		err = u.checkLinks(ctx)
	}
	if err != nil {
		return errors.Join(explainUnpackError(u.volume, err), os.RemoveAll(p.tempPath(s)))
	}
	if err := p.finish(s, os.Chmod(p.tempPath(s), os.FileMode(dirMode(s.Writable)))); err != nil {
		return err
	}
	return p.markUnpacked(s)
}

// explainUnpackError returns whose fault an error during unpacking is: the archive's, unless the disk caused it.
func explainUnpackError(v *volume, err error) error {
	if none := v.spaceError(err); none != nil {
		err = none
	}
	if own := new(pullError); errors.As(err, &own) {
		return &pullError{Class: own.Class, Message: "unpack: " + own.Message}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	for _, disk := range [...]error{
		syscall.EIO, syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	} {
		if errors.Is(err, disk) {
			return infraError("unpack: %v", err)
		}
	}
	return userError("unpack: it is not an archive that can be unpacked: %v", err)
}

// unpacker writes entries below one folder, and nowhere else.
type unpacker struct {
	root     *os.Root
	guard    *guard
	volume   *volume
	writable bool
	links    []string // symbolic
	buf      []byte
}

// addEntry puts one entry in its place. Of two with one name the last one counts.
func (u *unpacker) addEntry(ctx context.Context, e entry, content io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name, err := u.guard.admit(e)
	if err != nil || name == "" {
		return err
	}
	if err := u.makeParents(ctx, path.Dir(name)); err != nil {
		return err
	}
	if e.kind == dirEntry {
		if u.isFolder(name) {
			return nil
		}
		return u.mkdir(name)
	}
	if err := u.root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	switch e.kind {
	case symlinkEntry:
		u.links = append(u.links, name)
		return u.root.Symlink(e.link, name)
	case hardlinkEntry:
		return u.hardlink(e, name)
	case fileEntry, dirEntry, otherEntry, skippedEntry:
	}
	return u.writeFile(ctx, name, e.executable, content)
}

// makeParents creates a folder and its parents if they do not exist. Each counts as an entry of the archive.
func (u *unpacker) makeParents(ctx context.Context, name string) error {
	var missing []string
	for ; !u.isFolder(name); name = path.Dir(name) {
		missing = append(missing, name)
	}
	for _, name := range slices.Backward(missing) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := u.guard.count(); err != nil {
			return err
		}
		if err := u.mkdir(name); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) isFolder(name string) bool {
	info, err := u.root.Stat(name)
	return name == "." || err == nil && info.IsDir()
}

func (u *unpacker) mkdir(name string) error {
	mode := os.FileMode(dirMode(u.writable))
	if err := u.root.Mkdir(name, mode); err != nil {
		return err
	}
	if err := u.volume.addUnpacked(minReserve); err != nil {
		return err
	}
	return u.root.Chmod(name, mode)
}

func (u *unpacker) hardlink(e entry, name string) error {
	target := path.Clean(e.link)
	info, err := u.root.Lstat(target)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return userError("%.100q is a link to what is not a file", e.name)
	}
	return u.root.Link(target, name)
}

func (u *unpacker) writeFile(ctx context.Context, name string, executable bool, content io.Reader) (err error) {
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n, err := io.CopyBuffer(countingWriter{u.volume, f}, io.LimitReader(reader{ctx, content}, u.guard.bytes+1), u.buf)
	if err == nil {
		err = u.volume.addUnpacked(max(0, minReserve-n))
	}
	if err != nil {
		return err
	}
	if u.guard.bytes -= n; u.guard.bytes < 0 {
		return u.guard.tooLargeError()
	}
	return f.Chmod(os.FileMode(fileMode(u.writable, executable)))
}

// checkLinks returns an error if a symbolic link leads out of the folder by way of others. A dangling one is harmless.
func (u *unpacker) checkLinks(ctx context.Context) error {
	for _, name := range u.links {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := u.root.Stat(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return userError("%.100q is a link that cannot be followed: %v", name, err)
		}
	}
	return nil
}

// unpackArchive unpacks the archive, in any format.
func (u *unpacker) unpackArchive(ctx context.Context, archive *os.File) error {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return infraError("read: %v", err)
	}
	form, err := detectFormat(archive)
	if err != nil {
		return err
	}
	if form == zipFormat {
		return u.unpackZip(ctx, archive)
	}
	return u.unpackTar(ctx, form, archive)
}
