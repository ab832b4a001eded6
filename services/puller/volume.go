package puller

import (
	"errors"
	"io"
	"sync/atomic"
	"syscall"
)

// volume is the volume of data sets, with the size of the unpacked ones.
type volume struct {
	dir            string
	shared         bool  // no other program writes to it
	reserveSetting int64 // of the reserve
	objectBytes    int64 // bytes of the objects that belong there

	unpacked atomic.Int64 // bytes
}

// addUnpacked counts unpacked bytes, and returns an error if a check, every spaceCheckInterval, finds too little space for more.
func (v *volume) addUnpacked(n int64) error {
	now := v.unpacked.Add(n)
	if now/spaceCheckInterval == (now-n)/spaceCheckInterval || v.shared {
		return nil
	}
	s, known := diskSpaceOf(v.dir)
	if reserved := reserveBytes(v.reserveSetting, s.total); known && s.free < reserved {
		return volumeFullError(v.objectBytes+now, s, reserved)
	}
	return nil
}

// spaceError returns the *pullError for an error of the system that means a full disk; nil for other errors.
func (v *volume) spaceError(err error) *pullError {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	s, known := diskSpaceOf(v.dir)
	switch {
	case !known:
		return infraError("%v", err)
	case s.free > spaceCheckInterval:
		return infraError("%v: the volume has %d of %d bytes free, so it is a quota, or the number of its files", err, s.free, s.total)
	}
	return volumeFullError(v.objectBytes+v.unpacked.Load(), s, 0)
}

// countingWriter writes to a volume.
type countingWriter struct {
	volume *volume
	next   io.Writer
}

// Write implements io.Writer.
func (c countingWriter) Write(p []byte) (int, error) {
	n, err := c.next.Write(p)
	if err != nil {
		return n, err
	}
	return n, c.volume.addUnpacked(int64(n))
}
