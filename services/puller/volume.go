package puller

import (
	"errors"
	"io"
	"sync/atomic"
	"syscall"
)

// volume is where data belong, with what is unpacked there.
type volume struct {
	dir     string
	shared  bool  // nobody else writes to it
	setting int64 // of the reserve
	objects int64 // bytes of the objects that belong there

	unpacked atomic.Int64 // bytes
}

// take counts bytes that were unpacked, and says now and then when the volume has
// too little space for more.
func (v *volume) take(n int64) error {
	now := v.unpacked.Add(n)
	if now/look == (now-n)/look || v.shared {
		return nil
	}
	s, known := spaceOf(v.dir)
	if kept := reserve(v.setting, s.total); known && s.free < kept {
		return full(v.objects+now, s, kept)
	}
	return nil
}

// exhausted says what an error of the system means by which it has no more space;
// nil for other errors.
func (v *volume) exhausted(err error) *Error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	s, known := spaceOf(v.dir)
	switch {
	case !known:
		return infra("%v", err)
	case s.free > look:
		return infra("%v: the volume has %d of %d bytes free, so it is a quota, or the number of its files", err, s.free, s.total)
	}
	return full(v.objects+v.unpacked.Load(), s, 0)
}

// counted writes to a volume.
type counted struct {
	volume *volume
	to     io.Writer
}

// Write implements io.Writer.
func (c counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	if err != nil {
		return n, err
	}
	return n, c.volume.take(int64(n))
}
