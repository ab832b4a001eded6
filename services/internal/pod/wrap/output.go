//go:build linux

package wrap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// output is the file of records. Several streams may write to it at once.
type output struct {
	path  string
	limit int64

	mu      sync.Mutex
	file    *os.File
	kept    int64 // bytes of data
	dropped int64
	broken  bool // the file cannot be written to, and not for want of room
	said    sync.Once
}

func (o *output) open() error {
	return o.whenThereIsRoom(func() (err error) {
		o.file, err = os.OpenFile(o.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644) //nolint:gosec // others read it
		return err
	})
}

func (o *output) close() { _ = o.file.Close() }

// record appends data, which lies in buf after room for a record's header.
func (o *output) record(isErr bool, buf []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	data := buf[pod.RecordHeader:]
	n := keep(len(data), o.kept, o.limit)
	if o.broken {
		n = 0
	}
	o.dropped += int64(len(data) - n)
	if n == 0 {
		return
	}
	// AppendRecord copies the data onto itself.
	b := pod.AppendRecord(buf[:0], pod.Record{Err: isErr, Time: time.Now().UnixNano(), Data: data[:n]})
	o.kept += int64(n)
	if err := o.append(b); err != nil {
		o.broken, o.kept, o.dropped = true, o.kept-int64(n), o.dropped+int64(n)
		say("cannot record the output, the rest is dropped: " + err.Error())
	}
}

func (o *output) append(b []byte) error {
	return o.whenThereIsRoom(func() error {
		n, err := o.file.Write(b)
		b = b[n:]
		return err
	})
}

// complain records what the wrapper itself has to say to the user, and passes
// it on.
func (o *output) complain(text string) {
	o.record(true, append(make([]byte, pod.RecordHeader, pod.RecordHeader+len(text)), text...))
	_, _ = io.WriteString(os.Stderr, text)
}

// whenThereIsRoom calls do until it fails for another reason than a full disk.
func (o *output) whenThereIsRoom(do func() error) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do()
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			return err
		}
		o.said.Do(func() { say(fmt.Sprintf("the disk is full; the benchmark waits until %s can be written", o.path)) })
		time.Sleep(pause)
	}
}

func say(text string) { _, _ = fmt.Fprintln(os.Stderr, "bai: "+text) }

// pass writes b to one of the wrapper's own streams. A reader that has gone is
// no error: os.File would end the process.
func pass(fd int, b []byte) {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1) //nolint:gosec // a descriptor
		case err != nil:
			return
		default:
			b = b[n:]
		}
	}
}
