package puller

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// dataDir returns the folder of data sets. A data set is at setPath, and at tempPath before it is whole.
func (p *puller) dataDir(shared bool) string {
	if shared {
		return p.sharedDir
	}
	return p.dir
}

func (p *puller) setPath(s dataSet) string {
	return filepath.Join(p.dataDir(s.shared), strconv.Itoa(s.index))
}

func (p *puller) tempPath(s dataSet) string {
	return filepath.Join(p.dataDir(s.shared), fmt.Sprintf(".%d.tmp", s.index))
}

// placeFile brings a data set to its place, from the data set with the same object if from is not nil.
func (p *puller) placeFile(ctx context.Context, s dataSet, from *dataSet) error {
	if there, err := p.isPlaced(ctx, s); there || err != nil {
		if from == nil {
			p.progress.addBytes(s.Size)
		}
		return err
	}
	if from != nil && canShareFile(s, *from) {
		return p.finish(s, os.Link(p.setPath(*from), p.tempPath(s)))
	}
	came := p.progress.addBytes
	local := p.store.local(s.Object)
	if from == nil && p.canLink(s, local) {
		return p.linkFile(ctx, s, local)
	}
	if from != nil {
		came, local = func(int64) {}, p.setPath(*from)
	}
	if err := p.copyObject(ctx, s, local, came); err != nil {
		return err
	}
	return p.finish(s, os.Chmod(p.tempPath(s), os.FileMode(fileMode(s.Writable, false))))
}

// canLink reports whether a data set may be a hard link to the file of the object store, and creates the link. A user who may read the one
// may read the other.
func (p *puller) canLink(s dataSet, local string) bool {
	if !p.cfg.Linked || s.Writable || local == "" || os.Link(local, p.tempPath(s)) != nil {
		return false
	}
	info, err := os.Lstat(p.tempPath(s))
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o444 == 0o444 {
		return true
	}
	_ = os.Remove(p.tempPath(s)) // after a failed link the data set is copied, which fails for the same reason
	return false
}

// linkFile verifies a linked data set, and moves it to its place.
func (p *puller) linkFile(ctx context.Context, s dataSet, local string) error {
	f, err := os.Open(local)
	if err != nil {
		return infraError("object store: %v", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	sum := sha256.New()
	if err = sumOf(ctx, f, sum); err == nil {
		p.progress.addBytes(s.Size)
		err = verifyDigest(s, sum)
	}
	if err != nil {
		_ = os.Remove(p.tempPath(s)) // the file is useless, and removed before the next attempt in any case
		return err
	}
	return p.finish(s, nil)
}

// finish moves a whole data set to its place, unless err is not nil.
func (p *puller) finish(s dataSet, err error) error {
	if err == nil {
		err = os.Rename(p.tempPath(s), p.setPath(s))
	}
	if err != nil {
		return infraError("put it in its place: %v", err)
	}
	return nil
}

// isPlaced reports whether the right data set is in its place. It removes a wrong one.
func (p *puller) isPlaced(ctx context.Context, s dataSet) (bool, error) {
	f, err := os.Open(p.setPath(s))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, infraError("look at it: %v", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() == s.Size {
		sum := sha256.New()
		if _, err := io.CopyBuffer(sum, reader{ctx, f}, make([]byte, 1<<20)); err != nil {
			return false, wrapError("look at it", err)
		}
		if hex.EncodeToString(sum.Sum(nil)) == s.SHA256 {
			return true, nil
		}
	}
	if err := os.RemoveAll(p.setPath(s)); err != nil {
		return false, infraError("replace it: %v", err)
	}
	return false, nil
}

// copyObject copies the object to the temporary file of s, and verifies it: from the file local, or from the store if local is "".
func (p *puller) copyObject(ctx context.Context, s dataSet, local string, onBytes func(int64)) (err error) {
	f, err := os.OpenFile(p.tempPath(s), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return infraError("write: %v", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = infraError("write: %v", cerr)
		}
		if err != nil {
			_ = os.Remove(p.tempPath(s)) // the file is useless, and removed before the next attempt in any case
		}
	}()
	sum := sha256.New()
	if local != "" {
		err = cloneFile(ctx, local, f, sum, onBytes)
	} else if err = p.store.download(ctx, s.Object, f, onBytes); err == nil {
		err = sumOf(ctx, f, sum)
	}
	if err != nil {
		return err
	}
	return verifyDigest(s, sum)
}

// verifyDigest returns an error if an object differs from the fetched one. Its source is not at fault.
func verifyDigest(s dataSet, sum hash.Hash) error {
	if got := hex.EncodeToString(sum.Sum(nil)); got != s.SHA256 {
		return infraError("the object store has something else than was fetched: sha256 %s, want %s", got, s.SHA256)
	}
	return nil
}

// cloneFile copies a file to f, by sharing its blocks if the file system can, and then adds the content of f to sum.
func cloneFile(ctx context.Context, path string, f *os.File, sum hash.Hash, onBytes func(int64)) error {
	from, err := os.Open(path)
	if err != nil {
		return infraError("object store: %v", err)
	}
	defer func() { _ = from.Close() }() // it was only read
	buf := make([]byte, 1<<20)
	for at := int64(0); ctx.Err() == nil; {
		n, err := io.CopyN(f, from, 16<<20)
		if err != nil && !errors.Is(err, io.EOF) {
			return infraError("copy from the object store: %v", err)
		}
		if _, err := io.CopyBuffer(writerOnly{sum}, io.NewSectionReader(f, at, n), buf); err != nil {
			return infraError("read again what was written: %v", err)
		}
		at += n
		onBytes(n)
		if err != nil {
			return nil
		}
	}
	return ctx.Err()
}

func sumOf(ctx context.Context, f *os.File, sum hash.Hash) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return infraError("read again what was written: %v", err)
	}
	if _, err := io.CopyBuffer(writerOnly{sum}, reader{ctx, f}, make([]byte, 1<<20)); err != nil {
		return wrapError("read again what was written", err)
	}
	return nil
}

// reader reads until its context is done.
type reader struct {
	ctx  context.Context //nolint:containedctx // of one copy
	from io.Reader
}

// Read implements io.Reader.
func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// writerOnly hides that a writer can do more than write.
type writerOnly struct{ io.Writer }

// wrapError makes a *pullError of err, unless err is the end of a context.
func wrapError(verb string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return infraError("%s: %v", verb, err)
}

// isUnpacked reports whether a data set was unpacked to its place, according to its marker.
func (p *puller) isUnpacked(s dataSet) bool {
	b, err := os.ReadFile(p.markerPath(s))
	if err != nil || !bytes.Equal(b, []byte(s.SHA256)) {
		return false
	}
	info, err := os.Lstat(p.setPath(s))
	return err == nil && info.IsDir()
}

func (p *puller) markUnpacked(s dataSet) error {
	if err := os.WriteFile(p.tempPath(s), []byte(s.SHA256), 0o644); err != nil { //nolint:gosec // other pods wait for it
		return infraError("put it in its place: %v", err)
	}
	if err := os.Rename(p.tempPath(s), p.markerPath(s)); err != nil {
		return infraError("put it in its place: %v", err)
	}
	return nil
}

func (p *puller) markerPath(s dataSet) string {
	return filepath.Join(p.dataDir(s.shared), fmt.Sprintf(".%d.unpacked", s.index))
}
