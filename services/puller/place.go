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

// home returns where data sets belong, and at where one of them does; temp is
// where it is before it is whole.
func (p *puller) home(shared bool) string {
	if shared {
		return p.common
	}
	return p.dir
}
func (p *puller) at(s set) string { return filepath.Join(p.home(s.shared), strconv.Itoa(s.n)) }
func (p *puller) temp(s set) string {
	return filepath.Join(p.home(s.shared), fmt.Sprintf(".%d.tmp", s.n))
}

// plain brings a data set to its place, from where the same object lies already
// if that is not nil.
func (p *puller) plain(ctx context.Context, s set, from *set) error {
	if there, err := p.there(ctx, s); there || err != nil {
		if from == nil {
			p.progress.came(s.Size)
		}
		return err
	}
	if from != nil && shared(s, *from) {
		return p.finish(s, os.Link(p.at(*from), p.temp(s)))
	}
	came := p.progress.came
	local := p.store.local(s.Object)
	if from == nil && p.linked(s, local) {
		return p.link(ctx, s, local)
	}
	if from != nil {
		came, local = func(int64) {}, p.at(*from)
	}
	if err := p.bring(ctx, s, local, came); err != nil {
		return err
	}
	return p.finish(s, os.Chmod(p.temp(s), os.FileMode(fileMode(s.Writable, false))))
}

// linked reports whether a data set may be the very file of the object store,
// and can be: who may read the one may read the other.
func (p *puller) linked(s set, local string) bool {
	if !p.cfg.Linked || s.Writable || local == "" || os.Link(local, p.temp(s)) != nil {
		return false
	}
	info, err := os.Lstat(p.temp(s))
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o444 == 0o444 {
		return true
	}
	_ = os.Remove(p.temp(s)) // what cannot be is brought in another way, which fails where this does
	return false
}

// link checks a data set that is linked to, and puts it in its place.
func (p *puller) link(ctx context.Context, s set, local string) error {
	f, err := os.Open(local)
	if err != nil {
		return infra("object store: %v", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	sum := sha256.New()
	if err = sumOf(ctx, f, sum); err == nil {
		p.progress.came(s.Size)
		err = matches(s, sum)
	}
	if err != nil {
		_ = os.Remove(p.temp(s)) // it is of no use, and removed before the next attempt in any case
		return err
	}
	return p.finish(s, nil)
}

// finish moves what is whole to its place, unless err.
func (p *puller) finish(s set, err error) error {
	if err == nil {
		err = os.Rename(p.temp(s), p.at(s))
	}
	if err != nil {
		return infra("put it in its place: %v", err)
	}
	return nil
}

// there reports whether the data set is in its place, as it should be. What is
// there and is not as it should be is removed.
func (p *puller) there(ctx context.Context, s set) (bool, error) {
	f, err := os.Open(p.at(s))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, infra("look at it: %v", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() == s.Size {
		sum := sha256.New()
		if _, err := io.CopyBuffer(sum, reader{ctx, f}, make([]byte, 1<<20)); err != nil {
			return false, wrap("look at it", err)
		}
		if hex.EncodeToString(sum.Sum(nil)) == s.SHA256 {
			return true, nil
		}
	}
	if err := os.RemoveAll(p.at(s)); err != nil {
		return false, infra("replace it: %v", err)
	}
	return false, nil
}

// bring brings the object to the temporary file of s, and checks it: from the
// file local, or from the store where that is "".
func (p *puller) bring(ctx context.Context, s set, local string, came func(int64)) (err error) {
	f, err := os.OpenFile(p.temp(s), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return infra("write: %v", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = infra("write: %v", cerr)
		}
		if err != nil {
			_ = os.Remove(p.temp(s)) // it is of no use, and removed before the next attempt in any case
		}
	}()
	sum := sha256.New()
	if local != "" {
		err = clone(ctx, local, f, sum, came)
	} else if err = p.store.download(ctx, s.Object, f, came); err == nil {
		err = sumOf(ctx, f, sum)
	}
	if err != nil {
		return err
	}
	return matches(s, sum)
}

// matches says how an object differs from what was fetched. Its source is not
// to blame for that.
func matches(s set, sum hash.Hash) error {
	if got := hex.EncodeToString(sum.Sum(nil)); got != s.SHA256 {
		return infra("the object store has something else than was fetched: sha256 %s, want %s", got, s.SHA256)
	}
	return nil
}

// clone copies a file to f, by sharing its blocks where the file system can, and
// sums what is in f then.
func clone(ctx context.Context, path string, f *os.File, sum hash.Hash, came func(int64)) error {
	from, err := os.Open(path)
	if err != nil {
		return infra("object store: %v", err)
	}
	defer func() { _ = from.Close() }() // it was only read
	buf := make([]byte, 1<<20)
	for at := int64(0); ctx.Err() == nil; {
		n, err := io.CopyN(f, from, 16<<20)
		if err != nil && !errors.Is(err, io.EOF) {
			return infra("copy from the object store: %v", err)
		}
		if _, err := io.CopyBuffer(only{sum}, io.NewSectionReader(f, at, n), buf); err != nil {
			return infra("read again what was written: %v", err)
		}
		at += n
		came(n)
		if err != nil {
			return nil
		}
	}
	return ctx.Err()
}

func sumOf(ctx context.Context, f *os.File, sum hash.Hash) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return infra("read again what was written: %v", err)
	}
	if _, err := io.CopyBuffer(only{sum}, reader{ctx, f}, make([]byte, 1<<20)); err != nil {
		return wrap("read again what was written", err)
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

// only hides that a writer can do more than write.
type only struct{ io.Writer }

// wrap makes an *Error of what is not the end of a context.
func wrap(verb string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return infra("%s: %v", verb, err)
}

// marked reports whether a data set was unpacked to its place; mark says that it
// was.
func (p *puller) marked(s set) bool {
	b, err := os.ReadFile(p.marker(s))
	if err != nil || !bytes.Equal(b, []byte(s.SHA256)) {
		return false
	}
	info, err := os.Lstat(p.at(s))
	return err == nil && info.IsDir()
}

func (p *puller) mark(s set) error {
	if err := os.WriteFile(p.temp(s), []byte(s.SHA256), 0o644); err != nil { //nolint:gosec // other pods wait for it
		return infra("put it in its place: %v", err)
	}
	if err := os.Rename(p.temp(s), p.marker(s)); err != nil {
		return infra("put it in its place: %v", err)
	}
	return nil
}

func (p *puller) marker(s set) string {
	return filepath.Join(p.home(s.shared), fmt.Sprintf(".%d.unpacked", s.n))
}
