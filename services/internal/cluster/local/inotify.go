//go:build linux

package local

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// dirWatcher rings when a file of a directory is replaced, or closed by the last who
// wrote to it.
type dirWatcher struct{ file *os.File }

// fileEvent is what a bell rings for. An empty name means that something was
// missed.
type fileEvent struct {
	name   string
	closed bool // else replaced
}

func newDirWatcher(dir string) (*dirWatcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w (the limit is sysctl fs.inotify.max_user_instances)", dir, err)
	}
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE|unix.IN_ONLYDIR); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("watch %s: %w (the limit is sysctl fs.inotify.max_user_watches)", dir, err)
	}
	return &dirWatcher{os.NewFile(uintptr(fd), "inotify")}, nil
}

func (b *dirWatcher) close() { _ = b.file.Close() }

// run calls ring for every change until the bell is closed.
func (b *dirWatcher) run(handle func(fileEvent)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := b.file.Read(buf)
		if err != nil {
			return
		}
		for _, c := range parseFileEvents(buf[:n]) {
			handle(c)
		}
	}
}

// parseFileEvents reads what the kernel writes: descriptor, mask, cookie and length of
// the name, 4 bytes each, and the name, filled with zeros.
func parseFileEvents(b []byte) []fileEvent {
	var all []fileEvent
	for len(b) >= unix.SizeofInotifyEvent {
		mask, size := binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[12:])
		b = b[unix.SizeofInotifyEvent:]
		n := min(int(size), len(b))
		name := string(bytes.TrimRight(b[:n], "\x00"))
		b = b[n:]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			all = append(all, fileEvent{})
		case name != "":
			all = append(all, fileEvent{name: name, closed: mask&unix.IN_CLOSE_WRITE != 0})
		}
	}
	return all
}
