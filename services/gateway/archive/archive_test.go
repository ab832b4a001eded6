package archive_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/gateway/archive"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestARunIsExportedAsFilesInAnOrder(t *testing.T) {
	p := newPlatform(t)
	p.addFinishedRun()
	want := []string{
		"run.json", "descriptor/submitted.toml", "descriptor/resolved.toml", "manifests/1.yaml", "environment.json", "summaries.json",
		"events.jsonl", "sources.jsonl", "artifacts.jsonl", "metrics/samples.jsonl", "logs/lines.jsonl",
		"artifacts/1/benchmark-0/deep/er/füße.bin", "artifacts/1/benchmark-0/empty", "artifacts/1/benchmark-0/out.json", "artifacts/1/benchmark-0/z/07:47 C:\\x\n\x1b",
	}
	x := p.export()
	if diff := cmp.Diff(want, x.names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(x.texts(), p.export().texts()); diff != "" {
		t.Errorf("again (-first +second):\n%s", diff)
	}
	for name, file := range x.files {
		if bytes.Contains(file, []byte(secret)) {
			t.Errorf("%s holds a secret:\n%s", name, file)
		}
	}
	if got := string(x.files["descriptor/submitted.toml"]); got != "# as it was sent\n" {
		t.Errorf("the descriptor as it was sent is %q", got)
	}
	if n := bytes.Count(x.files["logs/lines.jsonl"], []byte("\n")); n != 130 {
		t.Errorf("%d lines, want 130", n)
	}
	if got, want := string(x.files["manifests/1.yaml"]), "apiVersion: v1\nkind: Secret\nmetadata:\n  name: token\n---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: x\nspec:\n  activeDeadlineSeconds: 1000000\n  backoffLimit: 0\n"; got != want {
		t.Errorf("manifest:\n%s", cmp.Diff(want, got))
	}
}

func TestAnExportThatIsCutGoesOnWhereItWas(t *testing.T) {
	p := newPlatform(t)
	run := p.addFinishedRun()
	whole := p.export()
	for pieces := 1; ; pieces++ {
		first, place, err := p.exportFrom(run, "", pieces)
		if err == nil {
			break
		}
		rest, _, err := p.exportFrom(run, place, -1)
		p.must(err)
		for name, b := range rest.files {
			first.files[name] = append(first.files[name], b...)
		}
		if diff := cmp.Diff(whole.texts(), first.texts()); diff != "" {
			t.Fatalf("cut after %d pieces (-want +got):\n%.2000s", pieces, diff)
		}
	}
	_, place, _ := p.exportFrom(run, "", 5)
	run.Revision++
	if changed := new(archive.ChangedError); !errors.As(second(p.exportFrom(run, place, -1)), &changed) {
		t.Error("a run that has changed meanwhile is gone on with")
	}
	if err := second(p.exportFrom(run, "nonsense", -1)); !errors.Is(err, store.ErrCursor) {
		t.Errorf("a place that is none: %v", err)
	}
}

func TestAnExportDuringWhichLateDataArriveEnds(t *testing.T) {
	late := func(p *platform) {
		p.must(p.store.AppendSamples(t.Context(), []store.Samples{{Origin: originOf("system"), Samples: []event.Sample{{Name: "cpu", Special: event.NaN}}}}))
	}
	for pieces, rows := 1, false; !rows; pieces++ {
		p := newPlatform(t)
		run := p.addFinishedRun()
		first, place, err := p.exportFrom(run, "", pieces)
		if err == nil {
			t.Fatal("the whole was exported")
		}
		rows = slices.Contains(first.names, "artifacts/1/benchmark-0/deep/er/füße.bin") // samples and lines come before
		late(p)
		rest, _, err := p.exportFrom(run, place, -1)
		if changed := new(archive.ChangedError); errors.As(err, &changed) == rows {
			t.Errorf("late data after %q: %v with %q", first.names, err, rest.names)
		}
	}
	p := newPlatform(t)
	run := p.addFinishedRun()
	run.Phase = event.PhaseRunning
	_, place, _ := p.exportFrom(run, "", 5)
	late(p)
	p.must(second(p.exportFrom(run, place, -1)))
}

func second(_ exportedRun, _ string, err error) error { return err }

