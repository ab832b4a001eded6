package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// "? + 0" and "(SELECT ?)" are parameters that SQLite's planner does not see:
// it would plan the query again for each value, which costs more than these do.
const (
	listSources = `SELECT s.n, s.id, s.attempt, s.role, s.idx, s.pod, s.container, s.stream, t.topic, t.stored, t.last, t.ended
		FROM sources s CROSS JOIN streams t ON t.source = s.n
		WHERE s.run = (SELECT ?) ORDER BY s.attempt, s.id, t.topic`
	tailLine   = "SELECT seq FROM lines WHERE source = ? + 0 ORDER BY seq DESC LIMIT 1 OFFSET ? + 0"
	readLines  = "SELECT seq, time, raw, flags, text FROM lines WHERE source = ? + 0 AND seq > ? + 0 ORDER BY seq LIMIT ? + 0"
	sinceLine  = "SELECT seq FROM lines WHERE source = ? + 0 AND time >= ? + 0 ORDER BY seq LIMIT 1"
	lastSample = "SELECT m.seq, m.sub, n.name FROM samples m CROSS JOIN names n ON n.n = m.name WHERE m.source = ? + 0 ORDER BY m.seq DESC, m.sub DESC, n.name DESC LIMIT 1"
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
	purpose, at, err := s.resume("lines", []any{q.Run, q.Attempt, q.Source}, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	sources, err := s.sources(ctx, q.Run, func(src source) bool {
		return src.Topic == event.TopicLogs && (q.Attempt == 0 || q.Attempt == src.Origin.Attempt) && (q.Source == "" || q.Source == src.id)
	})
	if err == nil && cursor == "" && q.Last > 0 {
		err = s.tail(ctx, sources, q.Last, at)
	}
	if err == nil && cursor == "" && !q.Since.IsZero() {
		err = s.since(ctx, sources, nanos(q.Since), at)
	}
	var lines []store.Line
	for i := 0; err == nil && i < len(sources) && len(lines) < limit; i++ {
		lines, err = s.linesOf(ctx, sources[i], at, lines, limit)
	}
	if err != nil {
		return nil, "", s.explain(fmt.Sprintf("read lines of run %q", q.Run), err)
	}
	return lines, at.encode(purpose), nil
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
		l := store.Line{Origin: src.Origin}
		var f int64
		if err := rows.Scan(&l.Seq, &l.Time, &l.Raw, &f, &l.Text); err != nil {
			return err
		}
		l.Err, l.Cut, l.Open = f&flagErr != 0, f&flagCut != 0, f&flagOpen != 0
		lines, p.Seq = append(lines, l), l.Seq
		return nil
	}, readLines, src.n, p.Seq, limit-len(lines))
	at[src.n] = p
	return lines, err
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
	end, err := s.end(ctx, src, p)
	if err != nil || end == p {
		return samples, err
	}
	had := len(samples)
	text, args := sampleQuery(src.n, p, q, limit-had)
	err = s.query(ctx, func(rows *sql.Rows) error {
		v := store.Sample{Origin: src.Origin}
		if err := scanSample(rows, &v.Sample); err != nil {
			return err
		}
		samples, p = append(samples, v), place{Seq: v.Seq, Sub: int64(v.Sub), Name: v.Name}
		return nil
	}, text, args...)
	if len(samples)-had < limit-had && p.before(end) {
		p = end
	}
	at[src.n] = p
	return samples, err
}

// end returns the place after all samples of src, p if that is there.
func (s *Store) end(ctx context.Context, src source, p place) (place, error) {
	if p.Seq > src.Last {
		return p, nil
	}
	var end place
	err := s.row(ctx, lastSample, src.n).Scan(&end.Seq, &end.Sub, &end.Name)
	if errors.Is(err, sql.ErrNoRows) {
		return p, nil
	}
	return end, err
}

func sampleQuery(source int64, p place, q store.SampleQuery, limit int) (string, []any) {
	args := []any{source, p.Seq, p.Sub, p.Name}
	only := ""
	if len(q.Names) > 0 {
		only = " AND m.name IN (SELECT n FROM names WHERE name IN (?" + strings.Repeat(", ?", len(q.Names)-1) + "))"
		for _, name := range q.Names {
			args = append(args, name)
		}
	}
	if !q.Since.IsZero() {
		only, args = only+" AND m.time >= ?", append(args, nanos(q.Since))
	}
	if !q.Until.IsZero() {
		only, args = only+" AND m.time < ?", append(args, nanos(q.Until))
	}
	return `SELECT m.seq, m.sub, n.name, m.value, m.special, t.unit, m.time, m.step, t.labels
		FROM samples m CROSS JOIN names n ON n.n = m.name CROSS JOIN traits t ON t.n = m.traits
		WHERE m.source = ?1 AND (m.seq, m.sub) >= (?2, ?3) AND ((m.seq, m.sub) > (?2, ?3) OR n.name > ?4)` + only + `
		ORDER BY m.seq, m.sub, n.name LIMIT ? + 0`, append(args, limit)
}

func scanSample(rows *sql.Rows, v *event.Sample) error {
	var value sql.NullFloat64
	var special sql.NullString
	var step sql.NullInt64
	var labels string
	if err := rows.Scan(&v.Seq, &v.Sub, &v.Name, &value, &special, &v.Unit, &v.Time, &step, &labels); err != nil {
		return err
	}
	if value.Valid {
		v.Value = &value.Float64
	}
	if step.Valid {
		v.Step = &step.Int64
	}
	v.Special = special.String
	if labels == "" {
		return nil
	}
	return json.Unmarshal([]byte(labels), &v.Labels)
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
