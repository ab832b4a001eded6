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

// flusher flushes the write-ahead log to the disk, once for all concurrent callers.
type flusher struct {
	requested atomic.Int64

	mu        sync.Mutex
	completed int64 // number of requests when the last flush began
	file      *os.File
}

// Sync returns when all earlier writes are on the disk, to survive a power cut too. Concurrent callers wait for one flush.
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
		file, err := os.Open(s.path + "-wal") // it exists as long as the store is open
		if errors.Is(err, fs.ErrNotExist) {
			return nil // no write yet
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
