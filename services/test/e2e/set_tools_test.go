package e2e_test

import (
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver pgx

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/mlflow"
	"github.com/benchmark-ai/bai/services/test/testbed/postgres"
)

// The set that other programs read: 8 cells of three parameters with 6 repetitions.
const (
	readCells = 8
	readRuns  = 48
)

// readSweep returns the descriptor of the set. A row is a run.
func readSweep() string {
	text := strings.Replace(script(`echo "rate $((100 * {{threads}} + {{size}} + {{level}}))"`), `description = "a test"`,
		`description = "read by other programs"`+"\n"+`labels = { size = "{{size}}", threads = "{{threads}}", level = "{{level}}" }`, 1)
	text += "[[output.metrics]]\nname = \"rate\"\nunits = \"MB/s\"\npattern = 'rate (\\d+)'\ndirection = \"higher\"\n"
	for _, name := range []string{"warehouse", "lake", "tracking"} {
		text += fmt.Sprintf("[[output.destinations]]\nname = %q\n", name) +
			"columns = { run = \"run.id\", cell = \"run.cell\", repetition = \"run.repetition\", size = \"label.size\", rate = \"metric.rate.median\" }\n"
	}
	return text + "[sweep]\nrepetitions = 6\norder = \"interleaved\"\n[sweep.product]\nsize = [1, 2]\nthreads = [1, 2]\nlevel = [10, 20]\n"
}

// readScript prints what libraries that are not ours read in a file of Parquet and one of JUnit.
const readScript = `import json, sys, pyarrow.parquet, junitparser
table = pyarrow.parquet.read_table(sys.argv[1])
xml = junitparser.JUnitXml.fromfile(sys.argv[2])
cases = [(c.name, [type(r).__name__ for r in c.result]) for s in xml for c in s]
print(json.dumps({"types": {f.name: str(f.type) for f in table.schema}, "rows": table.to_pylist(), "tests": xml.tests,
    "failures": xml.failures, "skipped": xml.skipped, "cases": len(cases), "passed": sum(1 for _, r in cases if not r)}))
`

// readByLibraries is what readScript prints.
type readByLibraries struct {
	Types                                   map[string]string
	Rows                                    []map[string]any
	Tests, Failures, Skipped, Cases, Passed int
}

// The results of a set are the same in the table and CSV, in Parquet and JUnit as libraries of others read them, in PostgreSQL, in CSV of a
// folder and in MLflow, by servers of their own.
func TestTheResultsOfASetAreReadByOtherPrograms(t *testing.T) {
	t.Parallel()
	tracking, warehouse := mlflow.Start(t), postgres.Start(t)
	python, err := kit.Python(t.Context(), "pyarrow", "21.0.0", "junitparser==4.0.2")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	lake := filepath.Join(dir, "lake")
	write(t, filepath.Join(dir, "dsn"), warehouse.DSN())
	write(t, filepath.Join(dir, "bai.toml"), fmt.Sprintf(`[destinations.lake]
kind = "objects"
url = "file://%s"
format = "csv"
[destinations.warehouse]
kind = "sql"
driver = "postgres"
dsn_file = %q
table = "results"
[destinations.tracking]
kind = "mlflow"
url = %q
experiment = "sets"
`, lake, filepath.Join(dir, "dsn"), tracking.URL))
	p := start(t, "--slots", "4", "--config", filepath.Join(dir, "bai.toml"))
	if out, errs, code := p.baictl("run", writeTemp(t, readSweep()), "--name", "read"); code != 0 {
		t.Fatalf("run exits with %d: %s%s", code, out, errs)
	}
	table := p.awaitReadResults()
	wantLibrariesRead(t, p, python, dir, table)
	want := medians(table)
	eventually(t, func() error { return differ("PostgreSQL", want, mediansInPostgres(t, warehouse.DSN())) })
	eventually(t, func() error { return differ("the folder", want, mediansInFolder(t, lake)) })
	eventually(t, func() error { return differ("MLflow", want, mediansInMLflow(t, tracking)) })
}

