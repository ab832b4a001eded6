package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/cursor"
)

const (
	readStoredRun = "SELECT n, revision, created, labels, EXISTS (SELECT 1 FROM changes WHERE run = n AND event = ?) FROM runs WHERE id = ?"
	putRun        = `INSERT INTO runs(id, revision, created, owner, namespace, name, phase, outcome, labels, doc, low_id, low_name, low_file, low_task, schedule) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT(id) DO UPDATE SET revision = excluded.revision, created = excluded.created, owner = excluded.owner,
			namespace = excluded.namespace, name = excluded.name,
			phase = excluded.phase, outcome = excluded.outcome, labels = excluded.labels, doc = excluded.doc,
			low_name = excluded.low_name, low_file = excluded.low_file, low_task = excluded.low_task, schedule = excluded.schedule RETURNING n`
	putChange   = "INSERT INTO changes(run, revision, event, doc) VALUES (?, ?, ?, ?)"
	deleteLabel = "DELETE FROM labels WHERE key = ? AND value = ? AND created = ? AND id = ?"
	addLabel    = "INSERT INTO labels(key, value, created, id) VALUES (?, ?, ?, ?)"
	readRun     = "SELECT doc FROM runs WHERE id = ?"
	listChanges = "SELECT c.doc FROM runs r JOIN changes c ON c.run = r.n WHERE r.id = ? AND c.revision > ? ORDER BY c.revision LIMIT ?"
)

// PutRun implements store.Runs.
func (s *Store) PutRun(ctx context.Context, r store.Run, c store.Change) error {
	if err := c.Validate(r); err != nil {
		return err
	}
	run, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write run %q: %w: %w", r.ID, store.ErrRefused, err)
	}
	change, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write change %q of run %q: %w: %w", c.Event, r.ID, store.ErrRefused, err)
	}
	err = s.update(ctx, func(t tx) error {
		before, err := loadStoredRun(ctx, t, r.ID, c.Event)
		if err != nil {
			return err
		}
		if err := checkRevision(before, r, c); err != nil {
			return err
		}
		return put(ctx, t, before, r, run, c, change)
	})
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
		return err
	}
	if err != nil {
		return s.wrapError(fmt.Sprintf("write run %q", r.ID), err)
	}
	s.notifier.Notify(r.ID)
	return nil
}

// storedRun is the stored state of a run before a change. Its zero value means that there is none.
type storedRun struct {
	id, revision, created int64
	labels                string
	recorded              bool // the change was recorded before
}

// loadStoredRun returns the stored state of a run, and whether an event of it was recorded.
func loadStoredRun(ctx context.Context, t tx, run, ev string) (k storedRun, err error) {
	err = t.row(ctx, readStoredRun, ev, run).
		Scan(&k.id, &k.revision, &k.created, &k.labels, &k.recorded)
	if errors.Is(err, sql.ErrNoRows) {
		return storedRun{}, nil
	}
	return k, err
}

// checkRevision returns the error that the contract requires, if any.
func checkRevision(k storedRun, r store.Run, c store.Change) error {
	switch {
	case k.recorded:
		return fmt.Errorf("event %q of run %q: %w", c.Event, r.ID, store.ErrExists)
	case c.Revision != r.Revision || c.Revision != k.revision+1:
		return fmt.Errorf("write revision %d of run %q over %d: %w", c.Revision, r.ID, k.revision, store.ErrConflict)
	}
	return nil
}

// put stores a run and its change.
func put(ctx context.Context, t tx, k storedRun, r store.Run, run []byte, c store.Change, change []byte) error {
	labels, err := json.Marshal(r.Terms())
	if err != nil {
		return err
	}
	created := nanos(r.Created)
	begin, task := r.SearchTexts()
	if err := t.row(ctx, putRun,
		r.ID, r.Revision, created, r.Owner, r.Namespace, r.Name, r.Phase, r.Outcome, string(labels), run,
		blob(begin[0]), blob(begin[1]), blob(begin[2]), blob(task), r.Schedule).Scan(&k.id); err != nil {
		return err
	}
	if k.labels != string(labels) || k.created != created {
		if err := updateLabels(ctx, t, k, r, created); err != nil {
			return err
		}
	}
	_, err = t.exec(ctx, putChange, k.id, c.Revision, c.Event, change)
	return err
}

// updateLabels replaces the labels by which the run is found.
func updateLabels(ctx context.Context, t tx, k storedRun, r store.Run, created int64) error {
	var old map[string]string
	if k.labels != "" {
		if err := json.Unmarshal([]byte(k.labels), &old); err != nil {
			return err
		}
	}
	for key, value := range old {
		if _, err := t.exec(ctx, deleteLabel, key, value, k.created, r.ID); err != nil {
			return err
		}
	}
	for key, value := range r.Terms() {
		if _, err := t.exec(ctx, addLabel, key, value, created, r.ID); err != nil {
			return err
		}
	}
	return nil
}

// Run implements store.Runs.
func (s *Store) Run(ctx context.Context, id string) (store.Run, error) {
	var doc []byte
	err := s.row(ctx, readRun, id).Scan(&doc)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Run{}, fmt.Errorf("run %q: %w", id, store.ErrNotFound)
	}
	var r store.Run
	if err == nil {
		err = json.Unmarshal(doc, &r)
	}
	return r, s.wrapError(fmt.Sprintf("read run %q", id), err)
}

