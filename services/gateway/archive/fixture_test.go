package archive_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/archive"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/projection"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

const (
	runID      = "01kdyt1q880000000000000001"
	descriptor = "spec_version = \"0.1.0\"\n# as it is run\n"
	secret     = "hunter2"
)

func at(second int) time.Time {
	return time.Date(2026, 1, 2, 3, 4, second, 5000, time.UTC)
}

// testStore is a store with everything that a platform needs.
type testStore interface {
	archive.Store
	store.Lister
	store.PointReader
}

// platform is a store, an object store and an Archiver.
type platform struct {
	t        *testing.T
	store    testStore
	files    *artifact.Repository
	archiver *archive.Archiver
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	return platformOn(t, storetest.NewMemory())
}

func platformOn(t *testing.T, st testStore) *platform {
	t.Helper()
	files := artifact.New(artifact.Settings{}, objects{}, st, time.Now)
	names := submit.New(submit.Settings{}, submit.Deps{Store: st, Now: time.Now, Log: zap.NewNop()})
	return &platform{t: t, store: st, files: files, archiver: archive.New(archive.Deps{Store: st, Artifacts: files, Names: names, Version: "v1", Now: time.Now})}
}

// objects is an object store in memory.
type objects map[string][]byte

// Put implements artifact.Objects.
func (o objects) Put(_ context.Context, key string, _ int64, _ bool, fill func(w io.Writer) error) (store.Object, error) {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return store.Object{}, err
	}
	o[key] = b.Bytes()
	return store.Object{Key: key, Size: int64(b.Len()), SHA256: digest(b.Bytes())}, nil
}

// OpenAt implements artifact.Objects.
func (o objects) OpenAt(_ context.Context, key string, offset int64) (io.ReadCloser, error) {
	b, ok := o[key]
	if !ok {
		return nil, store.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(b[offset:])), nil
}

