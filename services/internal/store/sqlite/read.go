package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite/chunk"
)

// "? + 0" and "(SELECT ?)" are parameters that SQLite's planner does not see: it would plan the query again for each value, which costs
// more than these expressions do.
const (
	listSources = `SELECT s.n, s.id, s.attempt, s.role, s.idx, s.pod, s.container, s.stream, t.topic, t.stored, t.last, t.ended
		FROM sources s CROSS JOIN streams t ON t.source = s.n
		WHERE s.run = (SELECT ?) ORDER BY s.attempt, s.id, t.topic`
	tailLine  = "SELECT seq FROM lines WHERE source = ? + 0 ORDER BY seq DESC LIMIT 1 OFFSET ? + 0"
	readLines = "SELECT seq, time, raw, flags, text FROM lines WHERE source = ? + 0 AND seq > ? + 0 ORDER BY seq LIMIT ? + 0"
	sinceLine = "SELECT seq FROM lines WHERE source = ? + 0 AND time >= ? + 0 ORDER BY seq LIMIT 1"
	readChunk = `SELECT chunk FROM chunks WHERE source = ?1 AND last_seq >= ?2 AND (last_seq, last_sub, last_name) > (?2, ?3, ?4)
		ORDER BY last_seq, last_sub, last_name LIMIT 1`
)

// streamRow is one origin of a run, by number, with its counts.
type streamRow struct {
	n  int64
	id string
	store.Stream
}

// streamRows returns the selected sources of a run, in order of (attempt, source, topic).
func (s *Store) streamRows(ctx context.Context, run string, match func(streamRow) bool) ([]streamRow, error) {
	var sources []streamRow
	err := s.query(ctx, func(rows *sql.Rows) error {
		src := streamRow{Stream: store.Stream{Origin: store.Origin{Run: run}}}
		o := &src.Origin
		var ended sql.NullString
		if err := rows.Scan(&src.n, &src.id, &o.Attempt, &o.Role, &o.Index, &o.Pod, &o.Container, &o.Kind, &src.Topic, &src.Stored,
			&src.Last, &ended); err != nil {
			return err
		}
		if !match(src) {
			return nil
		}
		sources = append(sources, src)
		if !ended.Valid {
			return nil
		}
		return json.Unmarshal([]byte(ended.String), &sources[len(sources)-1].End)
	}, listSources, run)
	return sources, err
}

// Streams implements store.Streams.
func (s *Store) Streams(ctx context.Context, run string) ([]store.Stream, error) {
	sources, err := s.streamRows(ctx, run, func(streamRow) bool { return true })
	streams := make([]store.Stream, len(sources))
	for i, src := range sources {
		streams[i] = src.Stream
	}
	return streams, s.wrapError(fmt.Sprintf("list streams of run %q", run), err)
}

// Lines implements store.Streams.
func (s *Store) Lines(ctx context.Context, q store.LineQuery, cursor string, limit int) ([]store.Line, string, error) {
	purpose, at, err := s.decodeCursor("lines", q.CursorScope(), cursor, limit)
	if err != nil {
		return nil, "", err
	}
	sources, err := s.streamRows(ctx, q.Run, func(src streamRow) bool {
		return src.Topic == event.TopicLogs && q.Matches(src.Origin)
	})
	if err == nil && cursor == "" {
		err = s.seekStart(ctx, sources, q, at)
	}
	read := s.linesOf
	if len(q.Tokens) > 0 {
		read = newSearch(s, q.Tokens).linesOf
	}
	var lines []store.Line
	for i := 0; err == nil && i < len(sources) && len(lines) < limit; i++ {
		lines, err = read(ctx, sources[i], at, lines, limit)
	}
	if err != nil {
		return nil, "", s.wrapError(fmt.Sprintf("read lines of run %q", q.Run), err)
	}
	return lines, at.encode(purpose), nil
}

// seekStart moves the position in each source to the beginning of a query.
func (s *Store) seekStart(ctx context.Context, sources []streamRow, q store.LineQuery, at positions) (err error) {
	tail := s.seekTail
	if len(q.Tokens) > 0 {
		tail = newSearch(s, q.Tokens).seekTail
	}
	if q.Last > 0 {
		err = tail(ctx, sources, q.Last, at)
	}
	if err == nil && !q.Since.IsZero() {
		err = s.seekSince(ctx, sources, nanos(q.Since), at)
	}
	return err
}

// seekTail moves the place in each source to before its last lines.
func (s *Store) seekTail(ctx context.Context, sources []streamRow, last int, at positions) error {
	for _, src := range sources {
		p := position{Seq: -1}
		err := s.row(ctx, tailLine, src.n, last).Scan(&p.Seq)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		at[src.n] = p
	}
	return nil
}

