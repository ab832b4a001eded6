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
	cut  bool // the last line that was written has no end
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
	return err
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
