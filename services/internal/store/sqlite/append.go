package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite/chunk"
)

const (
	findSource = "SELECT n FROM sources WHERE id = ?1"
	addSource  = "INSERT INTO sources(id, run, attempt, role, idx, pod, container, stream) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
	countRows  = `INSERT INTO streams(source, topic, stored, last, ended) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
		stored = stored + excluded.stored, last = max(last, excluded.last), ended = coalesce(ended, excluded.ended)`
)

// An INSERT statement costs as much as two more lines in it.
const (
	lineColumns = 6
	manyLines   = 50
	oneLine     = "(?,?,?,?,?,?)"
	addLine     = "INSERT INTO lines VALUES " + oneLine + " ON CONFLICT DO NOTHING"
	tenLines    = oneLine + "," + oneLine + "," + oneLine + "," + oneLine + "," + oneLine + "," + oneLine + "," + oneLine + "," + oneLine +
		"," + oneLine + "," + oneLine
	addLines = "INSERT INTO lines VALUES " + tenLines + "," + tenLines + "," + tenLines + "," + tenLines + "," +
		tenLines + " ON CONFLICT DO NOTHING"
)

// AppendSamples implements store.Streams.
func (s *Store) AppendSamples(ctx context.Context, batches []store.Samples) error {
	for _, b := range batches {
		if err := b.Validate(); err != nil {
			return err
		}
	}
	return s.append(ctx, "samples", nil, func(a *appender) error {
		for _, b := range batches {
			if err := a.samples(ctx, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// AppendLines implements store.Streams.
func (s *Store) AppendLines(ctx context.Context, batches []store.Lines) error {
	for _, b := range batches {
		if err := b.Validate(); err != nil {
			return err
		}
	}
	segments := s.buildSegments(batches)
	defer func() { <-segments.done }()
	return s.append(ctx, "lines", segments, func(a *appender) error {
		for _, b := range batches {
			if err := a.lines(ctx, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// append runs do in a transaction, then notifies the subscribers of the written runs.
func (s *Store) append(ctx context.Context, kind string, segments *segmentBuild, do func(a *appender) error) error {
	var runs []string
	err := s.update(ctx, func(t tx) error {
		a := &appender{tx: t, streams: make(map[string]*pendingStream), segments: segments}
		if err := do(a); err != nil {
			return err
		}
		var err error
		runs, err = a.commitCounts(ctx)
		return err
	})
	if err != nil {
		return s.wrapError("append "+kind, err)
	}
	s.notifier.Notify(runs...)
	return nil
}

// appender appends in one transaction.
type appender struct {
	tx

	streams  map[string]*pendingStream // by source ID
	args     []any                     // of lines to insert
	segments *segmentBuild             // of lines
}

// pendingStream has the new data of one source in the transaction.
type pendingStream struct {
	run, topic  string
	origin      store.Origin
	source      int64
	stored      int64
	last        int64
	end         *event.End
	samples     [][]event.Sample // samples to merge
	hasNewLines bool             // it has lines that were not stored before
}

func (a *appender) samples(ctx context.Context, b store.Samples) error {
	if len(b.Samples) == 0 && b.End == nil {
		return nil
	}
	st, err := a.pendingFor(ctx, event.TopicMetrics, b.Origin, b.End)
	if err != nil {
		return err
	}
	st.samples = append(st.samples, b.Samples)
	return nil
}

func (a *appender) lines(ctx context.Context, b store.Lines) error {
	if len(b.Lines) == 0 && b.End == nil {
		return nil
	}
	st, err := a.pendingFor(ctx, event.TopicLogs, b.Origin, b.End)
	if err != nil {
		return err
	}
	before := st.stored
	for i := range b.Lines {
		l := &b.Lines[i]
		st.last = max(st.last, l.Seq)
		if err := a.add(ctx, st, st.source, l.Seq, l.Time, l.Raw, flags(l), l.Text); err != nil {
			return err
		}
	}
	err = a.flush(ctx, st)
	st.hasNewLines = st.hasNewLines || st.stored > before
	return err
}

// add inserts a line, sooner or later.
func (a *appender) add(ctx context.Context, st *pendingStream, values ...any) error {
	a.args = append(a.args, values...)
	if len(a.args) < manyLines*lineColumns {
		return nil
	}
	n, err := a.exec(ctx, addLines, a.args...)
	st.stored += n
	a.args = a.args[:0]
	return err
}

// flush inserts the remaining lines.
func (a *appender) flush(ctx context.Context, st *pendingStream) error {
	for args := a.args; len(args) > 0; args = args[lineColumns:] {
		n, err := a.exec(ctx, addLine, args[:lineColumns]...)
		if err != nil {
			return err
		}
		st.stored += n
	}
	a.args = a.args[:0]
	return nil
}

// pendingFor returns the new data of a source in the transaction so far.
func (a *appender) pendingFor(ctx context.Context, topic string, o store.Origin, end *event.End) (*pendingStream, error) {
	id := o.StreamID()
	st, ok := a.streams[id]
	if !ok {
		st = &pendingStream{run: o.Run, topic: topic, last: -1, origin: o}
		var err error
		st.source, err = a.rowID(ctx, addSource, findSource, id, o.Run, o.Attempt, o.Role, o.Index, o.Pod, o.Container, o.Kind)
		if err != nil {
			return nil, err
		}
		a.streams[id] = st
	}
	if st.end == nil {
		st.end = end
	}
	return st, nil
}

// commitCounts adds the transaction's counts to the stored ones, and returns the runs with new data.
func (a *appender) commitCounts(ctx context.Context) ([]string, error) {
	runs := make([]string, 0, len(a.streams))
	for _, st := range a.streams {
		if err := errors.Join(a.mergePending(ctx, st), a.addSegments(ctx, st)); err != nil {
			return nil, err
		}
		var ended any
		if st.end != nil {
			b, err := json.Marshal(st.end)
			if err != nil {
				return nil, err
			}
			ended = string(b)
		}
		if _, err := a.exec(ctx, countRows, st.source, st.topic, st.stored, st.last, ended); err != nil {
			return nil, err
		}
		runs = append(runs, st.run)
	}
	return runs, nil
}

// mergePending merges the new samples of a source with the stored ones.
func (a *appender) mergePending(ctx context.Context, st *pendingStream) error {
	young := chunk.InOrder(st.samples)
	if len(young) == 0 {
		return nil
	}
	fresh, err := a.mergeSamples(ctx, st.source, young)
	st.stored, st.last = fresh, young.Last().Seq
	return err
}

// rowID returns the number of the row that find finds; insert creates it if needed.
func (a *appender) rowID(ctx context.Context, insert, find string, args ...any) (n int64, err error) {
	err = a.row(ctx, find, args...).Scan(&n)
	if !errors.Is(err, sql.ErrNoRows) {
		return n, err
	}
	if _, err := a.exec(ctx, insert, args...); err != nil {
		return 0, err
	}
	err = a.row(ctx, find, args...).Scan(&n)
	return n, err
}

// Bits of a line's flags.
const (
	flagErr = 1 << iota
	flagCut
	flagOpen
)

func flags(l *event.Line) int64 {
	return bit(l.Stderr, flagErr) | bit(l.Truncated, flagCut) | bit(l.Unterminated, flagOpen)
}

func bit(set bool, b int64) int64 {
	if set {
		return b
	}
	return 0
}

// Changed implements store.Notifier.
func (s *Store) Changed(run string) <-chan struct{} { return s.notifier.Subscribe(run) }