// Delete implements artifact.Objects.
func (o objects) Delete(_ context.Context, key string) error {
	delete(o, key)
	return nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// addFinishedRun adds a finished run that has everything that a run can have.
func (p *platform) addFinishedRun() store.Run {
	p.t.Helper()
	head := event.NewHeader("e1", runID, "default", "tester", at(0))
	code := 0
	ended := at(9)
	events := []event.Event{
		event.Submitted{Header: head, Name: "nightly", File: "a.toml", Descriptor: descriptor, Use: event.Use{Description: "see https://me:" + secret + "@example.org"}, Labels: map[string]string{"task_name": "x"}, Overrides: []event.Override{{Path: "env.vars.URL", Value: "https://me:" + secret + "@example.org/x?X-Amz-Signature=" + secret + "&private_token=" + secret}}},
		event.Status{Header: head.Cause("status", "running"), Phase: event.PhaseRunning, Message: "runs"},
		event.Finished{Header: head.Cause("finished", ""), Outcome: event.Succeeded, Message: "<done> & \"fine\"", ExitCode: &code, Ended: &ended, Collectors: []string{"pod-a"}},
	}
	var run store.Run
	var before *store.Run
	for _, ev := range events {
		next, change, ok := projection.Apply(before, ev)
		if !ok {
			p.t.Fatalf("%T is not recorded", ev)
		}
		p.must(p.store.PutRun(p.t.Context(), next, change))
		run, before = next, &next
	}
	p.addStreams()
	p.must(store.Create(p.t.Context(), p.store, store.KindSubmission, runID, events[0]))
	p.must(store.Create(p.t.Context(), p.store, store.KindOriginalDescriptor, runID, store.OriginalDescriptor{Descriptor: "# as it was sent\n"}))
	p.must(store.Create(p.t.Context(), p.store, store.KindSummary, runID, store.Summaries{Run: runID, Attempt: 1, Complete: true, Samples: 3, Method: "m", Summaries: []store.Summary{{Metric: "loss", N: 1, SD: store.Float(math.NaN())}}}))
	p.must(store.Create(p.t.Context(), p.store, store.KindEnvironment, runID, store.RunEnvironment{Pods: []store.PodEnvironment{{Origin: origin("output"), Environment: event.Environment{Platform: "v1", Machine: event.Machine{CPUs: 2}}}}}))
	plan := fmt.Sprintf(`{"run":{},"objects":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"token"},"data":{"token":%q}},{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"x"},"spec":{"backoffLimit":0,"activeDeadlineSeconds":1000000}}]}`, secret)
	p.must(p.store.CreateDoc(p.t.Context(), store.Doc{Kind: store.KindPlan, Key: runID + "/1", Value: []byte(plan)}))
	for name, content := range map[string]string{"1/benchmark-0/out.json": `{"a": 1}`, "1/benchmark-0/empty": "", "1/benchmark-0/deep/er/füße.bin": strings.Repeat("\x00\xff", 300<<10), "1/benchmark-0/z/07:47 C:\\x\n\x1b": "odd"} {
		if _, _, err := p.files.Put(p.t.Context(), runID, name, -1, strings.NewReader(content)); err != nil {
			p.t.Fatal(err)
		}
	}
	return run
}

func origin(stream string) store.Origin {
	return store.Origin{Run: runID, Attempt: 1, Stream: event.Stream{Role: "benchmark", Pod: "pod-a", Container: "benchmark", Kind: stream}}
}

// addStreams adds samples and lines to the run.
func (p *platform) addStreams() {
	p.t.Helper()
	var samples []event.Sample
	for i, v := range []float64{0.1, math.Inf(-1), math.NaN(), math.Copysign(0, -1), 1e300} {
		s := event.Sample{Seq: int64(i * 10), Name: "loss", Unit: "1", Time: at(i).UnixNano(), Labels: map[string]string{"k": "<v>"}}
		s.Set(v)
		samples = append(samples, s)
	}
	var lines []event.Line
	for i := range 130 {
		lines = append(lines, event.Line{Seq: int64(i), Stderr: i%3 == 0, Time: at(i % 50).UnixNano(), Text: fmt.Sprintf("line %d <&> \u2028", i)})
	}
	lines[7].Truncated, lines[7].Raw, lines[8].Unterminated = true, 1<<40, true
	ctx := p.t.Context()
	p.must(p.store.AppendSamples(ctx, []store.Samples{
		{Origin: origin("metrics"), Samples: samples, End: &event.End{Count: 5, Last: 40}},
		{Origin: origin("output"), End: &event.End{Last: -1}},
		{Origin: origin("fifo"), End: &event.End{Last: -1}},
	}))
	p.must(p.store.AppendLines(ctx, []store.Lines{{Origin: origin("output"), Lines: lines, End: &event.End{Count: 130, Last: 129, Dropped: 3, Reason: "too much"}}}))
}

func (p *platform) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// exportedRun is an export: files in order.
type exportedRun struct {
	names []string
	files map[string][]byte
}

// export exports the run in its current state.
func (p *platform) export() exportedRun {
	p.t.Helper()
	run, err := p.store.Run(p.t.Context(), runID)
	p.must(err)
	x, _, err := p.exportFrom(run, "", -1)
	p.must(err)
	return x
}

var errCut = errors.New("cut")

// exportFrom exports that many pieces from a position, and returns the position at
// which it stopped.
func (p *platform) exportFrom(run store.Run, place string, pieces int) (exportedRun, string, error) {
	x := exportedRun{files: make(map[string][]byte)}
	err := p.archiver.Export(p.t.Context(), run, place, func(piece archive.Piece) error {
		if pieces == 0 {
			return errCut
		}
		pieces--
		if _, ok := x.files[piece.File]; !ok {
			x.names = append(x.names, piece.File)
		}
		x.files[piece.File] = append(x.files[piece.File], piece.Data...)
		place = piece.Cursor
		return nil
	})
	return x, place, err
}

// texts returns the contents of the files, for comparison.
func (x exportedRun) texts() map[string]string {
	all := make(map[string]string)
	for name, b := range x.files {
		all[name] = string(b)
	}
	return all
}

// begin returns the first message of an import of the files.
func (x exportedRun) begin() archive.Begin {
	b := archive.Begin{Format: archive.Format, Run: runID, By: "importer"}
	for _, name := range x.names {
		b.Files = append(b.Files, archive.File{Name: name, Size: int64(len(x.files[name])), SHA256: digest(x.files[name])})
	}
	return b
}

// withFile returns an export in which one file has other content. A nil change removes
// the file.
func (x exportedRun) withFile(name string, change func(string) string) exportedRun {
	y := exportedRun{names: slices.Clone(x.names), files: maps.Clone(x.files)}
	if _, ok := y.files[name]; !ok {
		y.names = append(y.names, name)
	}
	y.files[name] = []byte(change(string(y.files[name])))
	return y
}

func (x exportedRun) withoutFile(name string) exportedRun {
	y := x.withFile(name, func(s string) string { return s })
	y.names = slices.DeleteFunc(y.names, func(n string) bool { return n == name })
	delete(y.files, name)
	return y
}

// importClient sends an export as a client does.
type importClient struct {
	files     exportedRun
	queue     []archive.Piece
	wanted    []string
	requested bool
	cut       int // number of pieces after which the connection breaks; 0 means never
}

func newImportClient(x exportedRun) *importClient {
	s := &importClient{files: x}
	for _, name := range x.names {
		if !strings.HasPrefix(name, "metrics/") && !strings.HasPrefix(name, "logs/") && !strings.HasPrefix(name, "artifacts/") {
			s.add(name)
		}
	}
	return s
}

func (s *importClient) add(name string) {
	for b := s.files.files[name]; ; {
		n := min(len(b), 1000)
		s.queue = append(s.queue, archive.Piece{File: name, Data: b[:n], Last: n == len(b)})
		if b = b[n:]; len(b) == 0 {
			return
		}
	}
}

// Next implements archive.ImportStream.
func (s *importClient) Next() (archive.Piece, error) {
	if s.cut > 0 {
		if s.cut--; s.cut == 0 {
			return archive.Piece{}, errCut
		}
	}
	if len(s.queue) == 0 {
		return archive.Piece{}, io.EOF
	}
	p := s.queue[0]
	s.queue = s.queue[1:]
	return p, nil
}

// RequestFiles implements archive.ImportStream.
func (s *importClient) RequestFiles(files []string) error {
	s.requested, s.wanted = true, files
	for _, name := range files {
		s.add(name)
	}
	return nil
}

func (p *platform) importRun(x exportedRun) (archive.Result, error) {
	return p.archiver.Import(p.t.Context(), x.begin(), newImportClient(x))
}

// contents returns everything that the store has about the run, except the import mark
// and the keys of objects.
func (p *platform) contents() string {
	p.t.Helper()
	x := p.export()
	text, err := json.MarshalIndent(x.files, "", " ")
	p.must(err)
	return string(text)
}

func submitterOf(p *platform) *submit.Submitter {
	return submit.New(submit.Settings{}, submit.Deps{Store: p.store, Now: time.Now, Log: zap.NewNop()})
}

// withClock returns the platform with another clock.
func (p *platform) withClock(now func() time.Time) *platform {
	p.archiver = archive.New(archive.Deps{Store: p.store, Artifacts: p.files, Names: submitterOf(p), Version: "v1", Now: now})
	return p
}
