//go:build linux

package shim

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// Bounds of logs and termination messages.
const (
	logSize     = 2 << 20 // of a container's log, and of the log before it
	messageSize = 4096    // of a termination message
	tailSize    = 2048    // of a log that is used as termination message
)

// logs stores the last output of containers. Only one goroutine may use it.
type logs struct {
	readers  sync.WaitGroup
	complete map[string]chan struct{} // by path; closed once all writers have closed it
}

// open returns the file to which a container writes; the caller closes it.
func (l *logs) open(path string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	complete := make(chan struct{})
	if l.complete == nil {
		l.complete = make(map[string]chan struct{})
	}
	l.complete[path] = complete
	l.readers.Go(func() {
		defer close(complete)
		defer r.Close() //nolint:errcheck // only read
		writer := &logWriter{path: path}
		defer writer.close()
		_, _ = io.CopyBuffer(struct{ io.Writer }{writer}, struct{ io.Reader }{r}, make([]byte, 64<<10))
	})
	return w, nil
}

// wait waits until all writers have closed their logs, for a moment at most.
func (l *logs) wait() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.readers.Wait()
	}()
	waitBriefly(done)
}

// waitFor waits until all writers have closed one log, for a moment at most: some may go on in a session of their own.
func (l *logs) waitFor(path string) {
	if complete, ok := l.complete[path]; ok {
		waitBriefly(complete)
	}
}

func waitBriefly(done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

// logWriter writes a log file, and starts a new one when it is large. It never fails: a full disk must not block a writer.
type logWriter struct {
	path string
	file *os.File
	size int
}

// Write implements io.Writer.
func (k *logWriter) Write(b []byte) (int, error) {
	if k.file == nil || k.size > logSize {
		k.rotate()
	}
	if k.file != nil {
		n, _ := k.file.Write(b)
		k.size += n
	}
	return len(b), nil
}

func (k *logWriter) rotate() {
	if k.file != nil {
		_ = os.Rename(k.path, k.path+".1")
	}
	k.close()
	k.file, k.size = nil, 0
	if f, err := os.OpenFile(k.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err == nil {
		k.file = f
	}
}

func (k *logWriter) close() {
	if k.file != nil {
		_ = k.file.Close()
	}
}

// terminationMessage returns the termination message of container i.
func (s *shim) terminationMessage(i, code int) string {
	c := s.pod.Containers[i]
	message := readExcerpt(s.messagePath(c), messageSize, false)
	if message == "" && code != 0 && c.FallbackToLogs {
		log := filepath.Join(s.dir, shimapi.Logs, c.Name+".log")
		s.logs.waitFor(log) // its last output may not be written yet
		message = readExcerpt(log, tailSize, true)
	}
	return message
}

// messagePath returns the path of the termination message of c.
func (s *shim) messagePath(c shimapi.Container) string {
	if s.rootfs == nil {
		return c.MessagePath
	}
	if path, ok := pathInVolume(s.pod, c, c.MessagePath); ok {
		return path
	}
	return privateMessagePath(s.dir, c)
}

// readExcerpt returns the first or last bytes of a file as text, empty if it is no regular file: the benchmark may put any file there.
func readExcerpt(path string, limit int64, last bool) string {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	at := int64(0)
	if last {
		at = max(0, info.Size()-limit)
	}
	b, _ := io.ReadAll(io.NewSectionReader(f, at, limit))
	return strings.ToValidUTF8(string(b), string(utf8.RuneError))
}