// seekSince moves the position in each source forward to before its first line of that time or later, or behind its last line if there is
// none.
func (s *Store) seekSince(ctx context.Context, sources []streamRow, time int64, at positions) error {
	for _, src := range sources {
		seq := src.Last + 1
		err := s.row(ctx, sinceLine, src.n, time).Scan(&seq)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		at[src.n] = position{Seq: max(at.at(src).Seq, seq-1)}
	}
	return nil
}

// linesOf appends the next lines of src, and moves the position in it.
func (s *Store) linesOf(ctx context.Context, src streamRow, at positions, lines []store.Line, limit int) ([]store.Line, error) {
	p := at.at(src)
	if p.Seq >= src.Last {
		return lines, nil
	}
	err := s.query(ctx, func(rows *sql.Rows) error {
		l, err := scanLine(rows, src)
		lines, p.Seq = append(lines, l), l.Seq
		return err
	}, readLines, src.n, p.Seq, limit-len(lines))
	at[src.n] = p
	return lines, err
}

func scanLine(rows *sql.Rows, src streamRow) (store.Line, error) {
	l := store.Line{Origin: src.Origin}
	var f int64
	err := rows.Scan(&l.Seq, &l.Time, &l.Raw, &f, &l.Text)
	l.Stderr, l.Truncated, l.Unterminated = f&flagErr != 0, f&flagCut != 0, f&flagOpen != 0
	return l, err
}

// Samples implements store.Streams.
func (s *Store) Samples(ctx context.Context, q store.SampleQuery, cursor string, limit int) ([]store.Sample, string, error) {
	purpose, at, err := s.decodeCursor("samples", q, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	sources, err := s.streamRows(ctx, q.Run, func(src streamRow) bool { return src.Topic == event.TopicMetrics })
	var samples []store.Sample
	for i := 0; err == nil && i < len(sources) && len(samples) < limit; i++ {
		samples, err = s.samplesOf(ctx, sources[i], q, at, samples, limit)
	}
	if err != nil {
		return nil, "", s.wrapError(fmt.Sprintf("read samples of run %q", q.Run), err)
	}
	return samples, at.encode(purpose), nil
}

// samplesOf appends the next selected samples of src, and moves the position in it: behind all stored samples if fewer selected samples
// follow than there is room for.
func (s *Store) samplesOf(
	ctx context.Context, src streamRow, q store.SampleQuery, at positions, samples []store.Sample, limit int,
) ([]store.Sample, error) {
	p := at.at(src)
	for p.Seq <= src.Last && len(samples) < limit {
		some, err := s.chunkAfter(ctx, src, p)
		if err != nil {
			return samples, err
		}
		if len(some) == 0 {
			break
		}
		for i := 0; i < len(some) && len(samples) < limit; i++ {
			p = positionOf(&some[i])
			if matchesQuery(&some[i], q) {
				samples = append(samples, store.Sample{Origin: src.Origin, Sample: some[i]})
			}
		}
	}
	at[src.n] = p
	return samples, nil
}

// chunkAfter returns the samples after p in the first chunk that has some, none if there is no such chunk.
func (s *Store) chunkAfter(ctx context.Context, src streamRow, p position) ([]event.Sample, error) {
	var packed []byte
	err := s.row(ctx, readChunk, src.n, p.Seq, p.Sub, p.Name).Scan(&packed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	samples, err := chunk.Unpack(packed)
	from, _ := slices.BinarySearchFunc(samples, p, func(v event.Sample, p position) int {
		if p.before(positionOf(&v)) {
			return 1
		}
		return -1
	})
	return samples[from:], err
}

// matchesQuery reports whether a query is for a sample.
func matchesQuery(v *event.Sample, q store.SampleQuery) bool {
	return (len(q.Names) == 0 || slices.Contains(q.Names, v.Name)) &&
		(q.Since.IsZero() || v.Time >= nanos(q.Since)) && (q.Until.IsZero() || v.Time < nanos(q.Until))
}

// decodeCursor returns the scope of a query's cursors, and the positions in this one.
func (s *Store) decodeCursor(verb string, query any, cursor string, limit int) (string, positions, error) {
	if err := positive(limit); err != nil {
		return "", nil, err
	}
	purpose, err := s.cursorScope(verb, query)
	if err != nil {
		return "", nil, fmt.Errorf("read %s: %w: %w", verb, store.ErrRefused, err)
	}
	at, err := decode(purpose, cursor)
	return purpose, at, err
}
