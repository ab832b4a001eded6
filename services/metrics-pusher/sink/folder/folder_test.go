package folder_test

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/folder"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/sinktest"
)

func formats() []string { return []string{folder.JSONL, folder.CSV, folder.Parquet} }

func open(t *testing.T, dir, format string) *folder.Sink {
	t.Helper()
	to, err := folder.New(folder.Settings{Path: dir, Format: format})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestTheContractOfASink(t *testing.T) {
	for _, format := range formats() {
		t.Run(format, func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Destination {
				t.Helper()
				dir := filepath.Join(t.TempDir(), "samples")
				return sinktest.Destination{
					Sink: open(t, dir, format), Deduplicates: true, Specials: true,
					Points:         func(t *testing.T) []sinktest.Point { t.Helper(); return points(t, dir) },
					SetUnavailable: func(t *testing.T, away bool) { t.Helper(); replaceFolder(t, dir, away) },
				}
			})
		})
	}
}

// replaceFolder has a file in place of a folder, or an empty folder again.
func replaceFolder(t *testing.T, dir string, away bool) {
	t.Helper()
	err := os.RemoveAll(dir)
	if away {
		err = errors.Join(err, os.WriteFile(dir, nil, 0o600))
	} else {
		err = errors.Join(err, os.MkdirAll(dir, 0o750))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// points reads every file of samples below dir.
func points(t *testing.T, dir string) (all []sinktest.Point) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		var some []folder.Row
		switch filepath.Ext(path) {
		case ".jsonl":
			some = jsonl(t, path)
		case ".csv":
			some = csvRows(t, path)
		case ".parquet":
			some, err = parquet.ReadFile[folder.Row](path)
		default:
			t.Errorf("%s is there", path)
		}
		for _, r := range some {
			v := event.Sample{Value: r.Value, Special: r.Special}
			all = append(all, sinktest.Point{Run: r.Run, Metric: r.Metric, Second: r.Time / 1e9, Value: v.Float()})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func jsonl(t *testing.T, path string) (all []folder.Row) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		var r folder.Row
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v: %s", path, err, s.Text())
		}
		all = append(all, r)
	}
	return all
}

func csvRows(t *testing.T, path string) (all []folder.Row) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := make(map[string]int)
	for i, name := range lines[0] {
		at[name] = i
	}
	for _, line := range lines[1:] {
		r := folder.Row{Run: line[at["run"]], Metric: line[at["metric"]], Special: line[at["value"]]}
		r.Time, _ = strconv.ParseInt(line[at["time_ns"]], 10, 64)
		if v, err := strconv.ParseFloat(r.Special, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			r.Value, r.Special = &v, ""
		}
		all = append(all, r)
	}
	return all
}

// TestAFileIsWholeWhereverItsWriterWasKilled cuts a file at many places, and has
// another process go on.
func TestAFileIsWholeWhereverItsWriterWasKilled(t *testing.T) {
	for _, format := range formats() {
		t.Run(format, func(t *testing.T) {
			first, second := sinktest.Metrics("r1", 0, "loss", "odd\nname,\"", "loss"), sinktest.Metrics("r1", 2, "loss", "speed")
			second.Samples[0] = first.Samples[2]
			dir := t.TempDir()
			if err := open(t, dir, format).Samples(t.Context(), []event.Metrics{first, second}); err != nil {
				t.Fatal(err)
			}
			path := only(t, dir)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for cut := 0; cut < len(whole); cut += 11 {
				err := os.WriteFile(path, whole[:cut], 0o600)
				err = errors.Join(err, open(t, dir, format).Samples(t.Context(), []event.Metrics{first, second}))
				got, unread := os.ReadFile(path)
				if err := errors.Join(err, unread); err != nil || string(got) != string(whole) {
					t.Fatalf("cut at %d: %v\n%s\nwant\n%s", cut, err, got, whole)
				}
			}
		})
	}
}

// TestSamplesThatComeOutOfOrderAreInTheFileOnceWhereverItsWriterWasKilled has samples of blocks of lines: they come after samples with a
// larger sequence number.
func TestSamplesThatComeOutOfOrderAreInTheFileOnceWhereverItsWriterWasKilled(t *testing.T) {
	for _, format := range formats() {
		t.Run(format, func(t *testing.T) {
			var batches []event.Metrics
			for _, seq := range []int{66, 30, 30, 20, 70, 66, 40, 70} {
				batches = append(batches, sinktest.Metrics("r1", seq, "loss", "odd\nname,\""))
			}
			dir := t.TempDir()
			to := open(t, dir, format)
			for _, b := range batches {
				if err := to.Samples(t.Context(), []event.Metrics{b}); err != nil {
					t.Fatal(err)
				}
			}
			path := only(t, dir)
			whole, err := os.ReadFile(path)
			if n := len(points(t, dir)); err != nil || n != 10 {
				t.Fatalf("%d samples, %v, want 10:\n%s", n, err, whole)
			}
			checkCuts(t, path, whole, func() error { return open(t, dir, format).Samples(t.Context(), batches) })
		})
	}
}

