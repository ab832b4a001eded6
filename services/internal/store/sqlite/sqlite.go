// Package sqlite stores the platform's records in one SQLite file: the store of a laptop, of CI and of `bai standalone`.
//
// Several processes of one machine may use the file at once (WAL); it must not be on a network file system. Each write is one transaction:
// it happens completely or not at all, whenever the process is killed.
//
// A commit is passed to the operating system and not forced onto the disk (synchronous=NORMAL): a kill of every process loses no data,
// while a power cut may lose the last moments, though it never damages the file. Forcing would cost a disk flush for every small write, 1
// to 10 ms on a laptop. Sync forces all earlier writes: a caller that promises durability waits for it.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/benchmark-ai/bai/services/internal/store/notifier"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite/pointrun"
)

// readers is how many reads go on at once in one process.
const readers = 4

// Store is an open file. It implements every part of a store. Several goroutines may use it.
type Store struct {
	path     string
	id       string // of the file, for cursors
	reads    *sql.DB
	writes   *sql.DB // one connection: writers of a process queue for it
	notifier notifier.Notifier

	reading, writing statements
	hashers          sync.Pool // of *tokenhash.Hasher
	pointRuns        pointrun.Decoder

	flusher  flusher
	damaged  atomic.Pointer[error] // the first damage that was found; nil for none
	walLimit atomic.Int64          // size of the write-ahead log from which on it is truncated
}

// Open opens the store in the file at path, and creates it if there is none. It refuses, with the remedy, a file that is not a store and
// one that a newer version of the platform has written. The caller closes the store.
func Open(ctx context.Context, path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", path, err)
	}
	if err := createFile(path); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{path: path}
	s.walLimit.Store(walLimit)
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(s.wrapError("open", err), s.Close())
	}
	return s, nil
}

// ID returns the ID that the file got when it was created. A file that was emptied or removed and created anew has another.
func (s *Store) ID() string { return s.id }

// Verify reads the whole file, and returns an error if a part cannot be read. It lists damage as ErrDamaged.
func (s *Store) Verify(ctx context.Context) error {
	const some = 3
	var faults []string
	err := s.query(ctx, func(r *sql.Rows) error {
		var text string
		err := r.Scan(&text)
		faults = append(faults, strings.ReplaceAll(text, "\n", "; "))
		return err
	}, fmt.Sprintf("PRAGMA integrity_check(%d)", some))
	if err == nil && len(faults) == 1 && faults[0] == "ok" {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("store %s: %w: %s", s.path, ErrDamaged, strings.Join(faults, "; "))
		s.damaged.CompareAndSwap(nil, &err)
		return err
	}
	return s.wrapError("verify", err)
}

// Close ends the use of the file. Calls still under way end with an error.
func (s *Store) Close() error {
	errs := []error{s.flusher.close()}
	for _, db := range []*sql.DB{s.reads, s.writes} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// Check returns why the file cannot be read; it reads next to nothing of the file. Once a read has found damage, Check returns that.
func (s *Store) Check(ctx context.Context) error {
	if err := s.damaged.Load(); err != nil {
		return *err
	}
	var version int
	return s.wrapError("check", s.reads.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version))
}

// createFile creates the file, for its owner alone, if there is none. It never opens an existing file: closing it again would drop this
// process's locks on it.
func createFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s: is not a file (%s): give the path of a file in a folder of the platform's own", path, info.Mode().Type())
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) //nolint:gosec // the operator says where
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func (s *Store) open(ctx context.Context) (err error) {
	if s.writes, err = sql.Open("sqlite",
		dsn(s.path, "_busy_timeout=0", "_txlock=immediate", "_pragma=wal_autocheckpoint(4000)", "_pragma=cache_size(-8000)")); err != nil {
		return err
	}
	s.writes.SetMaxOpenConns(1) // retryBusy waits for locks
	if err := s.prepareFile(ctx); err != nil {
		return err
	}
	if s.reads, err = sql.Open("sqlite",
		dsn(s.path, "_busy_timeout=5000", "_pragma=query_only(1)", "_pragma=cache_size(-2000)")); err != nil {
		return err
	}
	s.reads.SetMaxOpenConns(readers)
	s.reads.SetMaxIdleConns(readers)
	if err := s.reads.QueryRowContext(ctx, "SELECT id FROM store").Scan(&s.id); err != nil {
		return err
	}
	if s.reading, err = prepare(ctx, s.reads, readDoc, listDocs, readRun, listChanges, listSources, tailLine,
		sinceLine, readLines, readChunk,
		listSegments, readSegmentHashes, readGroupLines, readGroupLinesBackward, readRunPoints); err != nil {
		return err
	}
	s.writing, err = prepare(ctx, s.writes, createDoc, replaceDoc, deleteDoc, countDoc, readStoredRun, putRun,
		putChange, deleteLabel, addLabel,
		findSource, addSource, countRows, findOverlapping, findPreceding, dropChunk, addChunk, addLines, addLine,
		segmentBefore, deleteSegment, insertSegment, readPointRun, putPointRun, findSeries, addSeries, countSeries, putPoint, deletePoint)
	return err
}

// dsn returns the name of the file with the settings of each connection.
func dsn(path string, settings ...string) string {
	settings = append(settings, "_pragma=synchronous(1)", "_pragma=temp_store(2)", "_dqs=0")
	return (&url.URL{Scheme: "file", Path: path, RawQuery: strings.Join(settings, "&")}).String()
}
