package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// many is how many rows one statement inserts: each statement costs as much as
// two rows.
const many = 50

const (
	sampleColumns = 9
	lineColumns   = 6
)

const (
	findSource = "SELECT n FROM sources WHERE id = ?1"
	addSource  = "INSERT INTO sources(id, run, attempt, role, idx, pod, container, stream) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
	findName   = "SELECT n FROM names WHERE name = ?"
	addName    = "INSERT INTO names(name) VALUES (?)"
	findTraits = "SELECT n FROM traits WHERE unit = ? AND labels = ?"
	addTraits  = "INSERT INTO traits(unit, labels) VALUES (?, ?)"
	countRows  = `INSERT INTO streams(source, topic, stored, last, ended) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
		stored = stored + excluded.stored, last = max(last, excluded.last), ended = coalesce(ended, excluded.ended)`
)

// insert returns the statement that inserts so many rows where there are none.
func insert(table string, columns, rows int) string {
	row := "(?" + strings.Repeat(",?", columns-1) + ")"
	return "INSERT INTO " + table + " VALUES " + row + strings.Repeat(","+row, rows-1) + " ON CONFLICT DO NOTHING"
}

// AppendSamples implements store.Streams.
func (s *Store) AppendSamples(ctx context.Context, batches []store.Samples) error {
	for _, b := range batches {
		if err := b.Validate(); err != nil {
			return err
		}
	}
	return s.append(ctx, "samples", sampleColumns, func(a *appender) error {
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
	return s.append(ctx, "lines", lineColumns, func(a *appender) error {
		for _, b := range batches {
			if err := a.lines(ctx, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// append runs do in a transaction, then wakes who waits for the runs it wrote to.
func (s *Store) append(ctx context.Context, table string, columns int, do func(a *appender) error) error {
	var runs []string
	err := s.update(ctx, func(t tx) error {
		a := &appender{tx: t, many: insert(table, columns, many), one: insert(table, columns, 1), streams: make(map[string]*stream), names: make(map[string]int64), traits: make(map[trait]int64)}
		if err := do(a); err != nil {
			return err
		}
		var err error
		runs, err = a.count(ctx)
		return err
	})
	if err != nil {
		return s.explain("append "+table, err)
	}
	s.hub.changed(runs...)
	return nil
}

// appender appends in one transaction.
type appender struct {
	tx
	many, one string // insert that many rows

	streams map[string]*stream // by source ID
	names   map[string]int64
	traits  map[trait]int64
	args    []any
}

// trait is what samples of a metric share.
type trait struct{ unit, labels string }

// stream is what the transaction brings to one source.
type stream struct {
	run, topic string
	source     int64
	stored     int64
	last       int64
	end        *event.End
}

func (a *appender) samples(ctx context.Context, b store.Samples) error {
	if len(b.Samples) == 0 && b.End == nil {
		return nil
	}
	st, err := a.stream(ctx, event.TopicMetrics, b.Origin, b.End)
	if err != nil {
		return err
	}
	for i := range b.Samples {
		v := &b.Samples[i]
		name, err := a.name(ctx, v.Name)
		if err != nil {
			return err
		}
		traits, err := a.trait(ctx, v.Unit, v.Labels)
		if err != nil {
			return err
		}
		value, special := number(v)
		st.last = max(st.last, v.Seq)
		if err := a.add(ctx, st, st.source, v.Seq, v.Sub, name, traits, value, special, v.Time, integer(v.Step)); err != nil {
			return err
		}
	}
	return a.flush(ctx, st, sampleColumns)
}

func (a *appender) lines(ctx context.Context, b store.Lines) error {
	if len(b.Lines) == 0 && b.End == nil {
		return nil
	}
	st, err := a.stream(ctx, event.TopicLogs, b.Origin, b.End)
	if err != nil {
		return err
	}
	for i := range b.Lines {
		l := &b.Lines[i]
		st.last = max(st.last, l.Seq)
		if err := a.add(ctx, st, st.source, l.Seq, l.Time, l.Raw, flags(l), l.Text); err != nil {
			return err
		}
	}
	return a.flush(ctx, st, lineColumns)
}

// add inserts a row, sooner or later.
func (a *appender) add(ctx context.Context, st *stream, values ...any) error {
	a.args = append(a.args, values...)
	if len(a.args) < many*len(values) {
		return nil
	}
	n, err := a.exec(ctx, a.many, a.args...)
	st.stored += n
	a.args = a.args[:0]
	return err
}

// flush inserts the rows that are left.
func (a *appender) flush(ctx context.Context, st *stream, columns int) error {
	for args := a.args; len(args) > 0; args = args[columns:] {
		n, err := a.exec(ctx, a.one, args[:columns]...)
		if err != nil {
			return err
		}
		st.stored += n
	}
	a.args = a.args[:0]
	return nil
}

// stream returns what the transaction brings to a source so far.
func (a *appender) stream(ctx context.Context, topic string, o store.Origin, end *event.End) (*stream, error) {
	id := o.SourceID()
	st, ok := a.streams[id]
	if !ok {
		st = &stream{run: o.Run, topic: topic, last: -1}
		var err error
		st.source, err = a.number(ctx, addSource, findSource, id, o.Run, o.Attempt, o.Role, o.Index, o.Pod, o.Container, o.Stream)
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

// count adds what the transaction brought to what was there, and returns the
// runs that it brought something to.
func (a *appender) count(ctx context.Context) ([]string, error) {
	runs := make([]string, 0, len(a.streams))
	for _, st := range a.streams {
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

// name returns the number of a metric's name.
func (a *appender) name(ctx context.Context, name string) (int64, error) {
	if n, ok := a.names[name]; ok {
		return n, nil
	}
	n, err := a.number(ctx, addName, findName, name)
	a.names[name] = n
	return n, err
}

// trait returns the number of a unit and labels.
func (a *appender) trait(ctx context.Context, unit string, labels map[string]string) (int64, error) {
	key := trait{unit: unit}
	if len(labels) > 0 {
		b, err := json.Marshal(labels) // sorted by key
		if err != nil {
			return 0, err
		}
		key.labels = string(b)
	}
	if n, ok := a.traits[key]; ok {
		return n, nil
	}
	n, err := a.number(ctx, addTraits, findTraits, key.unit, key.labels)
	a.traits[key] = n
	return n, err
}

// number returns the number of what find finds, which insert makes if need be.
func (a *appender) number(ctx context.Context, insert, find string, args ...any) (n int64, err error) {
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

// number returns how a sample's value is stored: SQLite knows no NaN.
func number(v *event.Sample) (value, special any) {
	w := *v
	if w.Value != nil {
		w.Set(*w.Value)
	}
	if w.Value != nil {
		value = *w.Value
	}
	if w.Special != "" {
		special = w.Special
	}
	return value, special
}

func integer(p *int64) any {
	if p == nil {
		return nil
	}
	return *p
}

// Bits of a line's flags.
const (
	flagErr = 1 << iota
	flagCut
	flagOpen
)

func flags(l *event.Line) int64 {
	return bit(l.Err, flagErr) | bit(l.Cut, flagCut) | bit(l.Open, flagOpen)
}

func bit(set bool, b int64) int64 {
	if set {
		return b
	}
	return 0
}
