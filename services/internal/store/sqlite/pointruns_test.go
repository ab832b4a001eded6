package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestThePointsOfAPageShareNothingAndFollowTheirRuns(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer closeStore(t, s)
	p := store.RunPoints{
		PointRun: store.PointRun{Run: "r", Namespace: "pets", Task: "rates", Time: time.Unix(0, 0).UTC(), Images: []string{"sha256:1"}, Nodes: []string{"node-1"}},
		Points:   []store.Summary{{Metric: "rate", N: 1}},
	}
	read := func() store.Point {
		t.Helper()
		all, err := s.Points(t.Context(), store.PointQuery{Series: p.Key(p.Points[0])}, 10)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		return all[0]
	}
	for revision, node := range []string{"node-1", "node-2", "node-1"} {
		p.Revision, p.Nodes = int64(revision), []string{node}
		if err := s.PutPoints(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time what the first has read is known
			one := read()
			if got := fmt.Sprint(one.Images, one.Nodes); got != fmt.Sprint(p.Images, p.Nodes) {
				t.Errorf("revision %d: %s", revision, got)
			}
			one.Images[0], one.Nodes[0] = "changed", "changed"
		}
	}
}
