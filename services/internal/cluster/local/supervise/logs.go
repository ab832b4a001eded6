//go:build linux

package supervise

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
)

// Bounds of what is kept.
const (
	logSize     = 2 << 20 // of a container's log, and as much of the log before it
	messageSize = 4096    // of last words
	tailSize    = 2048    // of a log that is taken for last words
)

// logs keeps the last of what containers write. It is used by one goroutine.
type logs struct {
	readers sync.WaitGroup
	whole   map[string]chan struct{} // by path; closed once all writers have gone
}

// open returns what a container writes to; the caller closes it.
func (l *logs) open(path string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	whole := make(chan struct{})
	if l.whole == nil {
		l.whole = make(map[string]chan struct{})
	}
	l.whole[path] = whole
	l.readers.Go(func() {
		defer close(whole)
		defer r.Close() //nolint:errcheck // only read
		keeper := &keeper{path: path}
		defer keeper.close()
		_, _ = io.CopyBuffer(struct{ io.Writer }{keeper}, struct{ io.Reader }{r}, make([]byte, 64<<10))
	})
	return w, nil
}

// wait waits until all writers have gone, for a moment at most.
func (l *logs) wait() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.readers.Wait()
	}()
	moment(done)
}

// complete waits until all writers of one log have gone, for a moment at most:
// some may go on in a session of their own.
func (l *logs) complete(path string) {
	if whole, ok := l.whole[path]; ok {
		moment(whole)
	}
}

func moment(done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

// keeper writes a log file, and begins anew when it is large. It never fails:
// whoever writes must not be held up by a full disk.
type keeper struct {
	path string
	file *os.File
	size int
}

// Write implements io.Writer.
func (k *keeper) Write(b []byte) (int, error) {
	if k.file == nil || k.size > logSize {
		k.rotate()
	}
	if k.file != nil {
		n, _ := k.file.Write(b)
		k.size += n
	}
	return len(b), nil
}

func (k *keeper) rotate() {
	if k.file != nil {
		_ = os.Rename(k.path, k.path+".1")
	}
	k.close()
	k.file, k.size = nil, 0
	if f, err := os.OpenFile(k.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err == nil {
		k.file = f
	}
}

func (k *keeper) close() {
	if k.file != nil {
		_ = k.file.Close()
	}
}

// lastWords returns what container i left to be said about its end.
func (s *supervisor) lastWords(i, code int) string {
	c := s.pod.Containers[i]
	words := read(s.messageFile(c), messageSize, false)
	if words == "" && code != 0 && c.LogTail {
		log := filepath.Join(s.dir, spec.Logs, c.Name+".log")
		s.logs.complete(log) // what it wrote last may be on its way
		words = read(log, tailSize, true)
	}
	return words
}

// messageFile returns where the last words of c lie.
func (s *supervisor) messageFile(c spec.Container) string {
	if s.roots == nil {
		return c.Message
	}
	if path, ok := inVolume(s.pod, c, c.Message); ok {
		return path
	}
	return ownMessage(s.dir, c)
}

// read returns the first or last bytes of a file as text. What is no file is
// empty: it may lie where the benchmark can put anything.
func read(path string, most int64, last bool) string {
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
		at = max(0, info.Size()-most)
	}
	b, _ := io.ReadAll(io.NewSectionReader(f, at, most))
	return strings.ToValidUTF8(string(b), string(utf8.RuneError))
}
