// Package sql delivers rows of runs to a table of a PostgreSQL or SQLite database.
//
// The rows of a run, and the record that they are there, are one transaction: after a kill the database has all of them, or none. The
// table bai_deliveries beside the rows has a record for each run and destination, by which a second delivery finds the first.
package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver pgx
	"modernc.org/sqlite"

	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
)

// The values of Settings.Driver.
const (
	Postgres = "postgres"
	SQLite   = "sqlite"
)

// Settings say which table of which database gets the rows.
type Settings struct {
	Driver string // postgres or sqlite
	// file with the address of the database, and its password: a URL of PostgreSQL, or the absolute path of SQLite's file. It is read for
	// each delivery
	DSNFile string
	Table   string // with a schema before a dot in PostgreSQL
}

// Validate names every setting at fault; at is the table of the settings.
func (s Settings) Validate(at string) error {
	var errs []error
	if s.Driver != Postgres && s.Driver != SQLite {
		errs = append(errs, fmt.Errorf("%s.driver: %q, want postgres or sqlite", at, s.Driver))
	}
	if !filepath.IsAbs(s.DSNFile) {
		errs = append(errs, fmt.Errorf("%s.dsn_file: %q is not the absolute path of a file", at, s.DSNFile))
	}
	if err := checkTable(s.Table, s.Driver == Postgres); err != nil {
		errs = append(errs, fmt.Errorf("%s.table: %w", at, err))
	}
	return errors.Join(errs...)
}

// Table is a destination: a table of a database.
type Table struct {
	name     string
	settings Settings
}

// New returns the destination with that name in the settings. It does not connect.
func New(name string, s Settings) *Table { return &Table{name: name, settings: s} }

// Deliver implements deliver.Destination.
func (d *Table) Deliver(ctx context.Context, rows deliver.Delivery) error {
	if err := d.deliver(ctx, rows); err != nil {
		return readable(err)
	}
	return nil
}

func (d *Table) deliver(ctx context.Context, rows deliver.Delivery) (err error) {
	db, err := d.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	table := d.settings.Table
	deliveries := deliveriesTable(table)
	key := []deliver.Column{{Name: "run"}, {Name: "destination"}}
	if err := ensure(ctx, db, deliveries, createDeliveries(deliveries), key); err != nil {
		return err
	}
	if err := ensure(ctx, db, table, createTable(table, rows.Columns), rows.Columns); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	first := insert(deliveries, []string{"run", "destination"}, 1, d.placeholder) + " ON CONFLICT DO NOTHING"
	result, err := tx.ExecContext(ctx, first, rows.Run, d.name) // waits for another delivery of the run
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return err
	}
	if err := d.insert(ctx, tx, rows); err != nil {
		return err
	}
	return tx.Commit()
}

// insert adds all rows.
func (d *Table) insert(ctx context.Context, tx *sql.Tx, rows deliver.Delivery) error {
	names := make([]string, len(rows.Columns))
	for i, c := range rows.Columns {
		names[i] = c.Name
	}
	atOnce := max(1, maxParameters/len(names))
	full := insert(d.settings.Table, names, atOnce, d.placeholder)
	var values []any
	for row, err := range rows.Rows {
		if err != nil {
			return &refusedError{err.Error()}
		}
		if d.settings.Driver == Postgres {
			row = storable(row)
		}
		if values = append(values, row...); len(values) == atOnce*len(names) {
			if _, err := tx.ExecContext(ctx, full, values...); err != nil {
				return err
			}
			values = values[:0]
		}
	}
	if len(values) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, insert(d.settings.Table, names, len(values)/len(names), d.placeholder), values...)
	return err
}

// ensure makes a table if it is not there. It returns an error if the table lacks a column. A table that is there needs no right to make
// one.
func ensure(ctx context.Context, db *sql.DB, table, create string, columns []deliver.Column) error {
	has, err := columnsOf(ctx, db, table)
	if err != nil {
		_, failed := db.ExecContext(ctx, create)
		if has, err = columnsOf(ctx, db, table); err != nil { // else another process has made it
			return errors.Join(failed, err)
		}
	}
	return lacking(table, has, columns)
}

func columnsOf(ctx context.Context, db *sql.DB, table string) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT * FROM "+quoted(table)+" WHERE 1 = 0")
	if err != nil {
		return nil, err
	}
	names, err := rows.Columns()
	return names, errors.Join(err, rows.Err(), rows.Close())
}

// open opens the database that the file names now.
func (d *Table) open() (*sql.DB, error) {
	text, err := os.ReadFile(d.settings.DSNFile)
	if err != nil {
		return nil, &refusedError{"the platform cannot read the address of the database"}
	}
	driver, dsn := "pgx", strings.TrimSpace(string(text))
	if d.settings.Driver == SQLite {
		if !filepath.IsAbs(dsn) {
			return nil, &refusedError{"the address of the database is not the absolute path of a file"}
		}
		driver, dsn = "sqlite", (&url.URL{
			Scheme: "file", Path: dsn,
			RawQuery: "_txlock=immediate&_pragma=busy_timeout(60000)&_dqs=0",
		}).String()
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func (d *Table) placeholder(n int) string {
	if d.settings.Driver == SQLite {
		return fmt.Sprintf("?%d", n)
	}
	return fmt.Sprintf("$%d", n)
}

// readable returns an error without addresses and passwords, which the texts of drivers have.
func readable(err error) error {
	var (
		refused *refusedError
		pg      *pgconn.PgError
		lite    *sqlite.Error
		errno   syscall.Errno
	)
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &pg):
		return fmt.Errorf("the database refused: %s (SQLSTATE %s)", refusal(pg.Code, pg.Message), pg.Code)
	case errors.As(err, &lite):
		return fmt.Errorf("the database refused: %s", lite.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return errors.New("the database did not answer in time")
	case errors.As(err, &errno):
		return fmt.Errorf("the database cannot be reached: %s", errno.Error())
	}
	return errors.New("the database cannot be reached")
}
