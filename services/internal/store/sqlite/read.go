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
)

// "? + 0" and "(SELECT ?)" are parameters that SQLite's planner does not see:
// it would plan the query again for each value, which costs more than these do.
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

// source is one origin of a run, by number, and what is stored of it.
type source struct {
	n  int64
	id string
	store.Stream
}

// sources returns the sources of a run, in order of (attempt, source, topic), as
// far as they are meant.
func (s *Store) sources(ctx context.Context, run string, meant func(source) bool) ([]source, error) {
	var sources []source
	err := s.query(ctx, func(rows *sql.Rows) error {
		src := source{Stream: store.Stream{Origin: store.Origin{Run: run}}}
		o := &src.Origin
		var ended sql.NullString
		if err := rows.Scan(&src.n, &src.id, &o.Attempt, &o.Role, &o.Index, &o.Pod, &o.Container, &o.Stream, &src.Topic, &src.Stored, &src.Last, &ended); err != nil {
			return err
		}
		if !meant(src) {
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
	sources, err := s.sources(ctx, run, func(source) bool { return true })
	streams := make([]store.Stream, len(sources))
	for i, src := range sources {
		streams[i] = src.Stream
	}
	return streams, s.explain(fmt.Sprintf("list streams of run %q", run), err)
}

// Lines implements store.Streams.
func (s *Store) Lines(ctx context.Context, q store.LineQuery, cursor string, limit int) ([]store.Line, string, error) {
	purpose, at, err := s.resume("lines", q.Purpose(), cursor, limit)
	if err != nil {
		return nil, "", err
	}
	sources, err := s.sources(ctx, q.Run, func(src source) bool {
		return src.Topic == event.TopicLogs && q.Of(src.Origin)
	})
	if err == nil && cursor == "" {
		err = s.begin(ctx, sources, q, at)
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
		return nil, "", s.explain(fmt.Sprintf("read lines of run %q", q.Run), err)
	}
	return lines, at.encode(purpose), nil
}

// begin moves the place in each source to where a query begins.
func (s *Store) begin(ctx context.Context, sources []source, q store.LineQuery, at places) (err error) {
	tail := s.tail
	if len(q.Tokens) > 0 {
		tail = newSearch(s, q.Tokens).tail
	}
	if q.Last > 0 {
		err = tail(ctx, sources, q.Last, at)
	}
	if err == nil && !q.Since.IsZero() {
		err = s.since(ctx, sources, nanos(q.Since), at)
	}
	return err
}

// tail moves the place in each source to before its last lines.
func (s *Store) tail(ctx context.Context, sources []source, last int, at places) error {
	for _, src := range sources {
		p := place{Seq: -1}
		err := s.row(ctx, tailLine, src.n, last).Scan(&p.Seq)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		at[src.n] = p
	}
	return nil
}

// since moves the place in each source, where it is further back, to before its
// first line of that time or later, or after all where there is none.
func (s *Store) since(ctx context.Context, sources []source, time int64, at places) error {
	for _, src := range sources {
		seq := src.Last + 1
		err := s.row(ctx, sinceLine, src.n, time).Scan(&seq)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		at[src.n] = place{Seq: max(at.in(src).Seq, seq-1)}
	}
	return nil
}

// linesOf appends what comes next in src, and moves the place in it.
func (s *Store) linesOf(ctx context.Context, src source, at places, lines []store.Line, limit int) ([]store.Line, error) {
	p := at.in(src)
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

func scanLine(rows *sql.Rows, src source) (store.Line, error) {
	l := store.Line{Origin: src.Origin}
	var f int64
	err := rows.Scan(&l.Seq, &l.Time, &l.Raw, &f, &l.Text)
	l.Err, l.Cut, l.Open = f&flagErr != 0, f&flagCut != 0, f&flagOpen != 0
	return l, err
}

// Samples implements store.Streams.
func (s *Store) Samples(ctx context.Context, q store.SampleQuery, cursor string, limit int) ([]store.Sample, string, error) {
	purpose, at, err := s.resume("samples", q, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	sources, err := s.sources(ctx, q.Run, func(src source) bool { return src.Topic == event.TopicMetrics })
	var samples []store.Sample
	for i := 0; err == nil && i < len(sources) && len(samples) < limit; i++ {
		samples, err = s.samplesOf(ctx, sources[i], q, at, samples, limit)
	}
	if err != nil {
		return nil, "", s.explain(fmt.Sprintf("read samples of run %q", q.Run), err)
	}
	return samples, at.encode(purpose), nil
}

// samplesOf appends what comes next in src, and moves the place in it: past all
// that was there if fewer samples that are meant follow than there is room for.
func (s *Store) samplesOf(ctx context.Context, src source, q store.SampleQuery, at places, samples []store.Sample, limit int) ([]store.Sample, error) {
	p := at.in(src)
	for p.Seq <= src.Last && len(samples) < limit {
		chunk, err := s.chunkAfter(ctx, src, p)
		if err != nil {
			return samples, err
		}
		if len(chunk) == 0 {
			break
		}
		for i := 0; i < len(chunk) && len(samples) < limit; i++ {
			p = placeOf(&chunk[i])
			if meant(&chunk[i], q) {
				samples = append(samples, store.Sample{Origin: src.Origin, Sample: chunk[i]})
			}
		}
	}
	at[src.n] = p
	return samples, nil
}

// chunkAfter returns the samples after p of the first chunk that has some, none
// where there are none.
func (s *Store) chunkAfter(ctx context.Context, src source, p place) ([]event.Sample, error) {
	var chunk []byte
	err := s.row(ctx, readChunk, src.n, p.Seq, p.Sub, p.Name).Scan(&chunk)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	samples, err := unpack(chunk)
	from, _ := slices.BinarySearchFunc(samples, p, func(v event.Sample, p place) int {
		if p.before(placeOf(&v)) {
			return 1
		}
		return -1
	})
	return samples[from:], err
}

// meant reports whether a query is for a sample.
func meant(v *event.Sample, q store.SampleQuery) bool {
	return (len(q.Names) == 0 || slices.Contains(q.Names, v.Name)) &&
		(q.Since.IsZero() || v.Time >= nanos(q.Since)) && (q.Until.IsZero() || v.Time < nanos(q.Until))
}

// resume returns what cursors of a query are for, and the places of this one.
func (s *Store) resume(verb string, query any, cursor string, limit int) (string, places, error) {
	if err := positive(limit); err != nil {
		return "", nil, err
	}
	purpose, err := s.purpose(verb, query)
	if err != nil {
		return "", nil, fmt.Errorf("read %s: %w: %w", verb, store.ErrRefused, err)
	}
	at, err := decode(purpose, cursor)
	return purpose, at, err
}
