package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// pipe carries what the original client library writes to a FIFO over into a
// file. It holds the FIFO open for reading and writing, so that whoever opens it
// is not kept waiting, and that its end is not met when a writer goes.
//
// Its promise is weaker than that of a file: what was read from the FIFO and is
// not in the file yet is lost when the collector is killed.
type pipe struct {
	fifo  *os.File
	spool *os.File
	log   *zap.Logger
	stop  chan struct{}
	done  sync.WaitGroup
	once  sync.Once
}

// maxRest is how much is read at the end from a writer that goes on: more than
// a FIFO ever holds.
const maxRest = 4 << 20

// openPipe makes the FIFO if it is not there and begins to carry. Where that is
// impossible it says so, and carries nothing.
func openPipe(fifo, spool string, log *zap.Logger) *pipe {
	p := &pipe{log: log, stop: make(chan struct{})}
	var err error
	if p.fifo, err = openFIFO(fifo); err == nil {
		p.spool, err = os.OpenFile(spool, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	}
	if err != nil {
		log.Warn("the pipe of the original client library cannot be served", zap.Error(err))
		return p
	}
	p.done.Go(p.carry)
	return p
}

func openFIFO(path string) (*os.File, error) {
	err := syscall.Mkfifo(path, 0o600)
	if err == nil {
		err = os.Chmod(path, 0o666) // whoever the benchmark runs as
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Type() != fs.ModeNamedPipe {
		return nil, fmt.Errorf("%s is there and is no pipe", path)
	}
	return os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
}

// carry carries until close.
func (p *pipe) carry() {
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

// keep appends b to the file, and tries for as long as the disk is full.
func (p *pipe) keep(b []byte) {
	for told := false; len(b) > 0; {
		n, err := p.spool.Write(b)
		b = b[n:]
		if err == nil {
			continue
		}
		if !told {
			p.log.Warn("what was read from the pipe cannot be kept: waiting", zap.Error(err))
			told = true
		}
		select {
		case <-p.stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// close carries what the FIFO holds now, and ends.
func (p *pipe) close() {
	p.once.Do(func() {
		if p.spool != nil {
			_ = p.fifo.SetReadDeadline(time.Unix(1, 0)) // ends carry
			p.done.Wait()
			p.drain()
			close(p.stop)
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
