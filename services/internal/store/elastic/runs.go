package elastic

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/cursor"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/client"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/names"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
	"github.com/benchmark-ai/bai/services/internal/store/notifier"
)

// runDoc is a run as it is stored. The run and its newest change are one document, so that both are written or neither; the change moves to
// the index of changes before the next one replaces it.
type runDoc struct {
	Timestamp string            `json:"@timestamp"`
	Run       runFacts          `json:"run"`
	Labels    map[string]string `json:"labels,omitempty"`
	Find      runSearchFields   `json:"find"`
	Doc       store.Run         `json:"doc"`
	Change    store.Change      `json:"change"`
}

// runFacts are the fields of a run for dashboards.
type runFacts struct {
	ID         string        `json:"id"`
	Name       string        `json:"name,omitempty"`
	Namespace  string        `json:"namespace"`
	Owner      string        `json:"owner"`
	File       string        `json:"file,omitempty"`
	Task       string        `json:"task,omitempty"`
	Phase      event.Phase   `json:"phase"`
	Outcome    event.Outcome `json:"outcome,omitempty"`
	Class      event.Class   `json:"class,omitempty"`
	Reason     event.Reason  `json:"reason,omitempty"`
	Message    string        `json:"message,omitempty"`
	Attempt    int           `json:"attempt"`
	ExitCode   *int          `json:"exit_code,omitempty"`
	Revision   int64         `json:"revision"`
	Updated    *time.Time    `json:"updated,omitempty"`
	Started    *time.Time    `json:"started,omitempty"`
	Ended      *time.Time    `json:"ended,omitempty"`
	Duration   *float64      `json:"duration,omitempty"`
	Set        string        `json:"set,omitempty"`
	Cell       string        `json:"cell,omitempty"`
	Repetition int           `json:"repetition,omitempty"`
	Warmup     bool          `json:"warmup,omitempty"`
	Schedule   string        `json:"schedule,omitempty"`
	Firing     *time.Time    `json:"firing,omitempty"`
	RerunOf    string        `json:"rerun_of,omitempty"`
}

// runSearchFields are the fields by which runs are listed.
type runSearchFields struct {
	Created int64    `json:"created"`
	Begin   []string `json:"begin"`
	Task    string   `json:"task"`
	Labels  []string `json:"labels,omitempty"`
}

// statusDoc is a change as it is stored.
type statusDoc struct {
	Timestamp string       `json:"@timestamp"`
	Run       statusRun    `json:"run"`
	Revision  int64        `json:"revision"`
	Event     statusEvent  `json:"event"`
	Message   string       `json:"message,omitempty"`
	Late      bool         `json:"late,omitempty"`
	Doc       store.Change `json:"doc"`
}

type statusRun struct {
	ID      string        `json:"id"`
	Attempt int           `json:"attempt"`
	Phase   event.Phase   `json:"phase"`
	Outcome event.Outcome `json:"outcome,omitempty"`
	Class   event.Class   `json:"class,omitempty"`
	Reason  event.Reason  `json:"reason,omitempty"`
}

type statusEvent struct {
	ID    string `json:"id"`
	Topic string `json:"topic"`
}

// newRunDoc returns the document of a run and its newest change.
func newRunDoc(r store.Run, c store.Change) runDoc {
	begin, task := r.SearchTexts()
	d := runDoc{
		Timestamp: names.Timestamp(names.Nanos(r.Created)), Doc: r, Change: c, Run: newRunFacts(r),
		Find: runSearchFields{Created: names.Nanos(r.Created), Task: names.Term(task)},
	}
	for _, b := range begin {
		d.Find.Begin = append(d.Find.Begin, names.TruncateTerm(b))
	}
	terms := r.Terms()
	for _, k := range slices.Sorted(maps.Keys(terms)) {
		d.Find.Labels = append(d.Find.Labels, names.Digest(k, terms[k]))
	}
	d.Labels, _ = names.Searchable(r.Labels)
	return d
}

func newRunFacts(r store.Run) runFacts {
	f := runFacts{
		ID: names.Term(r.ID), Name: names.Term(r.Name), Namespace: names.Term(r.Namespace), Owner: names.Term(r.Owner),
		File: names.Term(r.File), Task: names.Term(r.Labels[store.LabelTask]),
		Phase: r.Phase, Outcome: r.Outcome, Class: r.Class, Reason: r.Reason, Message: r.Message, Attempt: r.Attempt,
		ExitCode: r.ExitCode, Revision: r.Revision,
		Updated: date(&r.Updated), Started: date(r.Started), Ended: date(r.Ended),
		Set: names.Term(r.Set), Cell: names.Term(r.Cell), Repetition: r.Repetition, Warmup: r.Warmup, Schedule: names.Term(r.Schedule),
		Firing: date(r.Firing), RerunOf: names.Term(r.RerunOf),
	}
	if r.Started != nil && r.Ended != nil {
		seconds := r.Ended.Sub(*r.Started).Seconds()
		f.Duration = &seconds
	}
	return f
}

// date returns a time for dashboards.
func date(t *time.Time) *time.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	utc := t.UTC().Truncate(time.Millisecond)
	return &utc
}

