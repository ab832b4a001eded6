package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
)

func TestNamesInStatementsAreQuoted(t *testing.T) {
	columns := []deliver.Column{{Name: "run"}, {Name: "order", Number: true}}
	number := func(n int) string { return fmt.Sprintf("$%d", n) }
	for want, got := range map[string]string{
		`CREATE TABLE IF NOT EXISTS "bench"."results" ("run" text, "order" double precision)`: createTable("bench.results", columns),
		`INSERT INTO "results" ("run", "order") VALUES ($1, $2), ($3, $4)`:                    insert("results", []string{"run", "order"}, 2, number),
		`CREATE TABLE IF NOT EXISTS "bench"."bai_deliveries" ("run" text NOT NULL, "destination" text NOT NULL, ` +
			`PRIMARY KEY ("run", "destination"))`: createDeliveries(deliveriesTable("bench.results")),
		`"a""b"`: quoted(`a"b`),
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestALackingTableNamesTheColumns(t *testing.T) {
	columns := []deliver.Column{{Name: "run"}, {Name: "rate", Number: true}, {Name: "size"}}
	if err := lacking("results", []string{"size", "rate", "run", "more"}, columns); err != nil {
		t.Error(err)
	}
	const want = `table "results" lacks the columns "rate", "size": the platform alters no table; add what is lacking, or change the columns in the descriptor`
	if err := lacking("results", []string{"run"}, columns); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestRefusalsOfPostgreSQLNameNoUserDatabaseOrAddress(t *testing.T) {
	for code, message := range map[string]string{
		"28P01": `password authentication failed for user "bai"`, "28000": `no pg_hba.conf entry for host "10.0.0.1", user "bai"`,
		"3D000": `database "secret" does not exist`,
	} {
		if got := refusal(code, message); strings.Contains(got, `"`) {
			t.Errorf("%s: %s", code, got)
		}
	}
	if got := refusal("42501", "permission denied for table results"); got != "permission denied for table results" {
		t.Errorf("got %s, want the server's text", got)
	}
}

func TestTextThatPostgreSQLCannotStoreIsReplaced(t *testing.T) {
	row := []any{"a\x00b", "\xff", "é", 1.5, nil}
	if diff := cmp.Diff([]any{"a\uFFFDb", "\uFFFD", "é", 1.5, nil}, storable(row)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if row[0] != "a\x00b" {
		t.Error("the row of the caller has changed")
	}
}
