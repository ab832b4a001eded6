package sql

import (
	"fmt"
	"testing"

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