func TestWhatIsImportedIsTheSameRun(t *testing.T) {
	for name, open := range map[string]func(*testing.T) testStore{
		"memory": func(*testing.T) testStore { return storetest.NewMemory() },
		"sqlite": openSQLite,
	} {
		t.Run(name, func(t *testing.T) {
			origin, other := platformOn(t, open(t)), platformOn(t, open(t))
			run := origin.addFinishedRun()
			x := origin.export()
			other.checkImport(x, false)
			other.checkImport(x, true)
			other.checkImport(x, true)
			got, err := other.store.Run(t.Context(), runID)
			run.Overrides[0].Value, run.Description = got.Overrides[0].Value, got.Description // without their secrets
			if diff := cmp.Diff(run, got); err != nil || diff != "" {
				t.Errorf("the run: %v (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff(completenessOf(origin), completenessOf(other)); diff != "" {
				t.Errorf("completeness (-origin +here):\n%s", diff)
			}
			points, err := other.store.RunPoints(t.Context(), []string{runID}, nil)
			if err != nil || len(points) != 1 || points[0].Excluded != store.ExcludedImport || len(points[0].Points) == 0 {
				t.Errorf("points: %+v, %v, want those of an import", points, err)
			}
		})
	}
}

// checkImport imports the run, and checks that exporting it gives the same.
func (p *platform) checkImport(x exportedRun, already bool) {
	p.t.Helper()
	got, err := p.importRun(x)
	if diff := cmp.Diff(archive.Result{Run: runID, Already: already}, got); err != nil || diff != "" {
		p.t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(x.texts(), p.export().texts()); diff != "" {
		p.t.Errorf("what is exported then (-want +got):\n%s", diff)
	}
}

func openSQLite(t *testing.T) testStore {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // nothing depends on this close
	return s
}

func completenessOf(p *platform) store.Completeness {
	run, err := p.store.Run(p.t.Context(), runID)
	p.must(err)
	streams, err := p.store.Streams(p.t.Context(), runID)
	p.must(err)
	return store.Complete(run, streams)
}

func TestAnImportThatIsCutAnywhereIsNotSeenAndIsGoneOnWith(t *testing.T) {
	origin := newPlatform(t)
	origin.addFinishedRun()
	x := origin.export()
	other := newPlatform(t)
	for cut := 1; ; cut += 61 {
		s := newImportClient(x)
		s.cut = cut
		_, err := other.archiver.Import(t.Context(), x.begin(), s)
		if err == nil {
			break
		}
		if broken := new(archive.StreamError); !errors.As(err, &broken) {
			t.Fatalf("cut after %d pieces: %v", cut, err)
		}
		if _, err := other.store.Run(t.Context(), runID); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("cut after %d pieces the run is seen: %v", cut, err)
		}
	}
	if diff := cmp.Diff(x.texts(), other.export().texts()); diff != "" {
		t.Errorf("at last (-want +got):\n%s", diff)
	}
}

func TestARunOfThePlatformIsNeverTouched(t *testing.T) {
	p := newPlatform(t)
	p.addFinishedRun()
	x := p.export()
	before := p.contents()
	for name, tt := range map[string]struct {
		files exportedRun
		want  string
	}{
		"the same is there already":  {x, ""},
		"another descriptor":         {x.withFile("run.json", replacing(`# as it is run`, `# as it is not run`)), "its descriptor is another"},
		"another outcome":            {x.withFile("run.json", replacing(`"succeeded"`, `"failed"`)), "what is known of it is not the same"},
		"another submitter":          {x.withFile("run.json", replacing(`"tester"`, `"somebody"`)), `submitted by "tester"`},
		"another history":            {x.withFile("events.jsonl", replacing(`"runs"`, `"walks"`)), "its history is another from revision 2 on"},
		"fewer samples":              {x.withFile("sources.jsonl", replacing(`"stored":5`, `"stored":4`)), "has brought 5"},
		"more samples":               {x.withFile("sources.jsonl", replacing(`"stored":5`, `"stored":6`)), "has less than what is imported"},
		"other summaries":            {x.withFile("summaries.json", replacing(`"loss"`, `"gain"`)), "its environment or its summaries"},
		"an artifact that is not it": {x.withFile("artifacts/1/benchmark-0/empty", func(string) string { return "full" }).withFile("artifacts.jsonl", replacing(`empty","size":0,"sha256":"`+digest(nil), `empty","size":4,"sha256":"`+digest([]byte("full")))), "is another"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.importRun(tt.files)
			taken := new(archive.RunExistsError)
			switch {
			case tt.want == "" && (err != nil || !got.Already):
				t.Errorf("%v, %v; want that it is there already", got, err)
			case tt.want != "" && (!errors.As(err, &taken) || !strings.Contains(taken.Message, tt.want)):
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	if diff := cmp.Diff(before, p.contents()); diff != "" {
		t.Errorf("something has changed (-before +after):\n%s", diff)
	}
	if _, err := p.store.Doc(t.Context(), store.KindImport, runID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the run is marked as imported: %v", err)
	}
}

func replacing(old, with string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, with, 1) }
}

func TestARunThatGoesOnHereIsNotImported(t *testing.T) {
	origin := newPlatform(t)
	origin.addFinishedRun()
	x := origin.export()
	sub := event.Submitted{Header: event.NewHeader("e1", runID, "default", "tester", at(0)), Descriptor: descriptor}
	for name, have := range map[string]func(p *platform) error{
		"it was submitted a moment ago": func(p *platform) error {
			return store.Create(t.Context(), p.store, store.KindSubmission, runID, sub)
		},
		"it runs": func(p *platform) error {
			var changes []store.Change
			for _, one := range strings.SplitAfter(string(x.files["events.jsonl"]), "\n")[:2] {
				changes = append(changes, decode[store.Change](t, one))
			}
			run := decode[store.Run](t, string(x.files["run.json"]))
			run.Phase, run.Outcome = event.PhaseRunning, ""
			for _, c := range changes {
				run.Revision = c.Revision
				if err := p.store.PutRun(t.Context(), run, c); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlatform(t)
			p.must(have(p))
			_, err := p.importRun(x)
			if taken := new(archive.RunExistsError); !errors.As(err, &taken) || !strings.Contains(err.Error(), "goes on") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestARunWhoseRecordsWereRemovedCanBeImported(t *testing.T) {
	p := newPlatform(t)
	p.addFinishedRun()
	x := p.export()
	other := newPlatform(t)
	sub := event.Submitted{Header: event.NewHeader("e1", runID, "default", "tester", at(0)), Descriptor: descriptor}
	other.must(store.Create(t.Context(), other.store, store.KindSubmission, runID, sub))
	other.must(store.MarkForgotten(t.Context(), other.store, at(1)))
	if got, err := other.importRun(x); err != nil || got.Already {
		t.Errorf("%v, %v", got, err)
	}
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestALaterExportOfAnImportedRunAddsWhatIsNew(t *testing.T) {
	origin, other := newPlatform(t), newPlatform(t)
	run := origin.addFinishedRun()
	first := origin.export()
	if _, err := other.importRun(first); err != nil {
		t.Fatal(err)
	}
	run.Revision++
	origin.must(origin.store.PutRun(t.Context(), run, store.Change{Run: runID, Revision: run.Revision, Event: "late", Topic: event.TopicStatus, Attempt: 1, Phase: run.Phase, Late: true, Time: at(30)}))
	origin.must(origin.store.AppendSamples(t.Context(), []store.Samples{{Origin: originOf("system"), Samples: []event.Sample{{Name: "cpu", Special: event.NaN}}}}))
	later := origin.export()
	if got, err := other.importRun(later); err != nil || got.Already {
		t.Fatalf("%v, %v", got, err)
	}
	if diff := cmp.Diff(later.texts(), other.export().texts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := other.importRun(first); !errors.As(err, new(*archive.RunExistsError)) {
		t.Errorf("the earlier export again: %v, want that it has less", err)
	}
}

func originOf(stream string) store.Origin { return origin(stream) }

func TestANameThatIsTakenStaysWithItsRun(t *testing.T) {
	origin, other := newPlatform(t), newPlatform(t)
	run := origin.addFinishedRun()
	run.ID = "01kdyt1q880000000000000002"
	names := submitterOf(other)
	if named, err := names.RestoreName(t.Context(), run); err != nil || !named {
		t.Fatal(named, err)
	}
	got, err := other.importRun(origin.export())
	if err != nil || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "found by its ID only") {
		t.Errorf("%v, %v", got, err)
	}
	if id, err := names.RunByName(t.Context(), "tester", "nightly"); err != nil || id != run.ID {
		t.Errorf("the name is that of %s, %v", id, err)
	}
}

func TestWhatIsWrongWithAnImportIsToldByFileAndLine(t *testing.T) {
	origin := newPlatform(t)
	origin.addFinishedRun()
	x := origin.export()
	for name, tt := range map[string]struct {
		files exportedRun
		want  string
	}{
		"a run that is no JSON":               {x.withFile("run.json", func(string) string { return "{\n\n?" }), "run.json:3: invalid character '?'"},
		"a run with a field of tomorrow":      {x.withFile("run.json", replacing(`"id"`, `"mood": 1, "id"`)), `run.json:2: unknown field "mood"`},
		"two runs":                            {x.withFile("run.json", func(s string) string { return s + "{}" }), "more than one JSON value"},
		"another run":                         {x.withFile("run.json", replacing("0001", "0009")), "run.json: it is run"},
		"a run that was not over":             {x.withFile("run.json", replacing(`"finished"`, `"running"`)), "export it again once it is"},
		"an owner that is none":               {x.withFile("run.json", replacing(`"tester"`, `"a\nb"`)), "run.json: owner"},
		"an event that is cut":                {x.withFile("events.jsonl", func(s string) string { return s[:len(s)-20] }), "events.jsonl:3: the last line does not end"},
		"an event that is broken":             {x.withFile("events.jsonl", replacing(`"revision":2`, `"revision":"two"`)), "events.jsonl:2: "},
		"an event of another run":             {x.withFile("events.jsonl", replacing("0001", "0009")), "events.jsonl:1: it is of run"},
		"a history with a gap":                {x.withFile("events.jsonl", replacing(`"revision":2`, `"revision":7`)), "events.jsonl:2: revision 7: want 2"},
		"an event twice":                      {x.withFile("events.jsonl", func(s string) string { return s + s }), "run.json: revision 3"},
		"a source of nobody":                  {x.withFile("sources.jsonl", replacing(`"benchmark"`, `""`)), "sources.jsonl:1: source.role"},
		"a source twice":                      {x.withFile("sources.jsonl", func(s string) string { return s + s }), "it is there twice"},
		"a source of another topic":           {x.withFile("sources.jsonl", replacing("bai.", "bay.")), "sources.jsonl:1: topic"},
		"a sample that is broken":             {x.withFile("metrics/samples.jsonl", replacing(`"value":0.1`, `"value":0.1.2`)), "metrics/samples.jsonl:1: "},
		"a sample without a value":            {x.withFile("metrics/samples.jsonl", replacing(`"value":0.1`, `"value":null`)), "metrics/samples.jsonl:1: the value is neither"},
		"a sample too many":                   {x.withFile("metrics/samples.jsonl", func(s string) string { return s + s }), "metrics/samples.jsonl:6: sources.jsonl does not say"},
		"a sample too few":                    {x.withFile("metrics/samples.jsonl", func(s string) string { return s[strings.Index(s, "\n")+1:] }), "metrics/samples.jsonl:5: ends early"},
		"samples in another order":            {x.withFile("metrics/samples.jsonl", replacing(`"seq":10`, `"seq":99`)), "metrics/samples.jsonl:3: it comes before"},
		"a sample of another source":          {x.withFile("metrics/samples.jsonl", replacing(`"pod-a"`, `"pod-b"`)), "metrics/samples.jsonl:1: sources.jsonl does not say"},
		"a line that is broken":               {x.withFile("logs/lines.jsonl", replacing("line 115", "line \x00")), "logs/lines.jsonl:116: "},
		"lines in another order":              {x.withFile("logs/lines.jsonl", replacing(`"seq":120,`, `"seq":7,`)), "logs/lines.jsonl:121: seq 7"},
		"an artifact that is not there":       {x.withoutFile("artifacts/1/benchmark-0/empty"), "artifacts.jsonl:2: "},
		"an artifact that is not in the list": {x.withFile("artifacts/1/benchmark-0/more", func(string) string { return "" }), "is not in artifacts.jsonl"},
		"an artifact that leads elsewhere":    {x.withFile("artifacts/1/benchmark-0/../../../x", func(string) string { return "" }), "leads elsewhere"},
		"an artifact with a bad time":         {x.withFile("artifacts.jsonl", replacing(`"time":"2`, `"time":"x2`)), "artifacts.jsonl:1: time"},
		"a file that no run has":              {x.withFile("passwd", func(string) string { return "" }), "passwd: a run has no such file"},
		"no history":                          {x.withoutFile("events.jsonl"), "events.jsonl: is not there"},
		"objects that are no YAML":            {x.withFile("manifests/1.yaml", func(string) string { return "a: b: c" }), "manifests/1.yaml: document 1"},
		"objects with a secret":               {x.withFile("manifests/1.yaml", replacing("kind: Secret", "kind: Secret\ndata: {a: Yg==}")), "a Secret with values"},
		"objects of an attempt of tomorrow":   {x.withFile("manifests/2.yaml", func(string) string { return "{}" }), "the run has 1 attempts"},
		"summaries of another run":            {x.withFile("summaries.json", replacing("0001", "0009")), "summaries.json: they are of run"},
		"an environment of another run":       {x.withFile("environment.json", replacing("0001", "0009")), "environment.json: a pod is of run"},
		"a descriptor that is not UTF-8":      {x.withFile("descriptor/submitted.toml", func(string) string { return "\xff" }), "is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlatform(t)
			_, err := p.importRun(tt.files)
			file, state := new(archive.FileError), new(archive.PreconditionError)
			if !errors.As(err, &file) && !errors.As(err, &state) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if _, err := p.store.Run(t.Context(), runID); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("the run is there: %v", err)
			}
		})
	}
}

func TestWhatIsSaidOfAnImportIsCheckedFirst(t *testing.T) {
	origin := newPlatform(t)
	origin.addFinishedRun()
	x := origin.export()
	for name, tt := range map[string]struct {
		change func(b *archive.Begin)
		want   string
	}{
		"a format of tomorrow":    {func(b *archive.Begin) { b.Format = 2 }, "at least as new as the one that it comes from"},
		"no format":               {func(b *archive.Begin) { b.Format = 0 }, "format 0"},
		"no run":                  {func(b *archive.Begin) { b.Run = "../x" }, "is not the ID of a run"},
		"a file twice":            {func(b *archive.Begin) { b.Files = append(b.Files, b.Files[0]) }, "is named twice"},
		"a file without a digest": {func(b *archive.Begin) { b.Files[0].SHA256 = "" }, "without a size and a digest"},
		"documents without end":   {func(b *archive.Begin) { b.Files[0].Size = 1 << 40 }, "bytes together"},
		"another digest":          {func(b *archive.Begin) { b.Files[3].SHA256 = digest(nil) }, "is not what its digest says"},
		"another size":            {func(b *archive.Begin) { b.Files[3].Size-- }, "has more than the"},
		"a sample's digest":       {func(b *archive.Begin) { b.Files[9].SHA256 = digest(nil) }, "metrics/samples.jsonl: is not what its digest says"},
	} {
		t.Run(name, func(t *testing.T) {
			begin := x.begin()
			tt.change(&begin)
			if _, err := newPlatform(t).archiver.Import(t.Context(), begin, newImportClient(x)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestOneImportOfARunAtATime(t *testing.T) {
	origin, other := newPlatform(t), newPlatform(t)
	origin.addFinishedRun()
	x := origin.export()
	inside, again := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	slow := &hookedClient{importClient: newImportClient(x), beforeRequest: func() {
		once.Do(func() {
			go func() {
				_, err := other.importRun(x)
				again <- err
				close(inside)
			}()
			<-inside
		})
	}}
	if _, err := other.archiver.Import(t.Context(), x.begin(), slow); err != nil {
		t.Fatal(err)
	}
	if err := <-again; !errors.As(err, new(*archive.ImportInProgressError)) {
		t.Errorf("meanwhile: %v, want that it is being imported", err)
	}
	if got, err := other.importRun(x); err != nil || !got.Already {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}

// hookedClient is a client that calls a hook when the server requests files.
type hookedClient struct {
	*importClient

	beforeRequest func()
}

// RequestFiles implements archive.ImportStream.
func (s *hookedClient) RequestFiles(files []string) error {
	s.beforeRequest()
	return s.importClient.RequestFiles(files)
}

func TestOnlyWhatIsMissingIsWanted(t *testing.T) {
	origin, other := newPlatform(t), newPlatform(t)
	origin.addFinishedRun()
	x := origin.export()
	s := newImportClient(x)
	s.cut = len(s.queue) + 3 // some of the samples have arrived
	if _, err := other.archiver.Import(t.Context(), x.begin(), s); err == nil {
		t.Fatal("it was not cut")
	}
	if _, _, err := other.files.Put(t.Context(), runID, "1/benchmark-0/out.json", -1, strings.NewReader(`{"a": 1}`)); err != nil {
		t.Fatal(err)
	}
	_ = other.store.DeleteDoc(t.Context(), store.Doc{Kind: store.KindArtifact, Key: runID + "!1/benchmark-0/out.json"})
	s = newImportClient(x)
	if _, err := other.archiver.Import(t.Context(), x.begin(), s); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(s.wanted, "run.json") || len(s.wanted) == 0 {
		t.Errorf("wanted %q", s.wanted)
	}
	s = newImportClient(x)
	if _, err := other.archiver.Import(t.Context(), x.begin(), s); err != nil || !s.requested || len(s.wanted) > 0 {
		t.Errorf("of what is there %q is wanted, %v", s.wanted, err)
	}
}

func TestAStoreThatIsAwayIsNoFaultOfTheFiles(t *testing.T) {
	origin := newPlatform(t)
	origin.addFinishedRun()
	x := origin.export()
	away := errors.New("away")
	other := platformOn(t, &failingStore{Memory: storetest.NewMemory(), err: away})
	if _, err := other.importRun(x); !errors.Is(err, away) {
		t.Errorf("%v, want that the store is away", err)
	}
}

// failingStore is a store that cannot store lines.
type failingStore struct {
	*storetest.Memory

	err error
}

// AppendLines implements store.Appender.
func (f *failingStore) AppendLines(context.Context, []store.Lines) error { return f.err }

func TestALongImportKeepsItsRight(t *testing.T) {
	origin := newPlatform(t)
	origin.addFinishedRun()
	x := origin.export()
	other := newPlatform(t)
	now := time.Now()
	clock := func() time.Time { now = now.Add(20 * time.Second); return now }
	if _, err := other.withClock(clock).importRun(x); err != nil {
		t.Fatal(err)
	}
	lease, _, err := store.Get[store.Lease](t.Context(), other.store, store.KindLease, "import/"+runID)
	if err != nil || !lease.ExpiresAt.IsZero() {
		t.Errorf("the right is held: %v, %v", lease, err)
	}
}

func TestAnImportIsAPointOfTheHistoryOnceThatWasAskedFor(t *testing.T) {
	for name, summarised := range map[string]bool{"with a summary": true, "without samples": false} {
		t.Run(name, func(t *testing.T) {
			origin, other := newPlatform(t), newPlatform(t)
			origin.addFinishedRun()
			x := origin.export()
			if !summarised {
				x = x.withoutFile("summaries.json")
			}
			for i, step := range []struct {
				history, already bool
				excluded         store.Exclusion
			}{{false, false, store.ExcludedImport}, {true, false, ""}, {false, true, ""}, {true, true, ""}} {
				if already := other.importInto(x, step.history); already != step.already {
					t.Fatalf("import %d: it was there already: %t, want %t", i+1, already, step.already)
				}
				if got := other.exclusion(); got != step.excluded {
					t.Errorf("import %d: its points are excluded as %q, want %q", i+1, got, step.excluded)
				}
			}
		})
	}
}

// importInto imports the run, into the history if that is asked for, and reports whether it was there already.
func (p *platform) importInto(x exportedRun, history bool) (already bool) {
	p.t.Helper()
	begin := x.begin()
	begin.History = history
	got, err := p.archiver.Import(p.t.Context(), begin, newImportClient(x))
	p.must(err)
	return got.Already
}

// exclusion returns why the run is no point of a history, or "".
func (p *platform) exclusion() store.Exclusion {
	p.t.Helper()
	all, err := p.store.RunPoints(p.t.Context(), []string{runID}, nil)
	p.must(err)
	if len(all) != 1 {
		p.t.Fatalf("points of %d runs", len(all))
	}
	return all[0].Excluded
}
