package objects_test

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/delivertest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/objects"
)

func folder(dir, format string) delivertest.Fixture {
	return delivertest.Fixture{
		Open: func(t *testing.T) deliver.Destination {
			t.Helper()
			p, err := blob.OpenLocation(t.Context(), blob.FolderURL(dir), nil, zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			return objects.New(p, format)
		},
		Rows: func(t *testing.T) []string {
			t.Helper()
			files, err := filepath.Glob(filepath.Join(dir, "[^.]*"))
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				if format == objects.CSV {
					all = append(all, readCSV(t, string(text))...)
				} else {
					all = append(all, readJSONL(t, string(text))...)
				}
			}
			return all
		},
	}
}

func readCSV(t *testing.T, text string) []string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 || strings.Join(rows[0], ",") != "run,value" {
		t.Fatalf("%v: %.100q", err, text)
	}
	var all []string
	for _, r := range rows[1:] {
		v, err := strconv.ParseFloat(r[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, delivertest.Text(r[0], v))
	}
	return all
}

func readJSONL(t *testing.T, text string) (all []string) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var row struct {
			Run   string
			Value float64
		}
		err := d.Decode(&row)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, delivertest.Text(row.Run, row.Value))
	}
}

func TestAFolder(t *testing.T) {
	for _, format := range []string{objects.CSV, objects.JSONL} {
		t.Run(format, func(t *testing.T) {
			delivertest.Run(t, func(t *testing.T) delivertest.Fixture {
				t.Helper()
				return folder(filepath.Join(t.TempDir(), "lake"), format)
			})
		})
	}
}

func TestAKilledWriterLeavesNoObjectInAFolder(t *testing.T) {
	dir := cmp.Or(os.Getenv("DELIVERTEST_FOLDER"), t.TempDir())
	delivertest.RunKilled(t, folder(dir, objects.CSV), t.Name(), "DELIVERTEST_FOLDER="+dir)
}

func TestEightWritersThatAreKilledLeaveWholeRunsInAFolder(t *testing.T) {
	dir := cmp.Or(os.Getenv("DELIVERTEST_FOLDER"), t.TempDir())
	delivertest.RunKilledWriters(t, folder(dir, objects.CSV), t.Name(), "DELIVERTEST_FOLDER="+dir)
}

func TestAFolderThatCannotBeMadeIsAnErrorWithoutItsName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := folder(filepath.Join(file, "lake"), objects.CSV).Open(t).Deliver(t.Context(), delivertest.Rows("r1", 1))
	if err == nil || err.Error() != "the object cannot be written: not a directory" {
		t.Errorf("got %v", err)
	}
}

// Readers of CSV skip blank lines.
func TestAMissingValueOfTheOnlyColumnIsARow(t *testing.T) {
	dir := t.TempDir()
	rows := deliver.Delivery{Run: "r1", Columns: []deliver.Column{{Name: "value", Number: true}}, Rows: func(yield func([]any, error) bool) {
		for _, v := range []any{1.5, nil, "", 2.0} {
			if !yield([]any{v}, nil) {
				return
			}
		}
	}}
	if err := folder(dir, objects.CSV).Open(t).Deliver(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "r1.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff("value\n1.5\n\"\"\n\"\"\n2\n", string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if diff := gocmp.Diff([][]string{{"value"}, {"1.5"}, {""}, {""}, {"2"}}, all); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
