//go:build linux

package entrypoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// output is the file of records. Several streams may write to it at once.
//
// The collector releases the space of shipped records. If it is behind, writes wait for
// it; if it makes no progress, the rest is not recorded. If the disk is full, writes wait
// until it has room.
type output struct {
	path           string
	limit          int64         // bytes of the disk that the file may take; zero means no limit
	minFree        int64         // bytes of the disk that remain free; zero means none
	backlogTimeout time.Duration // how long to wait for the collector

	mu           sync.Mutex
	file         *os.File
	written      int64 // bytes since the size was looked at
	dropped      int64
	droppedLines int64 // line feeds in dropped output
	discarding   bool  // the rest is not recorded
	warnFullOnce sync.Once
	tail         tail          // end of the output
	stopAt       atomic.Int64  // ns since 1970: when the time after a signal to end is over; zero means that there was none
	diskUntil    atomic.Int64  // ns since 1970: how long the disk is waited for; zero means for ever
	ending       chan struct{} // closed by stop: the pod has to end
}

// stop notes that the pod has to end by a time, and closes ending. The disk is waited for no longer than diskUntil. A call after the first
// changes nothing.
func (o *output) stop(at, diskUntil time.Time) {
	if o.stopAt.CompareAndSwap(0, at.UnixNano()) {
		o.diskUntil.Store(diskUntil.UnixNano())
		close(o.ending)
	}
}

// stopping reports whether the command was signalled to end.
func (o *output) stopping() bool { return o.stopAt.Load() != 0 }

// stopTime returns when the time after a signal to end is over.
func (o *output) stopTime() time.Time { return time.Unix(0, o.stopAt.Load()) }

// pastStop reports whether the time to wait for the disk is over.
func (o *output) pastStop() bool {
	until := o.diskUntil.Load()
	return until != 0 && time.Now().UnixNano() > until
}

// checkEvery is how many bytes are written before the file's size is looked at
// again.
const checkEvery = 64 << 10

func (o *output) open() error {
	return o.retryWhileFull(func() (err error) {
		o.file, err = os.OpenFile(o.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644) //nolint:gosec // others read it
		if err == nil {
			_ = o.file.Chmod(0o666) // the collector, which may be another user, releases its space
		}
		return err
	})
}

func (o *output) close() { _ = o.file.Close() }

// record appends data, which lies in buf after room for a record's header.
func (o *output) record(isErr bool, buf []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	data := buf[pod.RecordHeader:]
	o.tail.add(isErr, data)
	if o.discarding = o.discarding || !o.waitForRoom(); o.discarding {
		o.drop(data)
		return
	}
	// AppendRecord copies the data onto itself.
	b := pod.AppendRecord(buf[:0], pod.Record{Err: isErr, Time: time.Now().UnixNano(), Data: data})
	o.written += int64(len(b))
	if err := o.append(b); err != nil {
		o.discarding = true
		o.drop(data)
		printWarning("cannot record the output, the rest is dropped: " + err.Error())
	}
}

func (o *output) drop(data []byte) {
	o.dropped += int64(len(data))
	o.droppedLines += int64(bytes.Count(data, []byte{'\n'}))
}

// waitForRoom waits until the disk has room for more, and the file takes no more of it than
// it may, and reports whether it came to that.
func (o *output) waitForRoom() bool {
	switch {
	case o.written < checkEvery:
		return true
	case !o.waitForDisk():
		return false
	case o.limit <= 0:
		o.written = 0
		return true
	}
	for end := time.Now().Add(o.backlogTimeout); ; time.Sleep(5 * time.Millisecond) {
		var st unix.Stat_t
		if err := unix.Fstat(int(o.file.Fd()), &st); err != nil || st.Blocks*512 <= o.limit { //nolint:gosec // a descriptor
			o.written = 0
			return true
		}
		if time.Now().After(end) {
			printWarning(fmt.Sprintf("the output was not collected for %s (%d bytes wait): the rest is dropped", o.backlogTimeout,
				st.Blocks*512))
			return false
		}
	}
}

// waitForDisk waits until the disk has room, and reports whether it came to that before
// the command had to end.
func (o *output) waitForDisk() bool {
	for o.minFree > 0 {
		if free, err := o.freeBytes(); err != nil || free >= o.minFree {
			break
		}
		if o.pastStop() {
			printWarning("the disk is full, and the benchmark has to end: the rest of its output is not recorded")
			return false
		}
		o.warnFullOnce.Do(o.warnFull)
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

// freeBytes returns how many bytes of the disk are free.
func (o *output) freeBytes() (int64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(filepath.Dir(o.path), &st)
	return int64(st.Bavail) * int64(st.Bsize), err //nolint:gosec,unconvert // the types differ by system
}

// fullReason says why a file of some size has no room on the disk; empty where it has.
func (o *output) fullReason(size int64) string {
	if o.minFree <= 0 {
		return ""
	}
	free, err := o.freeBytes()
	if err != nil || free-size >= o.minFree {
		return ""
	}
	return fmt.Sprintf("the platform's disk is full (%s free, %s needed)", pod.FormatSize(free), pod.FormatSize(size+o.minFree))
}

func (o *output) warnFull() {
	printWarning(fmt.Sprintf("the disk is full: the benchmark waits until its output can be written to %s", o.path))
}

// append waits for the disk until the command has to end.
func (o *output) append(b []byte) error {
	return o.retryWhileFull(func() error {
		n, err := o.file.Write(b)
		b = b[n:]
		return err
	})
}

// lastLines returns the end of the command's output.
func (o *output) lastLines() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tail.lastLines()
}

// warn records a message of the entrypoint to the user, and passes it on.
func (o *output) warn(text string) {
	o.record(true, append(make([]byte, pod.RecordHeader, pod.RecordHeader+len(text)), text...))
	_, _ = io.WriteString(os.Stderr, text)
}

// retryWhileFull calls do until it succeeds or fails for another reason than a full disk, or the time to wait for the disk is over.
func (o *output) retryWhileFull(do func() error) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do()
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			return err
		}
		if o.pastStop() {
			return fmt.Errorf("the pod has to end: %w", err)
		}
		o.warnFullOnce.Do(o.warnFull)
		time.Sleep(pause)
	}
}

func printWarning(text string) { _, _ = fmt.Fprintln(os.Stderr, "bai: "+text) }

// passThrough writes b to one of the wrapper's own streams. A reader that has gone is
// no error: os.File would end the process.
func passThrough(fd int, b []byte) {
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
