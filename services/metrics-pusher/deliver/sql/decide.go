package sql

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
)

// maxParameters is how many values an INSERT has at most: SQLite takes 32,766 of them, PostgreSQL 65,535.
const maxParameters = 1000

// quoted quotes a name, or a name with its schema.
func quoted(table string) string {
	parts := strings.Split(table, ".")
	for i, p := range parts {
		parts[i] = `"` + strings.ReplaceAll(p, `"`, `""`) + `"`
	}
	return strings.Join(parts, ".")
}

// deliveriesTable is the table of the runs whose rows a table has, in the same schema.
func deliveriesTable(table string) string {
	const name = "bai_deliveries"
	if schema, _, ok := strings.Cut(table, "."); ok {
		return schema + "." + name
	}
	return name
}

// checkTable returns the fault of a table's name, or nil.
func checkTable(table string, schemas bool) error {
	switch {
	case !regexp.MustCompile(`^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}$`).MatchString(table):
		return fmt.Errorf("%q is not the name of a table: write lower-case letters, digits and _, no digit first", table)
	case strings.Contains(table, ".") && !schemas:
		return fmt.Errorf("%q has a schema, and SQLite has none", table)
	case strings.HasSuffix(table, "bai_deliveries"):
		return errors.New(`"bai_deliveries" is the table of the runs that are delivered: choose another name`)
	}
	return nil
}

// createTable is the statement that makes a table for rows with columns.
func createTable(table string, columns []deliver.Column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = quoted(c.Name) + " text"
		if c.Number {
			parts[i] = quoted(c.Name) + " double precision"
		}
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s)", quoted(table), strings.Join(parts, ", "))
}

// createDeliveries is the statement that makes the table of deliveries.
func createDeliveries(table string) string {
	return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s ("run" text NOT NULL, "destination" text NOT NULL, PRIMARY KEY ("run", "destination"))`,
		quoted(table))
}

// insert is the statement that adds rows with columns to a table; placeholder writes the nth parameter, from 1.
func insert(table string, columns []string, rows int, placeholder func(n int) string) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = quoted(c)
	}
	values, n := make([]string, rows), 0
	for i := range values {
		row := make([]string, len(columns))
		for j := range row {
			n++
			row[j] = placeholder(n)
		}
		values[i] = "(" + strings.Join(row, ", ") + ")"
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", quoted(table), strings.Join(names, ", "), strings.Join(values, ", "))
}

// lacking returns the error of a table with the columns in has that rows with columns cannot be added to, or nil.
func lacking(table string, has []string, columns []deliver.Column) error {
	var names []string
	for _, c := range columns {
		if !slices.Contains(has, c.Name) {
			names = append(names, fmt.Sprintf("%q", c.Name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	what := "column"
	if len(names) > 1 {
		what = "columns"
	}
	return &refusedError{fmt.Sprintf("table %q lacks the %s %s: the platform alters no table; add what is lacking, or change the columns in the descriptor",
		table, what, strings.Join(names, ", "))}
}

// refusedError is an error that a user may read as it is.
type refusedError struct{ Reason string }

// Error implements error.
func (e *refusedError) Error() string { return e.Reason }

// refusal returns the text about an error of PostgreSQL with that code. The server's own texts about connections have users, databases and
// addresses: class 28 refuses the user, class 3D the database.
func refusal(code, message string) string {
	switch {
	case strings.HasPrefix(code, "28"):
		return "it does not let the platform in with the user and password that it was given"
	case strings.HasPrefix(code, "3D"):
		return "it has no such database"
	}
	return message
}

// storable returns the values of a row with texts that PostgreSQL stores: U+FFFD stands for NUL and for bytes that are not UTF-8.
func storable(row []any) []any {
	out := slices.Clone(row)
	for i, v := range out {
		if text, ok := v.(string); ok {
			out[i] = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
		}
	}
	return out
}
