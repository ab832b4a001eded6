package transfer

import (
	"context"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Bounds of what is stored at once.
const (
	batchRows  = 1000
	batchBytes = 1 << 20
)

// row is a line of samples or of lines.
type row interface {
	origin(run string) store.Origin
}

func (s sample) origin(run string) store.Origin {
	return store.Origin{Run: run, Attempt: s.Attempt, Source: s.Source}
}

func (l line) origin(run string) store.Origin {
	return store.Origin{Run: run, Attempt: l.Attempt, Source: l.Source}
}

// samples stores samples.
func (in *importing) samples(ctx context.Context, file *incoming) error {
	return take(file, in.tally(fileSamples, event.TopicMetrics), checkSample, func(o store.Origin, rows []sample) error {
		batch := store.Samples{Origin: o, Samples: make([]event.Sample, len(rows))}
		for i := range rows {
			batch.Samples[i] = rows[i].Sample
		}
		if err := in.deps.Store.AppendSamples(ctx, []store.Samples{batch}); err != nil {
			return err
		}
		return in.hold.renew(ctx)
	})
}

// lines stores lines.
func (in *importing) lines(ctx context.Context, file *incoming) error {
	return take(file, in.tally(fileLines, event.TopicLogs), checkLine, func(o store.Origin, rows []line) error {
		batch := store.Lines{Origin: o, Lines: make([]event.Line, len(rows))}
		for i := range rows {
			batch.Lines[i] = rows[i].Line
		}
		if err := in.deps.Store.AppendLines(ctx, []store.Lines{batch}); err != nil {
			return err
		}
		return in.hold.renew(ctx)
	})
}

// batch is rows of one source that are kept at once.
type batch[R row] struct {
	run  string
	rows []R
	size int
	keep func(o store.Origin, rows []R) error
}

// add adds a row; first says that it is of another source than those before it.
func (b *batch[R]) add(r R, size int, first bool) error {
	if first || len(b.rows) == batchRows || b.size > batchBytes {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.rows, b.size = append(b.rows, r), b.size+size
	return nil
}

// flush keeps what there is.
func (b *batch[R]) flush() error {
	if len(b.rows) == 0 {
		return nil
	}
	err := b.keep(b.rows[0].origin(b.run), b.rows)
	b.rows, b.size = b.rows[:0], 0
	return err
}

// take reads the rows of a file, and keeps those of one source together, as many
// at once as is in bounds.
func take[R row](file *incoming, t *tally, check func(n int, r, before R, first bool) error, keep func(o store.Origin, rows []R) error) error {
	b := batch[R]{run: t.run, keep: keep}
	var before R
	err := file.lines(func(n int, text []byte) error {
		var r R
		if err := readLine(t.file, n, text, &r); err != nil {
			return err
		}
		first, err := t.count(n, r.origin(t.run))
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
	return t.end()
}
