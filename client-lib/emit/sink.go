package emit

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// sink writes lines to a file or a FIFO.
type sink struct {
	destination
	file *os.File
	cut  bool // the last line of the file has no end
}

// write writes b, and returns the unwritten rest on failure. It returns shortly after ctx
// is done.
func (s *sink) write(ctx context.Context, b []byte) (rest []byte, err error) {
	if s.file == nil {
		if err := s.open(); err != nil {
			return b, err
		}
	}
	file := s.file
	stop := context.AfterFunc(ctx, func() { _ = file.SetWriteDeadline(time.Unix(1, 0)) }) // no file but a FIFO has one, or needs it
	defer stop()
	if s.cut {
		if _, err := s.file.WriteString("\n"); err != nil {
			return b, s.closeIfBroken(err)
		}
		s.cut = false
	}
	limit := 64 << 10
	if s.fifo {
		limit = pipeBuf
	}
	for len(b) > 0 {
		n, err := s.file.Write(chunk(b, limit))
		if err != nil {
			b, s.cut = remainder(b, n)
			return b, s.closeIfBroken(err)
		}
		b = b[n:]
	}
	return nil, nil
}

// open opens the file. It does not wait for the reader of a FIFO: one without a
// reader is an error.
func (s *sink) open() (err error) {
	flags := os.O_WRONLY | os.O_APPEND | syscall.O_NONBLOCK
	if s.create {
		flags |= os.O_CREATE
	}
	s.file, err = os.OpenFile(s.path, flags, 0o666) //nolint:gosec // whoever collects may have another user
	if err == nil && !s.fifo {
		s.cut = s.cut || isTorn(s.path)
	}
	return err
}

// isTorn reports whether a file ends in a line without an end, as of a program that was killed. A byte that is 0 is one whose space the
// collector has released.
func isTorn(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n' && last[0] != 0
}

// closeIfBroken opens the FIFO anew for the next attempt if its reader is gone.
func (s *sink) closeIfBroken(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		_ = s.file.Close()
		s.file = nil
	}
	return err
}

func (s *sink) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