func newStatusDoc(c store.Change) statusDoc {
	return statusDoc{
		Timestamp: names.Timestamp(names.Nanos(c.Time)), Revision: c.Revision, Event: statusEvent{names.Term(c.Event), c.Topic},
		Message: c.Message, Late: c.Late, Doc: c,
		Run: statusRun{names.Term(c.Run), c.Attempt, c.Phase, c.Outcome, c.Class, c.Reason},
	}
}

// status returns the index of a run's changes, and statusID the ID of one.
func (s *runStore) status(run string) string {
	return s.client.Index(schema.Status, names.Partition(run))
}

func statusID(run, ev string) string { return names.Digest(run, ev) }

// runStore implements store.Runs.
type runStore struct {
	client   *client.Client
	schema   *schema.Schema
	notifier *notifier.Notifier
}

// PutRun implements store.Runs.
func (s *runStore) PutRun(ctx context.Context, r store.Run, c store.Change) error {
	if err := c.Validate(r); err != nil {
		return err
	}
	if err := s.schema.Ensure(ctx); err != nil {
		return err
	}
	err := s.putRun(ctx, r, c)
	if err != nil {
		return wrapError(fmt.Sprintf("write change %q of run %q", c.Event, r.ID), err)
	}
	s.notifier.Notify(r.ID)
	return nil
}

// putRun looks for the event first in the run's document and then among the older changes. A change that is recorded meanwhile changes the
// run's document, so that the write fails.
func (s *runStore) putRun(ctx context.Context, r store.Run, c store.Change) error {
	var before runDoc
	at, err := s.client.Get(ctx, s.client.Index(schema.Runs), names.Run(r.ID), &before)
	fresh := errors.Is(err, store.ErrNotFound)
	if err != nil && !fresh {
		return err
	}
	if recorded, err := s.recorded(ctx, before, r.ID, c.Event); err != nil || recorded {
		return errors.Join(err, errIf(recorded, store.ErrExists))
	}
	if c.Revision != r.Revision || c.Revision != before.Doc.Revision+1 {
		return fmt.Errorf("revision %d over %d: %w", c.Revision, before.Doc.Revision, store.ErrConflict)
	}
	after := newRunDoc(r, c)
	if fresh {
		if err := s.client.Create(ctx, s.client.Index(schema.Runs), names.Run(r.ID), after); errors.Is(err, store.ErrExists) {
			return s.conflictError(ctx, r, c)
		} else if err != nil {
			return err
		}
		return s.putChange(ctx, c)
	}
	if err := s.putChange(ctx, before.Change); err != nil {
		return err
	}
	if err := s.client.Replace(ctx, s.client.Index(schema.Runs), names.Run(r.ID), at, after); errors.Is(err, store.ErrConflict) {
		return s.conflictError(ctx, r, c)
	} else if err != nil {
		return err
	}
	return s.putChange(ctx, c)
}

// conflictError returns the error if another writer has written the run meanwhile: that writer may have recorded the same event.
func (s *runStore) conflictError(ctx context.Context, r store.Run, c store.Change) error {
	var now runDoc
	if _, err := s.client.Get(ctx, s.client.Index(schema.Runs), names.Run(r.ID), &now); err != nil {
		return err
	}
	recorded, err := s.recorded(ctx, now, r.ID, c.Event)
	if err == nil && recorded {
		return store.ErrExists
	}
	return errors.Join(err, errIf(!recorded, store.ErrConflict))
}

func errIf(cond bool, err error) error {
	if cond {
		return err
	}
	return nil
}

