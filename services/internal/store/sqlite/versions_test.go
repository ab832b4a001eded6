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
}

func TestFilesOfEveryVersionAreReadAndWrittenTo(t *testing.T) {
	text, err := os.ReadFile("testdata/files/everything.json")
	if err != nil {
		t.Fatal(err)
	}
	var all everything
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for version := 1; version <= sqlite.Versions(); version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			made, err := os.ReadFile(fmt.Sprintf("testdata/files/%d.sql", version))
			if err != nil {
				t.Fatalf("keep what each version has written: %v", err)
			}
			path := filepath.Join(t.TempDir(), "store.db")
			wantNil(t, execute(path, string(made)))
			for range 2 { // the second time it is a file of this version
				all.checkFile(t, path)
			}
		})
	}
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
}

// rewrite writes everything that may be written twice, which changes nothing.
func (e everything) rewrite(t *testing.T, s *sqlite.Store) {
	t.Helper()
	wantNil(t, s.AppendSamples(t.Context(), e.Samples))
	wantNil(t, s.AppendLines(t.Context(), e.Lines))
	e.read(t, s)
}

func wantNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
