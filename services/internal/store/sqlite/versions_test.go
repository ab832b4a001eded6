package sqlite_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// everything is one record of each type, as in testdata/files/everything.json. The programs of each version of the schema have written it,
// and their files are beside it, as SQL: never change these files, and add one with each version.
type everything struct {
	Doc     store.Doc
	Run     store.Run
	Change  store.Change
	Samples []store.Samples
	Lines   []store.Lines

	points *store.RunPoints // of testdata/files/points.json; nil for versions before them
}

// firstVersionWithPoints is the first version of the schema that has points.
const firstVersionWithPoints = 6

func TestFilesOfEveryVersionAreReadAndWrittenTo(t *testing.T) {
	all := readJSON[everything](t, "testdata/files/everything.json")
	points := readJSON[store.RunPoints](t, "testdata/files/points.json")
	for version := 1; version <= sqlite.Versions(); version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			made, err := os.ReadFile(fmt.Sprintf("testdata/files/%d.sql", version))
			if err != nil {
				t.Fatalf("keep what each version has written: %v", err)
			}
			path := filepath.Join(t.TempDir(), "store.db")
			wantNil(t, execute(path, string(made)))
			if all.points = nil; version >= firstVersionWithPoints {
				all.points = &points
			}
			for range 2 { // the second time it is a file of this version
				all.checkFile(t, path)
			}
		})
	}
}

// readJSON reads a file with a T.
func readJSON[T any](t *testing.T, path string) (v T) {
	t.Helper()
	text, err := os.ReadFile(path)
	wantNil(t, err)
	wantNil(t, json.Unmarshal(text, &v))
	return v
}

// checkFile opens a file, and checks that it has everything and behaves like a new one.
func (e everything) checkFile(t *testing.T, path string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	wantNil(t, err)
	e.read(t, s)
	e.rewrite(t, s)
	wantNil(t, s.Close())
}

// read checks that a store has everything.
func (e everything) read(t *testing.T, s *sqlite.Store) {
	t.Helper()
	ctx := t.Context()
	doc, err := s.Doc(ctx, e.Doc.Kind, e.Doc.Key)
	wantNil(t, err)
	e.Doc.Version = 1
	run, err := s.Run(ctx, e.Run.ID)
	wantNil(t, err)
	found := make(map[string][]store.Run)
	for name, f := range map[string]store.RunFilter{
		"owner": {Owner: e.Run.Owner}, "labels": {Labels: e.Run.Labels}, "text": {Text: "TRAIN"}, "schedule": {Schedule: e.Run.Schedule}, "phase": {Phases: []event.Phase{e.Run.Phase}},
	} {
		found[name], _, err = s.Runs(ctx, f, "", 10)
		wantNil(t, err)
	}
	changes, err := s.Changes(ctx, e.Run.ID, 0, 10)
	wantNil(t, err)
	samples, _, err := s.Samples(ctx, store.SampleQuery{Run: e.Run.ID}, "", 10)
	wantNil(t, err)
	lines, _, err := s.Lines(ctx, store.LineQuery{Run: e.Run.ID}, "", 10)
	wantNil(t, err)
	searched, _, err := s.Lines(ctx, store.LineQuery{Run: e.Run.ID, Tokens: store.Words("WÖRLD hello")}, "", 10)
	wantNil(t, err)
	streams, err := s.Streams(ctx, e.Run.ID)
	wantNil(t, err)
	one, o := []store.Run{e.Run}, e.Samples[0].Origin
	wantSamples, wantLines := make([]store.Sample, 0, 3), make([]store.Line, 0, 2)
	for _, v := range e.Samples[0].Samples {
		wantSamples = append(wantSamples, store.Sample{Origin: o, Sample: v})
	}
	for _, l := range e.Lines[0].Lines {
		wantLines = append(wantLines, store.Line{Origin: o, Line: l})
	}
	want := []any{
		e.Doc, e.Run,
		map[string][]store.Run{"owner": one, "labels": one, "text": one, "schedule": one, "phase": one},
		[]store.Change{e.Change},
		wantSamples, wantLines, wantLines[:1],
		[]store.Stream{{Origin: o, Topic: event.TopicLogs, Stored: 2, Last: 30, End: e.Lines[0].End}, {Origin: o, Topic: event.TopicMetrics, Stored: 3, Last: 11, End: e.Samples[0].End}},
	}
	if diff := cmp.Diff(want, []any{doc, run, found, changes, samples, lines, searched, streams}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	e.readPoints(t, s)
}

// readPoints checks that a store has the points, and no others.
func (e everything) readPoints(t *testing.T, s *sqlite.Store) {
	t.Helper()
	var want []store.RunPoints
	var points []store.Point
	k := store.SeriesKey{Namespace: "pets", Task: "Train", Metric: "löss", Unit: "s", Labels: map[string]string{"k": "v"}, Cell: "size=1K"}
	if e.points != nil {
		want, points = append(want, *e.points), append(points, store.Point{PointRun: e.points.PointRun, Summary: e.points.Points[0]})
	}
	got, err := s.RunPoints(t.Context(), []string{e.Run.ID}, nil)
	wantNil(t, err)
	series, err := s.Points(t.Context(), store.PointQuery{Series: k}, 10)
	wantNil(t, err)
	same := cmp.Comparer(func(a, b store.Float) bool { return a == b || a != a && b != b })
	if diff := cmp.Diff([]any{want, points}, []any{got, series}, same); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

// rewrite writes everything that may be written twice, which changes nothing.
func (e everything) rewrite(t *testing.T, s *sqlite.Store) {
	t.Helper()
	wantNil(t, s.AppendSamples(t.Context(), e.Samples))
	wantNil(t, s.AppendLines(t.Context(), e.Lines))
	if e.points != nil {
		wantNil(t, s.PutPoints(t.Context(), *e.points))
	}
	e.read(t, s)
}

func wantNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
