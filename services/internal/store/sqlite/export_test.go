package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Sound reads the whole file and says how it is damaged, if it is.
func (s *Store) Sound(ctx context.Context) error {
	var verdict string
	if err := s.reads.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return s.explain("check", err)
	}
	if verdict != "ok" {
		return errors.New(verdict)
	}
	return nil
}

// EmptyLogFrom has the write-ahead log emptied once it has so many bytes.
func (s *Store) EmptyLogFrom(size int64) { s.logLimit.Store(size) }

// FirstSchema returns what made the files of the first version, and the mark
// that they carry.
func FirstSchema() (schemaOf string, applicationID int) { return schema()[0], application }

// Versions is how many versions of the schema there were, this one included.
func Versions() int { return len(schema()) }

// What chunks are made with.
var (
	Unpack  = unpack
	Merge   = merge
	Ordered = ordered
)

// MarksOf returns the marks of tokens, and Press the form of marks.
var (
	MarksOf  = marksOf
	Press    = press
	Unpress  = unpress
	HasMarks = hasMarks
)

// MarksOfLines returns the marks of the tokens of lines.
func MarksOfLines(lines []event.Line) []uint32 { return new(marker).of(lines) }

// Stretches returns how many lines each stretch of lines has, in order.
func (s *Store) Stretches(ctx context.Context) (lines []int, err error) {
	err = s.query(ctx, func(rows *sql.Rows) error {
		var n int
		err := rows.Scan(&n)
		lines = append(lines, n)
		return err
	}, "SELECT lines FROM stretches ORDER BY source, first")
	return lines, err
}

// Pack is pack for samples that are in order.
func Pack(samples []event.Sample) ([]byte, error) { return pack(series{samples}) }
