package archive

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Head returns the header of a run's export.
func (t *Archiver) Head(ctx context.Context, run store.Run) (Header, error) {
	streams, err := t.deps.Store.Streams(ctx, run.ID)
	if err != nil {
		return Header{}, err
	}
	return Header{Format: Format, Run: run.ID, Version: t.deps.Version, Completeness: store.Complete(run, streams)}, nil
}

// Export sends the files of a run. It starts at the beginning if from is empty, and
// otherwise at the cursor of a piece. The same run gives the same bytes. The error is
// *ChangedError if the run changed since the cursor was issued, or late data of a finished
// run arrived since the export began, and store.ErrCursor for a cursor that is not one.
func (t *Archiver) Export(ctx context.Context, run store.Run, from string, send func(Piece) error) error {
	at, err := parseCursor(from)
	if err != nil {
		return err
	}
	if at.File != "" && at.Revision != run.Revision {
		return &ChangedError{Run: run.ID}
	}
	if at.Data, err = t.versionAt(ctx, run, at); err != nil {
		return err
	}
	all, err := t.exportFiles(ctx, run)
	if err != nil {
		return err
	}
	begun := at.File == ""
	for _, c := range all {
		begun = begun || c.file == at.File
		if !begun {
			continue
		}
		out := func(data []byte, next string, last bool) error {
			return send(Piece{File: c.file, Data: data, Last: last, Cursor: exportCursor{run.Revision, c.file, next, at.Data}.String()})
		}
		start := at.Offset
		at.Offset = ""
		if err := c.write(ctx, start, out); err != nil {
			return fmt.Errorf("export %s of run %s: %w", c.file, run.ID, err)
		}
		if err := t.checkUnchanged(ctx, run, c.file, at.Data); err != nil {
			return err
		}
	}
	if !begun {
		return &ChangedError{Run: run.ID}
	}
	return nil
}

// dataVersion returns a text that changes when more samples or lines of a finished run
// are stored. It returns "" for another run, whose data may grow while it is exported.
func (t *Archiver) dataVersion(ctx context.Context, run store.Run) (string, error) {
	if run.Phase != event.PhaseFinished {
		return "", nil
	}
	streams, err := t.deps.Store.Streams(ctx, run.ID)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(sourcesOf(run.ID, streams))
	return event.Derive("data", string(b)), err
}

// versionAt returns the version of the data with which an export began that is at a cursor.
func (t *Archiver) versionAt(ctx context.Context, run store.Run, at exportCursor) (string, error) {
	if at.Data != "" {
		return at.Data, nil
	}
	return t.dataVersion(ctx, run)
}

// checkUnchanged returns *ChangedError if the data of a run are not those of the version
// that the export began with, once the last file with data was sent: fileSources would
// not agree with the rows.
func (t *Archiver) checkUnchanged(ctx context.Context, run store.Run, file, version string) error {
	if file != fileLines || version == "" {
		return nil
	}
	now, err := t.dataVersion(ctx, run)
	if err == nil && now != version {
		return &ChangedError{Run: run.ID}
	}
	return err
}

// exportFile is a file of an export.
type exportFile struct {
	file  string
	write func(ctx context.Context, at string, out emitFunc) error
}