// awaitReadResults waits until all runs are summarised, and returns the rows of CSV, by column.
func (p *platform) awaitReadResults() (rows []map[string]string) {
	p.t.Helper()
	eventually(p.t, func() error {
		out, errs, code := p.baictl("set", "results", "read", "--metric", "rate", "-o", "csv")
		all, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if code != 0 || err != nil {
			p.t.Fatalf("set results exits with %d: %s, %v", code, errs, err)
		}
		if rows = byColumn(all); len(rows) != readCells {
			return fmt.Errorf("%d rows, want %d", len(rows), readCells)
		}
		for _, r := range rows {
			if r["n"] != "6" || r["low"] == "" || r["size"] == "" {
				return fmt.Errorf("the cell %s is not complete: %v", r["cell"], r)
			}
		}
		return nil
	})
	out, _, _ := p.baictl("set", "results", "read", "--metric", "rate", "--by", "size,threads")
	if !strings.Contains(out, "n=6") {
		p.t.Errorf("the table is\n%s", out)
	}
	return rows
}

// byColumn returns the rows after the first, which names the columns.
func byColumn(all [][]string) (rows []map[string]string) {
	for i, r := range all {
		if i == 0 {
			continue
		}
		row := map[string]string{}
		for j, v := range r {
			row[all[0][j]] = v
		}
		rows = append(rows, row)
	}
	return rows
}

// wantLibrariesRead compares what libraries of others read with the rows of CSV.
func wantLibrariesRead(t *testing.T, p *platform, python, dir string, rows []map[string]string) {
	t.Helper()
	files := map[string]string{}
	for _, format := range []string{"parquet", "junit"} {
		out, errs, code := p.baictl("set", "results", "read", "--metric", "rate", "-o", format)
		if code != 0 {
			t.Fatalf("set results -o %s exits with %d: %s", format, code, errs)
		}
		files[format] = filepath.Join(dir, "read."+format)
		write(t, files[format], out)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", readScript, files["parquet"], files["junit"])
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got readByLibraries
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != readRuns || got.Cases != readRuns || got.Passed != readRuns || got.Failures != 0 || got.Skipped != 0 {
		t.Errorf("JUnit has %d tests, %d cases, of which %d passed, %d failures, %d skipped; want %d passed", got.Tests, got.Cases, got.Passed, got.Failures, got.Skipped, readRuns)
	}
	var want, read []string
	for _, r := range rows {
		want = append(want, fmt.Sprintf("%s %s %s %s %s %s %s %s %s", r["cell"], r["n"], r["median"], r["low"], r["high"], r["best"], r["size"], r["threads"], r["level"]))
	}
	for _, r := range got.Rows {
		read = append(read, fmt.Sprintf("%v %v %v %v %v %v %v %v %v", r["cell"], r["n"], r["median"], r["low"], r["high"], r["best"], r["size"], r["threads"], r["level"]))
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("Parquet (-CSV +Parquet):\n%s", diff)
	}
	types := map[string]string{}
	for _, name := range []string{"cell", "n", "median", "best", "size"} {
		types[name] = got.Types[name]
	}
	if diff := cmp.Diff(map[string]string{"cell": "string", "n": "int64", "median": "double", "best": "bool", "size": "int64"}, types); diff != "" {
		t.Errorf("types of Parquet (-want +got):\n%s", diff)
	}
}

// medians returns the medians that each cell's six rows of a destination have.
func medians(rows []map[string]string) map[string]int {
	all := map[string]int{}
	for _, r := range rows {
		all[r["cell"]+" "+r["median"]] += 6
	}
	return all
}

// differ returns the difference between the rows that a destination should have and has, by cell and median.
func differ(where string, want, got map[string]int) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s (-want +got):\n%s", where, diff)
	}
	return nil
}

func mediansInPostgres(t *testing.T, dsn string) map[string]int {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // read only
	all := map[string]int{}
	rows, err := db.QueryContext(t.Context(), "SELECT cell, rate FROM results")
	if err != nil {
		return all // there is no table yet
	}
	defer rows.Close() //nolint:errcheck // rows.Err has it
	for rows.Next() {
		var cell string
		var rate float64
		if err := rows.Scan(&cell, &rate); err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprint(cell, " ", rate)]++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func mediansInFolder(t *testing.T, dir string) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, name := range files {
		text, err := os.ReadFile(name) //nolint:gosec // the test's
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range byColumn(rows) {
			all[r["cell"]+" "+r["rate"]]++
		}
	}
	return all
}

func mediansInMLflow(t *testing.T, s *mlflow.Server) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, r := range s.Runs(t, "sets") {
		if r.Status != "FINISHED" {
			continue
		}
		for _, p := range r.Points {
			if p.Key == "rate" {
				all[fmt.Sprint(r.Params["cell"], " ", p.Value)]++
			}
		}
	}
	return all
}
