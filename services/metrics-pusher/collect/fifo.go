package collect

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// pipe carries what the original client library writes to a FIFO over into a
// file. It holds the FIFO open for reading and writing, so that whoever opens it
// is not kept waiting, and that its end is not met when a writer goes.
//
// Its promise is weaker than that of a file: what was read from the FIFO and is
// not in the file yet is lost when the collector is killed. What is beyond the
// limit of the file, or cannot be written to it by the end, is read and counted as
// lost, line by line, so that no writer waits.
type pipe struct {
	fifo     *os.File
	spool    *os.File
	limit    int64         // bytes that the file may have; 0 is no limit
	patience time.Duration // how long the end may take while the disk is full
	lost     *losses
	log      *zap.Logger
	disk     *room
	stop     chan struct{} // nobody waits for the disk any more
	done     sync.WaitGroup
	once     sync.Once

	size int64  // of the file
	over string // why nothing more is kept; empty while it is
	torn bool   // the last line of the file has no end
	open bool   // the last line that was lost has no end
}

// Bounds of the end.
const (
	maxRest  = 4 << 20 // bytes that are read from a writer that goes on: more than a FIFO ever holds
	fullDisk = 5 * time.Second
)

// openPipe makes the FIFO if it is not there and begins to carry. Where that is
// impossible it says so, and carries nothing.
func openPipe(v, own *volume, s Settings, lost *losses, r *room, log *zap.Logger) *pipe {
	p := &pipe{disk: r, limit: s.MaxLog, patience: min(fullDisk, s.Drain/2), lost: lost, log: log, stop: make(chan struct{})}
	var err error
	if p.fifo, err = v.fifo(pod.FIFO); err == nil {
		err = p.openSpool(own)
	}
	if err != nil {
		log.Warn("the pipe of the original client library cannot be served", zap.Error(err))
		return p
	}
	p.done.Go(p.carry)
	return p
}

// openSpool opens the file.
func (p *pipe) openSpool(v *volume) error {
	f, err := v.open(pod.Spool, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if p.spool, p.size = f, info.Size(); p.size == 0 {
		return nil
	}
	end := make([]byte, 1)
	_, err = f.ReadAt(end, p.size-1)
	p.torn = err == nil && end[0] != '\n'
	return nil
}

// carry carries until close. A line that a kill tore is ended first: what was lost
// of it must not be made up for by what comes next.
func (p *pipe) carry() {
	if p.torn {
		p.keep([]byte("\n"))
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := p.fifo.Read(buf)
		p.keep(buf[:n])
		if err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				p.log.Warn("the pipe of the original client library cannot be read", zap.Error(err))
			}
			return
		}
	}
}

// keep appends b to the file, as far as there is room in it.
func (p *pipe) keep(b []byte) {
	if p.over == "" {
		b = b[p.write(b[:p.room(b)]):]
	}
	p.lose(b)
}

// room returns how many bytes of b the file has room for, in whole lines where
// that is not all.
func (p *pipe) room(b []byte) int {
	if p.limit <= 0 || p.size+int64(len(b)) <= p.limit {
		return len(b)
	}
	p.over = overPipe(p.limit)
	return bytes.LastIndexByte(b[:max(0, p.limit-p.size)], '\n') + 1
}

// write writes b to the file, and returns how much of it is written. It tries for
// as long as the disk is full, once nobody waits any more once.
func (p *pipe) write(b []byte) (written int) {
	for told := false; written < len(b); {
		n, err := 0, p.disk.full()
		if err == nil {
			n, err = p.spool.Write(b[written:])
		}
		if written += n; err == nil {
			continue
		}
		if !told {
			p.log.Warn("what was read from the pipe cannot be kept: waiting", zap.Error(err))
			told = true
		}
		select {
		case <-p.stop:
			p.over = unwritten(reason(err))
		case <-time.After(100 * time.Millisecond):
			continue
		}
		break
	}
	if p.size += int64(written); written > 0 {
		p.torn = b[written-1] != '\n'
	}
	return written
}

// lose counts the lines that end in b as lost. What the file has of one is read
// from there, and counted then.
func (p *pipe) lose(b []byte) {
	if len(b) == 0 {
		return
	}
	n := int64(bytes.Count(b, []byte("\n")))
	if n > 0 && p.torn {
		n, p.torn = n-1, false
	}
	p.open = b[len(b)-1] != '\n' && !p.torn
	p.lost.add(n, p.over)
}

// close carries what the FIFO holds now, and ends. It waits for a disk that is full
// no longer than a while.
func (p *pipe) close() {
	p.once.Do(func() {
		if p.spool != nil {
			patience := time.AfterFunc(p.patience, func() { close(p.stop) })
			_ = p.fifo.SetReadDeadline(time.Unix(1, 0)) // ends carry
			p.done.Wait()
			p.drain()
			patience.Stop()
			if p.open {
				p.lost.add(1, p.over)
			}
		}
		for _, f := range []*os.File{p.fifo, p.spool} {
			if f != nil {
				_ = f.Close()
			}
		}
	})
}

// drain carries what the FIFO holds without waiting for more.
func (p *pipe) drain() {
	conn, err := p.fifo.SyscallConn()
	if err != nil || p.fifo.SetReadDeadline(time.Time{}) != nil {
		return
	}
	buf := make([]byte, 64<<10)
	for left := maxRest; left > 0; {
		n := 0
		err := conn.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), buf) //nolint:gosec // a file descriptor
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		p.keep(buf[:n])
		left -= n
	}
}
