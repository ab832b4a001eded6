package sqlite_test

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestRunsOfAFileOfTheFirstVersionAreFoundByText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	r, _ := storetest.NewRun("run1", time.Unix(5, 0).UTC())
	r.Name, r.File, r.Labels = "Nightly", "Bench.toml", map[string]string{store.LabelTask: "Train"}
	doc, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	schema, id := sqlite.FirstSchema()
	if err := execute(path, fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = 1;", schema, id)+
		fmt.Sprintf("INSERT INTO runs(id, revision, created, owner, namespace, name, phase, outcome, labels, doc) VALUES ('run1', 1, 5000000000, 'ann', 'pets', 'Nightly', '', '', '{}', CAST('%s' AS BLOB))", strings.ReplaceAll(string(doc), "'", "''"))); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing was written
	for _, text := range []string{"RUN", "night", "bench", "train"} {
		got, _, err := s.Runs(t.Context(), store.RunFilter{Text: text}, "", 10)
		if diff := cmp.Diff([]store.Run{r}, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestSamplesOfAFileOfTheFirstVersionStayReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	schema, id := sqlite.FirstSchema()
	const n = 10_000
	o := storetest.NewOrigin("run1", "p")
	if err := execute(path, fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = 1;", schema, id)+fmt.Sprintf(`
		INSERT INTO sources(n, id, run, attempt, role, idx, pod, container, stream) VALUES (7, '%s', 'run1', %d, '%s', 0, 'p', '%s', '%s');
		INSERT INTO streams VALUES (7, 'bai.metrics', %d, %d, NULL);
		INSERT INTO names VALUES (1, 'loss'); INSERT INTO traits VALUES (1, '', ''), (2, 'ms', '{"a":"b"}');
		WITH RECURSIVE i(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i WHERE n < %d)
		INSERT INTO samples SELECT 7, n, 0, 1, 1 + n %% 2, CASE WHEN n = 5 THEN NULL ELSE n / 2.0 END, CASE WHEN n = 5 THEN 'NaN' END, n * 1000, CASE WHEN n = 6 THEN 3 END FROM i`,
		o.StreamID(), o.Attempt, o.Role, o.Container, o.Kind, n, n-1, n-1)); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing was written
	got, _, err := s.Samples(t.Context(), store.SampleQuery{Run: "run1"}, "", 2*n)
	if err != nil || len(got) != n {
		t.Fatalf("%d samples, %v, want %d", len(got), err, n)
	}
	for i, v := range got {
		want := store.Sample{Origin: o, Sample: event.Sample{Seq: int64(i), Name: "loss", Time: int64(i) * 1000}}
		want.Set(float64(i) / 2)
		switch i {
		case 5:
			want.Set(math.NaN())
		case 6:
			want.Step = new(int64(3))
		}
		if i%2 == 1 {
			want.Unit, want.Labels = "ms", map[string]string{"a": "b"}
		}
		if diff := cmp.Diff(want, v); diff != "" {
			t.Fatalf("sample %d (-want +got):\n%s", i, diff)
		}
	}
}
