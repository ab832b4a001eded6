package storetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Memory is a store that ends with its process: the contract in its simplest
// form, slow and without limits, which the drivers are compared to.
type Memory struct {
	mu      sync.Mutex
	docs    map[docKey]store.Doc
	runs    map[string]store.Run
	changes map[string][]store.Change // by run
	samples map[sampleKey]store.Sample
	lines   map[lineKey]store.Line
	streams map[streamKey]store.Stream
	points  map[string]store.RunPoints // by run
	cursors []cursorState              // by number, from 1
}

type (
	docKey    struct{ kind, key string }
	streamKey struct {
		origin store.Origin
		topic  string
	}
	lineKey struct {
		origin store.Origin
		seq    int64
	}
	sampleKey struct {
		lineKey
		sub  int
		name string
	}
	cursorState struct { // the query of a cursor, and the position
		query    string
		position any
	}
)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		docs: make(map[docKey]store.Doc), runs: make(map[string]store.Run), changes: make(map[string][]store.Change),
		samples: make(map[sampleKey]store.Sample), lines: make(map[lineKey]store.Line), streams: make(map[streamKey]store.Stream),
		points: make(map[string]store.RunPoints),
	}
}

// CreateDoc implements store.Docs.
func (m *Memory) CreateDoc(_ context.Context, d store.Doc) error {
	defer m.lock()()
	k := docKey{string(d.Kind), d.Key}
	if err := d.Validate(); err != nil {
		return err
	}
	if _, ok := m.docs[k]; ok {
		return store.ErrExists
	}
	d.Version = 1
	m.docs[k] = d
	return nil
}

// Doc implements store.Docs.
func (m *Memory) Doc(_ context.Context, kind store.Kind, key string) (store.Doc, error) {
	defer m.lock()()
	d, ok := m.docs[docKey{string(kind), key}]
	if !ok {
		return d, store.ErrNotFound
	}
	return d, nil
}

// ReplaceDoc implements store.Docs.
func (m *Memory) ReplaceDoc(_ context.Context, d store.Doc) (int64, error) {
	defer m.lock()()
	if err := d.Validate(); err != nil {
		return 0, err
	}
	k := docKey{string(d.Kind), d.Key}
	if old, ok := m.docs[k]; !ok || old.Version != d.Version {
		return 0, store.ErrConflict
	}
	d.Version++
	m.docs[k] = d
	return d.Version, nil
}

// DeleteDoc implements store.Docs.
func (m *Memory) DeleteDoc(_ context.Context, d store.Doc) error {
	defer m.lock()()
	if err := d.Validate(); err != nil {
		return err
	}
	k := docKey{string(d.Kind), d.Key}
	if old, ok := m.docs[k]; ok && d.Version != 0 && old.Version != d.Version {
		return store.ErrConflict
	}
	delete(m.docs, k)
	return nil
}

// Docs implements store.Lister.
func (m *Memory) Docs(_ context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	defer m.lock()()
	docs := pick(m.docs, func(d store.Doc) bool { return d.Kind == kind && d.Key > after })
	slices.SortFunc(docs, func(a, b store.Doc) int { return cmp.Compare(a.Key, b.Key) })
	return first(docs, limit)
}

// PutRun implements store.Runs.
func (m *Memory) PutRun(_ context.Context, r store.Run, c store.Change) error {
	defer m.lock()()
	if err := c.Validate(r); err != nil {
		return err
	}
	if slices.ContainsFunc(m.changes[r.ID], func(o store.Change) bool { return o.Event == c.Event }) {
		return store.ErrExists
	}
	if c.Revision != r.Revision || c.Revision != m.runs[r.ID].Revision+1 {
		return store.ErrConflict
	}
	m.runs[r.ID], m.changes[r.ID] = r, append(m.changes[r.ID], c)
	return nil
}

// Run implements store.Runs.
func (m *Memory) Run(_ context.Context, id string) (store.Run, error) {
	defer m.lock()()
	r, ok := m.runs[id]
	if !ok {
		return r, store.ErrNotFound
	}
	return r, nil
}

// Runs implements store.Runs.
func (m *Memory) Runs(_ context.Context, f store.RunFilter, token string, limit int) ([]store.Run, string, error) {
	defer m.lock()()
	after, err := resume(m, f, token, store.Run{})
	if err != nil {
		return nil, "", err
	}
	order := func(a, b store.Run) int {
		if f.Oldest {
			a, b = b, a
		}
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
	}
	runs := pick(m.runs, func(r store.Run) bool { return matches(f, r) && (token == "" || order(after, r) < 0) })
	slices.SortFunc(runs, order)
	page, err := first(runs, limit)
	if len(page) == len(runs) || err != nil {
		return page, "", err
	}
	return page, m.cursor(f, page[len(page)-1]), nil
}