// checkCuts cuts a file at many places, and checks that write makes it whole.
func checkCuts(t *testing.T, path string, whole []byte, write func() error) {
	t.Helper()
	for cut := 0; cut <= len(whole); cut += 11 {
		err := errors.Join(os.WriteFile(path, whole[:cut], 0o600), write())
		got, unread := os.ReadFile(path)
		if err := errors.Join(err, unread); err != nil || string(got) != string(whole) {
			t.Fatalf("cut at %d: %v\n%s\nwant\n%s", cut, err, got, whole)
		}
	}
}

func only(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*.*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("there are %q, %v: want one file", found, err)
	}
	return found[0]
}

func TestASourceThatHasEndedIsAParquetFile(t *testing.T) {
	dir := t.TempDir()
	step := int64(7)
	b := sinktest.Metrics("01kdvr00070000000000000007", 0, "loss", "loss")
	b.Samples[1].Step, b.Samples[1].Labels = &step, map[string]string{"a": "1", "b": "ü"}
	b.Samples[1].Direction = event.Lower
	b.Samples[1].Set(math.NaN())
	end := sinktest.Metrics(b.Run, 2)
	end.End = &event.End{Count: 2, Last: 1}
	to := open(t, dir, folder.Parquet)
	for range 2 { // the second time changes no file
		if err := to.Samples(t.Context(), []event.Metrics{b, end}); err != nil {
			t.Fatal(err)
		}
		path := only(t, dir)
		if want := "01kdvr00070000000000000007/1-benchmark-0-metrics-"; !strings.Contains(path, want) || filepath.Ext(path) != ".parquet" {
			t.Errorf("it is %s, want %s….parquet", path, want)
		}
		rows, err := parquet.ReadFile[folder.Row](path)
		if err != nil || len(rows) != 2 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if r := rows[1]; r.Value != nil || r.Special != event.NaN || *r.Step != 7 || r.Labels["b"] != "ü" || r.Unit != "s" || r.Direction != event.Lower || r.Seq != 1 || r.Time != b.Samples[1].Time || r.Owner != "ann" {
			t.Errorf("the second row is %+v", r)
		}
		to = open(t, dir, folder.Parquet)
	}
}

func TestAFileOfCSVThatAnOlderVersionBeganKeepsItsColumns(t *testing.T) {
	dir := t.TempDir()
	first, second := sinktest.Metrics("r1", 0, "loss"), sinktest.Metrics("r1", 1, "loss")
	first.Samples[0].Direction, second.Samples[0].Direction = event.Lower, event.Lower
	err := open(t, dir, folder.CSV).Samples(t.Context(), []event.Metrics{first})
	if err != nil {
		t.Fatal(err)
	}
	path := only(t, dir)
	lines := func() []string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	now := lines()
	if len(now) != 2 || !strings.HasSuffix(now[0], ",labels,direction") || !strings.HasSuffix(now[1], ",lower") {
		t.Fatalf("the file is %q, want a last column direction", now)
	}
	old := strings.TrimSuffix(now[0], ",direction") + "\n" + strings.TrimSuffix(now[1], ",lower") + "\n"
	err = errors.Join(os.WriteFile(path, []byte(old), 0o600), open(t, dir, folder.CSV).Samples(t.Context(), []event.Metrics{first, second}))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(strings.Join(lines(), "\n"))).ReadAll() // refuses rows of another length
	if err != nil || len(rows) != 3 {
		t.Errorf("%d rows, %v; want 3 as long as the first", len(rows), err)
	}
}

func TestNoFileLiesOutsideTheFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "samples")
	b := sinktest.Metrics("../../escaped", 0, "loss")
	b.Stream.Role, b.Stream.Kind = "../../up", "/etc"
	if err := open(t, dir, folder.JSONL).Samples(t.Context(), []event.Metrics{b}); err != nil {
		t.Fatal(err)
	}
	if path := only(t, dir); !strings.HasPrefix(path, dir+"/") || strings.Contains(path, "..") {
		t.Errorf("it lies at %s", path)
	}
}

func TestSeveralProcessesShareAFolder(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	var batches []event.Metrics
	for n := range 20 {
		batches = append(batches, sinktest.Metrics("r1", 2*n, "loss", "loss"))
	}
	for range 4 {
		to := open(t, dir, folder.JSONL)
		wg.Go(func() {
			for _, b := range batches {
				if err := to.Samples(t.Context(), []event.Metrics{b}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i, p := range points(t, dir) {
		if want := float64(i) + 0.5; p.Value != want {
			t.Fatalf("line %d is %v, want %v", i, p.Value, want)
		}
	}
	if n := len(points(t, dir)); n != 40 {
		t.Errorf("%d lines, want 40", n)
	}
}

func TestSettings(t *testing.T) {
	for s, want := range map[folder.Settings]string{
		{}:                               "sinks.folder.path",
		{Path: "relative"}:               "want an absolute path",
		{Path: "/x", Format: "avro"}:     "want jsonl, csv or parquet",
		{Path: "/x", Format: "parquet"}:  "",
		{Path: "/x"}:                     "",
		{Path: "/x", Format: folder.CSV}: "",
	} {
		if err := s.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}
