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
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/spool"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/volume"
)

// pipe copies lines that the original client library writes to a FIFO into a file. It holds the FIFO open for reading and writing, so that
// opening it never blocks a writer, and a writer that closes it causes no end of file.
//
// A FIFO is less safe than a file: bytes that were read from the FIFO and are not in the file yet are lost if the collector is killed.
// Lines beyond the limit of the file, and lines that cannot be written by the end, are read and counted as lost one by one, so that no
// writer blocks.
type pipe struct {
	fifo         *os.File
	spool        *os.File
	limit        int64         // bytes that the file may have; 0 is no limit
	drainTimeout time.Duration // how long the end may take while the disk is full
	losses       *spool.Losses
	log          *zap.Logger
	disk         *diskMonitor
	stop         chan struct{} // closed when writes stop waiting for the disk
	done         sync.WaitGroup
	once         sync.Once

	size        int64  // of the file
	dropReason  string // why no more lines are stored; empty while they are
	partialLine bool   // the last line of the file has no end
	partialLoss bool   // the last lost line has no end
}

// Bounds of the end.
const (
	maxDrain        = 4 << 20 // bytes that are read from a writer that does not stop: more than any FIFO holds
	diskFullTimeout = 5 * time.Second
)

// openPipe makes the FIFO if it does not exist and starts to copy. If that fails, openPipe logs a warning and copies nothing.
func openPipe(v, state *volume.Volume, s Settings, lost *spool.Losses, r *diskMonitor, log *zap.Logger) *pipe {
	p := &pipe{disk: r, limit: s.MaxLog, drainTimeout: min(diskFullTimeout, s.Drain/2), losses: lost, log: log, stop: make(chan struct{})}
	var err error
	if p.fifo, err = v.FIFO(pod.FIFO); err == nil {
		err = p.openSpool(state)
	}
	if err != nil {
		log.Warn("the pipe of the original client library cannot be served", zap.Error(err))
		return p
	}
	p.done.Go(p.forward)
	return p
}

// openSpool opens the file.
func (p *pipe) openSpool(v *volume.Volume) error {
	f, err := v.Open(pod.Spool, os.O_RDWR|os.O_APPEND|os.O_CREATE)
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
	p.partialLine = err == nil && end[0] != '\n'
	return nil
}

// forward copies until close. It first ends a line that a kill has cut off: the next bytes must not complete that line.
func (p *pipe) forward() {
	if p.partialLine {
		p.save([]byte("\n"))
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := p.fifo.Read(buf)
		p.save(buf[:n])
		if err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				p.log.Warn("the pipe of the original client library cannot be read", zap.Error(err))
			}
			return
		}
	}
}

// save appends b to the file, as far as there is room, and counts the rest as lost.
func (p *pipe) save(b []byte) {
	if p.dropReason == "" {
		b = b[p.write(b[:p.capacityFor(b)]):]
	}
	p.countLost(b)
}

// capacityFor returns how many bytes of b fit into the file. If not all do, it returns a number of whole lines.
func (p *pipe) capacityFor(b []byte) int {
	if p.limit <= 0 || p.size+int64(len(b)) <= p.limit {
		return len(b)
	}
	p.dropReason = overPipe(p.limit)
	return bytes.LastIndexByte(b[:max(0, p.limit-p.size)], '\n') + 1
}

// write writes b to the file and returns how many bytes it wrote. It retries while the disk is full; after stop is closed it tries once.
func (p *pipe) write(b []byte) (written int) {
	for logged := false; written < len(b); {
		n, err := 0, p.disk.checkFull()
		if err == nil {
			n, err = p.spool.Write(b[written:])
		}
		if written += n; err == nil {
			continue
		}
		if !logged {
			p.log.Warn("what was read from the pipe cannot be kept: waiting", zap.Error(err))
			logged = true
		}
		select {
		case <-p.stop:
			p.dropReason = unwritten(volume.Cause(err))
		case <-time.After(100 * time.Millisecond):
			continue
		}
		break
	}
	if p.size += int64(written); written > 0 {
		p.partialLine = b[written-1] != '\n'
	}
	return written
}

// countLost counts the lines that end in b as lost. A line whose beginning is in the file does not count here: it is read from the file and
// counted then.
func (p *pipe) countLost(b []byte) {
	if len(b) == 0 {
		return
	}
	n := int64(bytes.Count(b, []byte("\n")))
	if n > 0 && p.partialLine {
		n, p.partialLine = n-1, false
	}
	p.partialLoss = b[len(b)-1] != '\n' && !p.partialLine
	p.losses.Add(n, p.dropReason)
}

// close copies the bytes that the FIFO holds now, and ends. It waits for a full disk at most drainTimeout.
func (p *pipe) close() {
	p.once.Do(func() {
		if p.spool != nil {
			timer := time.AfterFunc(p.drainTimeout, func() { close(p.stop) })
			_ = p.fifo.SetReadDeadline(time.Unix(1, 0)) // ends carry
			p.done.Wait()
			p.drain()
			timer.Stop()
			if p.partialLoss {
				p.losses.Add(1, p.dropReason)
			}
		}
		for _, f := range []*os.File{p.fifo, p.spool} {
			if f != nil {
				_ = f.Close()
			}
		}
	})
}

// drain copies the bytes that the FIFO holds, without waiting for more.
func (p *pipe) drain() {
	conn, err := p.fifo.SyscallConn()
	if err != nil || p.fifo.SetReadDeadline(time.Time{}) != nil {
		return
	}
	buf := make([]byte, 64<<10)
	for remaining := maxDrain; remaining > 0; {
		n := 0
		err := conn.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), buf) //nolint:gosec // a file descriptor
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		p.save(buf[:n])
		remaining -= n
	}
}