// Changes implements store.Runs.
func (m *Memory) Changes(_ context.Context, run string, after int64, limit int) ([]store.Change, error) {
	defer m.lock()()
	return first(slices.DeleteFunc(slices.Clone(m.changes[run]), func(c store.Change) bool { return c.Revision <= after }), limit)
}

// AppendSamples implements store.Streams.
func (m *Memory) AppendSamples(_ context.Context, batches []store.Samples) error {
	defer m.lock()()
	if err := valid(batches); err != nil {
		return err
	}
	for _, b := range batches {
		st := m.stream(b.Origin, event.TopicMetrics, b.End)
		for _, s := range b.Samples {
			k := sampleKey{lineKey{b.Origin, s.Seq}, s.Sub, s.Name}
			if _, ok := m.samples[k]; !ok {
				if s.Value != nil {
					s.Set(*s.Value)
				}
				m.samples[k] = store.Sample{Origin: b.Origin, Sample: s}
				st.Stored, st.Last = st.Stored+1, max(st.Last, s.Seq)
			}
		}
		m.saveStream(st)
	}
	return nil
}

// AppendLines implements store.Streams.
func (m *Memory) AppendLines(_ context.Context, batches []store.Lines) error {
	defer m.lock()()
	if err := valid(batches); err != nil {
		return err
	}
	for _, b := range batches {
		st := m.stream(b.Origin, event.TopicLogs, b.End)
		for _, l := range b.Lines {
			k := lineKey{b.Origin, l.Seq}
			if _, ok := m.lines[k]; !ok {
				m.lines[k] = store.Line{Origin: b.Origin, Line: l}
				st.Stored, st.Last = st.Stored+1, max(st.Last, l.Seq)
			}
		}
		m.saveStream(st)
	}
	return nil
}

// Samples implements store.Streams.
func (m *Memory) Samples(_ context.Context, q store.SampleQuery, cursor string, limit int) ([]store.Sample, string, error) {
	defer m.lock()()
	at, err := resume(m, q, cursor, map[store.Origin]store.Sample{})
	if err != nil {
		return nil, "", err
	}
	samples := pick(m.samples, func(s store.Sample) bool {
		p, seen := at[s.Origin]
		return s.Origin.Run == q.Run && (len(q.Names) == 0 || slices.Contains(q.Names, s.Name)) && (!seen || compareSamples(p, s) < 0) &&
			(q.Since.IsZero() || s.Time >= q.Since.UnixNano()) && (q.Until.IsZero() || s.Time < q.Until.UnixNano())
	})
	slices.SortFunc(samples, compareSamples)
	page, err := first(samples, limit)
	at = maps.Clone(at)
	for _, s := range page {
		at[s.Origin] = s
	}
	return page, m.cursor(q, at), err
}

// Lines implements store.Streams.
func (m *Memory) Lines(_ context.Context, q store.LineQuery, cursor string, limit int) ([]store.Line, string, error) {
	defer m.lock()()
	at, err := resume(m, q.CursorScope(), cursor, map[store.Origin]int64{})
	if err != nil {
		return nil, "", err
	}
	at = maps.Clone(at)
	all := pick(m.lines, func(l store.Line) bool { return l.Origin.Run == q.Run && q.Matches(l.Origin) })
	slices.SortFunc(all, compareLines)
	if cursor == "" && !q.Since.IsZero() { // whatever the tokens
		seekSince(all, q.Since, at)
	}
	found := store.NewFinder(q.Tokens)
	all = slices.DeleteFunc(all, func(l store.Line) bool { return !found.Matches(l.Text) })
	if cursor == "" && q.Last > 0 {
		seekTail(all, q.Last, at)
	}
	page, err := first(slices.DeleteFunc(all, func(l store.Line) bool {
		p, seen := at[l.Origin]
		return seen && l.Seq <= p
	}), limit)
	for _, l := range page {
		at[l.Origin] = l.Seq
	}
	return page, m.cursor(q.CursorScope(), at), err
}

// seekTail moves the position in each source to before its last lines, unless it is farther already.
func seekTail(all []store.Line, last int, at map[store.Origin]int64) {
	n := make(map[store.Origin]int)
	for _, l := range slices.Backward(all) {
		id := l.Origin
		if n[id]++; n[id] != last {
			continue
		}
		if p, seen := at[id]; !seen || p < l.Seq-1 {
			at[id] = l.Seq - 1
		}
	}
}

// seekSince moves the position in each source to before its first line that was read at that time or later, or behind its last line, unless
// it is farther already.
func seekSince(all []store.Line, since time.Time, at map[store.Origin]int64) {
	started := make(map[store.Origin]bool)
	for _, l := range all {
		if started[l.Origin] {
			continue
		}
		started[l.Origin] = l.Time >= since.UnixNano()
		before := l.Seq
		if started[l.Origin] {
			before--
		}
		if p, seen := at[l.Origin]; !seen || p < before {
			at[l.Origin] = before
		}
	}
}

