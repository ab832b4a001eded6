package sql_test

import (
	"cmp"
	stdsql "database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/delivertest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/sql"
)

// writeDSN writes a file with the address of a database, and returns its path.
func writeDSN(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// query returns the rows of a statement with two columns.
func query(t *testing.T, driver, dsn, statement string) []string {
	t.Helper()
	db, err := stdsql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // read only
	rows, err := db.Query(statement)
	if err != nil && (strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "42P01")) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err has it
	var all []string
	for rows.Next() {
		var run string
		var value float64
		if err := rows.Scan(&run, &value); err != nil {
			t.Fatal(err)
		}
		all = append(all, delivertest.Text(run, value))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func sqliteFixture(t *testing.T, path string) delivertest.Fixture {
	t.Helper()
	s := sql.Settings{Driver: sql.SQLite, DSNFile: writeDSN(t, path+"\n"), Table: "results"}
	return delivertest.Fixture{
		Open: func(*testing.T) deliver.Destination { return sql.New("warehouse", s) },
		Rows: func(t *testing.T) []string {
			t.Helper()
			return query(t, "sqlite", "file:"+path+"?_pragma=busy_timeout(60000)", "SELECT run, value FROM results")
		},
	}
}

func TestSQLite(t *testing.T) {
	delivertest.Run(t, func(t *testing.T) delivertest.Fixture {
		t.Helper()
		return sqliteFixture(t, filepath.Join(t.TempDir(), "results.db"))
	})
}

func TestAKilledWriterLeavesNoRowsInSQLite(t *testing.T) {
	path := cmp.Or(os.Getenv("DELIVERTEST_SQLITE"), filepath.Join(t.TempDir(), "results.db"))
	delivertest.RunKilled(t, sqliteFixture(t, path), t.Name(), "DELIVERTEST_SQLITE="+path)
}

func TestEightWritersThatAreKilledLeaveWholeRunsInSQLite(t *testing.T) {
	path := cmp.Or(os.Getenv("DELIVERTEST_SQLITE"), filepath.Join(t.TempDir(), "results.db"))
	delivertest.RunKilledWriters(t, sqliteFixture(t, path), t.Name(), "DELIVERTEST_SQLITE="+path)
}

func TestATableThatLacksAColumnIsRefusedAndNotAltered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	p := sqliteFixture(t, path)
	db, err := stdsql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing to lose
	if _, err := db.Exec(`CREATE TABLE results (run text)`); err != nil {
		t.Fatal(err)
	}
	err = p.Open(t).Deliver(t.Context(), delivertest.Rows("r1", 2))
	const want = `table "results" lacks the column "value": the platform alters no table; add what is lacking, or change the columns in the descriptor`
	if err == nil || err.Error() != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	if _, err := db.Exec(`ALTER TABLE results ADD COLUMN value double precision`); err != nil {
		t.Fatal(err)
	}
	if err := p.Open(t).Deliver(t.Context(), delivertest.Rows("r1", 2)); err != nil {
		t.Fatal(err)
	}
	if rows := p.Rows(t); len(rows) != 2 {
		t.Errorf("%q", rows)
	}
}

func TestAnErrorHasNeitherAddressNorPassword(t *testing.T) {
	for name, dsn := range map[string]string{
		"nobody listens":    "postgres://bai:s3cret@127.0.0.1:1/warehouse?connect_timeout=5",
		"no address at all": "postgres://bai:s3cret@:x/warehouse",
	} {
		t.Run(name, func(t *testing.T) {
			d := sql.New("warehouse", sql.Settings{Driver: sql.Postgres, DSNFile: writeDSN(t, dsn), Table: "results"})
			err := d.Deliver(t.Context(), delivertest.Rows("r1", 1))
			if err == nil || !strings.HasPrefix(err.Error(), "the database cannot be reached") {
				t.Fatalf("got %v", err)
			}
			for _, secret := range []string{"s3cret", "127.0.0.1", "warehouse"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%v has %s", err, secret)
				}
			}
		})
	}
}

func TestFaultySettingsAreNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		settings sql.Settings
		want     string
	}{
		"all are right": {sql.Settings{Driver: sql.Postgres, DSNFile: "/etc/dsn", Table: "bench.results"}, ""},
		"no driver":     {sql.Settings{DSNFile: "/etc/dsn", Table: "results"}, `d.driver: "", want postgres or sqlite`},
		"no file":       {sql.Settings{Driver: sql.SQLite, Table: "results"}, `d.dsn_file: "" is not the absolute path of a file`},
		"a table with a quote": {
			sql.Settings{Driver: sql.SQLite, DSNFile: "/etc/dsn", Table: `r"`},
			`d.table: "r\"" is not the name of a table: write lower-case letters, digits and _, no digit first`,
		},
		"a schema in SQLite": {sql.Settings{Driver: sql.SQLite, DSNFile: "/etc/dsn", Table: "a.b"}, `d.table: "a.b" has a schema, and SQLite has none`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tt.settings.Validate("d"); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
