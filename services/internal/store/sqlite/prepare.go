package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/store/sqlite/schema"
)

// firstChunkedVersion is the first version of the schema that has samples in chunks.
const firstChunkedVersion = 3

// prepareFile brings the file to this program's version. It always writes, so that it fails now if the file cannot be written.
func (s *Store) prepareFile(ctx context.Context) error {
	if err := s.retryBusy(ctx, func() error { return s.check(ctx, s.writes) }); err != nil {
		return err
	}
	return s.update(ctx, func(t tx) error {
		version, err := s.version(ctx, t)
		if err != nil {
			return err
		}
		for _, step := range schema.Statements()[version:] {
			if _, err := t.ExecContext(ctx, step); err != nil {
				return err
			}
		}
		if version < firstChunkedVersion {
			if err := chunkRows(ctx, t); err != nil {
				return err
			}
		}
		_, err = t.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", schema.ApplicationID, len(schema.Statements())))
		return err
	})
}

// check refuses a file that is not for this program before it changes the file, then sets the file to use a write-ahead log.
func (s *Store) check(ctx context.Context, db *sql.DB) error {
	if _, err := s.version(ctx, db); err != nil {
		return err
	}
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode(WAL)").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("%w: it cannot keep a write-ahead log there (journal mode %q): use a local file system", errNotUsable, mode)
	}
	return nil
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// version returns the version of the file's schema, 0 for an empty file, or an error if the file is not for this program.
func (s *Store) version(ctx context.Context, db querier) (int, error) {
	var app, version, tables int
	err := db.QueryRowContext(ctx,
		"SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)").Scan(&app, &version, &tables)
	switch {
	case err != nil:
		return 0, err
	case app == 0 && version == 0 && tables == 0:
		return 0, nil
	case app != schema.ApplicationID:
		return 0, fmt.Errorf("%w: it is a SQLite database of another program: give another path, or move it away", errNotUsable)
	case version > len(schema.Statements()):
		return 0, fmt.Errorf("%w: it has schema version %d, written by a newer version of the platform, and this one reads up to %d: run the newer version, or give another data directory", errNotUsable, version, len(schema.Statements()))
	}
	return version, nil
}
