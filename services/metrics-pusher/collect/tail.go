package collect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/volume"
)

// chunk is how much is read at once, more than the largest record.
const chunk = 1 << 20

// tail reads a file that grows. Offsets keep growing if the file was truncated.
type tail struct {
	volume *volume.Volume
	path   string // in the volume
	file   *os.File
	buf    []byte
	rest   []byte // read, not yet used; at the end of buf
	base   int64  // offset of the file's beginning
	pos    int64  // offset up to which was read

	released int64 // bytes of the file, from its beginning, that the disk has back
}

// next returns the unused bytes and the new ones behind them, at most a chunk in all, and whether there is likely to be more. It returns no
// bytes if there are no new ones. The bytes are valid until the next call.
func (t *tail) next() (data []byte, more bool, err error) {
	if t.file == nil {
		if err := t.open(); t.file == nil {
			return nil, false, err
		}
	}
	unread := copy(t.buf, t.rest)
	n, err := t.file.ReadAt(t.buf[unread:], t.pos-t.base)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("read what the benchmark wrote: %w", err)
	}
	t.pos += int64(n)
	t.rest = t.buf[:unread+n]
	if n == 0 {
		return nil, false, nil
	}
	return t.rest, unread+n == len(t.buf), nil
}

// used marks the first n bytes of next's result as used.
func (t *tail) used(n int) { t.rest = t.rest[n:] }

// offset returns the offset of the first unused byte.
func (t *tail) offset() int64 { return t.pos - int64(len(t.rest)) }

// seek has next go on at offset.
func (t *tail) seek(base, offset int64) {
	t.base, t.pos, t.rest, t.released = base, offset, nil, 0
}

// wasTruncated reports whether the file is shorter than the part of it that was read. If so, next continues at the file's beginning.
func (t *tail) wasTruncated() bool {
	if t.file == nil {
		return false
	}
	info, err := t.file.Stat()
	if err != nil || info.Size() >= t.pos-t.base {
		return false
	}
	t.seek(t.pos, t.pos)
	return true
}

// end returns the offset of the file's end now.
func (t *tail) end() int64 {
	if t.file == nil {
		if err := t.open(); t.file == nil {
			_ = err // next returns the error
			return t.pos
		}
	}
	info, err := t.file.Stat()
	if err != nil {
		return t.pos
	}
	return t.base + info.Size()
}

// open opens the file if it exists.
func (t *tail) open() error {
	f, err := t.volume.Open(t.path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what the benchmark wrote: %w", err)
	}
	t.file = f
	if t.buf == nil {
		t.buf = make([]byte, chunk)
	}
	return nil
}

func (t *tail) close() {
	if t.file != nil {
		_ = t.file.Close() // it was only read
		t.file = nil
	}
}
