//go:build linux

package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Watcher reports when a file of a directory is replaced, or closed by its last writer.
type Watcher struct{ file *os.File }

// FileEvent is a change of one file. An empty name means that changes were missed.
type FileEvent struct {
	Name   string
	Closed bool // else replaced
}

// NewWatcher watches a directory from now on.
func NewWatcher(dir string) (*Watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w (the limit is sysctl fs.inotify.max_user_instances)", dir, err)
	}
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE|unix.IN_ONLYDIR); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("watch %s: %w (the limit is sysctl fs.inotify.max_user_watches)", dir, err)
	}
	return &Watcher{os.NewFile(uintptr(fd), "inotify")}, nil
}

// Close ends Run.
func (w *Watcher) Close() { _ = w.file.Close() }

// Run calls handle for every change until the watcher is closed.
func (w *Watcher) Run(handle func(FileEvent)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return
		}
		for _, c := range parseEvents(buf[:n]) {
			handle(c)
		}
	}
}

// parseEvents reads the records of the kernel: descriptor, mask, cookie and length of
// the name, 4 bytes each, and the name, filled with zeros.
func parseEvents(b []byte) []FileEvent {
	var all []FileEvent
	for len(b) >= unix.SizeofInotifyEvent {
		mask, size := binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[12:])
		b = b[unix.SizeofInotifyEvent:]
		n := min(int(size), len(b))
		name := string(bytes.TrimRight(b[:n], "\x00"))
		b = b[n:]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			all = append(all, FileEvent{})
		case name != "":
			all = append(all, FileEvent{Name: name, Closed: mask&unix.IN_CLOSE_WRITE != 0})
		}
	}
	return all
}
