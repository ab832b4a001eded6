package archive

import (
	"context"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Limits of one batch of rows.
const (
	batchRows  = 1000
	batchBytes = 1 << 20
)

// row is a row of samples or of lines.
type row interface {
	origin(run string) store.Origin
}

func (s sampleRow) origin(run string) store.Origin {
	return store.Origin{Run: run, Attempt: s.Attempt, Stream: s.Stream}
}

func (l lineRow) origin(run string) store.Origin {
	return store.Origin{Run: run, Attempt: l.Attempt, Stream: l.Stream}
}

// storeSamples stores the rows of fileSamples.
func (in *importer) storeSamples(ctx context.Context, file *incomingFile) error {
	return readRows(file, in.newRowCounter(fileSamples, event.TopicMetrics), checkSample, func(o store.Origin, rows []sampleRow) error {
		batch := store.Samples{Origin: o, Samples: make([]event.Sample, len(rows))}
		for i := range rows {
			batch.Samples[i] = rows[i].Sample
		}
		return in.deps.Store.AppendSamples(ctx, []store.Samples{batch})
	})
}

// storeLines stores the rows of fileLines.
func (in *importer) storeLines(ctx context.Context, file *incomingFile) error {
	return readRows(file, in.newRowCounter(fileLines, event.TopicLogs), checkLine, func(o store.Origin, rows []lineRow) error {
		batch := store.Lines{Origin: o, Lines: make([]event.Line, len(rows))}
		for i := range rows {
			batch.Lines[i] = rows[i].Line
		}
		return in.deps.Store.AppendLines(ctx, []store.Lines{batch})
	})
}

// rowBatch collects rows of one stream that are stored at once.
type rowBatch[R row] struct {
	run   string
	rows  []R
	size  int
	write func(o store.Origin, rows []R) error
}

// add adds a row; first reports that the row is of another stream than those before.
func (b *rowBatch[R]) add(r R, size int, first bool) error {
	if first || len(b.rows) == batchRows || b.size > batchBytes {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.rows, b.size = append(b.rows, r), b.size+size
	return nil
}

// flush stores the collected rows.
func (b *rowBatch[R]) flush() error {
	if len(b.rows) == 0 {
		return nil
	}
	err := b.write(b.rows[0].origin(b.run), b.rows)
	b.rows, b.size = b.rows[:0], 0
	return err
}

// readRows reads the rows of a file, checks them, and writes them in batches. A batch
// has rows of one stream, up to batchRows and batchBytes.
func readRows[R row](
	file *incomingFile, t *rowCounter, check func(n int, r, before R, first bool) error, write func(o store.Origin, rows []R) error,
) error {
	b := rowBatch[R]{run: t.run, write: write}
	var before R
	err := file.forEachLine(func(n int, text []byte) error {
		var r R
		if err := readLine(t.file, n, text, &r); err != nil {
			return err
		}
		first, err := t.add(n, r.origin(t.run))
		if err == nil {
			err = check(n, r, before, first)
		}
		if err != nil {
			return err
		}
		before = r
		return b.add(r, len(text), first)
	})
	if err == nil {
		err = b.flush()
	}
	if err != nil {
		return err
	}
	return t.checkComplete()
}
