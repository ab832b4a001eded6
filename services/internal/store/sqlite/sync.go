package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
)

// flusher has the write-ahead log on the disk, once for all who ask meanwhile.
type flusher struct {
	requested atomic.Int64

	mu        sync.Mutex
	completed int64 // how many had asked when the last flush began
	file      *os.File
}

// Sync returns when all that was written before is on the disk, to survive a power
// cut too. Several that ask at a time wait for one flush.
func (s *Store) Sync(context.Context) error {
	ticket := s.flusher.requested.Add(1)
	f := &s.flusher
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.completed >= ticket {
		return nil
	}
	upTo := f.requested.Load()
	if f.file == nil {
		file, err := os.Open(s.path + "-wal") // it stays as long as the store is open
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing was written
		}
		if err != nil {
			return fmt.Errorf("sync store %s: %w", s.path, err)
		}
		f.file = file
	}
	if err := f.file.Sync(); err != nil {
		return fmt.Errorf("sync store %s: %w", s.path, err)
	}
	f.completed = upTo
	return nil
}

// close ends the use of the log.
func (f *flusher) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