// exportFiles returns the files of a run, in the order in which they are sent.
func (t *Archiver) exportFiles(ctx context.Context, run store.Run) ([]exportFile, error) {
	files, err := t.documents(ctx, run)
	if err != nil {
		return nil, err
	}
	list, err := t.deps.Artifacts.List(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	index, err := indexOf(list)
	if err != nil {
		return nil, err
	}
	var all []exportFile
	for _, f := range files {
		all = append(all, exportFile{f.name, textWriter(f.text)})
	}
	all = append(all,
		exportFile{fileEvents, t.events(run)},
		exportFile{fileSources, t.sources(run)},
		exportFile{fileArtifacts, textWriter(index)},
		exportFile{fileSamples, t.samples(run)},
		exportFile{fileLines, t.lines(run)},
	)
	for _, f := range list {
		all = append(all, exportFile{artifacts + f.Name, t.artifact(run, f)})
	}
	return all, nil
}

// textFile is a file whose content is in memory.
type textFile struct {
	name string
	text []byte
}

// documents returns the small files of a run.
func (t *Archiver) documents(ctx context.Context, run store.Run) ([]textFile, error) {
	redactedCopy := redactRun(run)
	var all []textFile
	add := func(name string, v any) error {
		b, err := encodeDocument(v)
		all = append(all, textFile{name, b})
		return err
	}
	original, _, ok, err := store.Find[store.OriginalDescriptor](ctx, t.deps.Store, store.KindOriginalDescriptor, run.ID)
	if err != nil {
		return nil, err
	}
	if !ok {
		original.Descriptor = run.Descriptor
	}
	if err := add(fileRun, redactedCopy); err != nil {
		return nil, err
	}
	all = append(all, textFile{fileSubmitted, []byte(redact(original.Descriptor))}, textFile{fileResolved, []byte(redactedCopy.Descriptor)})
	for attempt := 1; attempt <= run.Attempt; attempt++ {
		m, err := t.manifest(ctx, run.ID, attempt)
		if err != nil {
			return nil, err
		}
		if len(m) > 0 {
			all = append(all, textFile{manifestOf(attempt), m})
		}
	}
	environment, _, ok, err := store.Find[store.RunEnvironment](ctx, t.deps.Store, store.KindEnvironment, run.ID)
	if ok {
		err = add(fileEnvironment, environment)
	}
	if err != nil {
		return nil, err
	}
	summaries, _, ok, err := store.Find[store.Summaries](ctx, t.deps.Store, store.KindSummary, run.ID)
	if ok {
		err = add(fileSummaries, summaries)
	}
	return all, err
}

// manifestDocument is the document, of store.KindManifest, with the objects of an
// attempt of an imported run.
type manifestDocument struct {
	YAML string `json:"yaml"`
}

// manifest returns the objects of an attempt, or nil if none are stored.
func (t *Archiver) manifest(ctx context.Context, run string, attempt int) ([]byte, error) {
	key := store.AttemptKey(run, attempt)
	m, _, ok, err := store.Find[manifestDocument](ctx, t.deps.Store, store.KindManifest, key)
	if err != nil || ok {
		return []byte(m.YAML), err
	}
	d, err := t.deps.Store.Doc(ctx, store.KindPlan, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return manifest(d.Value)
}

func indexOf(files []artifact.File) ([]byte, error) {
	var b bytes.Buffer
	for _, f := range files {
		if err := appendLine(&b, artifactRow{f.Name, f.Size, f.SHA256, f.Time.UTC().Format(time.RFC3339Nano)}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// events writes the history of a run, up to the run's revision.
func (t *Archiver) events(run store.Run) func(context.Context, string, emitFunc) error {
	return pageWriter(func(ctx context.Context, at string, limit int) ([]store.Change, string, error) {
		after := int64(0)
		if at != "" {
			var err error
			if after, err = parseOffset(at, run.Revision); err != nil {
				return nil, "", err
			}
		}
		limit = int(min(int64(limit), run.Revision-after))
		if limit == 0 {
			return nil, at, nil
		}
		all, err := t.deps.Store.Changes(ctx, run.ID, after, limit)
		if len(all) > 0 {
			after = all[len(all)-1].Revision
		}
		return all, strconv.FormatInt(after, 10), err
	}, func(c store.Change) any {
		c.Message = redact(c.Message)
		return c
	})
}

// sources writes the streams of a run.
func (t *Archiver) sources(run store.Run) func(context.Context, string, emitFunc) error {
	return func(ctx context.Context, at string, out emitFunc) error {
		streams, err := t.deps.Store.Streams(ctx, run.ID)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		for _, s := range sourcesOf(run.ID, streams) {
			if err := appendLine(&b, s); err != nil {
				return err
			}
		}
		return textWriter(b.Bytes())(ctx, at, out)
	}
}

func (t *Archiver) samples(run store.Run) func(context.Context, string, emitFunc) error {
	return pageWriter(func(ctx context.Context, at string, limit int) ([]store.Sample, string, error) {
		return t.deps.Store.Samples(ctx, store.SampleQuery{Run: run.ID}, at, limit)
	}, func(s store.Sample) any { return sampleRow{s.Origin.Attempt, s.Origin.Stream, s.Sample} })
}

func (t *Archiver) lines(run store.Run) func(context.Context, string, emitFunc) error {
	return pageWriter(func(ctx context.Context, at string, limit int) ([]store.Line, string, error) {
		return t.deps.Store.Lines(ctx, store.LineQuery{Run: run.ID}, at, limit)
	}, func(l store.Line) any { return lineRow{l.Origin.Attempt, l.Origin.Stream, l.Line} })
}

// artifact writes an artifact of a run.
func (t *Archiver) artifact(run store.Run, f artifact.File) func(context.Context, string, emitFunc) error {
	return func(ctx context.Context, at string, out emitFunc) (err error) {
		n, err := parseOffset(at, f.Size)
		if err != nil {
			return err
		}
		_, r, err := t.deps.Artifacts.Open(ctx, run.ID, f.Name, n)
		if err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, r.Close()) }()
		buf := make([]byte, chunk)
		for {
			size, err := io.ReadFull(r, buf[:min(chunk, f.Size-n)])
			if err != nil && f.Size > n {
				return fmt.Errorf("the object has %d bytes of %d: %w", n+int64(size), f.Size, err)
			}
			n += int64(size)
			if err := out(bytes.Clone(buf[:size]), strconv.FormatInt(n, 10), n == f.Size); err != nil || n == f.Size {
				return err
			}
		}
	}
}
