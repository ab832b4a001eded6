package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/benchmark-ai/bai/services/internal/store/sqlite/schema"
)

// CheckIntegrity reads the whole file and returns its damage, if there is any.
func (s *Store) CheckIntegrity(ctx context.Context) error {
	var verdict string
	if err := s.reads.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return s.wrapError("check", err)
	}
	if verdict != "ok" {
		return errors.New(verdict)
	}
	return nil
}

// SetWALLimit sets the size of the write-ahead log in bytes from which on it is truncated.
func (s *Store) SetWALLimit(size int64) { s.walLimit.Store(size) }

// FirstSchema returns the schema of the files of the first version, and their application ID.
func FirstSchema() (schemaOf string, applicationID int) {
	return schema.Statements()[0], schema.ApplicationID
}

// Versions is how many versions of the schema there were, this one included.
func Versions() int { return len(schema.Statements()) }

// SegmentSizes returns the number of lines of each segment, in order.
func (s *Store) SegmentSizes(ctx context.Context) (lines []int, err error) {
	err = s.query(ctx, func(rows *sql.Rows) error {
		var n int
		err := rows.Scan(&n)
		lines = append(lines, n)
		return err
	}, "SELECT lines FROM stretches ORDER BY source, first")
	return lines, err
}
