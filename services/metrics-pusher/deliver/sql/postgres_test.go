package sql_test

import (
	stdsql "database/sql"
	"fmt"
	"os"
	"testing"

	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/delivertest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/sql"
	"github.com/benchmark-ai/bai/services/test/testbed/postgres"
)

// envPostgres is the variable by which a process that is killed finds the server that its parent has started.
const envPostgres = "DELIVERTEST_POSTGRES"

// postgresFixture is the destination of a table in a schema of its own.
func postgresFixture(t *testing.T, dsn, schema string) delivertest.Fixture {
	t.Helper()
	db, err := stdsql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing to lose
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA IF NOT EXISTS "+schema); err != nil {
		t.Fatal(err)
	}
	s := sql.Settings{Driver: sql.Postgres, DSNFile: writeDSN(t, dsn+"\n"), Table: schema + ".results"}
	return delivertest.Fixture{
		Open: func(*testing.T) deliver.Destination { return sql.New("warehouse", s) },
		Rows: func(t *testing.T) []string {
			t.Helper()
			return query(t, "pgx", dsn, "SELECT run, value FROM "+s.Table)
		},
	}
}

// TestPostgreSQL runs the suite against a server of Debian's packages.
func TestPostgreSQL(t *testing.T) {
	s := postgres.Start(t)
	n := 0
	delivertest.Run(t, func(t *testing.T) delivertest.Fixture {
		t.Helper()
		n++
		return postgresFixture(t, s.DSN(), fmt.Sprint("suite", n))
	})
	t.Run("a wrong password", func(t *testing.T) {
		wrong := sql.New("warehouse", sql.Settings{Driver: sql.Postgres, Table: "results", DSNFile: writeDSN(t, s.DSN()+"&password=wrong")})
		err := wrong.Deliver(t.Context(), delivertest.Rows("r1", 1))
		const want = "the database refused: it does not let the platform in with the user and password that it was given (SQLSTATE 28P01)"
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestAWriterOfPostgreSQLThatIsKilledLeavesWholeRuns(t *testing.T) {
	dsn := ownOrOfParent(t)
	delivertest.RunKilled(t, postgresFixture(t, dsn, "one"), t.Name(), envPostgres+"="+dsn)
}

func TestEightWritersThatAreKilledLeaveWholeRunsInPostgreSQL(t *testing.T) {
	dsn := ownOrOfParent(t)
	delivertest.RunKilledWriters(t, postgresFixture(t, dsn, "eight"), t.Name(), envPostgres+"="+dsn)
}

// ownOrOfParent returns the address of a server: that of the parent process of one that is killed, else a new one.
func ownOrOfParent(t *testing.T) string {
	t.Helper()
	if dsn := os.Getenv(envPostgres); dsn != "" {
		return dsn
	}
	return postgres.Start(t).DSN()
}
