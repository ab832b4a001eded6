package sqlite_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