// Runs implements store.Runs.
func (s *Store) Runs(ctx context.Context, f store.RunFilter, token string, limit int) ([]store.Run, string, error) {
	if err := positive(limit); err != nil {
		return nil, "", err
	}
	purpose, err := s.cursorScope("runs", f)
	if err != nil {
		return nil, "", fmt.Errorf("list runs: %w: %w", store.ErrRefused, err)
	}
	q := newRunQuery(f)
	if token != "" {
		b, err := cursor.Decode(purpose, token)
		if err != nil {
			return nil, "", err
		}
		created, id := cursor.ReadVarint(b)
		beyond := "<"
		if f.Oldest {
			beyond = ">"
		}
		q.where("("+q.indexTable+".created, "+q.indexTable+".id) "+beyond+" (?, ?)", created, string(id))
	}
	var runs []store.Run
	var last []byte // place of the last run, sealed if another follows
	next := ""
	text, args := q.text(limit + 1)
	err = s.query(ctx, func(rows *sql.Rows) error {
		if len(runs) == limit {
			next = cursor.Encode(purpose, last)
			return nil
		}
		var created int64
		var doc []byte
		if err := rows.Scan(&created, &doc); err != nil {
			return err
		}
		var r store.Run
		err := json.Unmarshal(doc, &r)
		runs, last = append(runs, r), append(binary.AppendVarint(nil, created), r.ID...)
		return err
	}, text, args...)
	return runs, next, s.wrapError("list runs", err)
}

// runQuery is a query for runs in the making.
type runQuery struct {
	from       string
	indexTable string // the table whose index gives the order
	order      string // DESC, or ASC
	terms      []string
	args       []any
}

func (q *runQuery) where(term string, args ...any) {
	q.terms, q.args = append(q.terms, term), append(q.args, args...)
}

func (q *runQuery) text(limit int) (string, []any) {
	terms := ""
	if len(q.terms) > 0 {
		terms = " WHERE " + strings.Join(q.terms, " AND ")
	}
	return "SELECT r.created, r.doc FROM " + q.from + terms + " ORDER BY " + q.indexTable + ".created " + q.order + ", " + q.indexTable +
		".id " + q.order + " LIMIT ?", append(q.args, limit)
}

// newRunQuery returns the query for the runs that f selects. It walks an index in the order of the list, that of labels if f has any, so
// that a page costs only the runs that it shows. It avoids the index on phases or outcomes, which finds most runs or needs a sort, unless
// few runs can have these words or f has no other condition.
func newRunQuery(f store.RunFilter) *runQuery {
	q := &runQuery{from: "runs r", indexTable: "r", order: "DESC"}
	if f.Oldest {
		q.order = "ASC"
	}
	terms := f.Terms()
	for i, key := range slices.Sorted(maps.Keys(terms)) {
		if i == 0 {
			q.from, q.indexTable = "labels l CROSS JOIN runs r ON r.id = l.id", "l"
			q.where("l.key = ? AND l.value = ?", key, terms[key])
			continue
		}
		q.where("EXISTS (SELECT 1 FROM labels o WHERE o.key = ? AND o.value = ? AND o.created = l.created AND o.id = l.id)", key,
			terms[key])
	}
	for _, c := range []struct{ column, value string }{{"owner", f.Owner}, {"namespace", f.Namespace}, {"name", f.Name}} {
		if c.value != "" {
			q.where("r."+c.column+" = ?", c.value)
		}
	}
	if f.Schedule != "" {
		q.where("r.schedule <> '' AND r.schedule = ?", f.Schedule)
	}
	whereIn(q, "phase", f.Phases, !slices.Contains(f.Phases, event.PhaseFinished))
	whereIn(q, "outcome", f.Outcomes, false)
	if !f.Since.IsZero() {
		q.where(q.indexTable+".created >= ?", nanos(f.Since))
	}
	if !f.Until.IsZero() {
		q.where(q.indexTable+".created < ?", nanos(f.Until))
	}
	if f.Text != "" {
		text := blob(store.Fold(f.Text))
		q.where("(substr(r.low_id, 1, ?) = ? OR substr(r.low_name, 1, ?) = ? OR substr(r.low_file, 1, ?) = ? OR r.low_task = ?)",
			len(text), text, len(text), text, len(text), text, text)
	}
	return q
}

// blob returns text as bytes, which SQLite compares one by one; never nil, which
// would be NULL.
func blob(text string) []byte { return append([]byte{}, text...) }

// whereIn adds a condition that a column has one of words. A plus sign keeps SQLite from using the column's index.
func whereIn[T ~string](q *runQuery, column string, words []T, few bool) {
	if len(words) == 0 {
		return
	}
	plus := "+"
	if few || len(words) == 1 && len(q.terms) == 0 {
		plus = ""
	}
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = string(w)
	}
	q.where(plus+"r."+column+" IN (?"+strings.Repeat(", ?", len(words)-1)+")", args...)
}

// Changes implements store.Runs.
func (s *Store) Changes(ctx context.Context, run string, after int64, limit int) ([]store.Change, error) {
	if err := positive(limit); err != nil {
		return nil, err
	}
	var changes []store.Change
	err := s.query(ctx, func(rows *sql.Rows) error {
		var doc []byte
		if err := rows.Scan(&doc); err != nil {
			return err
		}
		var c store.Change
		err := json.Unmarshal(doc, &c)
		changes = append(changes, c)
		return err
	}, listChanges, run, after, limit)
	return changes, s.wrapError(fmt.Sprintf("list changes of run %q", run), err)
}

// nanos returns t as a number that orders times, also those outside the range of runs.
func nanos(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}