// Streams implements store.Streams.
func (m *Memory) Streams(_ context.Context, run string) ([]store.Stream, error) {
	defer m.lock()()
	streams := pick(m.streams, func(s store.Stream) bool { return s.Origin.Run == run })
	slices.SortFunc(streams, func(a, b store.Stream) int {
		return cmp.Or(compareOrigins(a.Origin, b.Origin), cmp.Compare(a.Topic, b.Topic))
	})
	return streams, nil
}

func (m *Memory) lock() (unlock func()) {
	m.mu.Lock()
	return m.mu.Unlock
}

// stream returns the stored stream of a source, with end if it has none yet.
func (m *Memory) stream(o store.Origin, topic string, end *event.End) store.Stream {
	st, ok := m.streams[streamKey{o, topic}]
	if !ok {
		st = store.Stream{Origin: o, Topic: topic, Last: -1}
	}
	if st.End == nil {
		st.End = end
	}
	return st
}

func (m *Memory) saveStream(st store.Stream) {
	if st.Stored > 0 || st.End != nil {
		m.streams[streamKey{st.Origin, st.Topic}] = st
	}
}

// cursor returns text for a place in the answer to a query.
func (m *Memory) cursor(query, position any) string {
	m.cursors = append(m.cursors, cursorState{fmt.Sprintf("%T%v", query, query), position})
	return "m" + strconv.Itoa(len(m.cursors))
}

// resume returns the position of a cursor, start if it is empty.
func resume[T any](m *Memory, query any, cursor string, start T) (T, error) {
	if cursor == "" {
		return start, nil
	}
	n, err := strconv.Atoi(strings.TrimPrefix(cursor, "m"))
	if err != nil || cursor[0] != 'm' || n < 1 || n > len(m.cursors) || m.cursors[n-1].query != fmt.Sprintf("%T%v", query, query) {
		return start, store.ErrCursor
	}
	position, _ := m.cursors[n-1].position.(T)
	return position, nil
}

func matches(f store.RunFilter, r store.Run) bool {
	for k, v := range f.Labels {
		if got, ok := r.Labels[k]; !ok || got != v {
			return false
		}
	}
	return matchesUse(f, r) && matchesSet(f, r) && matchesField(f.Owner, r.Owner) && matchesField(f.Namespace, r.Namespace) &&
		matchesField(f.Name, r.Name) && matchesField(f.Schedule, r.Schedule) &&
		(len(f.Phases) == 0 || slices.Contains(f.Phases, r.Phase)) && (len(f.Outcomes) == 0 || slices.Contains(f.Outcomes, r.Outcome)) &&
		!r.Created.Before(f.Since) && (f.Until.IsZero() || r.Created.Before(f.Until)) && matchesText(r, f.Text)
}

// matchesUse reports whether a run has the framework and data that a filter requires.
func matchesUse(f store.RunFilter, r store.Run) bool {
	return matchesField(f.Framework, r.Framework) && matchesField(f.FrameworkVersion, r.FrameworkVersion) &&
		(f.DataID == "" || slices.Contains(r.DataIDs, f.DataID))
}

// matchesSet reports whether a run belongs to the set, and to the cell of that, which a filter requires.
func matchesSet(f store.RunFilter, r store.Run) bool {
	return f.Set == "" || f.Set == r.Set && matchesField(f.Cell, r.Cell)
}

// matchesText reports whether the search text of a filter finds a run.
func matchesText(r store.Run, text string) bool {
	text = store.Fold(text)
	begin, task := r.SearchTexts()
	return text == "" || text == task || slices.ContainsFunc(begin, func(s string) bool { return strings.HasPrefix(s, text) })
}

// matchesField reports whether got is the required value, or none is required.
func matchesField(want, got string) bool { return want == "" || want == got }

func compareOrigins(a, b store.Origin) int {
	if a == b {
		return 0
	}
	return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.StreamID(), b.StreamID()))
}

func compareLines(a, b store.Line) int {
	return cmp.Or(compareOrigins(a.Origin, b.Origin), cmp.Compare(a.Seq, b.Seq))
}

func compareSamples(a, b store.Sample) int {
	return cmp.Or(compareOrigins(a.Origin, b.Origin), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Sub, b.Sub), cmp.Compare(a.Name, b.Name))
}

func valid[T interface{ Validate() error }](vs []T) error {
	for _, v := range vs {
		if err := v.Validate(); err != nil {
			return err
		}
	}
	return nil
}

func pick[K comparable, V any](m map[K]V, keep func(V) bool) (kept []V) {
	for _, v := range m {
		if keep(v) {
			kept = append(kept, v)
		}
	}
	return kept
}

func first[T any](s []T, limit int) ([]T, error) {
	if limit < 1 {
		return nil, store.ErrRefused
	}
	return s[:min(limit, len(s))], nil
}
