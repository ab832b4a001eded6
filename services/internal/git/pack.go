package git

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// pack is a downloaded pack of objects.
type pack struct {
	dir     billy.Filesystem
	file    billy.File
	objects *packfile.Packfile // nil until it is indexed
}

// writePack writes the pack that comes from a reader into a file of dir.
func writePack(dir string, from io.Reader) (*pack, error) {
	p := &pack{dir: osfs.New(dir)}
	var err error
	if p.file, err = p.dir.Create("pack"); err != nil {
		return nil, err
	}
	if _, err := io.Copy(p.file, from); err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	return p, nil
}

// check passes over the objects, without holding them in memory, and calls onObject for
// each. It returns store.ErrTooLarge if the pack cannot be read in bounded memory.
func (p *pack) check(onObject func() error) error {
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	scan := packfile.NewScanner(p.file)
	_, count, err := scan.Header()
	if err != nil {
		return fmt.Errorf("read the pack: %w", err)
	}
	if count > maxObjects {
		return fmt.Errorf("%w: it sends %d files and folders, and repositories are read up to %d", store.ErrTooLarge, count, maxObjects)
	}
	limits := packLimits{chains: make(map[int64]int64)}
	for range count {
		if err := errors.Join(checkObject(scan, &limits), onObject()); err != nil {
			return err
		}
	}
	return nil
}

// checkObject passes over the next object.
func checkObject(scan *packfile.Scanner, limits *packLimits) error {
	h, err := scan.NextObjectHeader()
	if err != nil {
		return fmt.Errorf("read the pack: %w", err)
	}
	if h.Length > maxObjectBytes {
		return objectTooLarge(uint64(h.Length))
	}
	size, start := uint64(h.Length), prefix{}
	n, _, err := scan.NextObject(&start)
	if err == nil && n != h.Length {
		err = packfile.ErrMalformedPackFile
	}
	if err == nil && h.Type.IsDelta() {
		size, err = targetSize(start.b)
	}
	if err != nil {
		return fmt.Errorf("read the pack at byte %d: %w", h.Offset, err)
	}
	return limits.add(h, size)
}

// prefix keeps the first bytes that are written: the two sizes at the start of a difference.
type prefix struct{ b []byte }

// Write implements io.Writer.
func (p *prefix) Write(b []byte) (int, error) {
	p.b = append(p.b, b[:min(len(b), 2*binary.MaxVarintLen64-len(p.b))]...)
	return len(b), nil
}

// targetSize returns the size of the object that a difference leads to, from the start of
// the difference.
func targetSize(start []byte) (uint64, error) {
	if _, n := binary.Uvarint(start); n > 0 {
		if size, n := binary.Uvarint(start[n:]); n > 0 {
			return size, nil
		}
	}
	return 0, packfile.ErrInvalidDelta
}

// object returns an object of the type t. The pack must have been checked.
func (p *pack) object(t plumbing.ObjectType, id plumbing.Hash) (plumbing.EncodedObject, error) { //nolint:ireturn // go-git has several types
	if err := p.index(); err != nil {
		return nil, err
	}
	o, err := p.objects.Get(id)
	if errors.Is(err, plumbing.ErrObjectNotFound) || err == nil && o.Type() != t {
		return nil, fmt.Errorf("%w: %s %s is not in what the repository gave", store.ErrNotFound, t, id)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", t, id, err)
	}
	return o, nil
}

// index indexes the objects, once. An object of more than streamBytes is then read in pieces.
func (p *pack) index() error {
	const streamBytes = 1 << 20
	if p.objects != nil {
		return nil
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	w := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(p.file), w)
	if err != nil {
		return err
	}
	if _, err := parser.Parse(); err != nil {
		return fmt.Errorf("index the pack: %w", err)
	}
	index, err := w.Index()
	if err != nil {
		return fmt.Errorf("index the pack: %w", err)
	}
	p.objects = packfile.NewPackfileWithCache(index, p.dir, p.file, cache.NewObjectLRU(8*cache.MiByte), streamBytes)
	return nil
}