// recorded reports whether an event of a run was recorded.
func (s *runStore) recorded(ctx context.Context, d runDoc, run, ev string) (bool, error) {
	if d.Change.Event == ev || d.Doc.Revision == 0 {
		return d.Change.Event == ev, nil
	}
	var c struct{}
	_, err := s.client.Get(ctx, s.status(run), statusID(run, ev), &c)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// putChange writes a change to the index of changes, once.
func (s *runStore) putChange(ctx context.Context, c store.Change) error {
	err := s.client.Create(ctx, s.status(c.Run), statusID(c.Run, c.Event), newStatusDoc(c))
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}

// Run implements store.Runs.
func (s *runStore) Run(ctx context.Context, id string) (store.Run, error) {
	d, err := s.run(ctx, id)
	return d.Doc, wrapError(fmt.Sprintf("read run %q", id), err)
}

func (s *runStore) run(ctx context.Context, id string) (d runDoc, err error) {
	if err := s.schema.Ensure(ctx); err != nil {
		return d, err
	}
	_, err = s.client.Get(ctx, s.client.Index(schema.Runs), names.Run(id), &d)
	return d, err
}

// Changes implements store.Runs.
func (s *runStore) Changes(ctx context.Context, run string, after int64, limit int) ([]store.Change, error) {
	if err := positive(limit); err != nil {
		return nil, err
	}
	changes, err := s.changes(ctx, run, after, limit)
	return changes, wrapError(fmt.Sprintf("list changes of run %q", run), err)
}

// changes returns the changes that searches show, as far as they have no gap, then the newest. If searches do not show one yet, it
// refreshes the index.
func (s *runStore) changes(ctx context.Context, run string, after int64, limit int) ([]store.Change, error) {
	d, err := s.run(ctx, run)
	if errors.Is(err, store.ErrNotFound) || err == nil && after >= d.Doc.Revision {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	after = max(after, 0)
	older := int(min(int64(limit), d.Doc.Revision-1-after))
	changes, err := s.olderChanges(ctx, run, after, older)
	if err == nil && len(changes) < older {
		if _, err = s.client.Call(ctx, http.MethodPost, "/"+s.status(run)+"/_refresh", nil, nil); err == nil {
			changes, err = s.olderChanges(ctx, run, after, older)
		}
	}
	if err == nil && len(changes) == older && older < limit {
		changes = append(changes, d.Change)
	}
	return changes, err
}

// olderChanges returns up to n changes without a gap after a revision, as searches show them.
func (s *runStore) olderChanges(ctx context.Context, run string, after int64, n int) (changes []store.Change, err error) {
	for len(changes) < n {
		size := min(n-len(changes), page)
		hits, err := s.client.Search(ctx, s.status(run), client.Search{
			Preference: names.Preference(run), Size: size, Sort: []any{client.Asc("revision")}, Source: []string{"doc"},
			Query: client.AllOf(client.Term("run.id", names.Term(run)), client.Compare("revision", "gt", after)),
		})
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			var d statusDoc
			if err := json.Unmarshal(h.Source, &d); err != nil {
				return nil, err
			}
			if d.Doc.Revision != after+1 { // searches do not show the one in between yet
				return changes, nil
			}
			changes, after = append(changes, d.Doc), after+1
		}
		if len(hits) < size {
			return changes, nil
		}
	}
	return changes, nil
}

// Runs implements store.Runs.
func (s *runStore) Runs(ctx context.Context, f store.RunFilter, token string, limit int) ([]store.Run, string, error) {
	if err := positive(limit); err != nil {
		return nil, "", err
	}
	purpose, err := cursorScope(s.client.Settings.Prefix, "runs", f)
	if err != nil {
		return nil, "", fmt.Errorf("list runs: %w: %w", store.ErrRefused, err)
	}
	var after []any
	if token != "" {
		b, err := cursor.Decode(purpose, token)
		if err != nil {
			return nil, "", err
		}
		created, id := cursor.ReadVarint(b)
		after = []any{created, string(id)}
	}
	runs, more, err := s.runs(ctx, f, after, limit)
	if err != nil || !more {
		return runs, "", wrapError("list runs", err)
	}
	last := runs[len(runs)-1]
	return runs, cursor.Encode(purpose, append(binary.AppendVarint(nil, names.Nanos(last.Created)), names.Term(last.ID)...)), nil
}

// runs returns up to limit runs after a place, and whether more follow.
func (s *runStore) runs(ctx context.Context, f store.RunFilter, after []any, limit int) (runs []store.Run, more bool, err error) {
	order := client.Desc
	if f.Oldest {
		order = client.Asc
	}
	for {
		size := min(limit-len(runs)+1, page)
		hits, err := s.client.Search(ctx, s.client.Index(schema.Runs), client.Search{
			Size: size, Sort: []any{order("find.created"), order("run.id")}, Source: []string{"doc"}, After: after, Query: runConditions(f),
		})
		if err != nil {
			return nil, false, err
		}
		for _, h := range hits {
			if len(runs) == limit {
				return runs, true, nil
			}
			var d runDoc
			if err := json.Unmarshal(h.Source, &d); err != nil {
				return nil, false, err
			}
			runs, after = append(runs, d.Doc), []any{names.Nanos(d.Doc.Created), names.Term(d.Doc.ID)}
		}
		if len(hits) < size {
			return runs, false, nil
		}
	}
}

// runConditions returns the query for the runs that f selects.
func runConditions(f store.RunFilter) any {
	var conditions []any
	for field, value := range map[string]string{
		"run.owner": f.Owner, "run.namespace": f.Namespace, "run.name": f.Name,
		"run.schedule": f.Schedule,
	} {
		if value != "" {
			conditions = append(conditions, client.Term(field, names.Term(value)))
		}
	}
	if len(f.Phases) > 0 {
		conditions = append(conditions, client.Terms("run.phase", f.Phases))
	}
	if len(f.Outcomes) > 0 {
		conditions = append(conditions, client.Terms("run.outcome", f.Outcomes))
	}
	for k, v := range f.Terms() {
		conditions = append(conditions, client.Term("find.labels", names.Digest(k, v)))
	}
	if !f.Since.IsZero() {
		conditions = append(conditions, client.Compare("find.created", "gte", names.Nanos(f.Since)))
	}
	if !f.Until.IsZero() {
		conditions = append(conditions, client.Compare("find.created", "lt", names.Nanos(f.Until)))
	}
	if f.Text != "" {
		text := store.Fold(f.Text)
		conditions = append(conditions,
			client.AnyOf(client.Prefix("find.begin", names.TruncateTerm(text)), client.Term("find.task", names.Term(text))))
	}
	return client.AllOf(conditions...)
}
