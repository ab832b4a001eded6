package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var errNotUsable = errors.New("this file cannot be used")

// ErrDamaged means that the file cannot be read any more as it was written.
var ErrDamaged = errors.New("the file is damaged: stop the platform, copy the file, and recover what can be with the sqlite3 program (.recover), or begin without it")

// ErrNotDatabase means that the file is of another kind, or that its beginning is damaged.
var ErrNotDatabase = errors.New("it is not a SQLite database: give another path, or move it away")

// lockTimeout is how long a write waits in all for locks of other writers. A write holds the lock for milliseconds: a longer wait is for a
// process that was stopped in the middle, or for a tool that keeps the file open.
const lockTimeout = 30 * time.Second

// tx is a transaction that writes.
type tx struct {
	*sql.Tx
	prepared statements
}

// statements are the prepared ones, by their text.
type statements map[string]*sql.Stmt

type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// prepare prepares texts, so that using them costs no parsing.
func prepare(ctx context.Context, db preparer, texts ...string) (statements, error) {
	prepared := make(statements, len(texts))
	for _, text := range texts {
		stmt, err := db.PrepareContext(ctx, text)
		if err != nil {
			return nil, err
		}
		prepared[text] = stmt
	}
	return prepared, nil
}

// exec runs a prepared statement and returns how many rows it changed.
func (t tx) exec(ctx context.Context, text string, args ...any) (int64, error) {
	r, err := t.StmtContext(ctx, t.prepared[text]).ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// row does a prepared statement that answers with one row.
func (t tx) row(ctx context.Context, text string, args ...any) *sql.Row {
	return t.StmtContext(ctx, t.prepared[text]).QueryRowContext(ctx, args...)
}

// update does one transaction that writes, and may run do more than once.
func (s *Store) update(ctx context.Context, do func(t tx) error) error {
	return s.retryBusy(ctx, func() error {
		t, err := s.writes.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := do(tx{t, s.writing}); err != nil {
			return errors.Join(err, rollback(t))
		}
		if err := t.Commit(); err != nil {
			return err
		}
		s.truncateWAL(ctx)
		return nil
	})
}

// truncateWAL truncates the write-ahead log if it has grown large. SQLite restarts the log only when no reader uses it, a moment that never
// comes with continuous readers. Once all of the log is in the file, new readers read from the file alone, so the readers of the log soon
// end.
func (s *Store) truncateWAL(ctx context.Context) {
	info, err := os.Stat(s.path + "-wal")
	if err != nil || info.Size() < s.walLimit.Load() {
		return
	}
	for range 50 {
		var busy, frames, done int
		err := s.writes.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &done)
		if err == nil && busy == 0 {
			s.walLimit.Store(walLimit)
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	s.walLimit.Store(2 * info.Size()) // a reader takes long: do not wait for it after each write
}

// walLimit is the size in bytes from which on a write-ahead log is large.
const walLimit = 64 << 20

func rollback(t *sql.Tx) error {
	if err := t.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// row does a prepared query that answers with one row.
func (s *Store) row(ctx context.Context, text string, args ...any) *sql.Row {
	return s.reading[text].QueryRowContext(ctx, args...)
}

// query calls row for each row of the answer to a query, prepared or not.
func (s *Store) query(ctx context.Context, row func(*sql.Rows) error, text string, args ...any) error {
	ask := func() (*sql.Rows, error) { return s.reads.QueryContext(ctx, text, args...) }
	if stmt, ok := s.reading[text]; ok {
		ask = func() (*sql.Rows, error) { return stmt.QueryContext(ctx, args...) }
	}
	rows, err := ask()
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := row(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// retryBusy repeats do while another process holds the lock that it needs. The pauses are short: a process that writes continuously frees
// the lock for a moment only, and SQLite's own pauses of up to 100 ms would miss it for seconds.
func (s *Store) retryBusy(ctx context.Context, do func() error) error {
	wait := 200 * time.Microsecond
	for end := time.Now().Add(lockTimeout); ; wait = min(2*wait, 3*time.Millisecond) {
		err := do()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if code(err) != sqlite3.SQLITE_BUSY || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait/2 + rand.N(wait)): // not in step with the other
		}
	}
}

// code returns SQLite's primary result code of err, 0 if it has none.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// wrapError adds the failed action, the file, the reason and the remedy for an operator to err.
func (s *Store) wrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	why := ""
	switch code(err) {
	case sqlite3.SQLITE_FULL:
		why = "the disk is full, nothing was written: free some space: "
	case sqlite3.SQLITE_READONLY:
		why = "it may not be written: mend its permissions, or remount its file system for writing: "
	case sqlite3.SQLITE_BUSY:
		why = "another process keeps it locked: "
	case sqlite3.SQLITE_CORRUPT:
		err = fmt.Errorf("%s: store %s: %w: %w", doing, s.path, ErrDamaged, err)
		s.damaged.CompareAndSwap(nil, &err)
		return err
	case sqlite3.SQLITE_NOTADB:
		err = fmt.Errorf("%s: store %s: %w: %w", doing, s.path, ErrNotDatabase, err)
		s.damaged.CompareAndSwap(nil, &err)
		return err
	case sqlite3.SQLITE_CANTOPEN:
		why = "it cannot be opened: is its folder there, and may it be written? "
	case sqlite3.SQLITE_IOERR:
		why = "the disk failed: "
	}
	return fmt.Errorf("%s: store %s: %s%w", doing, s.path, why, err)
}
